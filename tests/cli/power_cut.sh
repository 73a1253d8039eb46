# A power cut at each step of the commands that write: power_cut.py, which says how to replay a failure.
env LD_PRELOAD="$TRACE" ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0 "$BIN" --version >/dev/null 2>&1 ||
  skip 'nothing can be preloaded into this build'
if slow; then export MXFP4_CUTS=${MXFP4_CUTS:-16}; fi
"$python" "$SOURCE_DIR/tests/cli/power_cut.py"
