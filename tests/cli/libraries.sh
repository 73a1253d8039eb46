# No library is taken from the current directory. What ldd does, for a program of any processor.
LD_TRACE_LOADED_OBJECTS=1 "$BIN" >loaded
for library in $(awk '/^\tlib/ { print $1 }' loaded); do echo damaged >"$library"; done
compgen -G 'lib*' >/dev/null || fail 'the loader names no library'
expect_exit 0 "$BIN" --version
