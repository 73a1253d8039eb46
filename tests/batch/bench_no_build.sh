# scripts/bench --no-build where nothing is built: one line says so, and nothing is left behind.
mkdir empty ram
expect_exit 1 "$python" "$SOURCE_DIR/scripts/bench" --no-build --build empty --dir ram layouts
[ "$(cat stderr)" = "bench: mxfp4_bench is not built in $PWD/empty: leave out --no-build" ] || fail "$(cat stderr)"
expect_exit 1 "$python" "$SOURCE_DIR/scripts/bench" --no-build --build empty --dir ram verify
grep -q '^bench: mxfp4-repack is not built' stderr || fail "$(cat stderr)"
[ -z "$(ls -A ram)" ] || fail 'files are left'
