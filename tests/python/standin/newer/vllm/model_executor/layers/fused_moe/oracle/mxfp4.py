"""Stand-in for the module of both converters, with their signatures of 017e9f4448."""
from vllm.model_executor.layers.quantization.utils.mxfp4_utils import _swizzle_mxfp4
from vllm.standin import TRITON_BACKENDS, Mxfp4MoeBackend, converted  # noqa: F401


def convert_gpt_oss_weight_to_mxfp4_moe_kernel_format(
        mxfp4_backend, layer, w13_weight, w2_weight, w13_weight_scale, w2_weight_scale,
        w13_bias=None, w2_bias=None, w13_input_scale=None, w2_input_scale=None,
        _cache_permute_indices=None):
    if mxfp4_backend.name in ("EMULATION", "XPU") and w13_input_scale is not None:
        layer.w13_input_scale, layer.w2_input_scale = "scalar", "scalar"
    return converted("gpt_oss", _swizzle_mxfp4, False, mxfp4_backend, layer, w13_weight, w2_weight,
                     w13_weight_scale, w2_weight_scale, w13_bias, w2_bias)


def convert_weight_to_mxfp4_moe_kernel_format(
        mxfp4_backend, layer, w13_weight, w2_weight, w13_weight_scale, w2_weight_scale,
        w13_bias=None, w2_bias=None, _cache_permute_indices=None, activation=None):
    if mxfp4_backend.name in ("AITER_MXFP4_MXFP4", "AITER_MXFP4_FP8"):
        return convert_gpt_oss_weight_to_mxfp4_moe_kernel_format(
            mxfp4_backend=mxfp4_backend, layer=layer, w13_weight=w13_weight, w2_weight=w2_weight,
            w13_weight_scale=w13_weight_scale, w2_weight_scale=w2_weight_scale,
            w13_bias=w13_bias, w2_bias=w2_bias)
    return converted("generic", _swizzle_mxfp4, False, mxfp4_backend, layer, w13_weight, w2_weight,
                     w13_weight_scale, w2_weight_scale, w13_bias, w2_bias)
