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
# Headers whose length, by its bytes, could begin a pickle or a zip archive.
def of_length(path, length):
    tensors = {name: {"dtype": "BF16", "shape": [1], "data_offsets": [2 * i, 2 * i + 2]} for i, name in enumerate(WORDS)}
    text = json.dumps({name + ".weight": value for name, value in tensors.items()}).encode().ljust(length)
    open(path, "wb").write(struct.pack("<Q", length) + text + bytes(2 * len(WORDS)))
for length in 0x280, 0x380, 0x480, 0x580, 0x8A0280, 0x04034B50:
    os.mkdir(f"length_{length}")
    of_length(f"length_{length}/model.safetensors", length)
# Safetensors under other programs' names are safetensors.
os.mkdir("called")
for name in "model.bin", "weights.pt":
    of_length("called/" + name, 0x280)
# Other programs' files, in a directory with a config and by themselves.
ZIP = b"PK\3\4" + bytes(26)
KINDS = {"torch_zip": ("consolidated.00.pth", ZIP + b"consolidated.00/data.pkl"), "torch_old": ("pytorch_model-00001-of-00002.bin", b"\x80\x02\x8a\nl"),
         "gguf_named": ("model.bin", b"GGUF" + bytes(20))}
for kind, (name, data) in KINDS.items():
    os.mkdir(kind)
    json.dump(quantized(quant_method="mxfp4"), open(kind + "/config.json", "w"))
    open(f"{kind}/{name}", "wb").write(data)
bnb = experts(weight=("U8", [2048, 1], 2048), **{"weight.absmax": ("U8", [64], 64), "weight.quant_map": ("F32", [16], 64)})
model("untold_bnb", MOE, bnb)
lora = {"base_model.model.model.layers.0.mlp.experts.0.up_proj.lora_%s.weight" % end: ("BF16", [8, 8], 128) for end in "AB"}
model("renamed_adapter", None, lora)
os.mkdir("adapter"), safetensors("adapter/adapter_model.safetensors", lora)
os.mkdir("pickled_adapter"), open("pickled_adapter/adapter_config.json", "w").write("{}"), open("pickled_adapter/adapter_model.bin", "wb").write(ZIP)
os.mkdir("saved"), safetensors("saved/model-rank-1-part-0.safetensors", plain)
# What a failed download leaves: in place of a file of weights, of the index, or nothing where other files' names ask for one.
LEFT = {"left_page": b"<!DOCTYPE html><html>404</html>", "left_pointer": pointer.encode()}
for name, data in LEFT.items():
    model(name, quantized(quant_method="mxfp4"), plain)
    open(name + "/model-2.safetensors", "wb").write(data)
model("index_pointer", quantized(quant_method="mxfp4"), plain)
open("index_pointer/model.safetensors.index.json", "w").write(pointer)
for first, count, gone in (1, 3, 2), (1, 4, 4), (0, 3, 2), (1, 2, 1):
    name = f"part_{first}_{count}_{gone}"
    os.mkdir(name)
    json.dump(quantized(quant_method="mxfp4"), open(name + "/config.json", "w"))
    for number in range(first, first + count):
        if number != gone: safetensors(f"{name}/model-{number:05}-of-{count:05}.safetensors", {f"x{number}": ("U8", [1], 1)})
os.mkdir("pickled")
json.dump(MOE, open("pickled/config.json", "w"))
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
torch='a PyTorch archive of pickled tensors; this program does not read it$'
exported='download or export the model as safetensors'
commands=(inspect "convert -o out --arch sm90")
for row in "torch_zip/consolidated.00.pth|$torch" "torch_old/pytorch_model-00001-of-00002.bin|$torch" 'gguf_named/model.bin|a GGUF file'; do
  file=${row%%|*}
  is "${file%/*}" "$file: ${row#*|}" "$exported"
  is "$file" "$file: ${row#*|}" "$exported"
done
for length in 640 896 1152 1408 9044608 67324752; do
  is length_$length "length_$length: the experts are not quantized; $only"
done
for name in model.bin weights.pt; do
  is called/$name "called/$name: the experts are not quantized; $only"
done
commands+=("explain --arch sm90")
is untold_bnb 'untold_bnb/config.json: the experts are quantized as bitsandbytes; '
is renamed_adapter 'renamed_adapter: a LoRA adapter, not a model'
for input in adapter adapter/adapter_model.safetensors pickled_adapter; do is $input "$input: a LoRA adapter, not a model$" 'merge it into its base model'; done
is saved/model-rank-1-part-0.safetensors 'model-rank-1-part-0.safetensors: a state that vLLM saved .sharded_state., a file a rank: .*' 'give the checkpoint'
is left_page 'left_page/model-2.safetensors: a web page, not safetensors$' 'fetch the file again'
is left_pointer 'left_pointer/model-2.safetensors: a Git LFS pointer' 'git lfs pull'
is index_pointer 'index_pointer/model.safetensors.index.json: a Git LFS pointer' 'git lfs pull'
for part in 1_3_2 1_4_4 0_3_2 1_2_1; do
  IFS=_ read -r _ count gone <<<"$part"
  is "part_$part" "part_$part: 1 of $count files is not there: \"model-0000$gone-of-0000$count.safetensors\"$" 'is the download complete'
done
is pickled 'pickled/pytorch_model.bin: a PyTorch archive' safetensors
is openai/gpt-oss-20b "a model's name on a hub" 'hf://openai/gpt-oss-20b is that model'
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
