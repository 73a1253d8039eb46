# Types of activations, from config to layout: a compressed-tensors checkpoint with dynamic FP8 activations is served as
# generic experts are, and Humming packs for the type that the checkpoint or the user states. What each release did with
# each type: Activations, against the wheels.
need_numpy
"$python" - <<'END'
import json, os, layer_files
def model(name, suffix, **quantization):
    os.mkdir(name)
    json.dump({"model_type": "qwen3_moe", "hidden_size": 128, "moe_intermediate_size": 96, "num_experts": 2, "num_hidden_layers": 1, "num_experts_per_tok": 2,
               "quantization_config": quantization}, open(name + "/config.json", "w"))
    layer_files.write(name + "/model.safetensors", layer_files.experts("model.layers.0.mlp.experts", 2, 128, 96, codes=".weight" + suffix, low=100, high=130))
def packed(name, **inputs):
    weights = {"num_bits": 4, "type": "float", "strategy": "group", "group_size": 32, "symmetric": True}
    inputs = {"num_bits": 8, "type": "float", "strategy": "token", "dynamic": True, "symmetric": True, **inputs}
    model(name, "_packed", quant_method="compressed-tensors", format="mxfp4-pack-quantized", config_groups={
        "group_0": {"targets": ["Linear"], "weights": weights, "input_activations": inputs}})
model("generic", "", quant_method="mxfp4")
packed("token")
packed("block", strategy="group", group_size=128)
END
layers() { (cd "$1" && sha256sum layer-*); }
for name in generic token; do convert_quietly "$name" -o "$name-sm100" --arch sm100 --revision 0.33.0; done
layers token-sm100 | cmp - <(layers generic-sm100) || fail 'not served as a generic model is'
for row in token:fp8 block:fp8-packed-k; do
  name=${row%:*}
  expect_exit 0 "$BIN" convert "$name" -o "$name-sm90" --arch sm90 --revision 0.33.0
  grep -q "humming/${row#*:}\>" "$name-sm90/mxfp4_repack.json" || fail "$name has another layout"
  expect_exit 0 "$BIN" verify "$name-sm90" --against "$name"
done
# The user's own type, where the checkpoint states none; it must agree with the checkpoint's.
while read -r arch key layout; do
  expect_exit 0 "$BIN" convert generic -o no --dry-run --revision 0.33.0 --backend HUMMING --arch "$arch" \
    --quantization-config "{\"moe\": {\"activation\": \"$key\"}}"
  grep -q "humming/$layout\>" stdout || fail "$key on $arch has another layout"
done <<'END'
sm90 fp8_per_block_dynamic fp8-packed-k
sm80 int8_per_group_32 int8
sm103 mxfp8 umma
sm120 mxfp4 mxmma-fp4
END
expect_exit 4 "$BIN" explain token --arch sm90 --revision 0.33.0 --quantization-config '{"moe": {"activation": "mxfp8"}}'
expect_one_error 'at odds: loading stops with ValueError'
