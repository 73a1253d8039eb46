# The text of the GPU's kernels that lies in the tree is what their source gives.
type clang-14 >/dev/null 2>&1 || exit 77
"$SOURCE_DIR/scripts/make-gpu-kernels" "$PWD/kernels.ptx"
cmp kernels.ptx "$SOURCE_DIR/formats/loader/gpu/gpu_kernels.ptx" || fail 'scripts/make-gpu-kernels gives another text'
