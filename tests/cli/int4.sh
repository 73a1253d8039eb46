# Kimi-K3 on gfx942 where the user asks for int4: the engine's method requantizes, which unpack cannot undo. The knob
# says so where nothing else does, and may not contradict.
need_numpy
"$python" - <<'END'
import layer_files, json, numpy, os
draw = numpy.random.default_rng(3)
for name, largest in (("kimi", 252), ("huge", 253)):
    tensors = {}
    for at in range(6):
        module = f"model.layers.0.mlp.experts.{at // 3}.{('gate', 'up', 'down')[at % 3]}_proj.weight"
        tensors[module] = "U8", draw.integers(0, 256, (128, 64), "u1")
        tensors[module + "_scale"] = "U8", draw.integers(100, 130, (128, 4), "u1")
        tensors[module + "_scale"][1][0, 0] = largest
    os.mkdir(name)
    layer_files.write(name + "/model.safetensors", tensors)
    json.dump({"model_type": "kimi_k3", "hidden_size": 128, "moe_intermediate_size": 128, "num_experts": 2, "num_hidden_layers": 1, "num_experts_per_tok": 2,
               "hidden_act": "situ", "activation_situ_linear_beta": 1.0, "quantization_config": {"quant_method": "mxfp4"}}, open(name + "/config.json", "w"))
END
gfx942=(--arch gfx942 --env VLLM_ROCM_USE_AITER=1 --revision 0.33.0 --quantization-config '{"moe": {"weight": "int4_per_group_32"}}')
expect_exit 0 "$BIN" convert kimi -o int4 "${gfx942[@]}"
grep -q 'aiter/int4' int4/mxfp4_repack.json || fail 'another layout'
expect_exit 0 "$BIN" verify int4 --against kimi
expect_exit 4 "$BIN" unpack int4 -o back
expect_one_error 'layout aiter/int4: w13_weight cannot be restored'
expect_exit 2 "$BIN" convert kimi -o no "${gfx942[@]}" --knob aiter_weight=mxfp4
expect_one_error '--knob aiter_weight: mxfp4 contradicts'
expect_exit 4 "$BIN" convert huge -o no "${gfx942[@]}"
expect_one_error 'w13_weight_scale: scale bytes may be at most 252 .* found 253'
# Of an input without a config it is the knob that says it.
expect_exit 0 "$BIN" convert kimi -o plain --arch gfx942 --backend EMULATION
expect_exit 0 "$BIN" unpack plain -o loaded
expect_exit 0 "$BIN" convert loaded -o from_loaded --arch gfx942 --backend AITER_MXFP4_BF16 --activation situ --knob aiter_weight=int4 --revision 0.33.0
grep -q 'aiter/int4' from_loaded/mxfp4_repack.json || fail 'the knob does not say it'
expect_exit 0 "$BIN" verify from_loaded --against kimi
