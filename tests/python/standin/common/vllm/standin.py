"""What tests set and look at: calls of the converters, the gfx name, a layer like vLLM's."""
from enum import Enum
from types import SimpleNamespace

import torch

SLOTS = ("w13_weight", "w2_weight", "w13_weight_scale", "w2_weight_scale", "w13_bias", "w2_bias")
calls = []  # (family, arguments) of every conversion that vLLM itself did
gfx = ""


def own_conversion(family, layer, values):
    """vLLM's result: what the test prepared, or the raw tensors with every bit turned."""
    calls.append((family, values))
    prepared = getattr(layer, "own_result", None)
    if prepared is not None:
        return tuple(prepared[slot] for slot in SLOTS)
    return tuple(None if v is None else turned(v) for v in values)


def turned(tensor):
    data = tensor.data
    bits = {1: torch.uint8, 2: torch.int16, 4: torch.int32}[data.element_size()]
    return (data.view(bits) ^ (255 if bits is torch.uint8 else -1)).view(data.dtype)


def widened(bias):
    """F32, where torch can."""
    return bias.data.float() if hasattr(bias, "float") else bias.data


TRITON_BACKENDS = ("TRITON", "TRITON_UNFUSED", "AITER_MXFP4_FP8")
Mxfp4MoeBackend = Enum("Mxfp4MoeBackend", """NONE FLASHINFER_TRTLLM_MXFP4_MXFP8
    FLASHINFER_TRTLLM_MXFP4_BF16 FLASHINFER_CUTLASS_MXFP4_MXFP8 FLASHINFER_CUTLASS_MXFP4_BF16
    DEEPGEMM_MXFP4 MARLIN BATCHED_MARLIN HUMMING AITER_MXFP4_BF16 AITER_MXFP4_FP8 AITER_MXFP4_MXFP4
    TRITON TRITON_UNFUSED XPU CPU EMULATION""")


def converted(family, swizzle, keeps_scales, backend, layer, *values):
    """As both stand-ins for the module of the converters convert, the Triton group through triton_kernels as in the reference.
    keeps_scales: the layer has its raw scales afterwards, whatever the backend."""
    if backend.name in ("EMULATION", "XPU"):
        return values
    if backend.name not in TRITON_BACKENDS:
        return own_conversion(family, layer, values)
    from triton_kernels.matmul_ogs import FlexCtx, PrecisionConfig
    from triton_kernels.numerics import InFlexData
    w13_weight, w2_weight, w13_weight_scale, w2_weight_scale, w13_bias, w2_bias = values
    w13, _, w13_scale = swizzle(w13_weight, w13_weight_scale)
    w2, _, w2_scale = swizzle(w2_weight, w2_weight_scale)
    configs = []
    for scale, name in ((w13_scale, "w13_input_scale"), (w2_scale, "w2_input_scale")):
        context = FlexCtx(rhs_data=InFlexData())
        if backend.name == "AITER_MXFP4_FP8":
            context.lhs_data = InFlexData(scale=getattr(layer, name).data.max())
        configs.append(PrecisionConfig(weight_scale=scale, flex_ctx=context))
    del layer.w13_weight, layer.w2_weight
    if not keeps_scales and backend.name != "AITER_MXFP4_FP8":
        del layer.w13_weight_scale, layer.w2_weight_scale
    if w13_bias is not None:
        prepared = getattr(layer, "own_result", {})
        w13_bias = prepared.get("w13_bias", widened(w13_bias))
        w2_bias = prepared.get("w2_bias", widened(w2_bias))
    return w13, w2, configs[0], configs[1], w13_bias, w2_bias


class ExpertMapManager:
    def __init__(self, experts, shared=0):
        self.experts, self.num_fused_shared_experts = experts, shared
        self.placement_strategy = "linear"
        self.global_num_experts = max(experts, default=-1) + 1

    def is_local_expert(self, global_id):
        return global_id in self.experts

    def map_global_to_local(self, global_id):
        return list(self.experts).index(global_id)


class FusedMoE(torch.nn.Module):
    """The layer; RoutedExperts at the newer revision. Facts as keyword arguments."""

    def __init__(self, name, experts, hidden, inner, **facts):
        super().__init__()
        tp, ep = facts.get("tp", (0, 1)), facts.get("ep", (0, 1))
        ids = facts.get("ids", list(range(experts)))
        total = facts.get("total", experts * ep[1])
        self.layer_name = name
        self.local_num_experts, self.global_num_experts = experts, total
        self.params_dtype = facts.get("params_dtype", torch.bfloat16)
        self.activation = facts.get("activation", "swigluoai")
        self.expert_map_manager = ExpertMapManager(ids, facts.get("shared", 0))
        self._expert_map = None
        self.moe_config = SimpleNamespace(
            moe_parallel_config=SimpleNamespace(
                tp_rank=tp[0], tp_size=tp[1], ep_rank=ep[0], ep_size=ep[1], use_ep=ep[1] > 1,
                dp_size=1, pcp_size=1),
            num_experts=total + facts.get("redundant", 0), num_logical_experts=total,
            hidden_dim=hidden, intermediate_size_per_partition=inner,
            hidden_dim_unpadded=facts.get("hidden_unpadded", hidden),
            intermediate_size_per_partition_unpadded=facts.get("inner_unpadded", inner),
            has_bias=facts.get("has_bias", True), device=torch.device(facts.get("device", "cpu")))


RoutedExperts = FusedMoE


def replace_parameter(layer, name, tensor):
    """The seed drops attributes of the tensor, the newer revision keeps them."""
    made = torch.nn.Parameter(tensor, requires_grad=False)
    for flag in ("is_shuffled",):
        if hasattr(tensor, flag):
            setattr(made, flag, getattr(tensor, flag))
    if name in layer._parameters:
        del layer._parameters[name]
    layer.register_parameter(name, made)
