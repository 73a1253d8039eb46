# Every system call of the commands that write fails once: every_call.py, which says how to replay a failure.
need_preloading
if slow; then export MXFP4_CALLS=${MXFP4_CALLS:-60} MEMORY_FAULTS=; fi
"$python" "$SOURCE_DIR/tests/cli/every_call.py"
