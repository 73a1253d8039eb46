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
done
misused --output convert "$model" -o '' --arch sm90
misused --libs explain --arch sm90 --libs ''

# Of a blob only; one machine; a directory at which SGLang stops.
misused --serve inspect "$model" --serve
misused --arch explain "$model" --arch H100,B200
expect_exit 4 "$BIN" convert "$model" -o rest --arch sm90 --engine sglang --include-rest
expect_one_error --include-rest
[ ! -e rest ] || fail 'a directory that SGLang does not serve'
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
expect_exit 4 "$BIN" explain --arch sm90 --moe-backend cutlass --revision 0.33.0
expect_one_error '--moe-backend cutlass: vllm-0\.33\.0 has no MXFP4 backend of this name$'
grep -qx 'hint: mxfp4-repack list backends shows the names of each' stderr || fail 'no way on'
expect_exit 4 "$BIN" explain --arch sm90 --moe-backend b12x --revision 0.22.0
expect_one_error '--moe-backend b12x: vllm-0\.22\.0 has no MXFP4 backend of this name$'
grep -qx 'hint: --revision vllm-[0-9.]* has one' stderr || fail 'no release that has it'
# A file that contradicts itself is an error of the input. What it lacks, a flag can add.
while IFS='|' read -r code words hint content flags; do
  printf '%s\n' "$content" >target.json
  # shellcheck disable=SC2086
  expect_exit "$code" "$BIN" explain --target target.json $flags
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
printf '{"platform": "rocm", "arch": "sm90"}\n' >target.json
expect_exit 0 "$BIN" explain --target target.json --arch gfx950
expect_exit 0 "$BIN" explain --target target.json --platform cuda
misused '--platform: rocm contradicts arch sm90$' explain --platform rocm --arch sm90
misused --memory convert "$model" -o bad --arch sm90 --memory lots
misused "--memory: '1' is not a size such as 256MiB or 8GB$" convert "$model" -o bad --arch sm90 --memory 1

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
expect_exit 0 "$BIN" list backends --revision vllm-2026-08-17


# Contradictions.
misused --level convert "$model" -o bad --arch sm90 --compress none --level 19
misused --quiet verify blob -q -v
misused --moe-backend convert "$model" -o bad --arch sm90 --backend MARLIN --moe-backend triton

# Repeatable flags take one value each, and nothing of what follows.
for flag in '--no-lib triton_kernels --revision vllm-2026-05-18' '--env VLLM_ROCM_USE_AITER=1' '--knob params_dtype=bfloat16'; do
  # shellcheck disable=SC2086
  expect_exit 0 "$BIN" explain --arch sm90 $flag "$model"
  grep -q '^  sizes  *E 4, ' stdout || fail "$flag took INPUT"
done

# Small files may be pipes, up to their limit.
expect_exit 0 "$BIN" explain "$model" --target <(printf '{"arch": "sm90"}')
config=$model/config.json
expect_exit 0 "$BIN" convert "$model" -o piped --arch sm90 --include-rest --model-config <(cat "$config")
convert_quietly "$model" -o read --arch sm90 --include-rest
cmp read/config.json piped/config.json
rm -r read
expect_exit 0 "$BIN" verify piped --against "$model" --model-config <(cat "$config")
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
for length in 300 4000 120000; do
  long=$(head -c $length /dev/zero | tr '\0' b)
  for path in "a/$long" "https://huggingface.co/a/$long" "hf.co/$long" "$long"; do
    for command in inspect explain 'convert -o none'; do
      # shellcheck disable=SC2086
      expect_exit 3 "$BIN" $command "$path"
      [ "$(wc -l <stderr)" -le 2 ] || fail "more than an error and a hint for a path of $length"
    done
  done
done
