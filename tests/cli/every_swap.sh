# Somebody swaps a path at each system call of the commands that write: every_swap.py, which says how to replay a failure.
need_preloading
if slow; then export MXFP4_SWAPS=${MXFP4_SWAPS:-16}; fi
"$python" "$SOURCE_DIR/tests/cli/every_swap.py"
