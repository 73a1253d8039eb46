# The engine's command behind a conversion: flags, variables and the blob's place.
model=$TESTDATA/ingest/dsv4
cp -r "$model" m
cp -r "$TESTDATA/ingest/gptoss_hf" g
# COMMAND|arguments of convert
while IFS='|' read -r line arguments; do
  rm -rf o m-mxfp4_repack
  # shellcheck disable=SC2086
  expect_exit 0 "$BIN" convert $arguments
  # Long lines are broken as a shell takes them.
  cat stdout stderr | sed ':a; /\\$/ { N; s/ \\\n */ /; ba }' | grep -qxF "serve: $line" || { cat stdout stderr >&2; fail "convert $arguments: not $line"; }
  out=$(ls -d o m-mxfp4_repack 2>/dev/null || true)
  expect_exit 0 "$BIN" inspect "$out" --serve
  [ "$(sed "s/ MODEL / ${arguments%% *} /" stdout)" = "$line" ] || { cat stdout >&2; fail "inspect $out --serve: not $line"; }
done <<'END'
vllm serve m --load-format mxfp4_repack|m -o m-mxfp4_repack --arch sm100
vllm serve m --load-format mxfp4_repack --model-loader-extra-config '{"blob":"o"}' --moe-backend marlin|m -o o --arch sm90 --backend MARLIN
VLLM_ROCM_USE_AITER=1 vllm serve m --load-format mxfp4_repack --tensor-parallel-size 2|m -o m-mxfp4_repack --arch gfx950 --env VLLM_ROCM_USE_AITER=1 --tp-size 2
vllm serve o --load-format mxfp4_repack --data-parallel-size 2 --enable-expert-parallel --moe-backend marlin|m -o o --include-rest --arch sm90 --moe-backend marlin --dp-size 2 --enable-expert-parallel
MXFP4_REPACK_BLOB=o MXFP4_REPACK_SKIP_RAW=1 python3 -m sglang.launch_server --model-path g --moe-runner-backend triton_kernel --tp-size 2|g -o o --engine sglang --arch sm90 --tp-size 2 --moe-backend triton_kernel
END
expect_exit 0 "$BIN" explain m --arch sm90 --moe-backend marlin --tp-size 2
grep -qx '  #   vllm serve m --load-format mxfp4_repack --moe-backend marlin --tensor-parallel-size 2' stdout || fail 'explain: another deployment'

# Where the blob lies in the model, of a rank, of a blob's blob; and what no engine reads.
rm -rf o m-mxfp4_repack
convert_quietly m -o o --arch sm90 --backend MARLIN --tp-size 2
expect_exit 0 "$BIN" inspect o/rank-01-of-02 --serve
grep -qF '{"blob":"o"}' stdout || fail 'the ranks lie in o'
mv stdout line
expect_exit 0 "$BIN" inspect o/rank-01-of-02
sed -n '/^serve: /,$p' stdout | sed ':a; /\\$/ { N; s/ \\\n */ /; ba }' | sed 's/^serve: //' | cmp - line || { cat stdout >&2; fail 'another line than --serve'; }
expect_exit 0 "$BIN" convert o -o again --arch sm90 --backend MARLIN
grep -qx 'serve: vllm serve MODEL .*' stdout || { cat stdout >&2; fail 'a blob is no model'; }
mv o m/mxfp4_repack
for path in m m/mxfp4_repack m/; do
  expect_exit 0 "$BIN" inspect $path --serve
  grep -qx 'vllm serve m/* --load-format mxfp4_repack --moe-backend marlin --tensor-parallel-size 2' stdout || { cat stdout >&2; fail "$path"; }
done
expect_exit 0 "$BIN" convert g -o loaded --arch sm90 --emit loaded
! grep -q '^serve:' stdout || fail 'no engine reads the loaded layout'
expect_exit 4 "$BIN" inspect loaded --serve
expect_exit 0 "$BIN" inspect loaded --json
