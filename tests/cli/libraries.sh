# No library is taken from the current directory.
for library in $(ldd "$BIN" | awk '/^\tlib/ { print $1 }'); do echo damaged >"$library"; done
compgen -G 'lib*' >/dev/null || fail 'ldd names no library'
expect_exit 0 "$BIN" --version
