"""MXFP4_REPACK_SKIP_RAW: raw experts of layers that a source has are not read nor held by vLLM.

The plug-in decides for each layer before loading, when its method creates the parameters: if every
fact agrees, the layer is covered. Its parameters are created without data (on torch's meta device),
and the loader leaves out its raw tensors. The conversion then finds parameters without data; if the
source fails there, it is an error. vLLM loads other layers as usual. Only the first load leaves
tensors out: for a reload, or an update of weights, no layer is covered.
"""
from __future__ import annotations

import sys
from typing import Any, Callable, Dict, List, Mapping

from mxfp4_repack.vllm import checkpoint, converter_code, facts
from mxfp4_repack.vllm.calls import PARAMETERS, backend_of
from mxfp4_repack.vllm.facts import Mismatch
from mxfp4_repack.vllm.live import BLOCK, ORIGIN, Live
from mxfp4_repack.vllm.names import BY_THEMSELVES, FAMILIES, ORACLE

BIAS_DTYPES = {"QuarkOCP_MX_MoEMethod": "float32"}


class SkippedLayers:
    """The covered layers of a process, from the creation of their parameters to their conversion."""

    def __init__(self, hook: Any) -> None:
        self._hook = hook
        self._prefixes: Dict[str, str] = {}  # prefix in the checkpoint -> name in vLLM

    def covers(self, tensor_name: str) -> bool:
        """Whether this names a raw tensor of a covered layer."""
        for prefix in self._prefixes:
            if tensor_name.startswith(prefix + "."):
                return checkpoint.is_raw_name(tensor_name[len(prefix) + 1:])
        return False

    def add(self, prefix: str, name: str) -> None:
        """Covers the layer `name` of vLLM, whose raw tensors are below `prefix`."""
        self._prefixes[prefix] = name

    def forget(self, layer_name: str) -> None:
        for prefix, name in list(self._prefixes.items()):
            if name == layer_name:
                del self._prefixes[prefix]

    def create_weights(self, original: Callable[[], Any], method: Any, layer: Any,
                       arguments: Mapping[str, Any]) -> Any:
        """Called instead of the method's create_weights; calls that, for a covered layer without
        memory behind the parameters.

        `original`: the method's function, bound to its `arguments`.
        """
        name = getattr(layer, "layer_name", "a layer")
        try:
            prefix = self._covered_prefix(method, layer, arguments)
        except Exception as error:
            why = str(error) if isinstance(error, Mismatch) else f"{type(error).__name__}: {error}"
            self._hook.say(name, "its raw experts are loaded", why)
            return original()
        result = self._without_memory(original)
        empty = _without_data(layer)
        others = sorted(n for n in empty if n not in PARAMETERS)
        if others:  # vLLM needs these, and their values are lost: create all again, with memory
            for n in empty:
                delattr(layer, n)
            self._hook.say(name, "its raw experts are loaded", f"it has {', '.join(others)} too")
            return original()
        self.add(prefix, name)
        return result

    @staticmethod
    def _without_memory(original: Callable[[], Any]) -> Any:
        import torch
        meta: Any = torch.device("meta")
        with meta:
            return original()

    def _covered_prefix(self, method: Any, layer: Any, arguments: Mapping[str, Any]) -> str:
        import torch
        if not hasattr(torch.device, "__enter__"):
            raise Mismatch("torch", "2.0 or newer", torch.__version__)
        live = self._live(method, layer, arguments)
        for switch, value in vars(method).items():
            # is_k3_situ_aiter bypasses only the selector: the oracle's converter serves it.
            if switch.startswith("is_k3_situ") and switch != "is_k3_situ_aiter" and value:
                raise Mismatch("conversion", "vLLM's oracle", f"the method's own ({switch})")
        if live.origin is not None and live.origin.refusals:
            raise Mismatch("deployment", "converted experts only", live.origin.refusals[0])
        blob, entry = self._hook.sources.agree(live)
        if self._hook.sources.verify_mode(live, blob) != "none":
            raise Mismatch("verification", "vLLM's own result is needed to compare with: its converters are not "
                                           "known to make these bytes, or a comparison was asked for")
        with blob.layer(entry["prefix"]):  # raises unless its file is there and whole
            return str(entry["prefix"])

    def _live(self, method: Any, layer: Any, arguments: Mapping[str, Any]) -> Live:
        kind = type(method).__name__
        if kind not in FAMILIES:
            raise Mismatch("method class", facts.OneOf(FAMILIES), kind)
        experts, hidden = arguments["num_experts"], arguments["hidden_size"]
        inner = arguments["intermediate_size_per_partition"]
        bias = BIAS_DTYPES.get(kind, "bfloat16") if layer.moe_config.has_bias else None
        # ORACLE is imported: the name of the method's backend comes from it.
        return Live(
            layer, method=method, family=FAMILIES[kind], backend=backend_of(method),
            shapes={"w13_weight": (experts, 2 * inner, hidden // 2),
                    "w2_weight": (experts, hidden, inner // 2),
                    "w13_weight_scale": (experts, 2 * inner, hidden // BLOCK),
                    "w2_weight_scale": (experts, hidden, inner // BLOCK)},
            biases={"w13_bias": bias, "w2_bias": bias},
            fingerprint=(converter_code.installed_branch(kind, backend_of(method)) if kind in BY_THEMSELVES
                         else converter_code.oracle_fingerprint(sys.modules[ORACLE])),
            code=kind if kind in BY_THEMSELVES else None,
            origin=getattr(layer, ORIGIN, None),
            input_scales=bool(getattr(method, "static_input_scales", False)),
            params_dtype=arguments["params_dtype"])


def _without_data(layer: Any) -> List[str]:
    """Names of the layer's parameters, buffers and other tensors on the meta device."""
    places = (layer._parameters, layer._buffers, vars(layer))
    return [n for place in places for n, value in place.items() if getattr(value, "is_meta", False)]
