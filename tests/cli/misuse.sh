# Flags that say nothing, contradict each other, cannot matter, or have invalid values: exit 2, one line
# that names the flag, nothing on stdout.
model=$TESTDATA/ingest/gptoss_hf
convert_quietly "$model" -o blob --arch sm90

# misused FLAG ARGUMENT...
misused() {
  local flag=$1
  shift
  expect_exit 2 "$BIN" "$@"
  expect_one_error "$flag"
  [ ! -s stdout ] || fail "a result in spite of misuse: $*"
}

# Empty values, as a script's unset variable leaves them.
misused --against verify blob --against ''
misused --against verify blob --against=
misused OUT verify ''
misused INPUT explain '' --arch sm90
for flag in --shard --layers --rank --revision --backend --moe-backend --arch --platform --target --env \
  --knob --no-lib --quantization-config --activation --style --model-config --memory --threads --level; do
  misused "$flag" convert "$model" -o bad --arch sm90 "$flag" ''
  misused "$flag" convert "$model" -o bad --arch sm90 "$flag="
done
misused --output convert "$model" -o '' --arch sm90
misused --libs explain --arch sm90 --libs ''
expect_exit 0 "$BIN" explain --arch sm90 --libs none --json
"$python" -c 'import json; assert json.load(open("stdout"))["deployment"]["libs"] == []'
# An empty value of a variable is one.
expect_exit 0 "$BIN" explain --arch sm90 --env VLLM_ROCM_USE_AITER=

# Values are looked at wherever a flag is taken.
for sizes in bogus 64 0x64 64x-1 64x64x64 x; do misused --pad explain "$model" --arch sm90 --pad $sizes; done
misused --expert-placement explain --arch sm90 --expert-placement bogus
misused --rank explain "$model" --arch sm90 --rank 99
misused --rank explain --arch sm90 --tp-size 2 --rank 2
expect_exit 0 "$BIN" explain --arch sm90 --tp-size 2 --rank 1
for command in explain "convert $model -o bad" "inspect $model"; do
  # shellcheck disable=SC2086
  {
    misused --arch $command --arch sm9
    misused --activation $command --arch sm90 --activation bogus
    misused --routing-method $command --arch sm90 --routing-method bogus
    misused --all2all-backend $command --arch sm90 --all2all-backend bogus
  }
done
expect_exit 2 "$BIN" explain --arch sm90 --all2all-backend deepep
expect_one_error "--all2all-backend: unknown name 'deepep'$"
grep -qx 'hint: did you mean deepep_high_throughput?' stderr || fail 'a name is not found by its beginning'
expect_exit 2 "$BIN" explain --arch sm90 --routing-method bogus
grep -q '^hint: one of Default, ' stderr || fail 'no names of routing methods'
# --moe-backend: a name that no release knows is misuse; one that the engine has, but not for these
# experts, or not in this release, is refused as by the engine.
for command in explain "convert $model -o bad" "inspect $model"; do
  # shellcheck disable=SC2086
  misused "--moe-backend: unknown name 'bogus'$" $command --arch sm90 --moe-backend bogus
  grep -q '^hint: one of auto, b12x, deep_gemm, .*, emulation$' stderr || { cat stderr >&2; fail 'no names'; }
done
misused "--moe-backend: unknown name 'TRITN'$" explain --arch sm90 --moe-backend TRITN
grep -qx 'hint: did you mean triton?' stderr || fail 'no nearest backend'
misused "--moe-backend: unknown name 'bogus'$" explain --arch sm90 --moe-backend bogus --against all
expect_exit 0 "$BIN" explain --arch sm90 --moe-backend TRITON-unfused
expect_exit 4 "$BIN" explain --arch sm90 --moe-backend cutlass --revision 0.33.0
expect_one_error '--moe-backend cutlass: vllm-0\.33\.0 has no MXFP4 backend of this name$'
grep -qx 'hint: mxfp4-repack list backends shows the names of each' stderr || fail 'no way on'
expect_exit 4 "$BIN" explain --arch sm90 --moe-backend b12x --revision 0.22.0
expect_one_error '--moe-backend b12x: vllm-0\.22\.0 has no MXFP4 backend of this name$'
grep -qx 'hint: --revision vllm-[0-9.]* has one' stderr || fail 'no release that has it'
# An unknown machine in a file is an error of the input, 3, that names the file.
printf '{"arch": "sm9"}\n' >target.json
expect_exit 3 "$BIN" explain --target target.json
expect_one_error "target.json: arch: unknown machine 'sm9'"
# So is a file that contradicts itself. What it lacks, a flag can add.
for command in explain "convert $model -o bad" "inspect $model"; do
  while IFS='|' read -r code words hint content flags; do
    printf '%s\n' "$content" >target.json
    # shellcheck disable=SC2086
    expect_exit "$code" "$BIN" $command --target target.json $flags
    expect_one_error "$words$"
    [ -z "$hint" ] || grep -qxF "hint: $hint" stderr || { cat stderr >&2; fail "no hint: $content"; }
    [ ! -s stdout ] || fail "a result in spite of $content"
  done <<'END'
3|target.json: platform: rocm contradicts arch sm90||{"platform": "rocm", "arch": "sm90"}
3|target.json: platform: rocm contradicts arch sm90||{"platform": "rocm", "arch": "H100"}
3|target.json: platform: cpu contradicts arch gfx950||{"platform": "cpu", "arch": "gfx950"}
3|target.json: platform: cuda contradicts arch x86_64||{"platform": "cuda", "arch": "x86_64"}|--backend MARLIN
2|target.json: platform: cuda needs an arch|such as --arch sm90|{"platform": "cuda"}
2|--platform: rocm needs an arch|such as --arch gfx950|{"platform": "cuda", "arch": "sm90"}|--platform rocm
END
done
printf '{"platform": "rocm", "arch": "sm90"}\n' >target.json
expect_exit 0 "$BIN" explain --target target.json --arch gfx950
expect_exit 0 "$BIN" explain --target target.json --platform cuda
misused '--platform: rocm contradicts arch sm90$' explain --platform rocm --arch sm90
misused '--platform: rocm contradicts arch sm90$' explain --platform rocm --arch H100 --target target.json
misused --memory convert "$model" -o bad --arch sm90 --memory 99999999999999g
misused --memory convert "$model" -o bad --arch sm90 --memory lots
misused "--memory: '1' is not a size such as 256MiB or 8GB$" convert "$model" -o bad --arch sm90 --memory 1
misused "--knob params_dtype: expected bfloat16\\|float16, found 'int3'\$" explain --arch sm90 --knob params_dtype=int3

# Flags that cannot matter.
misused --check convert "$model" -o bad --arch sm90 --check
misused --style explain --arch sm90 --style gpt_oss
misused --layers explain --arch sm90 --layers zzz
: >lines.jsonl
misused INPUT explain --batch lines.jsonl "$model"
misused --arch explain --batch lines.jsonl --arch nonsense
misused --against explain --batch lines.jsonl --against nothing
misused --tp-size explain --batch lines.jsonl --tp-size 2
expect_exit 0 "$BIN" explain --batch lines.jsonl --revision vllm-2026-08-17 -v
misused --arch inspect blob --arch sm100
misused --layers inspect blob --layers 7
misused --style inspect blob --style bogus
misused --style verify blob --style bogus
misused --model-config verify blob --model-config missing.json
for table in layouts styles revisions; do
  misused --revision list $table --revision vllm-2026-08-17
done
expect_exit 0 "$BIN" list backends --revision vllm-2026-08-17

# What asks about a deployment is answered, or refused as convert refuses it.
for flags in '--moe-backend bogus' '--tp-size 7' '--rank 55' '--knob x' '--pad none' '--libs none' \
  '--enable-eplb' '--moe-backend bogus --arch sm90' '--rank 55 --arch sm90' '--knob x --arch sm90'; do
  want=0
  # shellcheck disable=SC2086
  "$BIN" convert "$model" -o bad --dry-run $flags >/dev/null 2>said || want=$?
  # shellcheck disable=SC2086
  expect_exit $want "$BIN" inspect "$model" $flags
  [ "$want" != 0 ] || fail "convert took $flags"
  [ "$(grep error: said)" = "$(grep error: stderr)" ] || fail "inspect $flags says something else"
  [ ! -s stdout ] || fail "inspect $flags: half an answer"
done
# Flags that are only about the checkpoint ask for no target.
expect_exit 0 "$BIN" inspect "$model" --layers 0 --family gpt_oss --style gpt_oss
! grep -q '^target' stdout || fail 'a target that nobody asked for'

# Contradictions.
misused --level convert "$model" -o bad --arch sm90 --compress none --level 19
misused --quiet verify blob -q -v
misused --moe-backend convert "$model" -o bad --arch sm90 --backend MARLIN --moe-backend triton
for command in explain "convert $model -o bad" "inspect $model"; do
  # shellcheck disable=SC2086
  misused '--libs and --no-lib contradict each other: both name flashinfer$' $command --arch sm90 \
    --no-lib aiter --no-lib flashinfer --libs deep_gemm,flashinfer==0.1.0
done

# Repeatable flags take one value each, and nothing of what follows.
for flag in '--no-lib triton_kernels --revision vllm-2026-05-18' '--env VLLM_ROCM_USE_AITER=1' '--knob params_dtype=float16'; do
  # shellcheck disable=SC2086
  expect_exit 0 "$BIN" explain --arch sm90 $flag "$model"
  grep -q '^  sizes  *E 4, ' stdout || fail "$flag took INPUT"
done
expect_exit 0 "$BIN" explain --arch sm90 --no-lib triton_kernels --no-lib flashinfer --revision vllm-2026-05-18 --json
"$python" - <<'PY'
import json
libs = json.load(open("stdout"))["deployment"]["libs"]
assert "triton_kernels" not in libs and "flashinfer" not in libs, libs
PY

# Small files may be pipes, up to their limit.
expect_exit 0 "$BIN" explain "$model" --target <(printf '{"arch": "sm90"}')
config=$model/config.json
expect_exit 0 "$BIN" convert "$model" -o piped --arch sm90 --include-rest --model-config <(cat "$config")
convert_quietly "$model" -o read --arch sm90 --include-rest
cmp read/config.json piped/config.json
rm -r read
expect_exit 0 "$BIN" verify piped --against "$model" --model-config <(cat "$config")
convert_quietly "$model" -o ranks --arch sm90 --tp-size 2
expect_exit 0 "$BIN" verify ranks --against "$model" --model-config <(cat "$config")
expect_exit 0 "$BIN" explain "$model" --arch sm90 --against vllm-2026-08-17 --model-config <(cat "$config")
expect_exit 3 "$BIN" explain --target <(head -c 17000000 /dev/zero)
expect_one_error ': more than 16777216 bytes$'
expect_exit 3 "$BIN" explain --target missing.json
expect_one_error 'missing.json: cannot be opened'
[ ! -e bad ] || fail 'a usage error left an output'

# The error names a wrong thing in place of a blob, or a number beyond the last, and what to do.
while IFS='|' read -r code words hint arguments; do
  # shellcheck disable=SC2086
  expect_exit "$code" "$BIN" $arguments
  expect_one_error "$words$"
  [ -z "$hint" ] || grep -qxF "hint: $hint" stderr || { cat stderr >&2; fail "no hint: $arguments"; }
done <<END
3|nowhere: cannot be opened: No such file or directory||verify nowhere
3|nowhere: cannot be opened: No such file or directory||unpack nowhere -o bad
3|blob/mxfp4_repack.json: not a directory; a blob is one||diff blob/mxfp4_repack.json blob
3|no mxfp4_repack.json here, so no complete blob||verify $model
3|blob: a blob, not the checkpoint that one was made from|mxfp4-repack diff blob blob compares two blobs|verify blob --against blob
2|--rank: '-1' is not a number from 0 to 65535||explain $model --arch sm90 --rank -1
2|--rank 10: the ranks are 0 to 7||explain $model --arch sm90 --tp-size 8 --rank 010
2|--tp-size: '0x2' is not a number from 1 to 65536||explain $model --arch sm90 --tp-size 0x2
2|--knob: params_dtype is given as 'float16' and as 'bfloat16'||explain --arch sm90 --knob params_dtype=float16 --knob params_dtype=bfloat16
2|--rank 2: the ranks are 0 to 1||explain $model --arch sm90 --rank 2 --tp-size 2
2|--shard: '0/0' is not I/N, with I from 0 to N - 1 and N at most 100000||convert $model -o bad --arch sm90 --shard 0/0
2|--layers: '1-0' is neither N nor FIRST-LAST|such as 0-3,7|convert $model -o bad --arch sm90 --layers 1-0
3|.: cannot be opened: Is a directory||explain --batch .
END

# A path that no file has, however long: one error, and no stack for each of its characters.
for length in 299 300 4000 40000 120000; do
  long=$(head -c $length /dev/zero | tr '\0' b)
  for path in "a/$long" "https://huggingface.co/a/$long" "hf.co/$long" "$long"; do
    for command in inspect explain 'convert -o none'; do
      # shellcheck disable=SC2086
      expect_exit 3 "$BIN" $command "$path"
      [ "$(wc -l <stderr)" -le 2 ] || fail "more than an error and a hint for a path of $length"
    done
  done
done

# What unpack wrote is not a blob, but a checkpoint.
"$BIN" unpack blob -o unpacked -q
for command in verify 'unpack -o more' fits; do
  # shellcheck disable=SC2086
  expect_exit 3 "$BIN" $command unpacked $([ "$command" != fits ] || echo --revision 0.33.0)
  expect_one_error 'no mxfp4_repack.json here, so no complete blob'
done
