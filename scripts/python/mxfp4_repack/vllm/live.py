"""One layer, its configuration and its machine as the running vLLM has them. Changes nothing.

The names of vLLM's attributes are those of a2c8fc6657 (class FusedMoE) and 017e9f4448 (class
RoutedExperts); both have them.
"""
from __future__ import annotations

import platform
import sys
from typing import Any, List, Mapping, Optional, Tuple

from mxfp4_repack.plugin.live import Live as Base, Origin, dtype_name, kind_of_arch
from mxfp4_repack.plugin.names import BLOCK
from mxfp4_repack.vllm import converter_code
from mxfp4_repack.vllm.names import ORACLE


def origin_of(config: Any) -> Origin:
    """What vLLM's configuration says."""
    model, load, parallel = config.model_config, config.load_config, config.parallel_config
    refusals = []
    if _offloads(config):
        refusals.append("weights are offloaded to the CPU")
    for switch in ("enable_eplb", "enable_elastic_ep"):
        if getattr(parallel, switch, False):
            refusals.append(f"{switch} is on")
    load_format = getattr(load.load_format, "value", load.load_format)
    return Origin(model=str(getattr(model, "model_weights", "") or model.model),
                  revision=getattr(model, "revision", None),
                  download_dir=getattr(load, "download_dir", None),
                  load_format=str(load_format).lower(), refusals=tuple(refusals))


def current_origin() -> Optional[Origin]:
    """The origin by vLLM's current configuration; None if none is current."""
    module = sys.modules.get("vllm.config")
    ask = getattr(module, "get_current_vllm_config_or_none", None) or getattr(
        module, "get_current_vllm_config", None)
    try:
        config = ask() if ask is not None else None
        return origin_of(config) if config is not None else None
    except Exception:  # none is current: some releases raise
        return None


def _offloads(config: Any) -> bool:
    if getattr(getattr(config, "cache_config", None), "cpu_offload_gb", 0):
        return True
    offload = getattr(config, "offload_config", None)
    return bool(getattr(getattr(offload, "uva", None), "cpu_offload_gb", 0) or
                getattr(getattr(offload, "prefetch", None), "offload_group_size", 0))


class Live(Base):
    """One layer as vLLM has it, before its conversion or even before its weights are loaded."""

    def __init__(self, layer: Any, *, activation: Any = None, input_scales: Optional[bool] = None,
                 params_dtype: Any = None, **common: Any) -> None:
        super().__init__(layer, **common)
        if activation is None:
            activation = getattr(layer, "activation", None)
        self.activation = str(getattr(activation, "value", activation)).lower()
        self._input_scales, self._params_dtype = input_scales, params_dtype

    def makes(self, blob: Any) -> bool:
        return converter_code.makes(self.fingerprint, blob)

    def check_backend(self) -> None:
        from mxfp4_repack.vllm import build
        build.check_backend(self.backend)

    @property
    def parallel(self) -> Any:
        return self.layer.moe_config.moe_parallel_config

    @property
    def rank(self) -> Tuple[int, int]:
        """(rank, ranks) of the blob's directories: of TP or of EP, whichever splits the layer."""
        p = self.parallel
        return (p.ep_rank, p.ep_size) if p.ep_size > 1 else (p.tp_rank, p.tp_size)

    @property
    def experts(self) -> List[int]:
        """Global numbers of the experts here, in local order."""
        manager = getattr(self.layer, "expert_map_manager", None)
        if manager is not None:
            here = ((int(manager.map_global_to_local(e)), e)
                    for e in range(manager.global_num_experts) if manager.is_local_expert(e))
            return [e for _, e in sorted(here)]
        to_local = getattr(self.layer, "_expert_map", None)
        if to_local is None:
            return list(range(self.layer.local_num_experts))
        local = [(place, e) for e, place in enumerate(to_local.tolist()) if place >= 0]
        return [e for _, e in sorted(local)]

    @property
    def fused_shared_experts(self) -> int:
        manager = getattr(self.layer, "expert_map_manager", None)
        owner = self.layer if manager is None else manager
        return int(getattr(owner, "num_fused_shared_experts", 0) or 0)

    @property
    def input_scales(self) -> bool:
        if self._input_scales is not None:
            return self._input_scales
        return getattr(self.layer, "w13_input_scale", None) is not None

    @property
    def params_dtype(self) -> str:
        own = self._params_dtype
        return dtype_name(self.layer.params_dtype if own is None else own)

    @property
    def humming_input(self) -> str:
        """How HUMMING's experts get their activations, as the program's knob humming_input_dtype says it."""
        ask = getattr(sys.modules[ORACLE], "_humming_input_schema", None)
        schema = None if ask is None else ask(getattr(self._method, "activation_key", None))
        if schema is None:
            from vllm import envs
            if envs.VLLM_HUMMING_INPUT_QUANT_CONFIG:
                raise ValueError("VLLM_HUMMING_INPUT_QUANT_CONFIG is set")
        if schema is None or schema.a_dtype is None or schema.a_dtype.num_bits == 16:
            return "none"
        name, group = str(schema.a_dtype), int(schema.input_scale_group_size or 0)
        plain = not group or name != "float8e4m3" or str(schema.input_scale_dtype) != "float32"
        return name if plain else f"{name}-group{group}"

    @property
    def intermediate(self) -> int:
        """The model's whole intermediate size, unpadded."""
        return int(self.layer.moe_config.intermediate_size_per_partition_unpadded *
                   self.parallel.tp_size)

    def intermediate_range(self, loader: str, revision: str) -> List[int]:
        """The part of the model that vLLM's loader reads here."""
        size, ranks = self.intermediate, self.parallel.tp_size
        if loader in ("gpt_oss_stacked", "gpt_oss_per_expert", "quark_stacked") or (
                loader == "loaded" and self.family == "gpt_oss"):
            stride = -(-(size // BLOCK) // ranks) * BLOCK
        elif loader == "inkling_stacked" or (
                converter_code.REVISIONS.get(revision, {}).get("generic_slice") == "checkpoint"):
            stride = size // ranks
        else:
            stride = self.padded_sizes[1]
        begin = min(self.parallel.tp_rank * stride, size)
        return [begin, min(begin + stride, size)]


def live_platform() -> str:
    current = _current_platform()
    for name in ("cuda", "rocm", "xpu", "cpu"):
        if getattr(current, f"is_{name}")():
            return name
    return "other"


def live_arch() -> str:
    """As mxfp4-repack spells it: sm90, gfx950, x86_64."""
    kind = live_platform()
    if kind == "cuda":
        major, minor = tuple(_current_platform().get_device_capability())[:2]
        return f"sm{major}{minor}"
    if kind == "rocm":
        import torch
        index = torch.cuda.current_device()
        properties: Any = torch.cuda.get_device_properties(index)
        return str(properties.gcnArchName).partition(":")[0]
    return kind_of_arch(platform.machine().lower()) if kind == "cpu" else ""


def _current_platform() -> Any:
    from vllm.platforms import current_platform
    return current_platform
