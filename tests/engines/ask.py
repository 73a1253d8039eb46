"""Asks the selectors of the installed vLLM, case by case, and notes what they tried.

A case is an object as `mxfp4-repack explain --batch` reads it; an answer is {"expect", "trace"}, as the
program answers, or {"absent": NAME} for a case that names what this vLLM does not have: its own command
line refuses that before a selector is asked.
"""
from __future__ import annotations

import dataclasses
import types
import typing
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Set, Tuple

SELECTORS = {"gpt_oss": "select_mxfp4_moe_backend",
             "deepseek_v4": "select_deepseek_v4_mxfp4_moe_backend"}


class Absent(Exception):
    """This vLLM lacks what the case names."""


class Selectors:
    """The imported modules of one vLLM."""

    def __init__(self) -> None:
        import torch
        import vllm.config.vllm
        import vllm.model_executor.layers.fused_moe.modular_kernel as modular_kernel
        import vllm.model_executor.layers.fused_moe.oracle.mxfp4 as oracle
        from vllm.config.parallel import ParallelConfig
        from vllm.model_executor.layers.fused_moe import config
        from vllm.model_executor.layers.fused_moe.activation import MoEActivation

        self.torch, self.oracle, self.config = torch, oracle, config
        self.settings = vllm.config.vllm
        self.activation = MoEActivation
        self.args, self.keys = user_keys()
        self.key_names = {key: name for name, key in self.keys.items()}
        self.all2all = names_of(ParallelConfig, "all2all_backend")
        self.trace: List[List[Any]] = []
        self._depth = 0
        import_experts(oracle)
        self._record_checks(modular_kernel.FusedMoEExperts, set())
        fake_groups(config)

    def _record_checks(self, cls: Any, seen: Set[Any]) -> None:
        """Replaces every class's own support check by one that notes question and answer of the
        outermost call."""
        if cls in seen:
            return
        seen.add(cls)
        own = vars(cls).get("is_supported_config")
        if own is not None:
            function = own.__func__ if isinstance(own, staticmethod) else own
            cls.is_supported_config = staticmethod(self._recording(function))
        for sub in cls.__subclasses__():
            self._record_checks(sub, seen)

    def _recording(self, check: Callable[..., Tuple[bool, Optional[str]]]) -> Callable[..., Any]:
        def run(cls: Any, moe_config: Any, weight_key: Any, activation_key: Any,
                activation_format: Any) -> Any:
            self._depth += 1
            try:
                supported, reason = check(cls, moe_config, weight_key, activation_key,
                                          activation_format)
            finally:
                self._depth -= 1
            if not self._depth:
                self.trace.append([cls.__name__, self.key_name(activation_key), supported, reason])
            return supported, reason
        return run

    def key_name(self, key: Any) -> Optional[str]:
        return None if key is None else self.key_names.get(key, str(key))

    def key(self, name: Optional[str]) -> Any:
        if name is None:
            return None
        if name not in self.keys:
            raise Absent(name)
        return self.keys[name]

    def moe_config(self, case: Mapping[str, Any]) -> Any:
        """The layer's configuration, as the layer's constructor would have built it on rank 0."""
        parallel = case["parallel"]
        if self.all2all and parallel["all2all_backend"] not in self.all2all:
            raise Absent(parallel["all2all_backend"])
        try:
            activation = self.activation.from_str(case["activation"])
        except ValueError:
            raise Absent(case["activation"]) from None
        if case["routing_method"] not in self.config.RoutingMethodType.__members__:
            raise Absent(case["routing_method"])
        wanted = types.SimpleNamespace(
            enable_expert_parallel=parallel["enable_expert_parallel"],
            all2all_backend=parallel["all2all_backend"], enable_eplb=parallel["enable_eplb"])
        tp = parallel["tp"]
        made = self.config.FusedMoEParallelConfig.make(
            tp_size_=tp, pcp_size_=parallel["pcp"], dp_size_=parallel["dp"],
            sp_size_=tp if parallel["sequence_parallel"] else 1, vllm_parallel_config=wanted)
        experts, inter = case.get("num_experts", 32), case.get("intermediate", 23040)
        values = {
            "num_experts": experts, "experts_per_token": 4, "hidden_dim": case.get("hidden", 2880),
            "intermediate_size": inter, "num_local_experts": case.get("local_experts", experts),
            "num_logical_experts": experts, "activation": activation, "device": "cpu",
            "routing_method": self.config.RoutingMethodType[case["routing_method"]],
            "moe_parallel_config": made, "in_dtype": self.torch.bfloat16,
            "moe_backend": case["moe_backend"], "is_lora_enabled": case["lora"],
            "is_act_and_mul": case["is_act_and_mul"],
            "has_hash_routing": case.get("hash_routing", False),
            "intermediate_size_per_partition": inter // made.tp_size,
        }
        init = {f.name for f in dataclasses.fields(self.config.FusedMoEConfig) if f.init}
        if "intermediate_size" in init:
            del values["intermediate_size_per_partition"]
        else:  # up to 0.23 the constructor of the layer asserts this itself
            assert inter % made.tp_size == 0
        return self.config.FusedMoEConfig(**{k: v for k, v in values.items() if k in init})

    def _set_config(self, case: Mapping[str, Any]) -> None:
        override = case["activation_override"]
        if override is not None and self.args is None:
            raise Absent("activation_override")
        self.key(override)
        quantization = None if override is None else self.args(moe={"activation": override})
        model = types.SimpleNamespace(
            quantization_config=quantization,
            hf_config=types.SimpleNamespace(model_type=case.get("model_type", "gpt_oss")))
        deployment = types.SimpleNamespace(enable_dbo=False,
                                           enable_eplb=case["parallel"]["enable_eplb"])
        self.settings._current_vllm_config = types.SimpleNamespace(
            model_config=model, parallel_config=deployment, weight_transfer_config=None)

    def decide(self, case: Mapping[str, Any]) -> Dict[str, Any]:
        self.trace = []
        try:
            self._set_config(case)
            model_key = self.key(case["model_activation"])
            try:
                config = self.moe_config(case)
            except (AssertionError, NotImplementedError, ValueError) as e:
                return {"expect": {"error": type(e).__name__, "message": str(e), "stage": "config"},
                        "trace": [], "derived": {"batched_format": False}}
        except Absent as e:
            return {"absent": str(e)}
        arguments = (config, model_key) if case["selector"] == "gpt_oss" else (config,)
        try:
            backend, experts = getattr(self.oracle, SELECTORS[case["selector"]])(*arguments)
            expect = {"backend": backend.name,
                      "experts_class": experts.__name__ if experts else None}
        except (ValueError, NotImplementedError, AssertionError, ImportError) as e:
            expect = {"error": type(e).__name__, "message": str(e)}
        batched = config.moe_parallel_config.use_batched_activation_format
        return {"expect": expect, "trace": self.trace, "derived": {"batched_format": batched}}


def import_experts(oracle: Any) -> None:
    """Loads every class that a selector can try, so that its check can be replaced."""
    for backend in oracle.Mxfp4MoeBackend:
        try:
            oracle.backend_to_kernel_cls(backend)
        except (ValueError, ImportError):
            pass
    try:
        __import__("vllm.model_executor.layers.fused_moe.experts.trtllm_lora_moe")
    except ImportError:
        pass


def user_keys() -> Tuple[Any, Dict[str, Any]]:
    """The class that holds a user's override, and the names of activation keys. vLLM 0.21.0 has
    neither: its constants get the later names."""
    from vllm.config import quantization
    from vllm.model_executor.layers.quantization.utils import quant_utils

    if hasattr(quantization, "QUANT_KEY_NAMES"):
        return quantization.QuantizationConfigArgs, quantization.QUANT_KEY_NAMES
    constants = {"fp8_per_tensor_static": "kFp8StaticTensorSym",
                 "fp8_per_tensor_dynamic": "kFp8DynamicTensorSym",
                 "fp8_per_token": "kFp8DynamicTokenSym",
                 "fp8_per_block_static": "kFp8Static128BlockSym",
                 "fp8_per_block_dynamic": "kFp8Dynamic128Sym", "mxfp8": "kMxfp8Dynamic",
                 "mxfp4": "kMxfp4Dynamic"}
    return None, {name: getattr(quant_utils, constant) for name, constant in constants.items()}


def names_of(config_class: Any, field: str) -> List[str]:
    """The strings that a configuration field of a literal type allows."""
    names: List[str] = []
    for part in _walk(typing.get_type_hints(config_class)[field]):
        names += [a for a in typing.get_args(part) if isinstance(a, str)]
    return names


def _walk(kind: Any) -> Iterator[Any]:
    yield kind
    for argument in typing.get_args(kind):
        yield from _walk(argument)


def fake_groups(config: Any) -> None:
    """Rank 0 of every group: FusedMoEParallelConfig.make asks the groups for ranks alone."""
    rank = types.SimpleNamespace(rank_in_group=0)
    for name in ("get_dp_group", "get_pcp_group"):
        if hasattr(config, name):
            setattr(config, name, lambda: rank)
    config.get_tensor_model_parallel_rank = lambda: 0
