# Models and files that the program cannot convert: exit 3, one sentence that says what they are.
"$python" - <<'END'
import json, os, struct
def safetensors(path, tensors):
    header, at = {}, 0
    for name, (dtype, shape, size) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header).encode()
    open(path, "wb").write(struct.pack("<Q", len(text)) + text + bytes(at))
def model(name, config, tensors):
    os.mkdir(name)
    if config: json.dump(config, open(name + "/config.json", "w"))
    safetensors(name + "/model.safetensors", tensors)
MOE = {"model_type": "qwen3_moe", "hidden_size": 64, "moe_intermediate_size": 64, "num_experts": 4,
       "num_hidden_layers": 1, "num_experts_per_tok": 2}
def quantized(**how): return dict(MOE, quantization_config=how)
def group(**weights): return {"group_0": {"targets": ["Linear"], "weights": dict(weights, symmetric=True)}}
WORDS = [f"model.layers.0.mlp.experts.0.{word}_proj" for word in ("gate", "up", "down")]
def experts(**fields): return {f"{word}.{field}": value for word in WORDS for field, value in fields.items()}
plain = experts(weight=("BF16", [64, 64], 8192))
dense = {"model.layers.0.mlp.gate_proj.weight": ("BF16", [64, 64], 8192)}
nvfp4 = experts(weight=("U8", [64, 32], 2048), weight_scale=("F8_E4M3", [64, 4], 256), weight_scale_2=("F32", [1], 4))
fp8 = experts(weight=("F8_E4M3", [64, 64], 4096), weight_scale_inv=("F32", [1, 1], 4))
mxfp8 = experts(weight=("F8_E4M3", [64, 64], 4096), weight_scale=("U8", [64, 2], 128))
awq = experts(qweight=("I32", [64, 8], 2048), qzeros=("I32", [2, 8], 64), scales=("F16", [2, 64], 256))
gptq = dict(awq, **experts(g_idx=("I32", [64], 256)))
model("unquantized", MOE, plain)
model("dense", {"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 1}, dense)
model("dense_mxfp4", {"model_type": "llama", "quantization_config": {"quant_method": "mxfp4"}},
      {"model.layers.0.mlp.gate_proj.weight": ("U8", [64, 32], 2048)})
model("nvfp4", quantized(quant_method="modelopt", quant_algo="NVFP4"), nvfp4)
model("nvfp4_group", quantized(quant_method="compressed-tensors", format="nvfp4-pack-quantized",
                               config_groups=group(num_bits=4, type="float", strategy="tensor_group")), nvfp4)
model("mxfp8", quantized(quant_method="modelopt", quant_algo="MXFP8"), mxfp8)
model("fp8", quantized(quant_method="fp8", weight_block_size=[128, 128]), fp8)
model("fp8_group", quantized(quant_method="compressed-tensors", format="float-quantized",
                             config_groups=group(num_bits=8, type="float", strategy="channel")), fp8)
model("awq", quantized(quant_method="awq", bits=4), awq)
model("gptq", quantized(quant_method="gptq", bits=4), gptq)
model("exotic", quantized(quant_method="exotic"), awq)
for name, tensors in {"plain": plain, "nvfp4": nvfp4, "mxfp8": mxfp8, "fp8": fp8, "awq": awq, "gptq": gptq}.items():
    model("untold_" + name, None, tensors)
pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:" + "ab" * 32 + "\nsize 4792272488\n"
os.mkdir("lfs")
json.dump(quantized(quant_method="mxfp4"), open("lfs/config.json", "w"))
for path in "lfs/model.safetensors", "pointer.safetensors": open(path, "w").write(pointer)
os.mkdir("llama")
for path in "llama/model.gguf", "model.gguf": open(path, "wb").write(b"GGUF" + struct.pack("<IQQ", 3, 0, 0))
for name in "pickled", "unfinished":
    os.mkdir(name)
    json.dump(MOE, open(name + "/config.json", "w"))
open("pickled/pytorch_model.bin", "wb").write(b"PK\3\4" + bytes(64))
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
is unquantized "unquantized/config.json: the experts are not quantized; $only"
is dense 'dense/config.json: no tensor of an expert: a dense model; this program repacks the experts of MoE models'
is dense_mxfp4 'dense_mxfp4/config.json: no tensor of an expert: a dense model'
key='config.json: quantization_config'
is nvfp4 "nvfp4/$key.quant_algo: NVFP4: the model is quantized as NVFP4; $only"
is nvfp4_group "nvfp4_group/$key.format: nvfp4-pack-quantized: the model is quantized as NVFP4; $only"
is mxfp8 "mxfp8/$key.quant_algo: MXFP8: the model is quantized as MXFP8; $only"
is fp8 "fp8/$key.quant_method: fp8: a model of type qwen3_moe is quantized as FP8; $only"
is fp8_group "fp8_group/$key.format: float-quantized: the model is quantized as FP8; $only"
is awq "awq/$key.quant_method: awq: the model is quantized as AWQ; $only"
is gptq "gptq/$key.quant_method: gptq: the model is quantized as GPTQ; $only"
is exotic "exotic/$key.quant_method: exotic: not a quantization that this program knows; $only"
is untold_plain "untold_plain: the experts are not quantized; $only"
is untold_nvfp4 "untold_nvfp4: the experts are quantized as NVFP4; $only"
is untold_mxfp8 "untold_mxfp8: the experts are quantized as MXFP8; $only"
is untold_fp8 "untold_fp8: the experts are quantized as FP8; $only"
is untold_awq "untold_awq: the experts are quantized as AWQ or GPTQ; $only"
is untold_gptq "untold_gptq: the experts are quantized as GPTQ; $only"
is lfs 'lfs/model.safetensors: a Git LFS pointer' 'git lfs pull'
is pointer.safetensors 'pointer.safetensors: a Git LFS pointer' 'git lfs pull'
is llama 'llama/model.gguf: a GGUF file' safetensors
is model.gguf 'model.gguf: a GGUF file' safetensors
is pickled 'pickled/pytorch_model.bin: a PyTorch archive' safetensors
# explain answers from a config.
commands=(inspect "convert -o out --arch sm90")
is unfinished 'unfinished: a config.json, but no \*.safetensors' 'hf download'
commands+=("explain --arch sm90")
for name in openai/gpt-oss-20b https://huggingface.co/openai/gpt-oss-20b hf.co/openai/gpt-oss-20b/tree/main; do
  is $name "a model's name on a hub" 'hf download openai/gpt-oss-20b --local-dir gpt-oss-20b'
done
is s3://bucket/model 's3://bucket/model: an address, and this program reads local files only' 'download it'
# A mistyped path is not taken for a model's name.
is dense/missing 'dense/missing: cannot be opened: No such file'
is ./a/b './a/b: cannot be opened: No such file'

# A part of a checkpoint that holds no tensors, and a file that holds nothing.
ln -s "$TESTDATA/ingest/gptoss_hf" whole
for command in "convert -o out --arch sm90"; do  # explain and inspect take the checkpoint
  # shellcheck disable=SC2086
  expect_exit 3 "$BIN" $command whole/config.json
  expect_one_error "whole/config.json: a JSON file, no raw dump's manifest"
  grep -qx 'hint: the checkpoint beside it is given by its directory, whole' stderr || fail 'no directory named'
done
: >nothing.safetensors
is nothing.safetensors 'nothing.safetensors: the file is empty'
is packed/layer-00000.safetensors 'packed/layer-00000.safetensors: cannot be opened: No such file'
mkdir broken
cp "$TESTDATA"/ingest/gptoss_hf/*.safetensors broken
printf '{"model_type": "gpt_oss",\n  "layers": 2,\n}\n' >broken/config.json
is broken "broken/config.json: not JSON: line 3, column 1: expected a key in double quotes, found '}'"

# --quantization-config names file, key and value.
printf '{"moe": {"activation": "mxfp7"}}' >quantization.json
for flag in quantization.json '{"moe": {"activation": "mxfp7"}}'; do
  expect_exit 3 "$BIN" explain --arch sm90 --quantization-config "$flag"
  case $flag in *.json) name='--quantization-config: quantization.json' ;; *) name=--quantization-config ;; esac
  expect_one_error "$name: moe.activation: \"mxfp7\": .*unknown quantization name"
done
expect_exit 3 "$BIN" explain --arch sm90 --quantization-config mxfp7
expect_one_error '--quantization-config: mxfp7: neither a JSON object nor a file'
printf '{bad' >quantization.json
for flag in quantization.json '{bad'; do
  expect_exit 3 "$BIN" explain --arch sm90 --quantization-config "$flag" --json
  grep -q '"key": "--quantization-config"' stdout || fail "$flag: no key"
done
