# What the engine would not serve: exit 4 in the same words from every command, unless it is asked for.
model=$TESTDATA/ingest/gptoss_hf
old=vllm-2026-05-18

# refused WORDS FLAGS...
refused() {
  local words=$1 command
  shift
  for command in explain inspect convert; do
    local arguments=("$command" "$model" "$@")
    [ $command = convert ] && arguments+=(-o out)
    expect_exit 4 "$BIN" "${arguments[@]}"
    expect_one_error "$words"
    grep -qx 'hint: --allow-unservable writes the bytes all the same' stderr || fail "$command: no hint"
    ! grep -q 'warning' stderr || fail "$command: the reason is said twice"
  done
  [ ! -e out ] || fail 'a refusal left an output'
  expect_exit 0 "$BIN" convert "$model" -o out "$@" --allow-unservable
  grep -q "warning: .*${words#*: }" stderr || fail 'no warning beside the bytes'
  "$BIN" verify out -q || fail 'not a blob'
  rm -rf out
}
served='the engine would not serve it'
refused "$served: GptOssMxfp4MoEMethod needs capability 80 or more: start-up stops" --arch sm75
refused "$served: loading stops with NotImplementedError: EPLB is not supported" --arch sm80 --enable-eplb \
  --revision $old
refused "$served: the engine's humming helper imports a module that does not exist" --arch sm90 \
  --moe-backend humming --libs humming --revision $old
expect_exit 4 "$BIN" explain "$model" --arch sm90 --enable-lora --enable-expert-parallel --dp-size 2 \
  --all2all-backend deepep_high_throughput
expect_one_error "$served: LoRA on experts that are spread over ranks asserts the all-to-all"

# The engine's class of gpt-oss hands no redundant experts on: two ranks hold its four experts once.
expect_exit 0 "$BIN" convert "$model" -o out --arch sm90 --tp-size 2 --enable-expert-parallel --enable-eplb \
  --num-redundant-experts 2 --allow-unservable
grep -q 'warning: .*GptOssForCausalLM hands no redundant experts on' stderr || fail 'no warning of EPLB'
expect_exit 0 "$BIN" verify out --against "$model"
rm -rf out

# A forced backend has its bytes and the warning; so has another purpose its own flag.
expect_exit 0 "$BIN" convert "$model" -o out --arch sm90 --backend HUMMING --revision $old
grep -q 'warning: .*loading stops with ModuleNotFoundError' stderr || fail 'no warning'
rm -rf out
expect_exit 4 "$BIN" convert "$model" -o out --arch sm75 --allow-known-defects
# The loaded layout is what a loader holds, whoever serves it.
expect_exit 0 "$BIN" convert "$model" -o out --arch sm75 --emit loaded
