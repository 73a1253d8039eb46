# One version: the program, the Python package, the Debian package and the batch examples agree, and the
# change log has an entry for it.
version=$("$SOURCE_DIR/scripts/set-version")
expect_exit 0 "$BIN" --version
grep -qw "$version" stdout || fail "the program is not $version: $(cat stdout)"
"$SOURCE_DIR/scripts/set-version" --check || fail 'the files disagree'
expect_exit 1 "$SOURCE_DIR/scripts/set-version" --check 9.9.9
grep -q 'not 9.9.9' stderr || fail 'another version passes'
mkdir -p tree/scripts/python
cp "$SOURCE_DIR/CMakeLists.txt" tree
cp "$SOURCE_DIR/scripts/set-version" tree/scripts
cp "$SOURCE_DIR/scripts/python/pyproject.toml" tree/scripts/python
expect_exit 2 tree/scripts/set-version --home nowhere
for home in https://example.org/first https://example.org/a-b/c; do expect_exit 0 tree/scripts/set-version --home $home; done
grep -qx "        HOMEPAGE_URL \"$home\").*" tree/CMakeLists.txt || fail 'no address for program and packages'
grep -qx "urls = { Homepage = \"$home\" }" tree/scripts/python/pyproject.toml || fail 'no address for the wheel'
expect_exit 1 "$SOURCE_DIR/scripts/changelog-entry" 9.9.9
[ "$("$SOURCE_DIR/scripts/changelog-entry" 0.1.0 | wc -l)" -gt 2 ] || fail 'no entry for 0.1.0'
