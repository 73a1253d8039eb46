"""DeepGEMM on a CPU: the operator that arranges block scales, executed from a release's own wheel.

The wheel's compiled extension decides by capability, allocates, and launches a kernel that it has nvcc compile from the wheel's headers. It runs in a
process of its own where a driver without a device stands below it (deep_gemm_driver.cpp): CPU tensors play those of the device, and the compiler, this
file as a program, compiles the kernel for the CPU, a thread for each of the device's.
"""
import ctypes
import glob
import importlib.util
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import types

OPERATOR = "transform_sf_into_required_layout"
FOLDER = os.path.dirname(os.path.abspath(__file__))
DRIVER = os.path.join(FOLDER, "deep_gemm_driver.cpp")
PRELUDE = os.path.join(FOLDER, "deep_gemm_prelude.hpp")
OPERATORS = "_C_extension.abi3.so"  # from 0.32.0 on; before, a module of Python
MODULE = f"_C.cpython-{sys.version_info.major}{sys.version_info.minor}-x86_64-linux-gnu.so"
KEEP = (".cuh", f"deep_gemm/{OPERATORS}", f"deep_gemm/{MODULE}")
LAUNCHER = """
template <class... A, size_t... I>
void run(void (*kernel)(A...), void** given, std::index_sequence<I...>) { kernel(*static_cast<A*>(given[I])...); }
template <class... A>
void run(void (*kernel)(A...), void** given) { run(kernel, given, std::index_sequence_for<A...>{}); }
extern "C" void launch(unsigned columns, unsigned rows, unsigned threads, void** given) {
  for (unsigned block = 0; block < columns * rows; ++block) {
    std::barrier<> all(threads);
    turn = &all;
    std::vector<std::thread> team;
    for (unsigned i = 0; i < threads; ++i) {
      team.emplace_back([=] {
        blockIdx = {block % columns, block / columns, 0}, threadIdx = {i, 0, 0};
        run(&KERNEL, given);
      });
    }
    for (std::thread& member : team) member.join();
  }
}
"""


def compile_kernel(arguments):
    """In place of nvcc: a library with the kernel that the given source names, and `launch`."""
    import kernels

    if "--version" in arguments:
        print("Cuda compilation tools, release 13.0, V13.0.88")
        return
    source = open(next(name for name in arguments if name.endswith(".cu")), encoding="utf-8").read()
    name, values = re.search(r"&(\w+)<([^>]*)>", source).groups()
    folders = [after if flag == "--include-path" else flag[2:] for flag, after in zip(arguments, arguments[1:]) if flag.startswith(("--include-path", "-I"))]
    headers = next(path for path in (os.path.join(folder, "deep_gemm") for folder in folders) if os.path.isdir(path))

    def header(path):
        return open(os.path.join(headers, path), encoding="utf-8").read()
    maths = "".join(kernels.definition(header("common/math.cuh"), part) for part in ("ceil_div", "constexpr_ceil_div", "align", "constexpr_align"))
    vectors = re.search(r"template <[^>]*>\s*struct Vectorized \{.*?\n\};", header("common/utils.cuh"), re.DOTALL).group()
    body = kernels.definition(header("impls/smxx_layout.cuh"), name).replace("extern __shared__ uint32_t smem_buffer[];", "")
    text = open(PRELUDE).read() + f"namespace math {{\n{maths}}}\nnamespace utils {{\n{vectors}\n}}\n{body}" + LAUNCHER.replace("KERNEL", f"{name}<{values}>")
    out = next(after for flag, after in zip(arguments, arguments[1:]) if flag in ("--output-file", "-o"))
    subprocess.run(["g++", "-std=c++20", "-O1", "-shared", "-fPIC", "-pthread", "-x", "c++", "-", "-o", out], input=text, text=True, check=True)


class DeviceTensors:
    """Tensors in the CPU's memory that torch takes for a CUDA device's: the extension asks whether they are, and only the played driver reads them."""

    def __init__(self, torch):
        self.torch, self.memory = torch, {}
        torch.cuda._lazy_init = lambda: None
        library = torch.library.Library("aten", "IMPL")
        library.impl("empty_strided", self.empty_strided, "CUDA", allow_override=True)
        library.impl("empty.memory_format", self.empty, "CUDA", allow_override=True)
        self.library = library

    def empty_strided(self, size, stride, dtype=None, **_):
        return self.on_device(self.torch.empty_strided(size, stride, dtype=dtype))

    def empty(self, size, dtype=None, **_):
        return self.on_device(self.torch.empty(size, dtype=dtype))

    def on_device(self, tensor):
        """A tensor of the device over a CPU tensor's memory, which is kept."""
        names = {"torch.float32": (2, 32), "torch.int32": (0, 32), "torch.uint8": (1, 8)}
        kind, bits = names[str(tensor.dtype)]
        told = _Managed(tensor, kind, bits)
        made = self.torch.utils.dlpack.from_dlpack(told.capsule())
        self.memory[made.data_ptr()] = tensor, told
        return made

    def given(self, argument):
        return self.on_device(argument) if isinstance(argument, self.torch.Tensor) else argument

    def on_cpu(self, tensor):
        whole, _ = self.memory[tensor.data_ptr()]
        return self.torch.as_strided(whole, tensor.shape, tensor.stride(), 0)


class _Managed:
    """A tensor as DLPack describes one, said to lie on the first CUDA device."""

    def __init__(self, tensor, kind, bits):
        rank = tensor.dim()
        self.sizes = (ctypes.c_int64 * (2 * rank))(*tensor.shape, *tensor.stride())
        # data; device: type, number; axes, type: code, bits, lanes; shape, strides, offset; owner, deleter
        self.bytes = ctypes.create_string_buffer(struct.pack(
            "=QiiiBBHQQQQQ", tensor.data_ptr(), 2, 0, rank, kind, bits, 1, ctypes.addressof(self.sizes), ctypes.addressof(self.sizes) + 8 * rank, 0, 0,
            ctypes.cast(ctypes.CDLL(None).abs, ctypes.c_void_p).value))  # abs: it frees nothing

    def capsule(self):
        make = ctypes.pythonapi.PyCapsule_New
        make.restype, make.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
        return make(ctypes.addressof(self.bytes), b"dltensor", None)


def operator_of(root):
    """The extension's operator, as a function of tensors of the device."""
    import torch

    if os.path.exists(os.path.join(root, OPERATORS)):
        torch.ops.load_library(os.path.join(root, OPERATORS))
        init = torch.ops.deep_gemm.init.default  # at 0.32.0 it takes only the first
        init(*(root, "deep_gemm")[:len(init._schema.arguments)])
        return getattr(torch.ops.deep_gemm, OPERATOR)
    spec = importlib.util.spec_from_file_location("_C", os.path.join(root, MODULE))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    try:
        module.init(root, os.environ["CUDA_HOME"])
    except TypeError:  # at 0.31.0 it takes only the first
        module.init(root)
    return getattr(module, OPERATOR)


def serve(root):
    """Answers requests, a file name a line: the file holds the operator's arguments, and then its result or error."""
    import torch

    operator, tensors = operator_of(root), DeviceTensors(torch)
    for line in sys.stdin:
        arguments, keywords = torch.load(line.strip())
        try:
            given = {name: tensors.given(value) for name, value in keywords.items()}
            made = tensors.on_cpu(operator(*map(tensors.given, arguments), **given))
        except Exception as error:
            made = str(error).splitlines()[0]
        torch.save(made, line.strip())
        print("done", flush=True)
    shutil.rmtree(os.path.dirname(os.environ["LD_PRELOAD"]))


class Device:
    """A process with the wheel's DeepGEMM on a device of one capability."""

    def __init__(self, root, capability, torch_folder):
        self.folder = tempfile.mkdtemp(prefix="deep-gemm-")
        driver = os.path.join(self.folder, "libcuda.so.1")
        (headers, *_) = glob.glob(os.path.join(sys.prefix, "lib", "python3*", "site-packages", "nvidia", "cu13", "include")) + ["/usr/local/cuda/include"]
        subprocess.run(["g++", "-O1", "-shared", "-fPIC", f"-I{headers}", DRIVER, "-o", driver], check=True)
        compiler = os.path.join(self.folder, "nvcc")
        with open(compiler, "w") as file:
            file.write(f'#!/bin/sh\nunset LD_PRELOAD\nexec "{sys.executable}" "{os.path.abspath(__file__)}" --compile "$@"\n')
        os.chmod(compiler, 0o755)
        home = os.path.dirname(headers)
        played = {"LD_PRELOAD": driver, "LD_LIBRARY_PATH": self.folder, "PLAYED_CAPABILITY": str(10 * capability[0] + capability[1]), "CUDA_HOME": home,
                  "DG_JIT_NVCC_COMPILER": compiler, "DG_JIT_CACHE_DIR": os.path.join(self.folder, "cache")}
        played |= {"PYTHONPATH": torch_folder} if torch_folder else {}
        self.process = subprocess.Popen([sys.executable, os.path.abspath(__file__), "--serve", root], env=os.environ | played, text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(self, torch, arguments, keywords):
        path = os.path.join(self.folder, "request")
        torch.save((arguments, keywords), path)
        self.process.stdin.write(path + "\n")
        self.process.stdin.flush()
        # The extension writes there, too, where its compiler fails.
        if not any(line == "done\n" for line in self.process.stdout):
            raise RuntimeError(f"DeepGEMM's process ended with {self.process.wait()}")
        made = torch.load(path)
        if isinstance(made, str):
            raise RuntimeError(made)
        return made


def install(version, cache, scene, torch_folder):
    """Puts a module `deep_gemm` into this process whose operator runs on the scene's device, in a process with the torch of torch_folder."""
    import torch
    import wheels

    folder = os.path.join(cache, f"deep-gemm-of-vllm-{version}")
    if not os.path.exists(os.path.join(folder, "done")):
        wheels.fetch(version, folder, keep=KEEP)
    root, devices = os.path.join(folder, "site", "vllm", "third_party", "deep_gemm"), {}

    def transform(*arguments, **keywords):
        if scene.capability not in devices:
            devices[scene.capability] = Device(root, scene.capability, torch_folder)
        return devices[scene.capability].ask(torch, arguments, keywords)
    module = types.ModuleType("deep_gemm")
    setattr(module, OPERATOR, transform)
    module.fp8_gemm_nt = lambda *a, **k: None  # only its presence is asked for
    sys.modules["deep_gemm"] = module


if __name__ == "__main__":
    {"--compile": compile_kernel, "--serve": lambda given: serve(*given)}[sys.argv[1]](sys.argv[2:])
