# A compressed-tensors checkpoint with dynamic FP8 activations: from vLLM 0.32.0 on the generic method
# serves it, so the bytes are those of the same experts in a generic checkpoint.
"$python" - <<'END'
import json, os, random, struct
random.seed(7)
MOE = {"model_type": "qwen3_moe", "hidden_size": 128, "moe_intermediate_size": 96, "num_experts": 2, "num_hidden_layers": 1, "num_experts_per_tok": 2}
SHAPES = {"gate": (96, 128), "up": (96, 128), "down": (128, 96)}
DATA = [(f"model.layers.0.mlp.experts.{e}.{word}_proj", kind, [n, k // per], random.randbytes(n * k // per) if per == 2 else bytes(random.randrange(100, 130) for _ in range(n * k // per)))
        for e in range(2) for word, (n, k) in SHAPES.items() for kind, per in (("weight", 2), ("weight_scale", 32))]
def model(name, suffix, **quantization):
    os.mkdir(name)
    json.dump(dict(MOE, quantization_config=quantization), open(name + "/config.json", "w"))
    header, at = {}, 0
    for tensor, kind, shape, data in DATA:
        header[tensor + "." + kind + (suffix if kind == "weight" else "")] = {"dtype": "U8", "shape": shape, "data_offsets": [at, at + len(data)]}
        at += len(data)
    text = json.dumps(header).encode()
    open(name + "/model.safetensors", "wb").write(struct.pack("<Q", len(text)) + text + b"".join(row[3] for row in DATA))
def group(inputs, target="Linear"):
    weights = {"num_bits": 4, "type": "float", "strategy": "group", "group_size": 32, "symmetric": True}
    return {"targets": [target], "weights": weights, "input_activations": inputs}
def packed(name, *groups):
    model(name, "_packed", quant_method="compressed-tensors", format="mxfp4-pack-quantized", config_groups={f"group_{i}": g for i, g in enumerate(groups)})
TOKEN = {"num_bits": 8, "type": "float", "strategy": "token", "dynamic": True, "symmetric": True}
model("generic", "", quant_method="mxfp4")
packed("w4a16", group(None))
packed("token", group(TOKEN))
packed("block", group(dict(TOKEN, strategy="group", group_size=128)))
packed("group", group(dict(TOKEN, strategy="group", group_size=32)))
packed("groups_of_64", group(dict(TOKEN, strategy="group", group_size=64)))
packed("several", group(TOKEN), group(None, "re:.*mlp.*"))
packed("experts", group(None), group(TOKEN, "re:.*experts.*"))
packed("broken", group(dict(TOKEN, dynamic=False)))
END

layers() { (cd "$1" && sha256sum layer-*); }
for revision in 0.32.0 0.33.0; do
  for arch in sm100 sm80; do
    expect_exit 0 "$BIN" convert generic -o "generic-$revision-$arch" --arch "$arch" --revision "$revision"
    layers "generic-$revision-$arch" >want
    for name in token block group experts; do
      expect_exit 0 "$BIN" convert "$name" -o "$name-$revision-$arch" --arch "$arch" --revision "$revision"
      layers "$name-$revision-$arch" | cmp - want || fail "$name is not served as a generic model is"
    done
    expect_exit 0 "$BIN" verify "token-$revision-$arch" --against token
  done
  # On sm90 Humming is chosen, and packs for the type of activations that the checkpoint states.
  for row in token:fp8 group:fp8 block:fp8-packed-k; do
    name=${row%:*}
    expect_exit 0 "$BIN" convert "$name" -o "$name-$revision-sm90" --arch sm90 --revision "$revision"
    expect_exit 0 "$BIN" inspect "$name-$revision-sm90"
    grep -q "humming/${row#*:}\>" stdout || fail "$name has another layout"
    expect_exit 0 "$BIN" verify "$name-$revision-sm90" --against "$name"
  done
  expect_exit 4 "$BIN" convert groups_of_64 -o no --arch sm90 --revision "$revision"
  expect_one_error 'HUMMING on sm90 .*: Humming has no such activations'
  expect_exit 4 "$BIN" convert several -o no --arch sm100 --revision "$revision"
  expect_one_error 'layout cutlass/mxfp4: the intermediate size must be a multiple of 128, found 96'
  expect_exit 4 "$BIN" convert w4a16 -o no --arch sm100 --revision "$revision"
  expect_one_error 'layout cutlass/mxfp4: the intermediate size must be a multiple of 128, found 96'
done
# The user's own type, where the checkpoint states none.
while read -r arch key layout; do
  expect_exit 0 "$BIN" convert generic -o no --dry-run --revision 0.33.0 --backend HUMMING --arch "$arch" \
    --quantization-config "{\"moe\": {\"activation\": \"$key\"}}"
  grep -q "humming/$layout\>" stdout || fail "$key on $arch has another layout"
done <<'END'
sm90 mxfp8 fp8
sm89 fp8_per_token fp8
sm90 fp8_per_block_dynamic fp8-packed-k
sm80 int8_per_group_32 int8
sm103 mxfp8 umma
sm100 mxfp4 umma
sm120 mxfp8 mxmma-fp8
sm120 mxfp4 mxmma-fp4
END
# The user's own type must agree from 0.33.0 on; Humming's converter asks for it first.
expect_exit 4 "$BIN" explain token --arch sm90 --revision 0.33.0 --quantization-config '{"moe": {"activation": "mxfp8"}}'
expect_one_error 'at odds: loading stops with ValueError'
for ask in '0.33.0 fp8_per_token' '0.32.0 mxfp8'; do
  expect_exit 0 "$BIN" explain token --arch sm90 --revision "${ask% *}" --quantization-config "{\"moe\": {\"activation\": \"${ask#* }\"}}"
  ! grep -q 'at odds' stdout || fail "$ask is called a conflict"
done
expect_exit 3 "$BIN" inspect broken
expect_one_error 'input_activations.dynamic: false, expected true for strategy token$'

# Earlier releases ignore the activations.
for name in w4a16 token several; do
  expect_exit 0 "$BIN" convert "$name" -o "$name-0.31" --arch sm90 --revision 0.31.0
  layers "$name-0.31" | cmp - <(layers w4a16-0.31) || fail "$name is not served as before"
done
# A blob says for which activations it was made.
expect_exit 0 "$BIN" inspect token-0.32.0-sm100 --revision 0.33.0
expect_exit 0 "$BIN" explain token --arch sm100 --revision 0.33.0 -v
grep -q '^  model activation *fp8_per_token$' stdout || fail 'the activation is not said'
