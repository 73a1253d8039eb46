"""Mega MoE. From 0.33.0 on DeepGEMM's parameters have the kernel's layout from the beginning.

vLLM converts nothing there: its loader writes each tensor of each expert into its place. A covered
layer's raw tensors are not read, and its four parameters are filled once the model is loaded, before
anything is captured. Parameters keep their memory. Other classes convert when everything is loaded,
DeepGEMM's up to 0.32 and AITER's: a covered layer gets the converted tensors in that place
(mega_classes.py). The fused shared expert of DeepGEMM stays vLLM's. Only the load format reaches these
layers.
"""
from __future__ import annotations

import hashlib
import inspect
import sys
import time
from types import SimpleNamespace
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

from mxfp4_repack.plugin import build, proofs
from mxfp4_repack.plugin.engine import log
from mxfp4_repack.plugin.facts import Mismatch
from mxfp4_repack.plugin.live import Origin
from mxfp4_repack.plugin.names import BLOCK, ORIGIN
from mxfp4_repack.vllm import converter_code
from mxfp4_repack.vllm.live import Live
from mxfp4_repack.vllm.mega_classes import PARAMETERS, way_of


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
        self._converted: List[Any] = []  # modules

    def created(self, experts: Any, origin: Optional[Origin]) -> None:
        """Called once vLLM has made `experts` with its parameters, before anything is loaded."""
        name = str(getattr(experts, "prefix", "a layer"))
        self.names.append(name)
        setattr(experts, ORIGIN, origin)
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
        """Fills the covered layers that convert nothing, and compares those that have to be proved. Raises what the
        sources raise."""
        for layer in self._covered:
            if way_of(layer.experts).converts:
                raise Mismatch("conversion", "one while the model is loaded", f"none of {layer.experts.prefix}")
            self._fill(layer, lambda: None)
        for layer in self._proving.values():
            if not way_of(layer.experts).converts or layer.experts in self._converted:
                self._prove(layer)
        self._covered, self._proving, self._converted = [], {}, []

    def convert(self, experts: Any, original: Callable[[], Any]) -> Any:
        """Called instead of `original`, which converts what `experts` loaded."""
        self._converted.append(experts)
        for layer in self._covered:
            if layer.experts is experts:
                self._covered.remove(layer)
                return self._fill(layer, original)
        return original()

    def _fill(self, layer: _Layer, original: Callable[[], Any]) -> Any:
        start = time.monotonic()
        with layer.blob.layer(layer.entry["prefix"]) as source:
            tensors = source.to_device(layer.experts.w13_weight.device)
            result = way_of(layer.experts).convert(layer.experts, tensors, original)
            self._placed(layer, source)
            self._hook.came_from(layer.blob, layer.experts.prefix, source.path, time.monotonic() - start)
        return result

    def _placed(self, layer: _Layer, source: Any) -> None:
        """A class that converts keeps its experts in a form of its own: its reload is vLLM's."""
        if not way_of(layer.experts).converts:
            self._hook.placed(layer.experts, layer.live, layer.blob, source,
                              {name: getattr(layer.experts, name) for name in PARAMETERS})

    def _prove(self, layer: _Layer) -> None:
        found: List[str] = []
        way = way_of(layer.experts)
        with layer.blob.layer(layer.entry["prefix"]) as source:
            for name in PARAMETERS:
                own = way.own(layer.experts, name)
                found += build.tensor_differences(name, way.held(source.torch(name, own.device)), own)
            if not found:
                self._placed(layer, source)
        if found:
            self._hook.sources.refute(layer.blob.root, f"{layer.experts.prefix}, {found[0]}")
            log.error("mxfp4-repack: %s: %s is not what vLLM loads: %s; it is not used", layer.experts.prefix,
                      layer.blob.root, "; ".join(found))
            return
        proofs.remember(layer.live, layer.blob.digest)
        log.info("mxfp4-repack: %s: what vLLM loads equals %s", layer.experts.prefix, layer.blob.root)


def _live(experts: Any, origin: Optional[Origin]) -> Live:
    way = way_of(experts)
    spec = "mxfp4" if way.converts else experts.weight_format.name
    if spec != "mxfp4":
        raise Mismatch("format of the experts", "mxfp4", spec)
    if getattr(experts, "fuse_shared_expert", False):  # AITER's: one slot more, which vLLM quantizes
        raise Mismatch("fused shared experts", 0, 1)
    here, hidden, inner = experts.num_local_experts, experts.hidden_size, experts.intermediate_size
    return Live(
        _facade(experts), method=experts, family="generic", backend=way.backend,
        shapes={"w13_weight": (here, 2 * inner, hidden // 2), "w2_weight": (here, hidden, inner // 2),
                "w13_weight_scale": (here, 2 * inner, hidden // BLOCK),
                "w2_weight_scale": (here, hidden, inner // BLOCK)},
        biases={"w13_bias": None, "w2_bias": None}, origin=origin,
        activation=getattr(experts, "activation", "silu") if way.converts else experts.activation.name,
        fingerprint=_fingerprint(experts), input_scales=False,
        params_dtype="bfloat16")


def _fingerprint(experts: Any) -> str:
    """Identifies the code that loads or converts. A converting class is identified by the modules of its own and of
    those that it extends; DeepGEMM, which it calls, is the installed vLLM's, AITER's shuffles are the package's."""
    kind = type(experts)
    if not way_of(experts).converts:
        return converter_code.installed_code()
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
