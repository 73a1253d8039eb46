"""The inputs that every release is asked: a fixed list, made here so that the test data need to hold answers alone.

Each input is an object as in testdata/oracle (platform, arch, libs, env, selector, moe_backend, ...). Knobs that the two commits' tables did not
have stand in it only where they are not at their default: num_experts, local_experts, hidden, intermediate, hash_routing.
A group is a cross product, thinned to a number of inputs by the digest of each, so a change to one group leaves the others as they are.
"""
import hashlib
import itertools
import json
import sys

CUDA = ("sm70", "sm75", "sm80", "sm86", "sm89", "sm90", "sm100", "sm101", "sm103", "sm110", "sm120", "sm121")
ROCM = ("gfx908", "gfx90a", "gfx942", "gfx950", "gfx1030", "gfx1100", "gfx1151", "gfx1200", "gfx1201", "gfx1250")
CPU = ("", "x86_noamx", "arm64", "ppc64le")
MACHINES = ([("cuda", a) for a in CUDA] + [("rocm", a) for a in ROCM] + [("cpu", a) for a in CPU] + [("xpu", ""), ("other", "")])
FEW = [("cuda", "sm80"), ("cuda", "sm90"), ("cuda", "sm100"), ("cuda", "sm120"), ("rocm", "gfx942"), ("rocm", "gfx950"), ("rocm", "gfx1250"),
       ("cpu", ""), ("xpu", "")]

CUDA_LIBS = ("deep_gemm", "flashinfer", "flashinfer_cutlass", "flashinfer_situ", "humming", "triton_kernels")
ROCM_LIBS = ("aiter", "quark", "triton_kernels")
ALL_LIBS = ("aiter", "b12x", "deep_gemm", "flashinfer", "flashinfer_cutlass", "flashinfer_situ", "humming", "quark", "triton_kernels")
AITER = {"VLLM_ROCM_USE_AITER": "1"}
ALL2ALL = ("allgather_reducescatter", "deepep_high_throughput", "deepep_low_latency", "deepep_v2", "mori", "mori_high_throughput", "mori_low_latency",
           "nixl_ep", "flashinfer_all2allv", "flashinfer_nvlink_two_sided", "flashinfer_nvlink_one_sided", "moonep", "passthrough")
BACKENDS = ("deep_gemm", "flashinfer_trtllm", "flashinfer_trtllm_afp8", "flashinfer_cutlass", "flashinfer_cutlass_afp8", "triton", "triton_unfused",
            "humming", "marlin", "aiter", "aiter_mxfp4_fp8", "aiter_mxfp4_mxfp4", "aiter_triton_mxfp4_bf16", "aiter_triton_mxfp4_mxfp4", "xpu", "cpu",
            "emulation", "b12x", "flashinfer_moe_ep_cutedsl", "flashinfer_moe_ep_mega_deep_gemm", "flashinfer_moe_ep_mega_cutedsl")
NO_BACKENDS = ("cutlass", "deep_gemm_mega_moe", "flashinfer_cutedsl", "flashinfer_b12x", "batched_triton", "flydsl", "hpc", "rdna3", "bogus")
ACTIVATIONS = ("silu", "gelu", "gelu_tanh", "relu2", "swigluoai", "situ", "swigluoai_uninterleave", "swiglustep", "silu_no_mul", "gelu_no_mul",
               "gelu_tanh_no_mul", "relu2_no_mul")
ROUTING = ("Default", "Renormalize", "DeepSeekV3", "Llama4", "RenormalizeNaive", "TopK", "SigmoidRenorm", "MiniMax2", "Sigmoid", "Unspecified",
           "DeepseekV4", "Custom", "Simulated")
KEYS = ("fp8_per_tensor_static", "fp8_per_tensor_dynamic", "fp8_per_token", "fp8_per_channel_static", "fp8_per_block_static", "fp8_per_block_dynamic",
        "mxfp8", "mxfp4", "int8_per_channel_static")
SINGLE = {}
EXPERTS = {"dp": 2, "enable_expert_parallel": True}
BATCHED = dict(EXPERTS, all2all_backend="deepep_low_latency")

GPT_OSS = {"activation": "swigluoai", "routing_method": "RenormalizeNaive"}
GPT_OSS_OLD = {"activation": "swigluoai", "routing_method": "Renormalize"}
DEEPSEEK = {"selector": "deepseek_v4", "activation": "silu", "routing_method": "DeepseekV4"}
KIMI = {"selector": "deepseek_v4", "activation": "situ", "routing_method": "DeepSeekV3"}
GENERIC = {"selector": "deepseek_v4", "activation": "silu", "routing_method": "Renormalize"}
W4A4 = {"activation": "silu", "routing_method": "Renormalize", "model_activation": "mxfp4"}
W4A8 = {"activation": "swigluoai", "routing_method": "RenormalizeNaive", "model_activation": "fp8_per_tensor_static"}
MODELS = (GPT_OSS, GPT_OSS_OLD, DEEPSEEK, KIMI, GENERIC, W4A4, W4A8)


def stock(platform):
    return {"cuda": CUDA_LIBS, "rocm": ROCM_LIBS}.get(platform, ())


def lib_sets(platform):
    """The stock set, everything, nothing, and the stock set without each of its members."""
    whole = stock(platform)
    sets = [whole, ALL_LIBS, ()] + [tuple(x for x in whole if x != lost) for lost in whole]
    return list(dict.fromkeys(sets))


def case(machine, *parts, libs=None, env=None, parallel=None, **fields):
    """One input: the parts are dictionaries of fields, later ones win."""
    platform, arch = machine
    made = {"platform": platform, "arch": arch, "libs": sorted(stock(platform) if libs is None else libs), "env": dict(env or {}),
            "selector": "gpt_oss", "moe_backend": "auto", "activation_override": None, "model_activation": None, "activation": "swigluoai",
            "is_act_and_mul": True, "routing_method": "RenormalizeNaive",
            "parallel": {"tp": 1, "pcp": 1, "dp": 1, "enable_expert_parallel": False, "all2all_backend": "allgather_reducescatter",
                         "enable_eplb": False, "sequence_parallel": False} | (parallel or {}), "lora": False}
    for part in (*parts, fields):
        made.update(part)
    made["is_act_and_mul"] = not made["activation"].endswith("_no_mul")
    return made


def auto():
    for machine, model, parallel in itertools.product(MACHINES, MODELS, (SINGLE, EXPERTS, BATCHED, {"tp": 2}, {"tp": 8, "enable_expert_parallel": True})):
        for libs in lib_sets(machine[0]):
            for env in ({}, AITER) if machine[0] == "rocm" else ({},):
                yield case(machine, model, libs=libs, parallel=parallel, env=env)


def explicit():
    for machine, name, model, parallel in itertools.product(MACHINES, BACKENDS + NO_BACKENDS, (GPT_OSS, DEEPSEEK, KIMI, W4A4), (SINGLE, EXPERTS, BATCHED)):
        for libs in (stock(machine[0]), ALL_LIBS):
            env = AITER if machine[0] == "rocm" else {}
            yield case(machine, model, moe_backend=name, parallel=parallel, libs=libs, env=env)


def activation_key():
    for machine, name, override, key in itertools.product(MACHINES, ("auto",) + BACKENDS, KEYS + (None,), (None, "fp8_per_tensor_static", "mxfp4")):
        if override or key:
            env = AITER if machine[0] == "rocm" else {}
            yield case(machine, GPT_OSS, moe_backend=name, activation_override=override, model_activation=key, env=env, libs=ALL_LIBS)


def activation_function():
    for machine, name, activation, selector in itertools.product(FEW, ("auto",) + BACKENDS, ACTIVATIONS, ("gpt_oss", "deepseek_v4")):
        yield case(machine, activation=activation, moe_backend=name, selector=selector, libs=ALL_LIBS, env=AITER if machine[0] == "rocm" else {})


def parallel():
    sizes = [(tp, pcp, dp) for tp in (1, 2, 8) for pcp in (1, 2) for dp in (1, 2)]
    for machine, (tp, pcp, dp), ep, backend, eplb, sp in itertools.product(FEW, sizes, (False, True), ALL2ALL, (False, True), (False, True)):
        layout = {"tp": tp, "pcp": pcp, "dp": dp, "enable_expert_parallel": ep, "all2all_backend": backend, "enable_eplb": eplb, "sequence_parallel": sp}
        for model, name in itertools.product((GPT_OSS, DEEPSEEK), ("auto", "marlin", "emulation", "flashinfer_trtllm", "deep_gemm", "humming", "aiter", "b12x",
                                                                  "flashinfer_moe_ep_mega_deep_gemm")):
            yield case(machine, model, parallel=layout, moe_backend=name, libs=ALL_LIBS, env=AITER if machine[0] == "rocm" else {})


def routing():
    for machine, method, model, name, hashed in itertools.product(FEW, ROUTING, (GPT_OSS, DEEPSEEK, KIMI, W4A4), ("auto",) + BACKENDS, (False, True)):
        extra = {"hash_routing": True} if hashed else {}
        yield case(machine, model, extra, routing_method=method, moe_backend=name, libs=ALL_LIBS, env=AITER if machine[0] == "rocm" else {})


def lora_and_batch_invariance():
    for machine, model, name, parallel_, lora, invariant in itertools.product(MACHINES, MODELS, ("auto",) + BACKENDS, (SINGLE, BATCHED), (False, True), (False, True)):
        if lora or invariant:
            env = (AITER if machine[0] == "rocm" else {}) | ({"VLLM_BATCH_INVARIANT": "1"} if invariant else {})
            yield case(machine, model, moe_backend=name, lora=lora, env=env, parallel=parallel_, libs=ALL_LIBS)


def environment():
    names = {"VLLM_ROCM_USE_AITER": ("0", "1", "true", ""), "VLLM_ROCM_USE_AITER_MOE": ("0", "1", "False"), "VLLM_USE_DEEP_GEMM": ("0", "1"),
             "VLLM_MOE_USE_DEEP_GEMM": ("0", "1"), "VLLM_HUMMING_MOE_GEMM_TYPE": ("indexed", "grouped", "grouped_contiguous", "grouped_masked", "auto", ""),
             "VLLM_B12X_MOE_FP4_FORCE_A16": ("0", "1"), "VLLM_ROCM_USE_AITER_MOE_SITUV2": ("a16w4", "a8w4", "a4w4"),
             "VLLM_ROCM_USE_AITER_MOE_A4W4_DSV4": ("0", "1"), "VLLM_USE_FLASHINFER_MOE_MXFP4_BF16": ("0", "1"),
             "VLLM_USE_FLASHINFER_MOE_MXFP4_MXFP8": ("0", "1"), "VLLM_USE_FLASHINFER_MOE_MXFP4_MXFP8_CUTLASS": ("0", "1"), "VLLM_MXFP4_USE_MARLIN": ("0", "1")}
    settings = [{name: value} for name, values in names.items() for value in values]
    settings += [AITER | {"VLLM_ROCM_USE_AITER_MOE": "0"}, AITER | {"VLLM_ROCM_USE_AITER_MOE_SITUV2": "a8w4"}, AITER | {"VLLM_ROCM_USE_AITER_MOE_A4W4_DSV4": "1"}]
    for machine, model, env, name in itertools.product(MACHINES, MODELS, settings, ("auto", "aiter", "deep_gemm", "humming", "b12x", "marlin")):
        for parallel_ in (SINGLE, BATCHED):
            yield case(machine, model, env=env, moe_backend=name, libs=ALL_LIBS, parallel=parallel_)


def shapes():
    tep8 = {"tp": 8, "enable_expert_parallel": True}
    for machine, model, (experts, local), (hidden, inter), name, layout in itertools.product(
            FEW, (GPT_OSS, W4A4, DEEPSEEK, KIMI), ((512, 64), (512, 512), (992, 992), (993, 993), (1024, 128), (896, 112)),
            ((2560, 640), (2880, 2880), (7168, 2048), (2560, 5120), (4096, 1536)), ("auto", "emulation", "aiter", "b12x", "deep_gemm"), (tep8, SINGLE)):
        yield case(machine, model, num_experts=experts, local_experts=local, hidden=hidden, intermediate=inter, moe_backend=name, parallel=layout,
                   libs=ALL_LIBS, env=AITER if machine[0] == "rocm" else {})


def mixed():
    """Everything at once: each input draws every field by its number's digest."""
    for number in range(2500):
        draw = Draw(f"mixed {number}")
        machine = draw.of(MACHINES)
        model = draw.of(MODELS)
        fields = {"moe_backend": draw.of(("auto",) * 12 + BACKENDS), "lora": draw.of((False,) * 9 + (True,))}
        if draw.of((False, False, True)):
            fields["activation"] = draw.of(ACTIVATIONS)
        if draw.of((False, False, True)):
            fields["routing_method"] = draw.of(ROUTING)
        if draw.of((False, True)) and "selector" not in model:
            fields["activation_override"] = draw.of(KEYS)
        layout = {"tp": draw.of((1, 2, 4, 8)), "pcp": draw.of((1, 1, 1, 2)), "dp": draw.of((1, 1, 2, 4)), "enable_expert_parallel": draw.of((False, True)),
                  "all2all_backend": draw.of(ALL2ALL), "enable_eplb": draw.of((False,) * 4 + (True,)), "sequence_parallel": draw.of((False,) * 4 + (True,))}
        env = {}
        if draw.of((False, True)):
            env["VLLM_ROCM_USE_AITER"] = "1"
        if draw.of((False,) * 9 + (True,)):
            env["VLLM_BATCH_INVARIANT"] = "1"
        libs = tuple(x for x in ALL_LIBS if draw.of((True, True, True, False)))
        if "flashinfer" not in libs:
            libs = tuple(x for x in libs if not x.startswith("flashinfer"))
        yield case(machine, model, fields, libs=libs, env=env, parallel=layout)


# Values of the variables, and what a user may write in their place.
SWITCH = ("0", "1", "true", "True", "FALSE", "", "yes", "2")
NUMBER = ("0", "1", "2", "-1", "01", " 1 ")
ENVIRONMENT = {"VLLM_ROCM_USE_AITER": SWITCH, "VLLM_ROCM_USE_AITER_MOE": SWITCH, "VLLM_USE_DEEP_GEMM": NUMBER, "VLLM_MOE_USE_DEEP_GEMM": NUMBER,
               "VLLM_HUMMING_MOE_GEMM_TYPE": ("indexed", "grouped", "grouped_contiguous", "grouped_masked", "auto", "", "Indexed", "GROUPED", "bogus"),
               "VLLM_B12X_MOE_FP4_FORCE_A16": NUMBER, "VLLM_ROCM_USE_AITER_MOE_SITUV2": ("a16w4", "a8w4", "a4w4", "A8W4", "auto", "0", "1"),
               "VLLM_ROCM_USE_AITER_MOE_A4W4_DSV4": ("0", "1"), "VLLM_USE_FLASHINFER_MOE_MXFP4_BF16": ("0", "1"),
               "VLLM_USE_FLASHINFER_MOE_MXFP4_MXFP8": ("0", "1"), "VLLM_USE_FLASHINFER_MOE_MXFP4_MXFP8_CUTLASS": ("0", "1"),
               "VLLM_MXFP4_USE_MARLIN": ("0", "1"), "VLLM_BATCH_INVARIANT": NUMBER, "VLLM_MARLIN_INPUT_DTYPE": ("fp8", "int8"),
               "VLLM_HUMMING_INPUT_QUANT_CONFIG": ('{"dtype": "float8e4m3"}',), "VLLM_ROCM_USE_AITER_MOE_SITUV2_A8W4": SWITCH,
               "VLLM_ROCM_USE_AITER_FUSION_SHARED_EXPERTS": SWITCH, "VLLM_MOE_ROUTING_SIMULATION_STRATEGY": ("uniform_random", "normal_routing", "")}
# What is in no stored list: devices, names that only some releases know, and sizes that nothing divides.
RARE_MACHINES = [("cuda", "sm60"), ("cuda", "sm72"), ("cuda", "sm87"), ("rocm", "gfx906"), ("rocm", "gfx940"), ("rocm", "gfx942:sramecc+:xnack-"),
                 ("rocm", "gfx950:sramecc+:xnack-"), ("rocm", "gfx1101"), ("rocm", "gfx1102"), ("rocm", "gfx1103"), ("rocm", "gfx1150"), ("rocm", "gfx1251")]
RARE_KEYS = ("int8_per_group_32", "int4_per_group_32", "nvfp4_per_token")
RARE_BACKENDS = ("aiter_mega_moe", "auto", "Marlin", "FLASHINFER_TRTLLM", "Triton-Unfused", "flashinfer-cutlass", "HUMMING", "deep-gemm", "Emulation", "")
RARE_ALL2ALL = ("naive", "pplx")
RARE_SIZES = ((5120, 5120), (6144, 2688), (2048, 768), (100, 100), (7168, 3072), (3072, 384), (32, 32), (2560, 1280), (4096, 14336))
RARE_EXPERTS = ((1, 1), (8, 8), (256, 32), (257, 129), (513, 65), (512, 63), (994, 497), (1024, 1024))


def unseen(seed, count):
    """Inputs that no stored answer belongs to: every knob is drawn, the optional ones too, and sizes that the ranks do not divide."""
    machines = [m for m in MACHINES if m[0] in ("cuda", "rocm")] * 3 + list(MACHINES) + RARE_MACHINES
    for number in range(count):
        draw = Draw(f"{seed} {number}")
        machine, model = draw.of(machines), draw.of(MODELS)
        fields = {"moe_backend": draw.of(("auto",) * 16 + BACKENDS * 2 + NO_BACKENDS + RARE_BACKENDS), "lora": draw.of((False,) * 7 + (True,))}
        if draw.of((False, False, True)):
            fields["activation"] = draw.of(ACTIVATIONS)
        if draw.of((False, False, True)):
            fields["routing_method"] = draw.of(ROUTING)
        if draw.of((False, False, True)):
            fields |= {"activation_override": draw.of(KEYS * 2 + RARE_KEYS), "model_activation": draw.of((None,) * 3 + KEYS + RARE_KEYS)}
        if draw.of((False, False, False, True)):
            fields["hash_routing"] = True
        if draw.of((False, False, True)):
            experts, local = draw.of(((512, 64), (512, 512), (992, 992), (993, 993), (1024, 128), (896, 112), (128, 16), (384, 48)) + RARE_EXPERTS)
            hidden, inter = draw.of(((2560, 640), (2880, 2880), (7168, 2048), (2560, 5120), (4096, 1536), (3072, 6144), (1280, 320), (2880, 1440), (4096, 96),
                                     (2560, 650)) + RARE_SIZES)
            fields |= {"num_experts": experts, "local_experts": local, "hidden": hidden, "intermediate": inter}
        layout = {"tp": draw.of((1, 1, 2, 4, 8, 3, 16)), "pcp": draw.of((1, 1, 1, 2)), "dp": draw.of((1, 1, 1, 2, 4, 8)),
                  "enable_expert_parallel": draw.of((False, True)), "all2all_backend": draw.of(ALL2ALL * 3 + RARE_ALL2ALL),
                  "enable_eplb": draw.of((False,) * 4 + (True,)), "sequence_parallel": draw.of((False,) * 4 + (True,))}
        env = dict(AITER) if machine[0] == "rocm" and draw.of((False, True, True)) else {}
        for _ in range(draw.of((0, 0, 0, 1, 1, 2, 3))):
            name = draw.of(tuple(ENVIRONMENT))
            env[name] = draw.of(ENVIRONMENT[name])
        libs = tuple(x for x in ALL_LIBS if draw.of((True, True, True, False)))
        libs = libs if "flashinfer" in libs else tuple(x for x in libs if not x.startswith("flashinfer"))
        yield case(machine, model, fields, libs=libs, env=env, parallel=layout)


class Draw:
    """Numbers from a text's digest: the same on every Python."""

    def __init__(self, text):
        self._text, self._count = text, 0

    def of(self, values):
        self._count += 1
        digest = hashlib.sha256(f"{self._text} {self._count}".encode()).digest()
        return values[int.from_bytes(digest[:8], "big") % len(values)]


def own_sizes(words):
    """The sizes of layers that run.py --sizes names: those of a file, one JSON object a line, or drawn ones (SEED COUNT)."""
    if len(words) == 1:
        return [tuple(made[key] for key in ("seed", "E", "H", "I", "bias")) for made in map(json.loads, open(words[0], encoding="utf-8"))]
    seed, count = words
    return [drawn_size(Draw(f"{seed} {number}")) for number in range(int(count))]


def drawn_size(draw):
    """Seed of its bytes, experts, H, I, and whether there are biases. Most layouts ask for multiples of 128, checkpoints for 32."""
    def length():
        multiple = draw.of((32, 64, 128, 128, 256))
        return multiple * draw.of(range(1, 1024 // multiple + 1))
    return draw.of(range(1, 100_000)), draw.of(range(1, 7)), length(), length(), draw.of((False, True))


GROUPS = {"auto": (auto, 2600), "explicit": (explicit, 2400), "activation_key": (activation_key, 1600), "activation_function": (activation_function, 900),
          "parallel": (parallel, 1500), "routing": (routing, 1000), "lora_and_batch_invariance": (lora_and_batch_invariance, 900),
          "environment": (environment, 1400), "shapes": (shapes, 500), "mixed": (mixed, 2500)}


def text_of(made):
    return json.dumps(made, sort_keys=True, separators=(",", ":"))


def group(name):
    """The thinned inputs of a group, without repetitions."""
    maker, wanted = GROUPS[name]
    unique = {text_of(made): made for made in maker()}
    chosen = sorted(unique, key=lambda text: hashlib.sha256(text.encode()).digest())[:wanted]
    return [unique[text] for text in sorted(chosen)]


def inputs():
    """[(group, input)], in the order of the answers in the test data."""
    return [(name, made) for name in GROUPS for made in group(name)]


def digest(rows):
    """Says which list of inputs some answers belong to."""
    return hashlib.sha256("\n".join(text_of(made) for _, made in rows).encode()).hexdigest()[:16]


if __name__ == "__main__":  # the list, or with SEED COUNT others
    for made in unseen(sys.argv[1], int(sys.argv[2])) if sys.argv[1:] else (made for _, made in inputs()):
        print(json.dumps(made))
