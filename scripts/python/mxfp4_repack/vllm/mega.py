"""Mega MoE. From 0.33.0 on its experts' parameters have the kernel's layout from the beginning.

vLLM converts nothing there: its loader writes each tensor of each expert into its place. A covered
layer's raw tensors are not read, and its four parameters are filled once the model is loaded, before
anything is captured. Parameters keep their memory. Up to 0.32 the class converts when everything is
loaded: a covered layer gets the converted tensors just before, and the class skips what it finds done.
The fused shared expert stays vLLM's. Only the load format reaches these layers.
"""
from __future__ import annotations

import hashlib
import inspect
import sys
import time
from types import SimpleNamespace
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from mxfp4_repack.plugin import build, proofs
from mxfp4_repack.plugin.engine import log
from mxfp4_repack.plugin.facts import Mismatch
from mxfp4_repack.plugin.live import Origin
from mxfp4_repack.plugin.names import BLOCK, SLOTS
from mxfp4_repack.vllm import converter_code
from mxfp4_repack.vllm.live import Live
from mxfp4_repack.vllm.names import MEGA_BACKEND

PARAMETERS = SLOTS[:4]
_CONVERTED = ("_transformed_l1_weights", "_transformed_l2_weights")  # pairs of codes and scales


class _Layer(NamedTuple):
    experts: Any  # vLLM's module
    live: Live
    blob: Any
    entry: Any


class MegaLayers:
    """The layers of one model, from their construction to the end of its load."""

    def __init__(self, hook: Any) -> None:
        self._hook = hook
        self.names: List[str] = []
        self._covered: List[_Layer] = []
        self._proving: Dict[Tuple[Any, ...], _Layer] = {}  # by kind: vLLM loads it, and it is compared

    def created(self, experts: Any, origin: Optional[Origin]) -> None:
        """Called once vLLM has made `experts` with its parameters, before anything is loaded."""
        name = str(getattr(experts, "prefix", "a layer"))
        self.names.append(name)
        try:
            live = _live(experts, origin)
            if origin is not None and origin.refusals:
                raise Mismatch("deployment", "converted experts only", origin.refusals[0])
            blob, entry = self._hook.sources.agree(live)
            layer = _Layer(experts, live, blob, entry)
            if self._hook.sources.verify_mode(live, blob) != "none":
                self._proving.setdefault(live.kind, layer)
                raise Mismatch("verification", "vLLM's own result is needed to compare with: its loader is not "
                                               "known to give these bytes, or a comparison was asked for")
            with blob.layer(entry["prefix"]):  # raises unless its file is there and whole
                pass
        except Exception as error:
            why = str(error) if isinstance(error, Mismatch) else f"{type(error).__name__}: {error}"
            self._hook.leave(name, "vLLM loads it", why)
            return
        self._covered.append(layer)
        self._hook.skip(entry["prefix"], name)

    def finish(self) -> None:
        """Fills the covered layers, and compares those that have to be proved. Raises what the sources raise."""
        for layer in self._covered:
            self._fill(layer)
        for layer in self._proving.values():
            self._prove(layer)
        self._covered, self._proving = [], {}

    def converts(self, experts: Any) -> None:
        """Called before `experts` convert what they loaded: fills them if they are covered."""
        for layer in [layer for layer in self._covered if layer.experts is experts]:
            self._fill(layer)
            self._covered.remove(layer)

    def _fill(self, layer: _Layer) -> None:
        start = time.monotonic()
        with layer.blob.layer(layer.entry["prefix"]) as source:
            tensors = source.to_device(layer.experts.w13_weight.device)
            if _converts(layer.experts):
                _put_converted(layer.experts, tensors)
            else:
                for name in PARAMETERS:
                    getattr(layer.experts, name).data.copy_(tensors[name])
            self._hook.came_from(layer.blob, layer.experts.prefix, source.path, time.monotonic() - start)

    def _prove(self, layer: _Layer) -> None:
        if _converts(layer.experts) and None in (getattr(layer.experts, name) for name in _CONVERTED):
            return  # a load without weights converts later
        found: List[str] = []
        with layer.blob.layer(layer.entry["prefix"]) as source:
            for name in PARAMETERS:
                own = _own(layer.experts, name)
                found += build.tensor_differences(name, source.torch(name, own.device), own)
        if found:
            self._hook.sources.refute(layer.blob.root, f"{layer.experts.prefix}, {found[0]}")
            log.error("mxfp4-repack: %s: %s is not what vLLM loads: %s; it is not used", layer.experts.prefix,
                      layer.blob.root, "; ".join(found))
            return
        proofs.remember(layer.live, layer.blob.digest)
        log.info("mxfp4-repack: %s: what vLLM loads equals %s", layer.experts.prefix, layer.blob.root)


def _converts(experts: Any) -> bool:
    """Whether the class converts after loading, up to 0.32."""
    return hasattr(experts, _CONVERTED[0])


def _own(experts: Any, name: str) -> Any:
    """A tensor of vLLM's own."""
    if not _converts(experts):
        return getattr(experts, name).data
    return getattr(experts, _CONVERTED[PARAMETERS.index(name) % 2])[PARAMETERS.index(name) // 2]


def _put_converted(experts: Any, tensors: Any) -> None:
    """What finalize_weights would set, and what it would drop."""
    pairs = [(tensors[f"{slot}_weight"], tensors[f"{slot}_weight_scale"]) for slot in ("w13", "w2")]
    if hasattr(experts, "_mega_l1_packed"):  # Kimi-K3 from 0.30 on takes them from here by itself
        for number, pair in enumerate(pairs, 1):
            for word, tensor in zip(("packed", "scale"), pair):
                setattr(experts, f"_mega_l{number}_{word}", tensor)
        return
    for name, pair in zip(_CONVERTED, pairs):
        setattr(experts, name, pair)
    for name in PARAMETERS:
        setattr(experts, name, None)


def _live(experts: Any, origin: Optional[Origin]) -> Live:
    kind = type(experts).__name__
    spec = "mxfp4" if _converts(experts) else experts.weight_format.name
    if spec != "mxfp4":
        raise Mismatch("format of the experts", "mxfp4", spec)
    here, hidden, inner = experts.num_local_experts, experts.hidden_size, experts.intermediate_size
    return Live(
        _facade(experts), method=experts, family="generic", backend=MEGA_BACKEND, code=kind,
        shapes={"w13_weight": (here, 2 * inner, hidden // 2), "w2_weight": (here, hidden, inner // 2),
                "w13_weight_scale": (here, 2 * inner, hidden // BLOCK),
                "w2_weight_scale": (here, hidden, inner // BLOCK)},
        biases={"w13_bias": None, "w2_bias": None}, origin=origin,
        activation=getattr(experts, "activation", "silu") if _converts(experts) else experts.activation.name,
        fingerprint=_fingerprint(experts), input_scales=False,
        params_dtype="bfloat16")


def _fingerprint(experts: Any) -> str:
    """Identifies the code that loads or converts. A converting class is identified by the modules of its own and of
    those that it extends; DeepGEMM, which it calls, is the installed vLLM's."""
    kind = type(experts)
    if not _converts(experts):
        return converter_code.installed_branch(kind.__name__, MEGA_BACKEND)
    modules = [sys.modules[base.__module__] for base in kind.__mro__ if base.__module__.startswith("vllm.")]
    return hashlib.sha256("".join(map(inspect.getsource, modules)).encode()).hexdigest()[:16]


def _facade(experts: Any) -> Any:
    """The experts with the attributes of a layer that Live reads. Slots are physical experts: with redundant
    ones, which are refused, the model's repeat."""
    here, first = experts.num_local_experts, experts.experts_start_idx
    logical = getattr(experts, "num_logical_experts", experts.num_experts)  # 0.21 and 0.22 repeat none
    ranks = experts.num_experts // here
    parallel = SimpleNamespace(tp_size=1, tp_rank=0, ep_size=ranks, ep_rank=first // here, dp_size=1, pcp_size=1)
    config = SimpleNamespace(
        moe_parallel_config=parallel, num_experts=experts.num_experts, num_logical_experts=logical,
        hidden_dim_unpadded=experts.hidden_size,
        intermediate_size_per_partition_unpadded=experts.intermediate_size)
    manager = SimpleNamespace(
        global_num_experts=logical, num_fused_shared_experts=0,
        is_local_expert=lambda e: first <= e < first + here, map_global_to_local=lambda e: e - first)
    return SimpleNamespace(layer_name=experts.prefix, moe_config=config, local_num_experts=here,
                           expert_map_manager=manager)
