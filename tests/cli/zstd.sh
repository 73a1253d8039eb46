# Compressed layer files for readers that know nothing of this program: zstd's own tools accept them, and give the bytes of
# --compress none. Frames, the seek table and damage of them: the witness, cli.verify_flips, test_frames.
command -v zstd >/dev/null || skip 'zstd is not installed'
need_numpy
"$python" -c 'import layer_files; layer_files.make_gpt_oss("model", 2, 6, 320, 192)'
while read -r backend arch; do
  rm -rf zstd plain
  convert_quietly model -o zstd --backend "$backend" --arch "$arch" --allow-known-defects --revision vllm-2026-05-18
  convert_quietly model -o plain --backend "$backend" --arch "$arch" --allow-known-defects --compress none --revision vllm-2026-05-18
  for file in zstd/*.zst; do
    zstd -tq "$file" || fail "$backend: zstd -t"
    plain=plain/$(basename "$file" .zst)
    zstd -dcq "$file" | cmp - "$plain" || fail "$backend: zstd -dc"
    [ "$(stat -c %s "$file")" -lt "$(stat -c %s "$plain")" ] || fail "$file is not smaller"
  done
done <<'END'
FLASHINFER_TRTLLM_MXFP4_MXFP8 sm100
FLASHINFER_CUTLASS_MXFP4_BF16 sm90
TRITON sm90
MARLIN sm80
END
