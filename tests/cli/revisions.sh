# What a newer engine revision changes: for a deployment, and for a blob that is there.
old=vllm-2026-05-18 new=vllm-2026-08-17
model=$TESTDATA/ingest/dsv4

expect_exit 0 "$BIN" list revisions
grep -q "^$old" stdout || fail "$old is not listed"
[ "$(grep '^vllm-' stdout | tail -n 1)" = "$(grep ' yes$' stdout)" ] || fail 'the newest is not the default'
grep -q "^$new" stdout || fail "$new is not listed"

expect_exit 0 "$BIN" explain "$model" --arch gfx950 --env VLLM_ROCM_USE_AITER=1 --revision $old --against $new
grep -q "$old  TRITON_UNFUSED" stdout || fail 'the backend here is not named'
grep -q "$new  AITER_MXFP4_BF16" stdout || fail 'the backend there is not named'
grep -q 'convert again' stdout || fail 'it is not said that the blob changes'

expect_exit 0 "$BIN" explain "$model" --arch sm80 --revision $old --against $new --json
/usr/bin/python3 -c 'import json; assert json.load(open("stdout"))["against"][0]["same_bytes"] is True' ||
  fail 'sm80 should keep its bytes'

# MARLIN's bytes stay; TRTLLM pads I otherwise there.
expect_exit 0 "$BIN" convert "$model" -o marlin --arch sm80 --revision $old -q
expect_exit 0 "$BIN" inspect marlin --revision $new
grep -q '^serves  *yes$' stdout || fail 'a MARLIN blob should serve'
expect_exit 0 "$BIN" convert "$model" -o trtllm --arch sm100 --tp-size 2 --revision $old -q
expect_exit 1 "$BIN" inspect trtllm --revision $new
grep -q '^serves  *no$' stdout || fail 'a TRTLLM blob of two ranks should not serve'
grep -q 'intermediate rows' stdout || fail 'the reason is missing'

# A blob is read by its own layout, whatever revision is the default.
expect_exit 0 "$BIN" convert "$model" -o newer --arch sm100 --tp-size 2 --revision $new -q
expect_exit 0 "$BIN" verify newer --against "$model"
expect_exit 0 "$BIN" unpack newer -o unpacked -q

# A release has three spellings; --target says which one is installed.
for name in 0.33.0 v0.33.0 vllm-0.33.0; do
  expect_exit 0 "$BIN" explain "$model" --arch sm100 --revision $name --json
  grep -q vllm-0.33.0 stdout || fail "$name is not the release"
done
# Every one of them knows its own default machine.
expect_exit 0 "$BIN" explain --arch sm100 --against all --json
"$python" - <<'PY' || fail 'a revision has no answer'
import json
rows = json.load(open("stdout"))["against"]
assert len(rows) >= 16 and not [row for row in rows if row.get("error")], rows
PY
printf '{"vllm": "0.31.0", "arch": "sm90"}\n' >target.json
expect_exit 0 "$BIN" explain "$model" --target target.json --json
grep -q vllm-0.31.0 stdout || fail 'the target does not pick the rules'
expect_exit 0 "$BIN" explain "$model" --target target.json --revision $old --json
grep -q $old stdout || fail '--revision does not win over --target'
printf '{"vllm": "0.31.9", "arch": "sm90"}\n' >target.json
expect_exit 2 "$BIN" explain "$model" --target target.json
expect_one_error "--target: unknown revision '0.31.9'"
grep -q 'hint: the nearest is vllm-0.31.0' stderr || fail 'the nearest release is not named'
# A build of a release has its rules; for what came out later the newest known ones stand, and a note says so.
for build in 0.33.0+cu129 0.33.0+rocm711; do
  printf '{"vllm": "%s", "arch": "sm100"}\n' $build >target.json
  expect_exit 0 "$BIN" explain "$model" --target target.json
  grep -q 'vllm-0.33.0' stdout || fail "$build is not its release"
  expect_exit 0 "$BIN" explain "$model" --arch sm100 --revision $build
done
for later in 99.0.0 v99.1rc1 99.0.0.dev1; do
  printf '{"vllm": "%s", "arch": "sm100"}\n' $later >target.json
  for flags in '--target target.json' "--arch sm100 --revision $later"; do
    # shellcheck disable=SC2086
    expect_exit 0 "$BIN" explain "$model" $flags --json
    grep -q '"revision": "vllm-0.33.0"' stdout || fail "$flags: not the newest rules"
    [ "$(cat stderr)" = "mxfp4-repack: $later is newer than vllm-0.33.0, the newest known release, whose rules are taken: the engine's first start proves them, in the time and memory of its own load" ] ||
      { cat stderr; fail "$flags: not the one note"; }
  done
done
convert_quietly "$model" -o later --arch sm100 --revision 99.0.0
convert_quietly "$model" -o known --arch sm100 --revision 0.33.0
expect_exit 0 "$BIN" diff later known
expect_exit 0 "$BIN" list backends --revision 99.0.0
grep -q '99.0.0 is newer' stderr || fail 'a list of older rules without a word'


# The type of activations that Humming packs for follows from checkpoint, user and release; where the
# variable or a loaded input hides it, the flag is named. Types that no layout gives are refused.
# From 0.33.0 on DeepSeek-V4 itself asks for 8-bit activations.
expect_exit 4 "$BIN" convert "$model" -o no --dry-run --revision 0.33.0 --backend HUMMING --arch sm90
expect_one_error 'expert 0: scale bytes of an expert may lie at most 138 apart with 8-bit activations'
humming="convert $TESTDATA/ingest/gptoss_hf -o no --dry-run --revision 0.33.0 --backend HUMMING --arch"
# shellcheck disable=SC2086
{
  expect_exit 0 "$BIN" $humming sm90
  expect_exit 4 "$BIN" $humming sm90 --env VLLM_HUMMING_INPUT_QUANT_CONFIG='{"dtype": "int8"}'
  expect_one_error 'give --knob humming_input_dtype=none'
  expect_exit 4 "$BIN" $humming sm120
  expect_one_error 'HUMMING on sm120 .* depends on the CUDA compiler .* --knob cuda_compiler=VERSION'
  grep -q '^hint' stderr && fail 'another release is proposed where a fact is missing'
  expect_exit 2 "$BIN" $humming sm120 --knob cuda_compiler=new
  expect_one_error "knob cuda_compiler: expected a version such as 12.9, found 'new'"
  expect_exit 0 "$BIN" $humming sm120 --knob cuda_compiler=13.1
  grep -qE 'humming/mma($| )' stdout || fail 'CUDA 13.1 has another layout'
  # A target file tells it, too; the flag wins.
  printf '{"arch": "sm120", "cuda_compiler": "13.2"}' >compiler.json
  expect_exit 0 "$BIN" ${humming% --arch} --target compiler.json
  grep -q 'humming/mma-native' stdout || fail 'CUDA 13.2 has another layout'
  expect_exit 0 "$BIN" ${humming% --arch} --target compiler.json --knob cuda_compiler=12.9
  grep -qE 'humming/mma($| )' stdout || fail 'the file won over --knob'
  for begin in "$humming" "explain $model --revision 0.33.0 --moe-backend humming --arch"; do
    expect_exit 2 "$BIN" $begin sm90 --knob humming_input_dtype=none \
      --quantization-config '{"moe": {"activation": "mxfp8"}}'
    expect_one_error 'knob humming_input_dtype: none contradicts the quantization config'
  done
}

# Without a revision the newest release is taken, and said so in one line. The manifest names the
# revision, and nothing is wrong with it.
default=$("$BIN" list revisions --json | grep -B 2 '"default": true' | sed -n 's/.*"\(vllm-[^"]*\)".*/\1/p')
said="no --revision: taking $default, the newest known release"
for command in explain inspect 'convert --dry-run -o no'; do
  # shellcheck disable=SC2086
  expect_exit 0 "$BIN" $command "$model" --arch sm100
  [ "$(grep -cx "mxfp4-repack: $said" stderr)" = 1 ] || fail "$command does not say what it took"
done
expect_exit 0 "$BIN" convert "$model" -o assumed --arch sm100 -q
[ ! -s stderr ] || fail 'not quiet'
grep -q "\"revision\": \"$default\"" assumed/mxfp4_repack.json || fail 'the manifest does not say what was taken'
! grep -q 'no --revision' assumed/mxfp4_repack.json || fail 'a warning that stays for ever'
expect_exit 0 "$BIN" convert "$model" -o named --arch sm100 --revision "$default"
! grep -q 'no --revision' stderr || fail 'a revision was named'
expect_exit 0 "$BIN" diff assumed named

# Every release's answer for one deployment: what the table of all says of one is what --against says of it.
expect_exit 0 "$BIN" explain "$model" --arch sm100 --tp-size 2 --against all --json
"$python" - "$BIN" "$model" <<'PY'
import json, subprocess, sys
document = json.load(open("stdout"))
rows = {row["revision"]: row for row in document["against"]}
assert document["revision"] == "vllm-0.33.0" and len(rows) >= 16, rows
for row in rows.values():
    assert (row["error"] is None) == (row["layout"] is not None), row
for there in "vllm-2026-05-18", "vllm-0.24.0,vllm-0.32.0":
    ran = subprocess.run([*sys.argv[1:2], "explain", sys.argv[2], "--arch", "sm100", "--tp-size", "2", "--against", there,
                          "--json"], capture_output=True, text=True)
    assert json.loads(ran.stdout)["against"] == [rows[name] for name in there.split(",")], ran.stdout
assert {row["same_bytes"] for row in rows.values()} == {True, False}, rows
PY
# What only the model's config would tell is asked for, not guessed, of an input without one, as unpack writes it.
expect_exit 0 "$BIN" convert "$model" -o for_unpack --arch sm80
expect_exit 0 "$BIN" unpack for_unpack -o without_config
w4a4="convert without_config -o no --dry-run --revision 0.33.0 --backend AITER_TRITON_MXFP4_MXFP4 --arch gfx1250"
# shellcheck disable=SC2086
{
  expect_exit 4 "$BIN" $w4a4
  expect_one_error 'AITER_TRITON_MXFP4_MXFP4 on gfx1250 .* give --activation NAME'
  grep -q '^hint' stderr && fail 'another release is proposed where a fact is missing'
  expect_exit 0 "$BIN" $w4a4 --activation silu
  grep -qE 'aiter/triton-w4a4($| )' stdout || fail 'silu has another layout'
}
