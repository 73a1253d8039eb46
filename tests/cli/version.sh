# One version: the program, the Python package, the Debian package and the batch examples agree, and the
# change log has an entry for it.
version=$("$SOURCE_DIR/scripts/set-version")
expect_exit 0 "$BIN" --version
grep -qw "$version" stdout || fail "the program is not $version: $(cat stdout)"
"$SOURCE_DIR/scripts/set-version" --check || fail 'the files disagree'
expect_exit 1 "$SOURCE_DIR/scripts/set-version" --check 9.9.9
grep -q 'not 9.9.9' stderr || fail 'another version passes'
expect_exit 1 "$SOURCE_DIR/scripts/changelog-entry" 9.9.9
[ "$("$SOURCE_DIR/scripts/changelog-entry" 0.1.0 | wc -l)" -gt 2 ] || fail 'no entry for 0.1.0'
