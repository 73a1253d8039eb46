# Two engines: --engine and revisions of SGLang, its own refusals, and one blob for both where bytes agree.
# A checkpoint of DeepSeek-V4 with sizes that need no padding, and gpt-oss's config at its real sizes.
need_numpy
mkdir v4
"$python" - <<'END'
import json, layer_files

experts, hidden, inter = 2, 256, 256
layer_files.write("v4/model.safetensors", layer_files.experts(
    "layers.0.ffn.experts", experts, hidden, inter, ("w1", "w3", "w2"), scale=".scale", kinds=("I8", "F8_E8M0"), low=112, high=128))
json.dump({"architectures": ["DeepseekV4ForCausalLM"], "model_type": "deepseek_v4", "hidden_size": hidden,
           "moe_intermediate_size": inter, "num_hidden_layers": 1, "n_routed_experts": experts,
           "num_experts_per_tok": 2, "norm_topk_prob": True, "scoring_func": "sqrtsoftplus", "topk_method": "noaux_tc",
           "num_attention_heads": 8, "expert_dtype": "fp4",
           "quantization_config": {"quant_method": "fp8", "activation_scheme": "dynamic", "weight_block_size": [128, 128]}}, open("v4/config.json", "w"))
json.dump({"architectures": ["GptOssForCausalLM"], "model_type": "gpt_oss", "hidden_size": 2880, "intermediate_size": 2880,
           "num_local_experts": 8, "num_hidden_layers": 1, "num_attention_heads": 64, "num_key_value_heads": 8,
           "num_experts_per_tok": 4, "quantization_config": {"quant_method": "mxfp4"}}, open("oss.json", "w"))
END

# The engine's name: by itself, with a number, in the revision, in a target.
for words in '--engine sglang' '--engine sglang --revision 0.5.23' '--revision sglang-0.5.23'; do
  # shellcheck disable=SC2086
  expect_exit 0 "$BIN" explain v4 --arch sm100 $words --json
  "$python" -c 'import json; d = json.load(open("stdout")); assert d["revision"] == "sglang-0.5.23" and d["layout"] == "flashinfer/trtllm", d'
done
printf '{"sglang": "0.5.20", "platform": "cuda", "arch": "sm100"}' >target.json
expect_exit 0 "$BIN" explain v4 --arch sm100 --revision sglang-9.0
grep -q 'sglang-9.0 is newer than sglang-0.5.23,' stderr || fail 'no word about rules of an older one'

# Its own refusals, in words.
expect_exit 4 "$BIN" explain --model-config oss.json --arch sm120 --engine sglang --tp-size 4
expect_one_error 'SGLang stops with RuntimeError while it loads'
expect_exit 0 "$BIN" explain --model-config oss.json --arch sm120 --engine sglang --tp-size 2
expect_exit 4 "$BIN" explain --model-config oss.json --arch sm90 --engine sglang --tp-size 2 --enable-expert-parallel
expect_one_error 'upcasts the experts to BF16'

# One blob, two engines.
for arch in sm100 sm120; do
  convert_quietly v4 -o "for-sglang-$arch" --arch $arch --engine sglang
  backend=$("$python" -c 'import json, sys; print(json.load(open(sys.argv[1] + "/mxfp4_repack.json"))["target"]["backend"])' "for-sglang-$arch")
  convert_quietly v4 -o "for-vllm-$arch" --arch $arch --revision 0.33.0 --backend "$backend"
  expect_exit 0 "$BIN" verify "for-sglang-$arch" --against v4
  expect_exit 0 "$BIN" fits "for-vllm-$arch" --engine sglang
  expect_exit 0 "$BIN" fits "for-sglang-$arch" --engine sglang
  "$python" - "for-sglang-$arch" "for-vllm-$arch" <<'END'
import json, sys

one, other = (json.load(open(folder + "/mxfp4_repack.json")) for folder in sys.argv[1:])
assert one["engine"] == "sglang" and "vllm_commit" not in one, one
assert one["parameter_names"]["w13_weight_scale"] == "w13_weight_scale_inv", one
assert other["engine"] == "vllm" and other["vllm_commit"], other
assert one["layout"] == other["layout"]
assert [layer["tensors"] for layer in one["layers"]] == [layer["tensors"] for layer in other["layers"]]
END
  expect_exit 0 "$BIN" fits "for-vllm-$arch" --revision sglang-0.5.16 --moe-runner-backend flashinfer_mxfp4
done
expect_exit 1 "$BIN" fits for-vllm-sm100 --engine sglang --moe-runner-backend triton_kernel

# A blob is a checkpoint for the other engine.
convert_quietly for-sglang-sm100 -o from-blob --arch sm90 --revision 0.33.0
convert_quietly v4 -o from-checkpoint --arch sm90 --revision 0.33.0
expect_exit 0 "$BIN" diff from-blob from-checkpoint
expect_exit 0 "$BIN" unpack for-sglang-sm100 -o as-published --as-published
expect_exit 0 "$BIN" verify for-sglang-sm100 --against as-published

# One rank, and sizes that an engine has padded itself; padding of scales is the engine's own.
convert_quietly v4 -o rank --arch sm100 --engine sglang --tp-size 2 --rank 1
expect_exit 0 "$BIN" verify rank --against v4 --some-ranks
convert_quietly v4 -o padded --arch sm100 --engine sglang --pad 512x384
expect_exit 0 "$BIN" verify padded --against v4
"$python" -c 'import json; m = json.load(open("padded/mxfp4_repack.json")); assert m["model"]["scale_fill"] == 127, m'
expect_exit 1 "$BIN" fits padded --engine vllm

# What only vLLM has, or only a config says.
printf '{"arch": "sm100"}\n' >line.json
expect_exit 2 "$BIN" explain --batch line.json --engine sglang
expect_one_error '--batch: SGLang chooses by a checkpoint'
expect_exit 0 "$BIN" unpack for-sglang-sm100 -o loaded
expect_exit 2 "$BIN" convert loaded -o nothing --arch sm100 --engine sglang --family generic
expect_one_error 'chooses by the checkpoint.s config'
expect_exit 7 "$BIN" fits for-vllm-sm100 --revision sglang-9.0
grep -q 'plug-in' stdout || fail 'not who proves it'
# Variables as SGLang reads them; those that order bytes otherwise.
for value in yes TRUE 1; do
  expect_exit 0 "$BIN" explain v4 --arch gfx950 --engine sglang --env SGLANG_USE_AITER=$value --json
  grep -q '"layout": "aiter/bf16-halves"' stdout || fail "SGLANG_USE_AITER=$value is not read"
done
expect_exit 4 "$BIN" explain v4 --arch gfx950 --engine sglang --env SGLANG_USE_AITER=on
expect_exit 0 "$BIN" explain v4 --arch gfx950 --engine sglang --env SGLANG_USE_AITER=1 --env SGLANG_USE_AITER_MOE_GU_ITLV=no --json
grep -q '"layout": "aiter/bf16-separated"' stdout || fail 'SGLANG_USE_AITER_MOE_GU_ITLV is not read'
expect_exit 4 "$BIN" explain v4 --arch gfx950 --engine sglang --env SGLANG_USE_AITER=1 --env AITER_FORCE_A8W4=1
expect_exit 4 "$BIN" explain v4 --arch sm100 --engine sglang --env SGLANG_MXFP4_USE_OFFICIAL_SHUFFLE=0
