"""Stand-in for the module of both converters, with their signatures of 017e9f4448.

The Triton group is converted through triton_kernels as in the reference, all else by standin.py.
"""
from enum import Enum

from vllm.model_executor.layers.quantization.utils.mxfp4_utils import _swizzle_mxfp4
from vllm.standin import own_conversion, widened

TRITON_BACKENDS = ("TRITON", "TRITON_UNFUSED", "AITER_MXFP4_FP8")
Mxfp4MoeBackend = Enum("Mxfp4MoeBackend", """NONE FLASHINFER_TRTLLM_MXFP4_MXFP8
    FLASHINFER_TRTLLM_MXFP4_BF16 FLASHINFER_CUTLASS_MXFP4_MXFP8 FLASHINFER_CUTLASS_MXFP4_BF16
    DEEPGEMM_MXFP4 MARLIN BATCHED_MARLIN HUMMING AITER_MXFP4_BF16 AITER_MXFP4_FP8 AITER_MXFP4_MXFP4
    TRITON TRITON_UNFUSED XPU CPU EMULATION""")


def _wrapped(mxfp4_backend, layer, w13_weight, w2_weight, w13_weight_scale, w2_weight_scale,
             w13_bias, w2_bias):
    from triton_kernels.matmul_ogs import FlexCtx, PrecisionConfig
    from triton_kernels.numerics import InFlexData
    w13, _, w13_scale = _swizzle_mxfp4(w13_weight, w13_weight_scale)
    w2, _, w2_scale = _swizzle_mxfp4(w2_weight, w2_weight_scale)
    configs = []
    for scale, name in ((w13_scale, "w13_input_scale"), (w2_scale, "w2_input_scale")):
        context = FlexCtx(rhs_data=InFlexData())
        if mxfp4_backend.name == "AITER_MXFP4_FP8":
            context.lhs_data = InFlexData(scale=getattr(layer, name).data.max())
        configs.append(PrecisionConfig(weight_scale=scale, flex_ctx=context))
    del layer.w13_weight, layer.w2_weight
    if mxfp4_backend.name != "AITER_MXFP4_FP8":
        del layer.w13_weight_scale, layer.w2_weight_scale
    if w13_bias is not None:
        prepared = getattr(layer, "own_result", {})
        w13_bias = prepared.get("w13_bias", widened(w13_bias))
        w2_bias = prepared.get("w2_bias", widened(w2_bias))
    return w13, w2, configs[0], configs[1], w13_bias, w2_bias


def convert_gpt_oss_weight_to_mxfp4_moe_kernel_format(
        mxfp4_backend, layer, w13_weight, w2_weight, w13_weight_scale, w2_weight_scale,
        w13_bias=None, w2_bias=None, w13_input_scale=None, w2_input_scale=None,
        _cache_permute_indices=None):
    values = (w13_weight, w2_weight, w13_weight_scale, w2_weight_scale, w13_bias, w2_bias)
    if mxfp4_backend.name in ("EMULATION", "XPU"):
        if w13_input_scale is not None:
            layer.w13_input_scale, layer.w2_input_scale = "scalar", "scalar"
        return values
    if mxfp4_backend.name in TRITON_BACKENDS:
        return _wrapped(mxfp4_backend, layer, *values)
    return own_conversion("gpt_oss", layer, values)


def convert_weight_to_mxfp4_moe_kernel_format(
        mxfp4_backend, layer, w13_weight, w2_weight, w13_weight_scale, w2_weight_scale,
        w13_bias=None, w2_bias=None, _cache_permute_indices=None, activation=None):
    values = (w13_weight, w2_weight, w13_weight_scale, w2_weight_scale, w13_bias, w2_bias)
    if mxfp4_backend.name in ("AITER_MXFP4_MXFP4", "AITER_MXFP4_FP8"):
        return convert_gpt_oss_weight_to_mxfp4_moe_kernel_format(
            mxfp4_backend=mxfp4_backend, layer=layer, w13_weight=w13_weight, w2_weight=w2_weight,
            w13_weight_scale=w13_weight_scale, w2_weight_scale=w2_weight_scale,
            w13_bias=w13_bias, w2_bias=w2_bias)
    if mxfp4_backend.name in ("EMULATION", "XPU"):
        return values
    if mxfp4_backend.name in TRITON_BACKENDS:
        return _wrapped(mxfp4_backend, layer, *values)
    return own_conversion("generic", layer, values)
