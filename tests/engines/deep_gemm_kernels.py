"""DeepGEMM on a CPU: the operator that arranges block scales, executed from a release's own wheel.

The wheel's compiled extension decides by capability, allocates, and launches a kernel that it has nvcc compile from the wheel's headers. It runs in a
process of its own where a driver without a device stands below it (deep_gemm_driver.cpp): CPU tensors play those of the device, and the compiler, this
file as a program, compiles the kernel for the CPU, a thread for each of the device's.
"""
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
import types

OPERATOR = "transform_sf_into_required_layout"
FOLDER = os.path.dirname(os.path.abspath(__file__))
DRIVER = os.path.join(FOLDER, "deep_gemm_driver.cpp")
PRELUDE = os.path.join(FOLDER, "deep_gemm_prelude.hpp")
KEEP = (".cuh", "deep_gemm/_C_extension.abi3.so")
OLDEST = (0, 33, 0)  # the extension of 0.32.0 does not load with another torch than its own
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


def can_run(version):
    return tuple(map(int, version.split("."))) >= OLDEST


def compile_kernel(arguments):
    """In place of nvcc: a library with the kernel that the given source names, and `launch`."""
    import kernels

    if "--version" in arguments:
        print("Cuda compilation tools, release 13.0, V13.0.88")
        return
    source = open(next(name for name in arguments if name.endswith(".cu")), encoding="utf-8").read()
    name, values = re.search(r"&(\w+)<([^>]*)>", source).groups()
    headers = os.path.join(arguments[arguments.index("--include-path") + 1], "deep_gemm")

    def header(path):
        return open(os.path.join(headers, path), encoding="utf-8").read()
    maths = "".join(kernels.definition(header("common/math.cuh"), part) for part in ("ceil_div", "constexpr_ceil_div", "align", "constexpr_align"))
    vectors = re.search(r"template <[^>]*>\s*struct Vectorized \{.*?\n\};", header("common/utils.cuh"), re.DOTALL).group()
    body = kernels.definition(header("impls/smxx_layout.cuh"), name).replace("extern __shared__ uint32_t smem_buffer[];", "")
    text = open(PRELUDE).read() + f"namespace math {{\n{maths}}}\nnamespace utils {{\n{vectors}\n}}\n{body}" + LAUNCHER.replace("KERNEL", f"{name}<{values}>")
    out = arguments[arguments.index("--output-file") + 1]
    subprocess.run(["g++", "-std=c++20", "-O1", "-shared", "-fPIC", "-pthread", "-x", "c++", "-", "-o", out], input=text, text=True, check=True)


def serve(root):
    """Answers requests, a file name a line: the file holds the operator's arguments, and then its result or error."""
    import torch

    torch.ops.load_library(os.path.join(root, "_C_extension.abi3.so"))
    torch.ops.deep_gemm.init(root, "deep_gemm")
    operator, device = getattr(torch.ops.deep_gemm, OPERATOR).default, torch._C.DispatchKeySet(torch._C.DispatchKey.CUDA)
    for line in sys.stdin:
        arguments, keywords = torch.load(line.strip())
        try:
            made = operator.redispatch(device, *arguments, **keywords)
        except Exception as error:
            made = str(error).splitlines()[0]
        torch.save(made, line.strip())
        print("done", flush=True)
    shutil.rmtree(os.path.dirname(os.environ["LD_PRELOAD"]))


class Device:
    """A process with the wheel's DeepGEMM on a device of one capability."""

    def __init__(self, root, capability):
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
        self.process = subprocess.Popen([sys.executable, os.path.abspath(__file__), "--serve", root], env=os.environ | played, text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(self, torch, arguments, keywords):
        path = os.path.join(self.folder, "request")
        torch.save((arguments, keywords), path)
        self.process.stdin.write(path + "\n")
        self.process.stdin.flush()
        if self.process.stdout.readline() != "done\n":
            raise RuntimeError(f"DeepGEMM's process ended with {self.process.wait()}")
        made = torch.load(path)
        if isinstance(made, str):
            raise RuntimeError(made)
        return made


def install(version, cache, scene):
    """Puts a module `deep_gemm` into this process whose operator runs on the scene's device."""
    import torch
    import wheels

    folder = os.path.join(cache, f"deep-gemm-of-vllm-{version}")
    if not os.path.exists(os.path.join(folder, "done")):
        wheels.fetch(version, folder, keep=KEEP)
    root, devices = os.path.join(folder, "site", "vllm", "third_party", "deep_gemm"), {}

    def transform(*arguments, **keywords):
        if scene.capability not in devices:
            devices[scene.capability] = Device(root, scene.capability)
        return devices[scene.capability].ask(torch, arguments, keywords)
    module = types.ModuleType("deep_gemm")
    setattr(module, OPERATOR, transform)
    module.fp8_gemm_nt = lambda *a, **k: None  # asked for its presence alone
    sys.modules["deep_gemm"] = module


if __name__ == "__main__":
    {"--compile": compile_kernel, "--serve": lambda given: serve(*given)}[sys.argv[1]](sys.argv[2:])
