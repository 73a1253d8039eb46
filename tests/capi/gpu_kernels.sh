# The texts of the GPU's kernels that lie in the tree are what their sources give.
type clang-14 >/dev/null 2>&1 || exit 77
"$SOURCE_DIR/scripts/make-gpu-kernels" "$PWD"
for text in *.ptx; do
  cmp "$text" "$SOURCE_DIR/formats/loader/gpu/$text" || fail "scripts/make-gpu-kernels gives another $text"
done
