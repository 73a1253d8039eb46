"""Stand-in: which layouts which machine gets, asked for in the reference's order."""
import vllm.standin
from vllm.platforms import current_platform

SCALES_IN_FOURS = False  # the newer revision pads the scales for sm90


def _swizzle_mxfp4(quant_tensor, scale, num_warps=8):
    from triton_kernels.matmul_ogs_details.opt_flags import update_opt_flags_constraints
    from triton_kernels.numerics import InFlexData
    from triton_kernels.tensor import FP4, convert_layout, wrap_torch_tensor
    from triton_kernels.tensor_details import layout
    value, scales, value_options, scale_options = layout.StridedLayout, layout.StridedLayout, {}, {}
    if current_platform.is_cuda():
        number = 10 * current_platform.capability[0] + current_platform.capability[1]
        if number == 90:
            value, scales = layout.HopperMXValueLayout, layout.HopperMXScaleLayout
            value_options = {"mx_axis": 1}
            scale_options = {"mx_axis": 1, "num_warps": num_warps}
            update_opt_flags_constraints({"split_k": 1})
            if SCALES_IN_FOURS:
                scale = padded_to_fours(scale)
        elif number >= 100:
            value, scales = layout.BlackwellMXValueLayout, layout.BlackwellMXScaleLayout
    elif vllm.standin.gfx == "gfx950":
        scales = layout.CDNA4MXScaleLayout
    quant_tensor = convert_layout(
        wrap_torch_tensor(quant_tensor.data.transpose(-2, -1), dtype=FP4), value, **value_options)
    scale = convert_layout(wrap_torch_tensor(scale.data.transpose(-2, -1)), scales,
                           **scale_options)
    return quant_tensor, InFlexData(), scale


def padded_to_fours(scale):
    import torch
    experts, rows, groups = scale.shape
    made = torch.zeros(experts, rows, -(-groups // 4) * 4, dtype=torch.uint8, device=scale.device)
    if not scale.is_meta:
        made[:, :, :groups] = scale.data
    return made
