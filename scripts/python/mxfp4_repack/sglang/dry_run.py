"""Runs SGLang's own conversion on tensors without data.

The raw parameters are on torch's meta device meanwhile: they have types and shapes, and no bytes. The kernels that
move bytes are replaced by functions that give a result's shape. What SGLang makes beside the weights (numbers of its
activation, a workspace, flags, buffers, names) is SGLang's own then, and the shape and type of each weight that it
would have made is what a source's tensor must have.
"""
from __future__ import annotations

import contextlib
import importlib
import math
import sys
from typing import Any, Callable, Dict, Iterator, List, Tuple

from mxfp4_repack.sglang.names import Q


@contextlib.contextmanager
def vectors_on(device: Any) -> Iterator[None]:
    """New tensors of at most one axis that would be without data are made on `device`: the numbers of experts."""
    import torch
    from torch.overrides import TorchFunctionMode

    makers = (torch.full, torch.ones, torch.zeros, torch.empty, torch.tensor)

    class Vectors(TorchFunctionMode):
        def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            made = function(*args, **(kwargs or {}))
            if function in makers and made.is_meta and made.dim() <= 1:
                made = function(*args, **{**(kwargs or {}), "device": device})
            return made

    with Vectors():
        yield


@contextlib.contextmanager
def kernels_replaced(method: Any, backend: str) -> Iterator[None]:
    """Kernels of flashinfer and Marlin give the shapes of their results; SGLang imports them when it converts."""
    names = {"FLASHINFER": ("flashinfer", "flashinfer.fused_moe", "flashinfer.fp4_quantization"),
             "MARLIN": (Q + "marlin_utils_fp4",)}.get(backend.partition("_")[0], ())
    for name in names:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    places = [sys.modules.get(name) for name in (type(method).__module__, *names)]
    former: List[Tuple[Any, str, Any]] = []
    for place in places:
        for name, shape in _KERNELS.items():
            if place is not None and vars(place).get(name) is not None:
                former.append((place, name, vars(place)[name]))
                setattr(place, name, shape)
    try:
        yield
    finally:
        for place, name, value in reversed(former):
            setattr(place, name, value)


def _same(tensor: Any, *others: Any, **options: Any) -> Any:
    import torch
    return torch.empty_like(tensor, memory_format=torch.contiguous_format)


def _interleaved(scale: Any, *others: Any) -> Any:
    """flashinfer pads scales to whole tiles of 128 rows and 4 columns, and gives one axis."""
    import torch
    batches = math.prod(scale.shape[:-2])
    size = batches * -(-scale.shape[-2] // 128) * 128 * -(-scale.shape[-1] // 4) * 4
    return torch.empty(1, size, dtype=scale.dtype, device="meta").view(-1)


def _repacked(b_q_weight: Any, perm: Any, size_k: int, size_n: int, num_bits: int, **options: Any) -> Any:
    import torch
    return torch.empty(size_k // 16, size_n * 16 * num_bits // 32, dtype=torch.int32, device="meta")


_KERNELS: Dict[str, Callable[..., Any]] = {
    "interleave_moe_weights_for_sm90_mixed_gemm": _same,
    "block_scale_interleave": _interleaved, "nvfp4_block_scale_interleave": _interleaved,
    "gptq_marlin_repack": _repacked,
}
