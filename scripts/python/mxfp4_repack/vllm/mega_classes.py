"""How the classes of mega MoE hold their experts: the same for a source's tensors and for vLLM's own.

A way has `convert`, which gives a layer a source's tensors in place of the class's own conversion `original`;
`own`, vLLM's own converted tensor of a name; and `held`, a source's tensor by the type that the class keeps.
"""
from __future__ import annotations

import contextlib
from typing import Any, Callable, Iterator, Mapping

from mxfp4_repack.plugin.facts import Mismatch
from mxfp4_repack.plugin.names import SLOTS
from mxfp4_repack.vllm.names import AITER_MEGA_BACKEND, AITER_MEGA_CLASS, MEGA_BACKEND

PARAMETERS = SLOTS[:4]
PAIRS = ("_transformed_l1_weights", "_transformed_l2_weights")  # of codes and scales


class Loaded:
    """From 0.33.0 on: parameters have the kernel's layout from the beginning, and nothing is converted."""

    backend, converts = MEGA_BACKEND, False

    @staticmethod
    def convert(experts: Any, tensors: Mapping[str, Any], original: Callable[[], Any]) -> Any:
        for name in PARAMETERS:
            getattr(experts, name).data.copy_(tensors[name])

    @staticmethod
    def own(experts: Any, name: str) -> Any:
        return getattr(experts, name).data

    @staticmethod
    def held(tensor: Any) -> Any:
        return tensor


class Transformed:
    """Up to 0.32: DeepGEMM makes two pairs, and the parameters are dropped."""

    backend, converts = MEGA_BACKEND, True

    @staticmethod
    def convert(experts: Any, tensors: Mapping[str, Any], original: Callable[[], Any]) -> Any:
        """The class skips what it finds done, and goes on with the shared expert."""
        pairs = [(tensors[f"{slot}_weight"], tensors[f"{slot}_weight_scale"]) for slot in ("w13", "w2")]
        if hasattr(experts, "_mega_l1_packed"):  # Kimi-K3 from 0.30 on takes them from here by itself
            for number, pair in enumerate(pairs, 1):
                for word, tensor in zip(("packed", "scale"), pair):
                    setattr(experts, f"_mega_l{number}_{word}", tensor)
            return original()
        for name, pair in zip(PAIRS, pairs):
            setattr(experts, name, pair)
        for name in PARAMETERS:
            setattr(experts, name, None)
        return original()

    @staticmethod
    def own(experts: Any, name: str) -> Any:
        index = PARAMETERS.index(name)
        return getattr(experts, PAIRS[index % 2])[index // 2]

    held = Loaded.held


class Shuffled:
    """AITER: each parameter's data is shuffled by a function of its own kind, then the kernel's runtime is made."""

    backend, converts = AITER_MEGA_BACKEND, True

    @staticmethod
    def convert(experts: Any, tensors: Mapping[str, Any], original: Callable[[], Any]) -> Any:
        with _shuffles_answered({name: Shuffled.held(tensor) for name, tensor in tensors.items()}):
            return original()

    own = Loaded.own

    @staticmethod
    def held(tensor: Any) -> Any:
        """Bytes, where other backends have AITER's type of codes."""
        import torch
        return tensor.view(torch.uint8)


def way_of(experts: Any) -> Any:
    if type(experts).__name__ == AITER_MEGA_CLASS:
        return Shuffled
    return Transformed if hasattr(experts, PAIRS[0]) else Loaded


@contextlib.contextmanager
def _shuffles_answered(tensors: Mapping[str, Any]) -> Iterator[None]:
    """The class asks for w13 and then for w2, of weights and of scales."""
    from vllm._aiter_ops import rocm_aiter_ops as owner

    kinds = {"shuffle_weight_a16w4": iter(("w13_weight", "w2_weight")),
             "shuffle_scale_a16w4": iter(("w13_weight_scale", "w2_weight_scale"))}

    def answering(names: Iterator[str]) -> Any:
        return staticmethod(lambda *args: tensors[next(names)])

    own = {name: vars(owner)[name] for name in kinds}
    for name, names in kinds.items():
        setattr(owner, name, answering(names))
    try:
        yield
    finally:
        for name, function in own.items():
            setattr(owner, name, function)
    if any(next(names, None) for names in kinds.values()):
        raise Mismatch("calls of AITER's shuffles", "four", "fewer")
