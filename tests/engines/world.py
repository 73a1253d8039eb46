"""The world that a release sees: a platform, a device and a set of installed packages, played by fakes.

One process plays one platform, since vLLM decides at import what it runs on. Device, packages, environment and machine change within a
process: `Scene.set()` installs them and empties every cache that vLLM keeps of such facts. What is faked lies below vLLM's own code: the
NVML and amdsmi calls, `importlib.util.find_spec`, the packages themselves (importable modules without content), torch's AMX query,
`platform.machine` and `shutil.which`. Each predicate of vLLM on top of them is the release's own.
"""
import enum
import functools
import gc
import importlib
import importlib.machinery
import importlib.util
import os
import platform as machine_platform
import shutil
import sys
import types

PLATFORM_CLASSES = {
    "cuda": "vllm.platforms.cuda.NvmlCudaPlatform",
    "rocm": "vllm.platforms.rocm.RocmPlatform",
    "xpu": "vllm.platforms.xpu.XPUPlatform",
    "cpu": "vllm.platforms.cpu.CpuPlatform",
    "other": "vllm.platforms.interface.UnspecifiedPlatform",
}

# Flag of an input -> packages that it stands for.
PACKAGES = {
    "flashinfer": ("flashinfer", "flashinfer_cubin"),
    "triton_kernels": ("triton_kernels", "vllm.third_party.triton_kernels"),
    "deep_gemm": ("deep_gemm", "vllm.third_party.deep_gemm"),
    "aiter": ("aiter",),
    "humming": ("humming",),
    "quark": ("quark",),
    "b12x": ("b12x",),
}
CONTROLLED = {name: flag for flag, names in PACKAGES.items() for name in names}
# Packages that only serve kernels. They are always importable and never asked for.
BYSTANDERS = ("amdsmi", "vllm_xpu_kernels", "cutlass", "tilelang", "nixl_ep", "deep_ep", "mori", "moonep", "cuda")
# Compiled parts of the wheel: only the Python files are unpacked. They register kernels, which no decision calls.
COMPILED = ("vllm._C", "vllm._C_stable_libtorch", "vllm._moe_C", "vllm._moe_C_stable_libtorch", "vllm._rocm_C", "vllm.cumem_allocator",
            "vllm.spinloop", "vllm._xpu_C", "vllm.vllm_flash_attn._vllm_fa2_C", "vllm.vllm_flash_attn._vllm_fa3_C")
MACHINES = {"": "x86_64", "x86_noamx": "x86_64", "arm64": "aarch64", "ppc64le": "ppc64le"}

real_find_spec = importlib.util.find_spec


class Anything:
    """Stands for a class or function of a package that no decision looks into."""

    def __init__(self, *args, **kwargs):
        pass

    def __call__(self, *args, **kwargs):
        return args[0] if len(args) == 1 and callable(args[0]) and not kwargs else Anything()

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Anything()

    def __class_getitem__(cls, item):
        return cls

    def __or__(self, other):
        return other

    __ror__ = __or__


class PackageModule(types.ModuleType):
    """A module without content whose attributes exist, apart from those that the scene withholds."""

    def __getattr__(self, name):
        full = f"{self.__name__}.{name}"
        if name.startswith("__") or Scene.current.withholds(full):
            raise AttributeError(full)
        if full in Scene.values:
            return Scene.values[full]
        if name[0].isupper():
            return type(name, (Anything,), {"__module__": self.__name__})
        return Anything()


class PackageFinder:
    """Serves the controlled packages and bystanders as modules without content, whether a scene has them or not."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        flag = flag_of(name)
        if flag is None or flag in Scene.current.real:
            return None
        if flag and not Scene.current.importable(flag):
            return None
        return importlib.machinery.ModuleSpec(name, PackageFinder, is_package=True)

    @staticmethod
    def create_module(spec):
        module = PackageModule(spec.name)
        module.__path__, module.__file__ = [], f"/faked/{spec.name}/__init__.py"
        return module

    @staticmethod
    def exec_module(module):
        pass


def flag_of(name):
    """The flag of a module's package, "" for a bystander, None for what is not faked."""
    parts = name.split(".")
    if name.startswith("vllm.third_party."):
        return CONTROLLED.get(".".join(parts[:3]))
    if name in COMPILED:
        return ""
    if parts[0] in CONTROLLED:
        return CONTROLLED[parts[0]]
    return "" if parts[0] in BYSTANDERS else None


def find_spec(name, package=None):
    """`importlib.util.find_spec` as the scene's machine would answer it."""
    flag = flag_of(name)
    if flag is None:
        return real_find_spec(name, package)
    if flag == "":
        return None
    if flag in Scene.current.real:
        return real_find_spec(name, package)
    return importlib.machinery.ModuleSpec(name, PackageFinder, is_package=True) if flag in Scene.current.libs else None


class AfterImport:
    """Changes two modules of the release as soon as they have been executed: vLLM asks them while it is being imported."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        change = {"vllm.platforms": choose_platform, "vllm.third_party.pynvml": fake_nvml}.get(name)
        spec = importlib.machinery.PathFinder.find_spec(name, path) if change else None
        if spec is None:
            return None
        execute = spec.loader.exec_module

        def exec_module(module):
            execute(module)
            change(module)
        spec.loader.exec_module = exec_module
        return spec


def choose_platform(platforms):
    """In place of vLLM's detection: the class that it would have detected on such a machine."""
    platforms.resolve_current_platform_cls_qualname = lambda: PLATFORM_CLASSES[Scene.current.platform]


def fake_nvml(pynvml):
    """The calls of NVML that platform and capability need."""
    for name in ("nvmlInit", "nvmlShutdown", "nvmlDeviceGetHandleByIndex"):
        setattr(pynvml, name, lambda *args, **kwargs: 0)
    pynvml.nvmlDeviceGetCount = lambda: 1
    pynvml.nvmlDeviceGetName = lambda handle: "Faked device"
    pynvml.nvmlDeviceGetCudaComputeCapability = lambda handle: Scene.current.capability
    pynvml.nvmlDeviceGetMemoryInfo = lambda handle: types.SimpleNamespace(total=1 << 36, used=0, free=1 << 36)


class Scene:
    """What the release sees at one moment."""

    current = None
    # What decisions do read of a package, as facts of that package.
    values = {name: enum.Enum("GemmType", {"DENSE": "dense", "INDEXED": "indexed", "GROUPED_CONTIGUOUS": "grouped_contiguous",
                                           "GROUPED_MASKED": "grouped_masked"})
              for name in ("humming.config.GemmType", "humming.config.enum.GemmType")}

    def __init__(self, platform, real=()):
        self.platform, self.real = platform, frozenset(real)
        self.arch, self.libs, self.env = "", frozenset(CONTROLLED.values()) | {"flashinfer_cutlass", "flashinfer_situ"}, {}
        self.caches, self.modules_seen, self.starting = [], 0, True
        Scene.current = self

    @property
    def capability(self):
        digits = self.arch[2:] or "90"
        return int(digits[:-1]), int(digits[-1])

    def importable(self, flag):
        return self.starting or flag in self.libs

    def withholds(self, full_name):
        """Whether a package of the case lacks an attribute: the flags that stand for more than a package's presence."""
        if full_name in ("flashinfer.fused_moe.cutlass_fused_moe", "flashinfer.nvfp4_block_scale_interleave"):
            return "flashinfer_cutlass" not in self.libs
        return False

    def set(self, arch, libs, env):
        changed = (arch, frozenset(libs), tuple(sorted(env.items()))) != (self.arch, self.libs, tuple(sorted(self.env.items())))
        if not changed and not self.starting:
            return
        for name in self.env:
            os.environ.pop(name, None)
        self.arch, self.libs, self.env, arch_changed = arch, frozenset(libs), dict(env), arch != self.arch
        os.environ.update(env)
        self.refresh(arch_changed)

    def refresh(self, arch_changed=True):
        """Makes vLLM look again at device, packages and environment."""
        members = {"Swiglu": 0, "Geglu": 1} | ({"Situ": 9} if "flashinfer_situ" in self.libs else {})
        activation = enum.Enum("ActivationType", members)
        for name in ("flashinfer.ActivationType", "flashinfer.fused_moe.ActivationType", "flashinfer.fused_moe.core.ActivationType",
                     "flashinfer.tllm_enums.ActivationType"):
            Scene.values[name] = activation
        if len(sys.modules) != self.modules_seen:
            self.modules_seen = len(sys.modules)
            self.caches = [o for o in gc.get_objects() if type(o) is functools._lru_cache_wrapper
                           and str(o.__module__).startswith(("vllm.", "triton_kernels"))]
        for cache in self.caches:
            cache.cache_clear()
        if self.platform == "rocm" and arch_changed and "vllm.platforms.rocm" in sys.modules:
            kept = {k: v for k, v in vars(sys.modules["vllm.platforms.rocm"]).items() if isinstance(v, type)}
            importlib.reload(sys.modules["vllm.platforms.rocm"])
            vars(sys.modules["vllm.platforms.rocm"]).update(kept)
        if "vllm._aiter_ops" in sys.modules:
            aiter = sys.modules["vllm._aiter_ops"]
            if hasattr(aiter, "IS_AITER_FOUND"):
                aiter.IS_AITER_FOUND = aiter.is_aiter_found()
            aiter.rocm_aiter_ops.refresh_env_variables()
        if "vllm.utils.b12x" in sys.modules:
            self.refresh_b12x(sys.modules["vllm.utils.b12x"])

    def refresh_b12x(self, module):
        """vLLM imports the package's modules once, and later asks for those alone."""
        if not hasattr(module, "_B12X_SUBMODULES"):
            return
        module._HAS_B12X = "b12x" in self.libs
        for name in module._B12X_SUBMODULES:
            module._B12X_SUBMODULES[name] = module._import_submodule(name)


def start(site, platform, arch="", real=(), faked=()):
    """Prepares this process to import vLLM's Python files of `site` as if on that machine; returns its scene.

    With `real`, flags of packages that are not faked, all others are absent from the beginning, but for those of `faked`.
    """
    for name in [n for n in os.environ if n.startswith("VLLM_")]:
        del os.environ[name]
    os.environ["VLLM_LOGGING_LEVEL"] = "CRITICAL"
    os.environ["VLLM_NO_USAGE_STATS"] = "1"
    sys.path.insert(0, site)
    scene = Scene(platform, real)
    if real:
        scene.libs, scene.starting = frozenset((*real, *faked)), False
    scene.arch = arch
    import torch

    torch.cpu._is_amx_tile_supported = lambda: scene.platform == "cpu" and scene.arch == ""
    machine_platform.machine = lambda: MACHINES.get(scene.arch, "x86_64")
    shutil.which = functools.partial(lambda real, name, *a, **k: None if name == "nvcc" else real(name, *a, **k), shutil.which)
    importlib.util.find_spec = find_spec
    sys.meta_path[:0] = [PackageFinder, AfterImport]
    import amdsmi

    amdsmi.amdsmi_get_processor_handles = lambda: [0]
    amdsmi.amdsmi_get_gpu_asic_info = lambda handle: {"target_graphics_version": scene.arch, "market_name": "Faked device",
                                                      "device_id": "0x0", "num_compute_units": 256}
    # Questions to compiled kernels, asked while modules are imported; the kernels of a release's CUDA wheel answer yes.
    for name in ("cutlass_scaled_mm_supports_fp8", "cutlass_scaled_mm_supports_block_fp8", "cutlass_scaled_mm_supports_fp4", "cutlass_group_gemm_supported"):
        setattr(torch.ops._C, name, lambda capability: True)
    # The range that the machine code of this operator in the wheel of 0.33.0 admits.
    torch.ops._C.mxfp4_experts_quant_supported = lambda capability: 100 <= capability <= 119
    import vllm.platforms

    vllm.platforms.current_platform
    return scene
