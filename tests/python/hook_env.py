"""What the tests of the vLLM plug-in share: a process that looks like vLLM's, and blobs for it.

BIN is the built program, MXFP4_TEST_TORCH `real` for an installed torch instead of the stand-in,
MXFP4_TEST_DEVICE where the layers lie then (cpu). The modules of vLLM and triton_kernels are
stand-ins in standin/; the plug-in, the reader and the blobs are real. Blobs are made of
testdata/golden, whose tensors `out.*` are what the reference made.
"""
import atexit
import contextlib
import fnmatch
import glob
import importlib.metadata
import json
import logging
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from types import SimpleNamespace
from unittest import mock

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
STANDIN = os.path.join(HERE, "standin")
GOLDEN = os.path.join(os.environ.get("TESTDATA", os.path.join(ROOT, "testdata")), "golden")
BIN = os.environ.get("BIN", "")
REAL_TORCH = os.environ.get("MXFP4_TEST_TORCH") == "real"
DEVICE = os.environ.get("MXFP4_TEST_DEVICE", "cpu")
TRITON_KERNELS = ""  # where the real one is, for tests/gpu

sys.path[:0] = [os.path.join(ROOT, "scripts", "python"), os.path.join(ROOT, "tests", "cli")]
if not REAL_TORCH:
    sys.path.insert(0, os.path.join(STANDIN, "faketorch"))
try:
    import numpy
    import torch
    import layer_files
except ImportError as missing:
    print("SKIP: %s" % missing)
    sys.exit(77)

PREFIX = "model.layers.0.mlp.experts"
REVISIONS = {"seed": "vllm-2026-05-18", "newer": "vllm-2026-08-17"}
SLOTS = ("w13_weight", "w2_weight", "w13_weight_scale", "w2_weight_scale", "w13_bias", "w2_bias")
WRAPPED = SLOTS[:4]
ORACLE = "vllm.model_executor.layers.fused_moe.oracle.mxfp4"
METHODS = "vllm.model_executor.layers.quantization.mxfp4"
QUARK = "vllm.model_executor.layers.quantization.quark.quark_moe"
TORCH_TYPES = {"U8": torch.uint8, "BF16": torch.bfloat16, "F32": torch.float32,
               "F16": torch.float16, "I32": torch.int32,
               "F8_E4M3": getattr(torch, "float8_e4m3fn", None)}

scratch = tempfile.TemporaryDirectory(prefix="mxfp4-hook-")
atexit.register(scratch.cleanup)


def need_program():
    if not os.access(BIN, os.X_OK):
        raise unittest.SkipTest("BIN does not name the program")


class Golden:
    """One golden file: facts, raw tensors `ins`, and the reference's result `outs`."""

    def __init__(self, path):
        tensors, self.facts = layer_files.read(path)
        with open(path, "rb") as file:
            length = int.from_bytes(file.read(8), "little")
            header = json.loads(file.read(length))
        self.types = {name: entry["dtype"] for name, entry in header.items()
                      if name != "__metadata__"}
        self.name = os.path.basename(os.path.dirname(path)) + "/" + os.path.basename(path)[:-12]
        self.ins = {n[3:]: t for n, t in tensors.items() if n.startswith("in.")}
        self.outs = {n[4:]: t for n, t in tensors.items() if n.startswith("out.")}
        self.backend, self.family = self.facts.get("backend"), self.facts.get("family")

    @property
    def sizes(self):
        """(experts, hidden, intermediate)"""
        experts, rows, half = self.ins["w13_weight"].shape
        return experts, 2 * half, rows // 2

    def flags(self, revision="seed"):
        flags = ["--backend", self.backend, "--family", self.family, "--platform",
                 self.facts["platform"], "--pad", "none", "--allow-known-defects", "-q",
                 "--revision", REVISIONS[revision]]
        if self.facts.get("arch") not in (None, "any", "xpu"):
            flags += ["--arch", self.facts["arch"]]
        for knob in ("params_dtype", "marlin_input_dtype"):
            if self.facts.get(knob, "none") not in ("none", "bfloat16"):
                flags += ["--knob", "%s=%s" % (knob, self.facts[knob])]
        return flags


# Backends whose bytes are another's: their digests are in testdata, their small cases are not.
SAME_BYTES = {"FLASHINFER_TRTLLM_MXFP4_BF16": "FLASHINFER_TRTLLM_MXFP4_MXFP8"}


def goldens(pattern="*"):
    found = []
    for path in sorted(glob.glob(os.path.join(GOLDEN, "*", "*.safetensors"))):
        case = Golden(path)
        if case.facts.get("kind") == "primitive" or case.backend == "HUMMING":
            continue
        found.append(case)
        if case.backend in SAME_BYTES:
            found.append(Golden(path))
            found[-1].backend = SAME_BYTES[case.backend]
            found[-1].name = found[-1].backend.lower() + "/" + os.path.basename(path)[:-12]
    return [case for case in found if fnmatch.fnmatch(case.name, pattern)]


def golden(pattern):
    return goldens(pattern)[0]


def make_blob(case, revision="seed", prefix=PREFIX, compress="none"):
    """(directory of the model, directory of the blob); None where the program refuses the case.

    MXFP4_TEST_BLOBS names a folder that keeps them, for a machine that cannot run the program.
    """
    kept = os.environ.get("MXFP4_TEST_BLOBS") or scratch.name
    biases = case.types.get("in.w13_bias")
    base = os.path.join(kept, "-".join((
        case.name.replace("/", "-"), case.family, str(biases), revision, compress)))
    model, out = os.path.join(base, "model"), os.path.join(base, "blob")
    if not os.path.exists(base):
        need_program()
        os.makedirs(model)
        metadata = {"family": case.family}
        if biases == "F32":
            metadata["bias_dtype"] = "F32"
        layer_files.write(os.path.join(model, "model.safetensors"),
                          {"%s.%s" % (prefix, n): (case.types["in." + n], t)
                           for n, t in case.ins.items()}, metadata)
        done = subprocess.run(
            [BIN, "convert", os.path.join(model, "model.safetensors"), "-o", out,
             "--compress", compress, *case.flags(revision)], stderr=subprocess.PIPE, text=True)
        if done.returncode not in (0, 4):
            raise AssertionError(done.stderr)
    return (model, out) if os.path.exists(out) else None


def copied(made):
    """A copy of a blob and its model, to be damaged."""
    base = tempfile.mkdtemp(dir=scratch.name)
    return tuple(shutil.copytree(path, os.path.join(base, name))
                 for path, name in zip(made, ("model", "blob")))


def file_tensors(blob, prefix=PREFIX):
    """What the blob's one file holds, read by another reader: slot -> (array, storage object)."""
    (path,) = glob.glob(os.path.join(blob, "layer-*.safetensors"))
    tensors, metadata = layer_files.read(path)
    storage = json.loads(metadata["mxfp4_repack.storage"])
    return {n[len(prefix) + 1:]: (t, storage[n]) for n, t in tensors.items()}


def bits(tensor):
    """A tensor's elements as unsigned integers of its width, a numpy array of its shape."""
    data = tensor.data
    kind = {1: torch.uint8, 2: torch.int16, 4: torch.int32}[data.element_size()]
    array = data.view(kind).cpu().numpy()
    return array.view("u%d" % array.itemsize)


def damage(tensor):
    """Turns one bit of the last element."""
    data = tensor.data.view({1: torch.uint8, 2: torch.int16, 4: torch.int32}[tensor.element_size()])
    last = tuple(n - 1 for n in data.shape)
    data[last] = data[last] ^ 1


def to_torch(array, kind):
    """A tensor of a torch type with a numpy array's bytes."""
    if kind is None:
        raise unittest.SkipTest("this torch lacks a type")
    array = numpy.ascontiguousarray(array)
    flat = numpy.frombuffer(array.tobytes(), "u1").copy()
    return torch.from_numpy(flat).to(DEVICE).view(kind).reshape(array.shape)


class Messages(logging.Handler):
    def __init__(self):
        super().__init__()
        self.records = []

    def emit(self, record):
        self.records.append(record)

    def text(self, level=logging.WARNING):
        return [r.getMessage() for r in self.records if r.levelno >= level]


class World:
    """A fresh process of vLLM, nearly: modules unloaded, its machine and configuration. The CPU is an x86-64 one
    wherever it runs, as in the golden cases."""

    def __init__(self, revision="seed", blob=None, model="", **environment):
        self.revision = revision
        self.environment = {"MXFP4_REPACK_BLOB": blob} if blob else {}
        self.environment.update({k: v for k, v in environment.items() if v is not None})
        self.config = SimpleNamespace(
            model_config=SimpleNamespace(model=model, revision=None),
            load_config=SimpleNamespace(load_format="auto", download_dir=None),
            parallel_config=SimpleNamespace(enable_eplb=False),
            cache_config=SimpleNamespace(cpu_offload_gb=0))
        self.messages = Messages()

    def __enter__(self):
        self._stack = contextlib.ExitStack()
        unload()
        self._stack.callback(unload)
        cleared = {k: v for k, v in os.environ.items()
                   if not k.startswith(("MXFP4_REPACK_", "VLLM_", "AITER_")) or k == "MXFP4_REPACK_LIBRARY"}
        self._stack.enter_context(mock.patch.dict(os.environ, cleared, clear=True))
        self._stack.enter_context(mock.patch("platform.machine", lambda: "x86_64"))
        os.environ["XDG_CACHE_HOME"] = tempfile.mkdtemp(dir=scratch.name)
        os.environ.update(self.environment)
        parts = [os.path.join(STANDIN, part) for part in (self.revision, "common")]
        parts[:0] = [TRITON_KERNELS] if TRITON_KERNELS else []
        self._stack.enter_context(mock.patch.object(sys, "path", parts + sys.path))
        self._stack.enter_context(mock.patch.object(sys, "meta_path", list(sys.meta_path)))
        logger = logging.getLogger("vllm.mxfp4_repack")
        logger.addHandler(self.messages)
        self._stack.callback(logger.removeHandler, self.messages)
        level, propagate = logger.level, logger.propagate
        logger.setLevel(logging.DEBUG)
        logger.propagate = False
        self._stack.callback(setattr, logger, "propagate", propagate)
        self._stack.callback(logger.setLevel, level)
        return self

    def __exit__(self, *error):
        return self._stack.__exit__(*error)

    def register(self):
        from mxfp4_repack import vllm as plugin
        plugin.register()
        return plugin

    def start(self, known=True):
        """Registers, imports what vLLM would, and makes its code one that is known."""
        self.register()
        import vllm.config
        vllm.config.current = self.config
        __import__(ORACLE), __import__(METHODS), __import__(QUARK)
        if self.revision == "newer":
            import vllm.model_executor.layers.quantization.utils.mxfp4_utils as utils
            utils.SCALES_IN_FOURS = True
        if known:
            from mxfp4_repack.vllm import converter_code
            converter_code.REVISIONS[REVISIONS[self.revision]]["code"] = converter_code.installed_code()
        return self

    @property
    def hook(self):
        from mxfp4_repack.vllm import environment
        return environment._environment.hook

    def set_machine(self, platform, arch):
        import vllm.platforms as platforms
        import vllm.standin
        platforms.current_platform.kind = platform
        vllm.standin.gfx = ""
        if platform == "cuda" and arch:
            number = int(arch[2:])
            platforms.current_platform.capability = platforms.Capability(number // 10, number % 10)
        if platform == "rocm":
            vllm.standin.gfx = arch or "gfx950"
            self._stack.enter_context(mock.patch.object(torch.cuda, "current_device", lambda: 0))
            self._stack.enter_context(mock.patch.object(
                torch.cuda, "get_device_properties",
                lambda index: SimpleNamespace(gcnArchName=vllm.standin.gfx + ":sramecc+")))

    def method(self, case, name=None):
        """The method object that vLLM would have for the case."""
        backends = sys.modules[ORACLE].Mxfp4MoeBackend
        name = name or method_class(case)
        module = QUARK if name.startswith("Quark") else METHODS
        return getattr(sys.modules[module], name)(backends[case.backend])

    def layer(self, case, method=None, name=PREFIX, right=False, **facts):
        """A layer of the case's sizes whose raw experts are not the blob's, unless `right`.

        The scales are the blob's in another order, which no check of them notices.
        """
        from vllm.standin import FusedMoE
        experts, hidden, inner = case.sizes
        facts.setdefault("has_bias", "w13_bias" in case.ins)
        facts.setdefault("device", DEVICE)
        if case.facts.get("params_dtype") == "float16":
            facts.setdefault("params_dtype", torch.float16)
        layer = FusedMoE(name, experts, hidden, inner, **facts)
        layer.quant_method = method or self.method(case)
        layer.w13_bias = layer.w2_bias = None
        for slot, array in case.ins.items():
            if not right:
                array = array[::-1, ::-1] if slot.endswith("_scale") and array.ndim == 3 else array
                array = array ^ 0x5A if slot in ("w13_weight", "w2_weight") else array
                array = numpy.zeros_like(array) if slot.endswith("bias") else array
            if slot in ("w13_bias", "w2_bias"):
                del layer.__dict__[slot]
            tensor = to_torch(array, TORCH_TYPES[case.types["in." + slot]])
            layer.register_parameter(slot, torch.nn.Parameter(tensor, requires_grad=False))
        return layer

    def convert(self, case, layer=None, **facts):
        """Sets the machine up for the case, has vLLM process a layer, and gives that."""
        self.set_machine(case.facts["platform"], case.facts.get("arch")
                         if case.facts.get("arch") not in ("any", "xpu") else "")
        if case.facts.get("marlin_input_dtype", "none") != "none":
            os.environ["VLLM_MARLIN_INPUT_DTYPE"] = case.facts["marlin_input_dtype"]
        layer = layer or self.layer(case, **facts)
        layer.quant_method.process_weights_after_loading(layer)
        return layer


def method_class(case):
    if case.types.get("in.w13_bias") == "F32" or "w13_input_scale" in case.ins:
        return "QuarkOCP_MX_MoEMethod"
    return "GptOssMxfp4MoEMethod" if case.family == "gpt_oss" else "Mxfp4MoEMethod"


def unload():
    for name in list(sys.modules):
        if name.split(".")[0] in ("vllm", "triton_kernels") or name.startswith(("mxfp4_repack.vllm", "mxfp4_repack.plugin")):
            del sys.modules[name]
    # `from mxfp4_repack import vllm` finds the package's attribute first.
    for package in ("vllm", "plugin"):
        vars(sys.modules.get("mxfp4_repack", unload)).pop(package, None)


def versions(case):
    """importlib.metadata.version, as on a machine that has what the blob names."""
    known = {"flashinfer-python": {"seed": "0.6.11.post2", "newer": "0.6.16.post3"},
             "amd-aiter": {"seed": "0.1.13", "newer": "0.1.19"}}

    def version(name):
        if name in known:
            return known[name][case]
        raise importlib.metadata.PackageNotFoundError(name)

    return mock.patch("importlib.metadata.version", version)
