"""Reads a release's tables by calling its own functions: what testdata/oracle/tables.json and its neighbours hold for the two commits."""
import inspect
import itertools
import types
import typing

import decisions
import grid

SIZES = ((2880, 2880), (2880, 1440), (2880, 720), (2880, 360), (7168, 2048), (4096, 1536), (2560, 640), (6144, 96), (100, 100), (3072, 384))
ARCHES = {"cuda": ("sm90", "sm100", "sm120"), "rocm": ("gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1250"), "xpu": ("",), "cpu": ("",), "other": ("",)}
OVERRIDES = ([None, {}, {"moe": None}, {"moe": {}}, {"moe": {"activation": 3}}, {"moe": []}, {"bogus": 1}, {"moe": {"bogus": 1}}]
             + [{"moe": {"activation": name}} for name in (*grid.KEYS, "bf16", "", "MXFP8")]
             + [{part: name} for part in ("moe", "linear") for name in
                (*grid.KEYS, "fp8_per_tensor", "fp8_per_block", "fp8_per_channel", "mxfp8", "mxfp4", "int8_per_channel_weight_only",
                 "nvfp4_per_token", "bogus")])


def general(release):
    """Tables that depend on neither platform nor device."""
    oracle = release.oracle
    names = lambda backends: [b.name for b in (backends if isinstance(backends, (list, tuple)) else [backends])]
    members = oracle.Mxfp4MoeBackend
    mapping, message = {}, ""
    try:
        oracle.map_mxfp4_backend("?")
    except ValueError as e:
        message = str(e)
    for name in eval(message[message.index("["):message.index("]") + 1]):
        mapping[name] = names(oracle.map_mxfp4_backend(name))
    keys = [None, *release.keys]
    return {
        "enumerators": [{"name": b.name, "value": b.value, "activation": outcome(lambda b=b: release.key_name(oracle._backend_activation_key(b)))} for b in members],
        "aliases": {n: b.name for n, b in members.__members__.items() if n != b.name},
        "experts": {b.name: outcome(lambda b=b: [c.__name__ for c in oracle.backend_to_kernel_cls(b)]) for b in members},
        "families": {n: names(v) for n, v in vars(oracle).items()
                     if n.isupper() and isinstance(v, (tuple, list)) and v and all(isinstance(b, members) for b in v)},
        "map": mapping, "map_unknown_message": message,
        "moe_backend_literal": literal(),
        "all2all_literal": release.all2all,
        "activations": [a.value for a in release.activation],
        "quant_keys": list(release.keys),
        "routing_values": {r.name: r.value for r in release.config.RoutingMethodType},
        "filter_by_activation": {str(k): outcome(lambda k=k: names(oracle._filter_by_activation(list(members), release.keys.get(k)))) for k in keys},
        "routing": routing(release), "parallel": parallel(release), "quantization_config": overrides(release),
        "signatures": {n: outcome(lambda n=n: list(inspect.signature(getattr(oracle, n)).parameters)) for n in
                       ("convert_gpt_oss_weight_to_mxfp4_moe_kernel_format", "convert_weight_to_mxfp4_moe_kernel_format",
                        "make_mxfp4_moe_quant_config", "make_mxfp4_moe_kernel", "mxfp4_round_up_hidden_size_and_intermediate_size")},
    }


def outcome(call):
    """A call's result, or its error as text."""
    try:
        return call()
    except Exception as e:
        return f"{type(e).__name__}: {e}"


def literal():
    from vllm.config.kernel import MoEBackend

    return list(typing.get_args(MoEBackend))


def routing(release):
    function = release.config.get_routing_method_type
    takes_factor = "routed_scaling_factor" in inspect.signature(function).parameters
    rows = []
    for scoring, top_k, renormalize, groups, bias, factor in itertools.product(
            ("softmax", "sigmoid", "sqrtsoftplus", "bogus"), (1, 4), (True, False), (None, 8), (False, True), (1.0, 2.5)):
        extra = {"routed_scaling_factor": factor} if takes_factor else {}
        result = outcome(lambda: function(scoring_func=scoring, top_k=top_k, renormalize=renormalize, num_expert_group=groups,
                                          has_e_score_bias=bias, **extra).name)
        rows.append([scoring, top_k, renormalize, groups, bias, factor, result])
    return rows


def parallel(release):
    rows = []
    for tp, pcp, dp, ep, backend, sp in itertools.product((1, 2), (1, 2), (1, 2), (False, True), release.all2all or grid.ALL2ALL, (False, True)):
        wanted = types.SimpleNamespace(enable_expert_parallel=ep, all2all_backend=backend, enable_eplb=False)
        made = release.config.FusedMoEParallelConfig.make(tp_size_=tp, pcp_size_=pcp, dp_size_=dp, sp_size_=tp if sp else 1, vllm_parallel_config=wanted)
        rows.append([tp, pcp, dp, ep, backend, sp, made.tp_size, made.ep_size, made.use_ep, made.use_all2all_kernels, made.use_batched_activation_format])
    return rows


def overrides(release):
    """What a user's quantization_config does to the activation key, or the kind and text of the refusal."""
    import pydantic

    rows = []
    for value in OVERRIDES if release.args else ():
        try:
            moe = release.args(**value).moe if value is not None else None
            rows.append([value, release.key_name(moe.activation) if moe is not None else None, None])
        except pydantic.ValidationError as e:
            rows.append([value, None, "ValidationError: " + "; ".join(x["msg"] for x in e.errors())])
        except Exception as e:
            rows.append([value, None, f"{type(e).__name__}: {e}"])
    return rows


def on_machines(release, platform, start, sizes=SIZES):
    """Tables of one platform, per architecture: priority lists, sizes, key texts."""
    made = {}
    for arch in ARCHES[platform]:
        if platform == "rocm" and ("gfx94" in arch) != ("gfx94" in start):
            continue
        release.scene.set(arch, grid.ALL_LIBS, {})
        oracle = release.oracle
        made[arch] = {
            "priority_gpt_oss": outcome(lambda: [b.name for b in oracle._get_priority_backends_for_gpt_oss()]),
            "priority_generic": outcome(lambda: [b.name for b in oracle._get_priority_backends()]),
            "quant_key_str": {n: str(k) for n, k in release.keys.items()},
            "round_up": round_up(release, sizes),
        }
    return made


def round_up(release, sizes):
    function = release.oracle.mxfp4_round_up_hidden_size_and_intermediate_size
    takes = "activation" in inspect.signature(function).parameters
    activations = (None, "silu", "situ", "swigluoai") if takes else (None,)
    rows = []
    for backend, name, (hidden, inter) in itertools.product(release.oracle.Mxfp4MoeBackend, activations, sizes):
        if name and name not in [a.value for a in release.activation]:
            continue
        extra = (release.activation.from_str(name),) if name else ()
        rows.append([backend.name, name, hidden, inter, *function(backend, hidden, inter, *extra)])
    return rows
