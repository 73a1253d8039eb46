# The oracle for people and for programs.
model=$TESTDATA/ingest/gptoss_hf old=vllm-2026-05-18

columns() { [ "$(LC_ALL=C.UTF-8 wc -L <"$1")" -le 80 ]; }

# From flags without a checkpoint, and with one: a table of at most 80 columns that ends with a command.
for arch in sm80 sm90 sm100 sm103 sm120 gfx942 gfx950; do
  for input in '' "$model"; do
    # shellcheck disable=SC2086
    expect_exit 0 "$BIN" explain $input --arch $arch --revision $old
    grep -v "$model" stdout >narrow
    columns narrow || fail "wider than 80 columns: explain $input --arch $arch"
    grep -q '^  backend ' stdout || fail "no backend: explain $input --arch $arch"
    sed -n '/^next$/,$p' stdout | grep -q 'mxfp4-repack convert' || fail 'no next command'
  done
done

# The answer is first, the command last; a candidate shows the condition that it does not meet.
expect_exit 0 "$BIN" explain "$model" --arch sm90 --revision $old
[ "$(head -1 stdout)" = "TRITON, layout triton/hopper: sm90, $old" ] || { head -3 stdout >&2; fail 'the answer is not first'; }
[ "$(wc -l <stdout)" -le 30 ] || fail 'the screen is long'
grep -qE '^FLASHINFER_TRTLLM_MXFP4_BF16 +platform cuda and capability 10.x' stdout || { cat stdout >&2; fail 'no condition on the first screen'; }
expect_exit 0 "$BIN" explain "$model" --arch sm90 --revision $old -v
grep -qE "^       needs  .*capability 10.x" stdout || { cat stdout >&2; fail "no condition"; }
grep -v '^  #' stdout | sed -n '$p' | grep -q -- "--revision $old$" || fail 'the command is not last'
expect_exit 4 "$BIN" explain "$model" --arch sm90 --moe-backend xpu --revision $old
[ "$(cat stdout stderr | tr -d '\n' | grep -o "Mxfp4 MoE backend 'XPU' does not support" | wc -l)" = 1 ] || fail 'the refusal is said twice'
escape=$(printf '\033')
"$BIN" explain "$model" --arch sm90 -v --color always >colored
grep -q "^  $escape\[31mno$escape\[0m " colored || fail 'no is not red'
"$BIN" explain "$model" --arch sm90 -v | diff - <(sed "s/$escape\[[0-9;]*m//g" colored) || fail 'colour changes words'

# The next command works when it is pasted, whatever deployment it came from.
mkdir bin
ln -s "$BIN" bin/mxfp4-repack
PATH=$PWD/bin:$PATH
cp -r "$model" 'a model'
printf '{"platform": "cuda", "arch": "sm100", "libs": ["flashinfer"], "env": {}}\n' >target.json
while read -r flags; do
  for input in "$model" 'a model'; do
    eval "set -- $flags"
    expect_exit 0 "$BIN" explain "$input" "$@"
    sed '1,/^next$/d' stdout >next.sh
    rm -rf OUT
    expect_exit 0 bash -eu next.sh
    some=()
    [[ $flags == *--rank* ]] && some=(--some-ranks)
    expect_exit 0 "$BIN" verify OUT "${some[@]}"
  done
done <<'EOF'
--arch sm90
--arch sm120 --tp-size 2
--arch sm100 --quantization-config '{"moe": {"activation": "mxfp8"}}'
--arch sm90 --no-lib triton_kernels --libs flashinfer,deep_gemm
--arch gfx950 --env VLLM_ROCM_USE_AITER=0 --revision $old
--arch sm80 --moe-backend marlin --tp-size 2 --enable-expert-parallel
--target target.json
--arch sm100 --backend TRITON
--arch sm90 --libs none --layers 1
--arch sm89 --backend MARLIN --knob params_dtype=bfloat16 --knob marlin_input_dtype=none
--arch sm90 --moe-backend marlin --tp-size 2 --enable-expert-parallel --rank 1
--arch sm90 --expert-placement round_robin --env 'VLLM_USE_DEEP_GEMM= 1' --style gpt_oss
EOF
for part in '--expert-placement round_robin' "--env 'VLLM_USE_DEEP_GEMM= 1'" '--style gpt_oss'; do
  grep -q -e "$part" next.sh || fail "the next command lost $part"
done

# First at its end: no blob where a start can make the bytes.
while IFS='|' read -r input flags words; do
  # shellcheck disable=SC2086
  expect_exit 0 "$BIN" explain $input $flags --revision vllm-0.33.0
  [[ $(sed -n "/^next\$/,\$p" stdout) == *"$words"* ]] || fail "explain $input $flags does not name '$words'"
  # shellcheck disable=SC2086
  expect_exit 0 "$BIN" explain $input $flags --revision vllm-0.33.0 --json
  "$python" -c 'import json, sys; assert ("serve" in sys.argv[1]) == bool(json.load(open("stdout"))["serve"])' "$words"
done <<EOF
$model|--arch sm90|vllm serve $model --load-format mxfp4_repack
|--arch sm90|vllm serve CHECKPOINT --load-format mxfp4_repack
|--arch sm90 --backend HUMMING --knob humming_input_dtype=int8|
$TESTDATA/containers/raw_loaded|--arch sm90 --backend MARLIN|
EOF

# Sizes that a running engine has padded to: those of the rules give the rules' bytes, others are taken.
expect_exit 0 "$BIN" convert "$model" -o rounded --arch sm90 --backend MARLIN -q
read -r hidden inter < <("$BIN" explain "$model" --arch sm90 --backend MARLIN --json -q |
  "$python" -c 'import json, sys; p = json.load(sys.stdin)["sizes"]["padded"]; print(p["hidden_size"], p["intermediate_size"])')
expect_exit 0 "$BIN" convert "$model" -o same --arch sm90 --backend MARLIN --pad "${hidden}x$inter" -q
expect_exit 0 "$BIN" diff rounded same
expect_exit 0 "$BIN" convert "$model" -o larger --arch sm90 --backend MARLIN --pad "$((hidden + 256))x$((inter + 128))" -q
expect_exit 0 "$BIN" verify larger --against "$model"
expect_exit 1 "$BIN" diff rounded larger
expect_exit 2 "$BIN" convert "$model" -o smaller --arch sm90 --backend MARLIN --pad 32x32 -q
grep -q 'padded hidden size 32: a rank has' stderr || fail 'why 32 is too small'
