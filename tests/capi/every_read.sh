# Every system call of the C library's reading fails once: every_read.py.
need_numpy
preloaded "$FAULT_TEST" eager . . >words 2>&1 || true
grep -q mxfp4_repack.json words || skip 'nothing can be preloaded into this build'
if slow; then export MXFP4_READS=${MXFP4_READS:-40}; fi
"$python" -c 'import layer_files; layer_files.make_gpt_oss("model", 1, 2, 64, 64)'
convert_quietly model -o plain --backend TRITON --arch sm90 --compress none
convert_quietly model -o zstd --backend TRITON --arch sm90
convert_quietly model -o level9 --backend TRITON --arch sm90 --level 9
"$python" "$SOURCE_DIR/tests/capi/every_read.py"
