# A power cut at each step of the commands that write: power_cut.py, which says how to replay a failure.
PRELOAD=$TRACE need_preloading
if slow; then export MXFP4_CUTS=${MXFP4_CUTS:-16}; fi
"$python" "$SOURCE_DIR/tests/cli/power_cut.py"
