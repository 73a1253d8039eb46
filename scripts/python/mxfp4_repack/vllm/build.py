"""Makes from a source's tensors the values that vLLM's converters return.

The six values are w13, w2, their scales and their biases. For most backends all are plain tensors. For the Triton
group vLLM's own converter runs on raw tensors without data, as mxfp4_repack.plugin.build says. Likewise HUMMING: its
converter runs on stand-ins of the raw tensors, and only the package's transformation is replaced.
"""
from __future__ import annotations

import contextlib
import importlib
from typing import Any, Dict, Iterator, Mapping, Tuple

from mxfp4_repack.plugin.build import WRAPPED, StandIn, convert_layout_replaced, is_wrapped
from mxfp4_repack.plugin.facts import Mismatch
from mxfp4_repack.plugin.names import SLOTS

# Backend -> how its six values are made.
PLAIN, AS_LOADED, TRANSFORMED = "plain", "as loaded", "transformed"
BUILDERS = {
    # The original returns the tensors that it is given; call it for its side effects.
    "EMULATION": AS_LOADED, "XPU": AS_LOADED, "B12X_MXFP4_MXFP8": AS_LOADED, "B12X_MXFP4_BF16": AS_LOADED,
    "FLASHINFER_MOE_EP_DEEP_GEMM": AS_LOADED,
    "DEEPGEMM_MXFP4": PLAIN, "MARLIN": PLAIN, "BATCHED_MARLIN": PLAIN, "CPU": PLAIN,
    "FLASHINFER_TRTLLM_MXFP4_MXFP8": PLAIN, "FLASHINFER_TRTLLM_MXFP4_BF16": PLAIN,
    "FLASHINFER_CUTLASS_MXFP4_MXFP8": PLAIN, "FLASHINFER_CUTLASS_MXFP4_BF16": PLAIN,
    "CUTLASS_MXFP4_MXFP4": PLAIN,
    "AITER_MXFP4_BF16": PLAIN, "AITER_MXFP4_MXFP4": PLAIN, "AITER_TRITON_MXFP4_MXFP4": PLAIN,
    # Wrapped, by their storage:
    "TRITON": PLAIN, "TRITON_UNFUSED": PLAIN, "AITER_MXFP4_FP8": PLAIN, "AITER_TRITON_MXFP4_BF16": PLAIN,
    "HUMMING": TRANSFORMED,
    "DEEP_GEMM_MEGA_MOE": PLAIN, "AITER_MEGA_MOE": PLAIN,  # mega.py
}


def check_backend(name: str) -> None:
    if name not in BUILDERS:
        raise Mismatch("backend", "tensors only", f"{name}, whose conversion does more")


def build(layer: Any, tensors: Mapping[str, Any], call: Any, backend: str) -> Tuple[Any, ...]:
    """The six values. `call` is vLLM's converter, called with some of its arguments replaced."""
    import torch
    values = {slot: tensors.get(slot) for slot in SLOTS}
    if is_wrapped(layer):
        # The converter reads only their shapes: the data comes from the stand-in.
        shapes = {name: torch.empty_like(call.arguments[name], device="meta") for name in WRAPPED}
        with convert_layout_replaced(StandIn(layer, tensors)) as stand_in:
            made = list(call(shapes))
        stand_in.finished()
        made[4:] = values["w13_bias"], values["w2_bias"]
        return tuple(made)
    if BUILDERS[backend] == AS_LOADED:
        return tuple(call(values))
    if BUILDERS[backend] == TRANSFORMED:
        with transformation_replaced(call, tensors):
            return tuple(call({}))
    return tuple(values[slot] for slot in SLOTS)


@contextlib.contextmanager
def transformation_replaced(call: Any, tensors: Mapping[str, Any]) -> Iterator[None]:
    """vLLM's schemas and the kernel's configurations come from shapes; the package transforms data in one
    function, once for w13 and once for w2. The stand-ins have the raw tensors' shapes and no memory."""
    import torch

    try:
        transform = importlib.import_module("humming.transform")
        original = transform.transform_humming_tensors
    except (ImportError, AttributeError) as error:
        raise Mismatch("humming-kernels", "transform_humming_tensors", f"none ({error})") from None
    layers = iter(("w13_", "w2_"))

    def transformed(config: Any, raw: Mapping[str, Any]) -> Dict[str, Any]:
        prefix = next(layers)
        return {name[len(prefix):]: tensor for name, tensor in tensors.items() if name.startswith(prefix)}

    for name in SLOTS:
        parameter = call.layer._parameters.get(name)
        if parameter is not None:
            row = torch.empty(parameter.shape[-1], dtype=parameter.dtype, device=call.device())
            call.layer._parameters[name] = torch.nn.Parameter(row.expand(parameter.shape), requires_grad=False)
    transform.transform_humming_tensors = transformed
    try:
        yield
    finally:
        transform.transform_humming_tensors = original
    if next(layers, None) is not None:
        raise Mismatch("calls of transform_humming_tensors", 2, "fewer")
