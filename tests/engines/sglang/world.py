"""SGLang's modules of one wheel on a CPU: everything of `sglang` but the modules in REAL is a stub, and the scene says on which device SGLang runs.

A stub module answers every name: those of `answers()` by the scene, CamelCase with an empty class, all others with a value that is false, callable and
has every attribute. SGLang decides at import what it runs on: a process plays one device and one set of environment variables.
"""
import ast
import functools
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys
import types

Q = "sglang.srt.layers.quantization."
REAL = {
    "sglang.srt.environ", "sglang.test.test_marlin_utils",
    "sglang.srt.arg_groups.model_overrides.gpt_oss", "sglang.srt.arg_groups.model_overrides.deepseek_v4",
    "sglang.srt.arg_groups.model_overrides.kimi_k3", "sglang.srt.arg_groups.model_overrides.bailing_moe_v3",
    *(Q + name for name in ("base_config", "mxfp4", "fp8", "utils", "marlin_utils", "marlin_utils_fp4", "mxfp4_flashinfer_trtllm_moe", "mxfp4_flashinfer_cutlass_moe",
                            "mxfp4_marlin_moe", "mxfp4_humming_moe")),
}


class Scene:
    """What SGLang sees. `device`: "sm90", "gfx950", "cpu", "cpu-amx", "xpu"."""
    device = "sm90"
    runner = "auto"  # --moe-runner-backend after the model's override
    root = ""        # the wheel's files

    @classmethod
    def is_(cls, kind):
        return cls.device.startswith({"cuda": "sm", "hip": "gfx"}.get(kind, kind))

    @classmethod
    def capability(cls):
        return divmod(int(cls.device[2:]), 10) if cls.is_("cuda") else (0, 0)

    @classmethod
    def major(cls, *majors):
        return cls.is_("cuda") and cls.capability()[0] in majors


FACTS = {
    "sm90": lambda: Scene.major(9), "sm100": lambda: Scene.major(10), "sm110": lambda: Scene.major(11), "sm120": lambda: Scene.major(12),
    "blackwell": lambda: Scene.major(10, 12), "cuda": lambda: Scene.is_("cuda"), "hip": lambda: Scene.is_("hip"), "xpu": lambda: Scene.is_("xpu"),
    "cpu": lambda: Scene.is_("cpu"), "gfx95": lambda: "gfx95" in Scene.device, "gfx942": lambda: "gfx942" in Scene.device,
    "gfx1250": lambda: "gfx1250" in Scene.device,
}


class Chosen:
    """An enumeration's value: is_NAME() says whether it is NAME."""

    def __init__(self, name):
        self.name = name

    def __getattr__(self, name):
        if name.startswith("is_"):
            return lambda: self.name == {"is_triton_kernels": "triton_kernel"}.get(name, name[3:])
        if name.startswith("supports_"):
            return lambda: False
        raise AttributeError(name)

    def __str__(self):
        return self.name


class Platform:
    def __getattr__(self, name):
        if name == "has_amx":
            return Scene.device == "cpu-amx"
        if name == "device_capability":
            return Scene.capability()
        if name == "device_sm":
            major, minor = Scene.capability()
            return 10 * major + minor
        if name.startswith("is_"):
            return FACTS[name[3:]]() if name[3:] in FACTS else False
        raise AttributeError(name)


class Loose:
    """Any attribute, itself callable; false. Called with one function it is a decorator that changes nothing."""

    def __init__(self, **known):
        vars(self).update(known)

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Loose()

    def __call__(self, *a, **k):
        return a[0] if len(a) == 1 and callable(a[0]) and not k else Loose()

    def __bool__(self):
        return False

    def __iter__(self):
        return iter(())

    def __or__(self, other):
        return self


class Named(type):
    """A class whose missing attributes exist: members of enumerations."""

    def __getattr__(cls, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Loose(value=name.lower())


def round_up(x, y):
    return -(-x // y) * y


def set_weight_attrs(weight, attrs):
    for key, value in (attrs or {}).items():
        setattr(weight, key, value)


def answers():
    yes_no = {f"is_{name}_supported": fact for name, fact in FACTS.items()} | {f"is_{name}": FACTS[name] for name in ("cuda", "hip", "xpu", "cpu")}
    amx = lambda *a, **k: Scene.device == "cpu-amx"
    return yes_no | {
        "is_npu": lambda: False, "is_musa": lambda: False, "is_mps": lambda: False, "is_npu_arch35": lambda: False, "is_fp8_fnuz": lambda: False,
        "mxfp8_block_convert_required": lambda: False, "mxfp_supported": FACTS["gfx95"],
        "is_flashinfer_available": FACTS["cuda"], "is_triton_kernels_available": lambda: Scene.is_("cuda") or Scene.is_("hip"),
        "cpu_has_amx_support": amx, "use_intel_amx_backend": amx, "get_device_capability": lambda *a: Scene.capability(),
        "get_nvidia_driver_version": lambda: (580,), "get_platform": lambda: Platform(),
        "get_exec": lambda: Loose(moe=types.SimpleNamespace(flashinfer_mxfp4_moe_precision="default")),
        "get_server_args": lambda: types.SimpleNamespace(flashinfer_mxfp4_moe_precision="default"),
        "get_moe_runner_backend": lambda: Chosen(Scene.runner), "get_moe_a2a_backend": lambda: Chosen("none"),
        "get_bool_env_var": lambda name, default="false": os.environ.get(name, default).lower() in ("true", "1"),
        "round_up": round_up, "set_weight_attrs": set_weight_attrs, "is_layer_skipped": lambda *a, **k: False,
        "register_custom_op": lambda *a, **k: a[0] if a and callable(a[0]) else (lambda f: f),
        "log_info_on_rank0": lambda *a, **k: None, "print_warning_once": lambda *a, **k: None, "get_scalar_types": lambda: (Loose, Loose()),
        "next_power_of_2": lambda n: 1 << (n - 1).bit_length(),
        # arg_groups/model_override_base.py
        "_register_for": lambda *names: lambda function: function, "register_post_process": lambda function: function,
        "is_attention_backend_not_set": lambda cfg: False, "resolving_view": lambda args: args,
        "model_config_of": lambda args: args.get_model_config(),
    }


class Stub(types.ModuleType):
    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        known = answers()
        if name in known:
            value = known[name]
        elif name[:1].isupper() and not name.isupper():
            value = Named(name, (), {"__init__": lambda self, *a, **k: None})
        else:
            value = Loose()
        setattr(self, name, value)
        return value


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] != "sglang":
            return None
        base = os.path.join(Scene.root, *name.split("."))
        for file, folders in ((base + ".py", None), (os.path.join(base, "__init__.py"), [base])):
            if name in REAL and os.path.exists(file):
                return importlib.util.spec_from_file_location(name, file, submodule_search_locations=folders)
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        made = Stub(spec.name)
        made.__path__ = []
        return made

    def exec_module(self, module):
        pass


class Space(dict):
    """Globals for functions that are taken out of a module which imports too much: missing names are those of a stub."""

    def __missing__(self, name):
        if hasattr(__builtins__, name) if not isinstance(__builtins__, dict) else name in __builtins__:
            raise KeyError(name)
        return getattr(self["__stub"], name)


@functools.lru_cache(maxsize=None)
def compiled(file, names):
    """(name, code) of these functions of a file."""
    text = open(os.path.join(Scene.root, "sglang", "srt", file), encoding="utf-8").read()
    found = {}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef) and node.name in names and node.name not in found:
            node.decorator_list = []
            node.returns = None
            for argument in node.args.args:
                argument.annotation = None
            found[node.name] = compile(ast.Module([node], []), file, "exec")
    return found


def taken_out(file, *names):
    """These functions of a file of the wheel, without their decorators; None for one that it does not have."""
    space = Space({"__stub": Stub("sglang.taken_out"), "__builtins__": __builtins__})
    for code in compiled(file, names).values():
        exec(code, space)
    return [space.get(name) for name in names], space


def install(root, device):
    import torch

    Scene.root, Scene.device = root, device
    sys.meta_path.insert(0, Finder())
    torch.Tensor.cuda = lambda self, *a, **k: self
    torch.cuda.empty_cache = lambda: None
    torch.cuda.get_device_capability = lambda *a, **k: Scene.capability()
    torch.cuda.get_device_properties = lambda *a, **k: types.SimpleNamespace(gcnArchName=Scene.device, multi_processor_count=1)
