# What a newer engine revision changes: for a deployment, and for a blob that is there.
old=vllm-2026-05-18 new=vllm-2026-08-17
model=$TESTDATA/ingest/dsv4

expect_exit 0 "$BIN" list revisions
grep -q "^$old (default)" stdout || fail 'the default revision is not marked'
grep -q "^$new" stdout || fail "$new is not listed"

expect_exit 0 "$BIN" explain "$model" --arch gfx950 --env VLLM_ROCM_USE_AITER=1 --against $new
grep -q "$old  TRITON_UNFUSED" stdout || fail 'the backend here is not named'
grep -q "$new  AITER_MXFP4_BF16" stdout || fail 'the backend there is not named'
grep -q 'convert again' stdout || fail 'it is not said that the blob changes'
[ "$(awk '{ if (length > 80) n++ } END { print n + 0 }' stdout)" = 0 ] || fail 'wider than 80 columns'

expect_exit 0 "$BIN" explain "$model" --arch sm80 --against $new --json
/usr/bin/python3 -c 'import json; assert json.load(open("stdout"))["repack"] is False' ||
  fail 'sm80 should keep its bytes'

# MARLIN's bytes stay; TRTLLM pads I otherwise there.
expect_exit 0 "$BIN" convert "$model" -o marlin --arch sm80 -q
expect_exit 0 "$BIN" inspect marlin --revision $new
grep -q "serves  *$new: yes" stdout || fail 'a MARLIN blob should serve'
expect_exit 0 "$BIN" convert "$model" -o trtllm --arch sm100 --tp-size 2 -q
expect_exit 0 "$BIN" inspect trtllm --revision $new
grep -q "serves  *$new: no" stdout || fail 'a TRTLLM blob of two ranks should not serve'
grep -q 'padded to' stdout || fail 'the reason is missing'

# A blob is read by its own layout, whatever revision is the default.
expect_exit 0 "$BIN" convert "$model" -o newer --arch sm100 --tp-size 2 --revision $new -q
expect_exit 0 "$BIN" verify newer --against "$model"
expect_exit 0 "$BIN" unpack newer -o unpacked -q

# A release has three spellings; --target says which one is installed.
for name in 0.33.0 v0.33.0 vllm-0.33.0; do
  expect_exit 0 "$BIN" explain "$model" --arch sm100 --revision $name --json
  grep -q vllm-0.33.0 stdout || fail "$name is not the release"
done
printf '{"vllm": "0.31.0", "arch": "sm90"}\n' >target.json
expect_exit 0 "$BIN" explain "$model" --target target.json --json
grep -q vllm-0.31.0 stdout || fail 'the target does not pick the rules'
expect_exit 0 "$BIN" explain "$model" --target target.json --revision $old --json
grep -q $old stdout || fail '--revision does not win over --target'
printf '{"vllm": "0.31.9", "arch": "sm90"}\n' >target.json
expect_exit 2 "$BIN" explain "$model" --target target.json
expect_one_error 'the rules of vLLM 0.31.9 are not known'
grep -q -- '--revision vllm-0.31.0' stderr || fail 'the nearest release is not named'
printf '{"vllm": null, "arch": "sm100"}\n' >target.json
expect_exit 0 "$BIN" explain "$model" --target target.json

expect_exit 2 "$BIN" list backends --revision vllm-1999-01-01
expect_one_error 'unknown revision'
