# Variables, packages and versions that no rule knows: an error in a flag, a warning in a target file.
model=$TESTDATA/ingest/gptoss_hf
old=vllm-2026-05-18

# wrong WORDS HINT FLAGS...
wrong() {
  local words=$1 hint=$2 command
  shift 2
  for command in explain inspect convert; do
    local arguments=("$command" "$model" --arch sm90 "$@")
    [ $command = convert ] && arguments+=(-o out)
    expect_exit 2 "$BIN" "${arguments[@]}"
    expect_one_error "$words"
    grep -qE "^hint: $hint" stderr || { cat stderr >&2; fail "no hint: $hint"; }
  done
}
wrong "--env: no rule looks at 'VLLM_MXFP4_USE_MARLINN'$" 'did you mean VLLM_MXFP4_USE_MARLIN\?$' \
  --env VLLM_MXFP4_USE_MARLINN=1
# One that is near no known one is the engine's own, and decides nothing: recipes have many.
expect_exit 0 "$BIN" explain "$model" --arch sm90 --env VLLM_ROCM_USE_AITER_FP4BMM=0
grep -q 'warning: --env: no rule of vllm-[0-9.]* looks at VLLM_ROCM_USE_AITER_FP4BMM$' stderr || fail 'no warning'
wrong "--env: no rule looks at 'VLLM_ALL2ALL_BACKEND'$" '--all2all-backend NAME says it$' --env VLLM_ALL2ALL_BACKEND=naive
wrong '--libs: triton_kernels 3\.9: triton/hopper-s4 was not tested with it$' 'tested with triton_kernels 3\.5\.1' \
  --libs triton_kernels==3.9 --revision 0.33.0
# By layout: the interleave for capability 9.0 is another from 0.6.18 on.
cutlass=(--moe-backend flashinfer_cutlass --revision 0.33.0)
wrong '--libs: flashinfer 0\.6\.14: flashinfer/cutlass-sm90-folded was not tested with it$' \
  '--revision vllm-0\.26\.0 is made for that version$' --libs flashinfer==0.6.14,flashinfer_cutlass "${cutlass[@]}"
wrong '--libs: flashinfer 0\.7\.9: flashinfer/cutlass-sm90-folded was not tested with it$' \
  'tested with flashinfer 0\.6\.18, 0\.6\.18\.post1, 0\.7\.0\.post1, 0\.7\.2\.post1; without a version flashinfer means 0\.7\.2\.post1$' \
  --libs flashinfer==0.7.9,flashinfer_cutlass "${cutlass[@]}"
expect_exit 0 "$BIN" explain --arch sm90 --libs flashinfer==0.6.18,flashinfer_cutlass "${cutlass[@]}"
expect_exit 0 "$BIN" explain --arch sm100 --libs flashinfer==0.6.14 --moe-backend flashinfer_trtllm --revision 0.33.0
for version in 0.6.11.post2 0.6.11 v0.6.11+cu129; do
  expect_exit 0 "$BIN" explain --arch sm90 --libs "flashinfer==$version,deep_gemm" --revision $old
done

# In a file, which a probe wrote.
printf '{"platform": "cuda", "arch": "sm90", "libs": {"triton_kernels": "3.9", "flashinfer": "0.1.0", "b12x_next": null},
  "env": {"VLLM_MXFP4_USE_MARLINN": "1"}}' >target.json
expect_exit 0 "$BIN" explain "$model" --target target.json --revision $old
sed 's/^mxfp4-repack: warning: //' stderr >said
diff said - <<END || fail 'other warnings'
target.json: env: no rule of $old looks at VLLM_MXFP4_USE_MARLINN
target.json: libs: b12x_next: $old knows no such kernel package
target.json: libs: triton_kernels 3.9: triton/hopper was not tested with it; tested with triton_kernels 3.6.0; without a version triton_kernels means 3.6.0
END

# Flags win over the file, whole machines too.
expect_exit 0 "$BIN" explain --target target.json --arch gfx950 --libs triton_kernels --revision $old --json
"$python" - <<'PY'
import json
d = json.load(open("stdout"))["deployment"]
assert (d["platform"], d["arch"], d["libs"]) == ("rocm", "gfx950", ["triton_kernels"]), d
PY
printf '{"arch": "sm90", "env": {"VLLM_MXFP4_USE_MARLIN": "1"}}' >target.json
expect_exit 0 "$BIN" explain "$model" --target target.json --env VLLM_MXFP4_USE_MARLIN=0 --revision $old --json
grep -q '"VLLM_MXFP4_USE_MARLIN": "0"' stdout || fail 'the file won over --env'

# The probe asks for exactly the variables that rules look at.
"$python" - "$SOURCE_DIR/scripts/probe-target" "$BIN" <<'PY'
import ast, re, subprocess, sys
text = open(sys.argv[1]).read()
names = ast.literal_eval(re.search(r"(?s)^ENVIRONMENT = (\(.*?^\))", text, re.M).group(1))
flags = [f for name in names for f in ("--env", name + "=0")]
run = subprocess.run([sys.argv[2], "explain", "--arch", "sm90", "--libs", "none", *flags], stderr=subprocess.PIPE, text=True,
                     stdout=subprocess.DEVNULL)
assert "no rule looks at" not in run.stderr, run.stderr
PY
