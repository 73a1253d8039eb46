# Models and files that the program cannot convert: exit 3, one sentence that says what they are.
need_numpy
"$python" - <<'END'
import json, os, struct, layer_files, numpy
def safetensors(path, tensors):
    layer_files.write(path, {name: (dtype, numpy.zeros(shape, layer_files.DTYPES[dtype])) for name, (dtype, shape) in tensors.items()})
def model(name, config, tensors):
    os.mkdir(name)
    if config: json.dump(config, open(name + "/config.json", "w"))
    safetensors(name + "/model.safetensors", tensors)
MOE = {"model_type": "qwen3_moe", "hidden_size": 64, "moe_intermediate_size": 64, "num_experts": 4,
       "num_hidden_layers": 1, "num_experts_per_tok": 2}
def quantized(**how): return dict(MOE, quantization_config=how)
WORDS = [f"model.layers.0.mlp.experts.0.{word}_proj" for word in ("gate", "up", "down")]
def experts(**fields): return {f"{word}.{field}": value for word in WORDS for field, value in fields.items()}
plain = experts(weight=("BF16", [64, 64]))
dense = {"model.layers.0.mlp.gate_proj.weight": ("BF16", [64, 64])}
fp8 = experts(weight=("F8_E4M3", [64, 64]), weight_scale_inv=("F32", [1, 1]))
model("unquantized", MOE, plain)
model("dense", {"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 1}, dense)
model("fp8", quantized(quant_method="fp8", weight_block_size=[128, 128]), fp8)
model("exotic", quantized(quant_method="exotic"), plain)
pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:" + "ab" * 32 + "\nsize 4792272488\n"
os.mkdir("lfs")
json.dump(quantized(quant_method="mxfp4"), open("lfs/config.json", "w"))
for path in "lfs/model.safetensors", "pointer.safetensors": open(path, "w").write(pointer)
open("model.gguf", "wb").write(b"GGUF" + struct.pack("<IQQ", 3, 0, 0))
lora = {"base_model.model.model.layers.0.mlp.experts.0.up_proj.lora_%s.weight" % end: ("BF16", [8, 8]) for end in "AB"}
os.mkdir("adapter"), safetensors("adapter/adapter_model.safetensors", lora)
os.mkdir("saved"), safetensors("saved/model-rank-1-part-0.safetensors", plain)
# What a failed download leaves: in place of a file of weights, of the index, or nothing where other files' names ask for one.
model("left_pointer", quantized(quant_method="mxfp4"), plain)
open("left_pointer/model-2.safetensors", "w").write(pointer)
model("index_pointer", quantized(quant_method="mxfp4"), plain)
open("index_pointer/model.safetensors.index.json", "w").write(pointer)
for first, count, gone in (1, 3, 2), (1, 4, 4), (0, 3, 2), (1, 2, 1):
    name = f"part_{first}_{count}_{gone}"
    os.mkdir(name)
    json.dump(quantized(quant_method="mxfp4"), open(name + "/config.json", "w"))
    for number in range(first, first + count):
        if number != gone: safetensors(f"{name}/model-{number:05}-of-{count:05}.safetensors", {f"x{number}": ("U8", [1])})
END

# is INPUT SENTENCE [HINT]: every command that reads a checkpoint says so.
commands=(inspect "convert -o out --arch sm90" "explain --arch sm90")
is() {
  local command
  for command in "${commands[@]}"; do
    # shellcheck disable=SC2086
    expect_exit 3 "$BIN" $command "$1"
    expect_one_error "$2"
    [ -z "${3:-}" ] || grep -qE "^hint: .*$3" stderr || { cat stderr >&2; fail "no hint for $1: $3"; }
    [ ! -e out ] || fail "output for $1"
  done
}
only='this program repacks MXFP4 experts only'
is unquantized 'unquantized/config.json: quantization_config: missing' 'style'
cp -r unquantized says_nothing && echo '{}' >says_nothing/config.json
is says_nothing 'says_nothing/config.json: says neither a model nor its quantization' 'style'
is dense 'dense/config.json: .*no MXFP4 expert tensors'
key='config.json: quantization_config'
is fp8 "fp8/$key.quant_method: fp8: a model of type qwen3_moe is quantized as FP8; $only"
is exotic "exotic/$key.quant_method: exotic: not a quantization that this program knows; $only"
is lfs 'lfs/model.safetensors: a Git LFS pointer' 'git lfs pull'
is pointer.safetensors 'pointer.safetensors: a Git LFS pointer' 'git lfs pull'
is model.gguf 'model.gguf: unknown content'
for input in adapter adapter/adapter_model.safetensors; do is $input "$input: a LoRA adapter, not a model$" 'merge it into its base model'; done
is saved/model-rank-1-part-0.safetensors 'model-rank-1-part-0.safetensors: a state that vLLM saved .sharded_state., a file a rank: .*' 'give the checkpoint'
is left_pointer 'left_pointer/model-2.safetensors: a Git LFS pointer' 'git lfs pull'
is index_pointer 'index_pointer/model.safetensors.index.json: a Git LFS pointer' 'git lfs pull'
for part in 1_3_2 1_4_4 0_3_2 1_2_1; do
  IFS=_ read -r _ count gone <<<"$part"
  is "part_$part" "part_$part: 1 of $count files is not there: \"model-0000$gone-of-0000$count.safetensors\"$" 'is the download complete'
done
is openai/gpt-oss-20b "a model's name on a hub" 'hf://openai/gpt-oss-20b is that model'
# A mistyped path is not taken for a model's name.
is dense/missing 'dense/missing: cannot be opened: No such file'
is ./a/b './a/b: cannot be opened: No such file'

: >nothing.safetensors
is nothing.safetensors 'nothing.safetensors: the file is empty'
mkdir broken
cp "$TESTDATA"/ingest/gptoss_hf/*.safetensors broken
printf '{"model_type": "gpt_oss",\n  "layers": 2,\n}\n' >broken/config.json
is broken "broken/config.json: not JSON: line 3, column 1: .*expected string literal"

# --quantization-config: an unknown key with its file, an unknown name with those that the release has.
printf '{"moe": {"activations": "mxfp8"}}' >quantization.json
for flag in quantization.json '{"moe": {"activations": "mxfp8"}}'; do
  expect_exit 3 "$BIN" explain --arch sm90 --quantization-config "$flag"
  case $flag in *.json) name='--quantization-config: quantization.json' ;; *) name=--quantization-config ;; esac
  expect_one_error "$name: moe.activations: unknown key, expected weight, activation"
done
expect_exit 3 "$BIN" explain --arch sm90 --quantization-config '{"moe": {"activation": "mxfp7"}}'
expect_one_error "activation_override: unknown name 'mxfp7'; known: .*mxfp8"
