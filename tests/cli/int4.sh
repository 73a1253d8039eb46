# Kimi-K3 on gfx942 where the user asks for int4: the engine's method requantizes, which unpack cannot
# undo. The knob says so where nothing else does, and may not contradict.
"$python" - <<'END'
import json, os, random, struct
random.seed(3)
CONFIG = {"model_type": "kimi_k3", "hidden_size": 128, "moe_intermediate_size": 128, "num_experts": 2, "num_hidden_layers": 1,
          "num_experts_per_tok": 2, "hidden_act": "situ", "activation_situ_linear_beta": 1.0, "quantization_config": {"quant_method": "mxfp4"}}
def model(name, largest):
    os.mkdir(name)
    json.dump(CONFIG, open(name + "/config.json", "w"))
    header, at, parts = {}, 0, []
    for e in range(2):
        for word in ("gate", "up", "down"):
            for kind, per in (("weight", 2), ("weight_scale", 32)):
                data = random.randbytes(128 * 128 // per) if per == 2 else bytes([largest] + [random.randrange(100, 130) for _ in range(128 * 4 - 1)])
                header[f"model.layers.0.mlp.experts.{e}.{word}_proj.{kind}"] = {"dtype": "U8", "shape": [128, 128 // per], "data_offsets": [at, at + len(data)]}
                at += len(data)
                parts.append(data)
    text = json.dumps(header).encode()
    open(name + "/model.safetensors", "wb").write(struct.pack("<Q", len(text)) + text + b"".join(parts))
model("kimi", 252)
model("huge", 253)
END

aiter="--env VLLM_ROCM_USE_AITER=1"
int4='{"moe": {"weight": "int4_per_group_32"}}'
# shellcheck disable=SC2086
for revision in 0.32.0 0.33.0; do
  gfx942="--arch gfx942 $aiter --revision $revision"
  expect_exit 0 "$BIN" convert kimi -o "int4-$revision" $gfx942 --quantization-config "$int4"
  expect_exit 0 "$BIN" inspect "int4-$revision"
  grep -q 'aiter/int4' stdout || fail 'another layout'
  expect_exit 0 "$BIN" verify "int4-$revision"
  expect_exit 0 "$BIN" verify "int4-$revision" --against kimi
  expect_exit 4 "$BIN" unpack "int4-$revision" -o back
  expect_one_error 'layout aiter/int4: w13_weight cannot be restored'
  [ ! -e back ] || fail 'unpack left something'
  expect_exit 0 "$BIN" convert kimi -o "told-$revision" $gfx942 --quantization-config "$int4" --knob aiter_weight=int4
  cmp "int4-$revision"/layer-* "told-$revision"/layer-* || fail 'the knob makes other bytes'
  expect_exit 2 "$BIN" convert kimi -o no $gfx942 --quantization-config "$int4" --knob aiter_weight=mxfp4
  expect_one_error '--knob aiter_weight: mxfp4 contradicts'
  expect_exit 4 "$BIN" convert huge -o no $gfx942 --quantization-config "$int4"
  expect_one_error 'w13_weight_scale: scale bytes may be at most 252 .* found 253'
  # Where the method asks the selector, the knob has nothing to say.
  expect_exit 2 "$BIN" convert kimi -o no --arch gfx950 $aiter --revision $revision --knob aiter_weight=int4
  expect_one_error '--knob aiter_weight: int4 contradicts'
done
# Of an input without a config it is the knob that tells.
expect_exit 0 "$BIN" convert kimi -o plain --arch gfx942 --backend EMULATION
expect_exit 0 "$BIN" unpack plain -o loaded
expect_exit 0 "$BIN" convert loaded -o from_loaded --arch gfx942 --backend AITER_MXFP4_BF16 --activation situ \
  --knob aiter_weight=int4 --revision 0.33.0
expect_exit 0 "$BIN" verify int4-0.33.0 --against loaded
grep -q 'aiter/int4' from_loaded/mxfp4_repack.json || fail 'the knob does not tell'
expect_exit 0 "$BIN" verify from_loaded --against kimi
expect_exit 2 "$BIN" convert kimi -o no --arch gfx942 --knob aiter_weight=int8
expect_one_error "--knob aiter_weight: expected mxfp4|int4, found 'int8'"
