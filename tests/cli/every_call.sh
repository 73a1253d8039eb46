# Every system call of the commands that write fails once: every_call.py, which says how to replay a failure.
env LD_PRELOAD="$FAULTS" ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0 "$BIN" --version >/dev/null 2>&1 ||
  skip 'nothing can be preloaded into this build'
if slow; then export MXFP4_CALLS=${MXFP4_CALLS:-60} MEMORY_FAULTS=; fi
"$python" "$SOURCE_DIR/tests/cli/every_call.py"
