# No byte depends on the vector instructions of a machine; MXFP4_REPACK_SIMD takes only what it has.
need_numpy
MXFP4_REPACK_SIMD=abacus expect_exit 2 "$BIN" list backends
expect_one_error 'MXFP4_REPACK_SIMD: expected one of .*, found abacus$'
sets=$(sed -n 's/.*expected one of \(.*\), found .*/\1/p' stderr | tr -d ,)
[ -n "$sets" ] || fail 'no instruction sets'

"$python" -c 'import layer_files; layer_files.make_gpt_oss("model", 1, 4, 640, 512)'
for flags in '--backend TRITON --arch sm90' '--backend MARLIN --arch sm80' '--backend CPU --arch x86_64' \
  '--backend FLASHINFER_CUTLASS_MXFP4_BF16 --arch sm90 --revision vllm-2026-05-18'; do
  rm -rf want
  # shellcheck disable=SC2086
  convert_quietly model -o want $flags
  for set in $sets; do
    rm -rf got
    # shellcheck disable=SC2086
    MXFP4_REPACK_SIMD=$set convert_quietly model -o got $flags
    diff -r want got || fail "$flags with $set"
    MXFP4_REPACK_SIMD=$set expect_exit 0 "$BIN" verify got --against model
  done
done
