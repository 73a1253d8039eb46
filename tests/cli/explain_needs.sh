# explain says the answer first, the command last, each condition with what would meet it, and with
# --all every backend; neither a refusal nor a warning twice.
model=$TESTDATA/ingest/gptoss_hf
old=vllm-2026-05-18
mkdir bin
ln -s "$BIN" bin/mxfp4-repack
PATH=$PWD/bin:$PATH

expect_exit 0 "$BIN" explain "$model" --arch sm90 --revision $old
[ "$(head -1 stdout)" = "TRITON, layout triton/hopper: sm90, $old" ] || {
  head -3 stdout >&2; fail 'the answer is not first'; }
[ "$(wc -l <stdout)" -le 24 ] || fail 'the screen is long'
grep -qE '^  FLASHINFER_TRTLLM_MXFP4_BF16 +needs --arch sm100 \(B200, GB200\)$' stdout || fail 'no need on the first screen'
expect_exit 0 "$BIN" explain "$model" --arch sm90 --revision $old -v
grep -A1 '^       unmet  capability 10.x$' stdout | grep -qx '         by   --arch sm100 (B200, GB200)' || fail 'no need'
grep -v '^  #' stdout | sed -n '$p' | grep -q -- "--revision $old$" || fail 'the command is not last'

expect_exit 4 "$BIN" explain "$model" --arch sm90 --moe-backend xpu --revision $old
[ "$(head -1 stdout)" = "Refused: no backend serves this deployment on sm90 ($old)" ] || { head -3 stdout >&2; fail 'no refusal at the top'; }
[ "$(cat stdout stderr | tr -d '\n' | grep -o "Mxfp4 MoE backend 'XPU' does not support" | wc -l)" = 1 ] || fail 'the refusal is said twice'
sed '1,/^next$/d' stdout >next.sh
bash -eu next.sh >next.out 2>&1 || fail 'the way out does not work'
rm -rf OUT
for flags in '--arch sm90 --backend AITER_MXFP4_BF16' '--arch sm80 --moe-backend marlin --enable-lora' \
  '--arch sm90 --backend HUMMING'; do
  # shellcheck disable=SC2086
  "$BIN" explain "$model" $flags --revision $old >stdout 2>stderr || true
  cat stdout stderr | tr '\n' ' ' | tr -s ' ' | grep -oE '(beware|warning:|error:) [^.:]{30}' |
    sed 's/^[a-z]*:* //' | sort | uniq -d >twice
  [ ! -s twice ] || { cat twice >&2; fail "said twice: $flags"; }
done

expect_exit 0 "$BIN" explain "$model" --arch gfx942 --revision $old --json
cp stdout one.json
expect_exit 0 "$BIN" explain "$model" --arch sm90 --all --revision $old --json
cp stdout all.json
"$python" - "$BIN" "$model" $old <<'PY'
import json, shlex, subprocess, sys
BIN, model, old = sys.argv[1:]
one, all_ = json.load(open("one.json")), json.load(open("all.json"))
assert one["schema_version"] == 1 and "alternatives" not in one
aiter = next(c for c in one["candidates"] if c["class"] == "AiterExperts")
assert aiter["backend"] == "AITER_MXFP4_BF16" and not aiter["supported"], aiter
switch = next(c for c in aiter["conditions"] if "VLLM_ROCM_USE_AITER " in c["condition"])
assert switch == {"topic": "device", "condition": "VLLM_ROCM_USE_AITER (unset: off)", "met": False, "needs": [
    {"kind": "variable", "name": "VLLM_ROCM_USE_AITER", "value": "1", "words": "--env VLLM_ROCM_USE_AITER=1"}]}, switch
for candidate in one["candidates"] + all_["candidates"]:
    assert candidate["supported"] == all(c["met"] for c in candidate["conditions"]), candidate
names = [a["backend"] for a in all_["alternatives"]]
assert names[0] == all_["backend"] == "TRITON" and all_["alternatives"][0]["chosen"], names
assert len(names) == len(set(names)) >= 12, names
usable = [a for a in all_["alternatives"] if a["usable"]]
assert {"TRITON", "MARLIN", "FLASHINFER_CUTLASS_MXFP4_BF16"} <= {a["backend"] for a in usable}, usable
for other in usable:
    flags = [w for change in other["how"] for w in shlex.split(change["words"]) if change["value"] is not None]
    got = subprocess.run([BIN, "convert", model, "-o", "no", "--arch", "sm90", "--revision", old, *flags, "--dry-run",
                          "--json"], capture_output=True, text=True)
    plan = json.loads(got.stdout)
    assert plan["backend"] == other["backend"] and plan["layout"] == other["layout"], (other, plan)
    assert plan["data_bytes"] == other["blob_bytes"], (other, plan)
    assert plan["padded_hidden_size"] == other["padded"]["hidden_size"]
deep = next(a for a in all_["alternatives"] if a["backend"] == "FLASHINFER_TRTLLM_MXFP4_BF16")
assert not deep["usable"] and deep["needs"][0]["words"].startswith("--arch sm100"), deep
PY
expect_exit 0 "$BIN" explain "$model" --arch sm90 --all --revision $old
grep -qx 'this deployment can use (layout, padded sizes, blob before compression)' stdout || fail 'no list'
grep -A1 -E '^  MARLIN +by --moe-backend marlin$' stdout | grep -qE '^ +marlin/w4a16, H 256, I 128, 416 KiB$' || fail 'no MARLIN'
[ "$(grep -v "$model" stdout | LC_ALL=C.UTF-8 wc -L)" -le 80 ] || fail 'wider than 80 columns'
for arch in sm90 sm100 gfx942 gfx950 x86_64-amx; do
  expect_exit 0 "$BIN" explain "$model" --arch "$arch" --all
  [ "$(wc -l <stdout)" -le 60 ] || fail "explain --all fills more than a screen: $arch"
done
# Colour marks what is met and what is not, and says nothing that words do not.
"$BIN" explain "$model" --arch sm90 -v --color always >colored
escape=$(printf '\033')
grep -q "^       $escape\[31munmet$escape\[0m  capability 10.x$" colored || fail 'unmet is not red'
grep -q "^       $escape\[32mmet$escape\[0m    " colored || fail 'met is not green'
"$BIN" explain "$model" --arch sm90 -v | diff - <(sed "s/$escape\[[0-9;]*m//g" colored) || fail 'colour changes words'
expect_exit 2 "$BIN" explain --batch - --all
