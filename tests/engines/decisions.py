"""Executes a release's selectors on inputs.

An answer is {"expect": ..., "trace": ..., "derived": ...} as in testdata/oracle, or {"absent": NAME} for an input that names something
which the release does not have (an activation, a routing method, an all-to-all backend, an activation key): the release's own command
line refuses those before a selector is asked.
"""
import dataclasses
import traceback
import types
import typing

SELECTORS = {"gpt_oss": "select_mxfp4_moe_backend", "deepseek_v4": "select_deepseek_v4_mxfp4_moe_backend"}


class Absent(Exception):
    """The release lacks what the input names."""


class Release:
    """The imported modules of one release on one platform."""

    def __init__(self, scene):
        import torch
        import vllm.config.vllm
        import vllm.model_executor.layers.fused_moe.modular_kernel as modular_kernel
        import vllm.model_executor.layers.fused_moe.oracle.mxfp4 as oracle
        from vllm.config.parallel import ParallelConfig
        from vllm.model_executor.layers.fused_moe import config
        from vllm.model_executor.layers.fused_moe.activation import MoEActivation

        self.scene, self.torch, self.oracle, self.config = scene, torch, oracle, config
        self.settings = vllm.config.vllm
        self.activation = MoEActivation
        self.args, self.keys = user_keys()
        self.key_names = {key: name for name, key in self.keys.items()}
        self.fields = {f.name for f in dataclasses.fields(config.FusedMoEConfig)}
        self.all2all = names_of(ParallelConfig, "all2all_backend")
        self.trace, self.depth = [], 0
        for backend in oracle.Mxfp4MoeBackend:
            try:
                oracle.backend_to_kernel_cls(backend)
            except ValueError:
                pass
        for extra in ("trtllm_lora_moe",):
            try:
                __import__(f"vllm.model_executor.layers.fused_moe.experts.{extra}")
            except ImportError:
                pass
        self.record_checks(modular_kernel.FusedMoEExperts)
        fake_groups(config)
        scene.starting = False
        scene.refresh()

    def record_checks(self, cls, seen=None):
        """Replaces every class' own support check by one that notes what the outermost call was asked and answered."""
        seen = set() if seen is None else seen
        if cls in seen:
            return
        seen.add(cls)
        own = vars(cls).get("is_supported_config")
        if own is not None:
            cls.is_supported_config = staticmethod(self.recording(own.__func__ if isinstance(own, staticmethod) else own))
        for sub in cls.__subclasses__():
            self.record_checks(sub, seen)

    def recording(self, check):
        def run(cls, moe_config, weight_key, activation_key, activation_format):
            self.depth += 1
            try:
                supported, reason = check(cls, moe_config, weight_key, activation_key, activation_format)
            finally:
                self.depth -= 1
            if not self.depth:
                self.trace.append([cls.__name__, self.key_name(activation_key), supported, reason])
            return supported, reason
        return run

    def key_name(self, key):
        return None if key is None else self.key_names.get(key, str(key))

    def key(self, name):
        if name is None:
            return None
        if name not in self.keys:
            raise Absent(name)
        return self.keys[name]

    def moe_config(self, case):
        """The layer's configuration, as the layer's constructor would have built it on rank 0."""
        parallel = case["parallel"]
        if self.all2all and parallel["all2all_backend"] not in self.all2all:
            raise Absent(parallel["all2all_backend"])
        try:
            activation = self.activation.from_str(case["activation"])
        except ValueError:
            raise Absent(case["activation"])
        if case["routing_method"] not in self.config.RoutingMethodType.__members__:
            raise Absent(case["routing_method"])
        wanted = types.SimpleNamespace(enable_expert_parallel=parallel["enable_expert_parallel"],
                                       all2all_backend=parallel["all2all_backend"], enable_eplb=parallel["enable_eplb"])
        tp = parallel["tp"]
        made = self.config.FusedMoEParallelConfig.make(
            tp_size_=tp, pcp_size_=parallel["pcp"], dp_size_=parallel["dp"], sp_size_=tp if parallel["sequence_parallel"] else 1,
            vllm_parallel_config=wanted)
        experts = case.get("num_experts", 32)
        values = {
            "num_experts": experts, "experts_per_token": 4, "hidden_dim": case.get("hidden", 2880),
            "intermediate_size": case.get("intermediate", 23040), "num_local_experts": case.get("local_experts", experts),
            "num_logical_experts": experts, "activation": activation, "device": "cpu",
            "routing_method": self.config.RoutingMethodType[case["routing_method"]], "moe_parallel_config": made,
            "in_dtype": self.torch.bfloat16, "moe_backend": case["moe_backend"], "is_lora_enabled": case["lora"],
            "is_act_and_mul": case["is_act_and_mul"], "has_hash_routing": case.get("hash_routing", False),
            "intermediate_size_per_partition": case.get("intermediate", 23040) // made.tp_size,
        }
        init = {f.name for f in dataclasses.fields(self.config.FusedMoEConfig) if f.init}
        if "intermediate_size" in init:
            del values["intermediate_size_per_partition"]
        return self.config.FusedMoEConfig(**{k: v for k, v in values.items() if k in init})

    def decide(self, case):
        try:
            override, model_key = case["activation_override"], self.key(case["model_activation"])
            if override is not None and self.args is None:
                raise Absent("activation_override")
            self.key(override)
            quantization = None if override is None else self.args(moe={"activation": override})
            model = types.SimpleNamespace(quantization_config=quantization,
                                          hf_config=types.SimpleNamespace(model_type=case.get("model_type", "gpt_oss")))
            deployment = types.SimpleNamespace(enable_dbo=False, enable_eplb=case["parallel"]["enable_eplb"])
            self.settings._current_vllm_config = types.SimpleNamespace(model_config=model, parallel_config=deployment, weight_transfer_config=None)
            self.trace = []
            try:
                config = self.moe_config(case)
            except (AssertionError, NotImplementedError, ValueError) as e:
                return {"expect": {"error": type(e).__name__, "message": str(e), "stage": "config"}, "trace": [],
                        "derived": {"batched_format": False}}
        except Absent as e:
            return {"absent": str(e)}
        arguments = (config, model_key) if case["selector"] == "gpt_oss" else (config,)
        try:
            backend, experts = getattr(self.oracle, SELECTORS[case["selector"]])(*arguments)
            expect = {"backend": backend.name, "experts_class": experts.__name__ if experts else None}
        except (ValueError, NotImplementedError, AssertionError, ImportError) as e:
            expect = {"error": type(e).__name__, "message": str(e)}
        batched = config.moe_parallel_config.use_batched_activation_format
        return {"expect": expect, "trace": self.trace, "derived": {"batched_format": batched}}


def user_keys():
    """The class that holds a user's override and the names of activation keys; 0.21.0 has neither, its constants get the later names."""
    from vllm.config import quantization
    from vllm.model_executor.layers.quantization.utils import quant_utils

    if hasattr(quantization, "QUANT_KEY_NAMES"):
        return quantization.QuantizationConfigArgs, quantization.QUANT_KEY_NAMES
    constants = {"fp8_per_tensor_static": "kFp8StaticTensorSym", "fp8_per_tensor_dynamic": "kFp8DynamicTensorSym", "fp8_per_token": "kFp8DynamicTokenSym",
                 "fp8_per_block_static": "kFp8Static128BlockSym", "fp8_per_block_dynamic": "kFp8Dynamic128Sym", "mxfp8": "kMxfp8Dynamic",
                 "mxfp4": "kMxfp4Dynamic"}
    return None, {name: getattr(quant_utils, constant) for name, constant in constants.items()}


def names_of(config_class, field):
    """The strings that a configuration field of a literal type admits."""
    names = []
    for part in walk(typing.get_type_hints(config_class)[field]):
        names += [a for a in typing.get_args(part) if isinstance(a, str)]
    return names


def walk(kind):
    yield kind
    for argument in typing.get_args(kind):
        yield from walk(argument)


def fake_groups(config):
    """Rank 0 of every group: FusedMoEParallelConfig.make asks the groups for ranks alone."""
    rank = types.SimpleNamespace(rank_in_group=0)
    for name in ("get_dp_group", "get_pcp_group"):
        if hasattr(config, name):
            setattr(config, name, lambda: rank)
    config.get_tensor_model_parallel_rank = lambda: 0


def answers(release, cases):
    """The answers to inputs, in their order; inputs of one machine are asked together."""
    made = [None] * len(cases)
    for i in sorted(range(len(cases)), key=lambda i: (cases[i]["arch"], cases[i]["libs"], sorted(cases[i]["env"].items()))):
        release.scene.set(cases[i]["arch"], cases[i]["libs"], cases[i]["env"])
        try:
            made[i] = release.decide(cases[i])
        except Exception:
            # Not an answer: the release asked something that the fakes do not know.
            traceback.print_exc()
            print("input:", cases[i], flush=True)
            made[i] = None
    if None in made:
        raise RuntimeError(f"{made.count(None)} inputs without an answer")
    return made
