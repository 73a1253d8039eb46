# Somebody swaps a path at each system call of the commands that write: every_swap.py, which says how to replay a failure.
env LD_PRELOAD="$FAULTS" ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0 "$BIN" --version >/dev/null 2>&1 ||
  skip 'nothing can be preloaded into this build'
if slow; then export MXFP4_SWAPS=${MXFP4_SWAPS:-16}; fi
"$python" "$SOURCE_DIR/tests/cli/every_swap.py"
