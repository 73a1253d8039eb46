"""What a start of SGLang spends on experts, on one GPU: reading, copying, converting, its peak of memory; and the same layers with the plug-in.

usage: sglang_start.py --kit DIR --program PROGRAM --work DIR [--out FILE] [--models gpt_oss,deepseek_v4] [--layers 4,2] [--sizes E,H,I] [--cpu]

--kit holds sglang/ (of the wheel), triton_kernels/ and sgl_kernel/ (of the sglang-kernel wheel), flashinfer/ (Python and CUDA sources of its wheel) and
versions.json. SGLang's own are: the method classes with create_weights, create_moe_runner and process_weights_after_loading, triton_kernels, flashinfer's
functions and its CUDA kernel, the iterator over files, gpt-oss's loader with FusedMoE's copy. Stood in for: FusedMoE and what world.py names; for
DeepSeek-V4 the copy into parameters (the same slices) and Fp8MoEMethod's parameters; the build of flashinfer's kernel (nvcc here, its own JIT there).
Files lie in memory or in the page cache: reading is a copy, not a disk. Each variant is a process of its own; the state of "own" is kept, and that of
the others is compared with it, tensor by tensor.
"""
import argparse
import json
import os
import pathlib
import resource
import subprocess
import sys
import time
import types

ROOT = pathlib.Path(__file__).resolve().parents[2]
TESTS = ROOT / "tests"
sys.path[:0] = [str(path) for path in (TESTS / "python" / "sglang", TESTS / "engines" / "sglang", TESTS / "engines", ROOT / "scripts" / "python")]
MODELS = {"gpt_oss": ("oss", "gpt_oss/sm90/triton_kernel", (128, 2880, 2880)),
          "deepseek_v4": ("cutlass", "fp4_experts/sm90/flashinfer_mxfp4", (256, 4096, 2048))}
VARIANTS = {"own": None, "made": {"MXFP4_REPACK_SOURCE": "checkpoint"}, "blob": {"MXFP4_REPACK_SOURCE": "blob"}}
KERNEL = """
#include <cstdint>
#include <cstddef>
%s
extern "C" int interleave_all(uint8_t* in, uint8_t* out, int experts, int rows, int cols) {
  for (int i = 0; i < experts; ++i) {
    const size_t at = size_t(i) * rows * (cols / 2);
    interleave_fp4_weights_for_sm90_mixed_gemm_kernel<<<GRID, BLOCK>>>(in + at, out + at, rows, cols);
  }
  return cudaGetLastError();
}
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    for name in ("--kit", "--program", "--work"):
        parser.add_argument(name, required=True, type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--models", default="gpt_oss,deepseek_v4")
    parser.add_argument("--layers", default="4,2")
    parser.add_argument("--sizes", help="E,H,I in place of the model's own")
    parser.add_argument("--cpu", action="store_true", help="try the script without a GPU")
    parser.add_argument("--variant", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.variant:
        return variant(arguments)
    results, failed = {}, 0
    arguments.work.mkdir(parents=True, exist_ok=True)
    for model, layers in zip(arguments.models.split(","), arguments.layers.split(",")):
        results[model] = {"layers": int(layers), **prepared(arguments, model, int(layers))}
        for name in VARIANTS:
            words = [sys.executable, __file__, "--kit", arguments.kit, "--program", arguments.program, "--work", arguments.work, "--models", model,
                     "--layers", layers, "--variant", name, *(["--sizes", arguments.sizes] if arguments.sizes else []), *(["--cpu"] if arguments.cpu else [])]
            done = subprocess.run([str(word) for word in words], stdout=subprocess.PIPE, text=True)
            lines = done.stdout.strip().splitlines()
            found = json.loads(lines[-1]) if done.returncode == 0 and lines else {"failed": done.stdout[-2000:]}
            failed += "failed" in found or bool(found.get("differences"))
            results[model][name] = found
            print(model, name, json.dumps(found), flush=True)
            if arguments.out:
                arguments.out.write_text(json.dumps(results, indent=1) + "\n")
        for path in arguments.work.glob(model + "*"):
            subprocess.run(["rm", "-rf", str(path)])
    return 1 if failed else 0


def sizes_of(arguments, model):
    return tuple(map(int, arguments.sizes.split(","))) if arguments.sizes else MODELS[model][2]


def prepared(arguments, model, layers):
    """A checkpoint of random experts, each layer of the same bytes in an order of its own, and its blob."""
    import torch

    from checkpoints import write_model
    kind, row, _ = MODELS[model]
    experts, hidden, inter = sizes = sizes_of(arguments, model)
    device = "cpu" if arguments.cpu else "cuda"
    torch.manual_seed(7)
    start = time.monotonic()

    def draw(low, high, *shape):
        return torch.randint(low, high, shape, dtype=torch.uint8, device=device).cpu()
    drawn = {"w13_weight": draw(0, 256, experts, 2 * inter, hidden // 2), "w2_weight": draw(0, 256, experts, hidden, inter // 2),
             "w13_weight_scale": draw(112, 128, experts, 2 * inter, hidden // 32), "w2_weight_scale": draw(112, 128, experts, hidden, inter // 32)}
    if kind == "oss":
        drawn |= {"w13_bias": torch.randn(experts, 2 * inter).to(torch.bfloat16), "w2_bias": torch.randn(experts, hidden).to(torch.bfloat16)}
    folder = arguments.work / model
    folder.mkdir()
    os.environ["BIN"] = str(arguments.program)
    version = versions(arguments)["sglang"]
    row = ROWS()[row]
    found, blob = write_model(kind, str(folder), drawn, sizes, version, row, layers)
    if blob is None:
        raise SystemExit(f"{model}: {found}")
    weights = sum(path.stat().st_size for path in pathlib.Path(blob).glob("layer-*"))
    return {"sizes": sizes, "blob_bytes": weights, "prepare_s": round(time.monotonic() - start, 2)}


def ROWS():
    import layouts

    return layouts.ROWS


def versions(arguments):
    return json.loads((arguments.kit / "versions.json").read_text())


# --- one process: one variant ---

class Clock:
    """Seconds of named parts, the GPU waited for."""

    def __init__(self, on_gpu):
        self.parts, self._on_gpu = {}, on_gpu

    def part(self, name, function, *args):
        import torch

        start = time.monotonic()
        result = function(*args)
        if self._on_gpu:
            torch.cuda.synchronize()
        self.parts[name] = round(self.parts.get(name, 0) + time.monotonic() - start, 3)
        return result


def variant(arguments):
    import torch

    model, layers = arguments.models, int(arguments.layers)
    kind, row, _ = MODELS[model]
    folder = arguments.work / model
    began = time.monotonic()
    hook = play(arguments, kind, row, folder, VARIANTS[arguments.variant])
    device = "cpu" if arguments.cpu else "cuda"
    clock = Clock(device == "cuda")
    if device == "cuda":
        torch.zeros(1, device=device)
        torch.cuda.reset_peak_memory_stats()
    files = [str(folder / "model" / "model.safetensors")]
    if hook is None:
        clock.part("read_alone", read_only, iterator(files))
    made = clock.part("create", create, arguments, kind, sizes_of(arguments, model), layers, device)
    weights = ((name, tensor) for name, tensor in iterator(files) if hook is None or not hook.skips(name))
    clock.part("load", LOADERS[kind], made, weights)
    for name, layer in made.named_modules():
        if name.endswith("experts"):
            clock.part("process", layer.quant_method.process_weights_after_loading, layer)
    found = {"seconds": clock.parts, "before_s": round(time.monotonic() - began - sum(clock.parts.values()), 2),
             "host_peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}
    if device == "cuda":
        found |= {"peak_bytes": torch.cuda.max_memory_allocated(), "peak_reserved": torch.cuda.max_memory_reserved(), "left_bytes": torch.cuda.memory_allocated(),
                  "gpu": torch.cuda.get_device_name()}
    if hook is not None:
        found |= {"taken": len(hook.taken), "made": len(hook.made), "converted": len(hook.converted)}
    found |= compared(made, arguments.work / f"{model}-state.pt", hook is not None)
    print(json.dumps(found))
    return 0


def play(arguments, kind, row, folder, environment):
    """SGLang's modules on this GPU, and the plug-in's hook around them, if there is one."""
    import importlib
    import torch

    import kernels
    import layouts
    import world
    known = versions(arguments)
    kept = (torch.Tensor.cuda, torch.cuda.empty_cache, torch.cuda.get_device_capability, torch.cuda.get_device_properties)
    world.REAL |= {"sglang.srt.plugins", "sglang.srt.plugins.hook_registry"}
    install = kernels.install_flashinfer

    def flashinfer(version, cache):
        use_kit(arguments, install, kernels, version)
    kernels.install_flashinfer = flashinfer
    # Questions of triton_kernels that an older Triton does not know.
    import triton.language.target_info as info
    for name in ("is_hip_gfx1250", "is_hip_cdna3", "is_hip_cdna4", "is_hip", "is_cuda", "cuda_capability_geq"):
        if not hasattr(info, name):
            print(f"this Triton has no {name}: stood in for", file=sys.stderr)
            setattr(info, name, lambda *a: False)
    target = getattr(info, "current_target", None)
    layouts.play(row, str(arguments.kit), str(arguments.kit), known["flashinfer-python"], "")
    if not arguments.cpu:
        torch.Tensor.cuda, torch.cuda.empty_cache, torch.cuda.get_device_capability, torch.cuda.get_device_properties = kept
        info.current_target = target
    importlib.import_module("sglang.srt.utils")
    sys.modules["sglang"].__version__ = known["sglang"]
    server = types.SimpleNamespace(model_path=str(folder / "model"), load_format="auto", revision=None, download_dir=None, flashinfer_mxfp4_moe_precision="default")
    importlib.import_module("sglang.srt.runtime_context").get_server_args = lambda: server
    if environment is None:
        return None
    site = folder / "site"
    for name, version in (("mxfp4-repack", "0.0.0"), ("flashinfer-python", known["flashinfer-python"]), ("sglang-kernel", known["sglang-kernel"])):
        info = site / f"{name.replace('-', '_')}-{version}.dist-info"
        info.mkdir(parents=True, exist_ok=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        if name == "mxfp4-repack":
            (info / "entry_points.txt").write_text("[sglang.srt.plugins]\nmxfp4_repack = mxfp4_repack.sglang:register\n")
    sys.path.insert(0, str(site))
    os.environ.update({"MXFP4_REPACK_BLOB": str(folder / "blob"), "MXFP4_REPACK_SKIP_RAW": "1", "MXFP4_REPACK_STRICT": "1",
                       "MXFP4_REPACK": str(arguments.program), **environment})
    importlib.import_module("sglang.srt.plugins").load_plugins()
    import mxfp4_repack.sglang as plugin
    return plugin._wrapper.hook


def use_kit(arguments, install, kernels, version):
    """flashinfer's functions out of the kit, and its kernel for weights built for this GPU."""
    import ctypes
    import re
    import torch
    import wheels

    wheels.package = lambda *others: str(arguments.kit / "flashinfer")
    compiled = kernels.compiled
    kernels.compiled = lambda root, folder: compiled(root, str(arguments.kit))
    install(version, "")
    if arguments.cpu:
        return
    source = (arguments.kit / "flashinfer" / kernels.CUDA_FILES["moe"]).read_text()
    body = kernels.definition(source, "interleave_fp4_weights_for_sm90_mixed_gemm_kernel")
    launch = re.search(r"void interleave_fp4_weights_for_sm90_mixed_gemm\(.*?\n}", source, re.DOTALL).group(0)
    block = re.search(r"dim3 block\(([\d, ]+)\)", launch).group(1)
    grid = re.search(r"<<<(\d+), block", launch).group(1)
    path = arguments.work / "interleave"
    (arguments.work / "interleave.cu").write_text((KERNEL % body).replace("GRID", grid).replace("BLOCK", f"dim3({block})"))
    if not path.with_suffix(".so").exists():
        subprocess.run(["nvcc", "-O3", "-arch=sm_90", "-shared", "-Xcompiler", "-fPIC", str(path) + ".cu", "-o", str(path) + ".so"], check=True, stdout=sys.stderr)
    library = ctypes.CDLL(str(path) + ".so")

    def weights(weight, quant_type="fp4"):
        weight = weight.contiguous()
        out = torch.empty_like(weight)
        experts, rows, columns = weight.shape
        status = library.interleave_all(ctypes.c_void_p(weight.data_ptr()), ctypes.c_void_p(out.data_ptr()), experts, rows, 2 * columns)
        torch.cuda.synchronize()
        if status:
            raise RuntimeError(f"CUDA error {status}")
        return out
    sys.modules["flashinfer.fused_moe"].interleave_moe_weights_for_sm90_mixed_gemm = weights


def create(arguments, kind, sizes, count, device):
    """The model's experts as SGLang creates them, below modules of SGLang's names."""
    import torch

    import layouts
    model = torch.nn.Module()
    model.embedding = torch.nn.Parameter(torch.zeros(1, device=device), requires_grad=False)
    model.model = torch.nn.Module()
    model.model.layers = torch.nn.ModuleList()
    for number in range(count):
        with torch.device(device):
            layer, method = layouts.layer_and_method(kind, *sizes, name=f"model.layers.{number}.mlp.experts")
            if kind == "cutlass":
                runner = layer.moe_runner_config
                runner.swiglu_limit = 10.0
                method.create_moe_runner(layer, runner)
                method.moe_runner_config = runner
        block = torch.nn.Module()
        block.mlp = torch.nn.Module()
        block.mlp.experts = layer
        model.model.layers.append(block)
    return model


def iterator(files):
    """SGLang's own, by threads."""
    import collections
    import concurrent.futures
    import itertools
    import safetensors
    import safetensors.torch
    import torch
    import world

    (read,), space = world.taken_out("model_loader/weight_utils.py", "buffered_multi_thread_safetensors_weights_iterator")
    space.update(collections=collections, concurrent=concurrent, itertools=itertools, safetensors=safetensors, torch=torch, BAR_FORMAT="", tqdm=Progress)
    return read(files, 8)


class Progress:
    """tqdm without its bar."""

    def __init__(self, **options):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass

    def update(self, count):
        pass

    @staticmethod
    def _get_free_pos():
        return 0


def read_only(weights):
    for _, tensor in weights:
        tensor.clone()


def load_gpt_oss(model, weights):
    """gpt-oss's own loader, and FusedMoE's copy into a parameter."""
    import math
    import torch

    import world
    (loader,), space = world.taken_out("models/gpt_oss.py", "_load_mxfp4_experts_weights")
    (copy,), copy_space = world.taken_out("layers/moe/fused_moe_triton/layer.py", "weight_loader")
    copy_space["torch"] = space["torch"] = torch
    space.update(math=math, default_weight_loader=None)
    for layer in model.modules():
        for parameter in layer._parameters.values() if hasattr(layer, "quant_method") else ():
            parameter.weight_loader = lambda *a, _layer=layer, **k: copy(_layer, *a, **k)
    layers = [layer for layer in model.modules() if hasattr(layer, "quant_method")]
    for layer in layers:
        layer.quant_config = sys.modules[type(layer.quant_method).__module__].Mxfp4Config.from_config({"quant_method": "mxfp4"})
    model.config = types.SimpleNamespace(intermediate_size=layers[0].intermediate_size_per_partition, num_local_experts=layers[0].num_experts)
    loader(model, weights)


def load_deepseek_v4(model, weights):
    """The slices of FusedMoE's copy: w1 is the gate, w3 is up, and CUTLASS has up first."""
    import torch

    parameters = dict(model.named_parameters())
    for name, tensor in weights:
        parts = name.split(".")
        if "experts" not in parts:
            continue
        number, expert, which, what = parts[1], int(parts[4]), parts[5], parts[6]
        slot = "w2" if which == "w2" else "w13"
        parameter = parameters[f"model.layers.{number}.mlp.experts.{slot}_weight" + ("" if what == "weight" else "_scale_inv")]
        half = parameter.shape[1] // 2
        rows = slice(None) if slot == "w2" else slice(0, half) if which == "w3" else slice(half, None)
        parameter.data[expert, rows].view(torch.uint8).copy_(tensor.view(torch.uint8))


LOADERS = {"oss": load_gpt_oss, "cutlass": load_deepseek_v4}


def compared(model, path, against):
    """Keeps the state, or compares every entry with the one that was kept."""
    import torch

    import state
    entries = {}
    tensors = []

    def noted(tensor):
        tensors.append(tensor.detach())
        return [str(tensor.dtype), list(tensor.shape), list(tensor.stride()), tensor.is_meta]
    state.tensor_entry = noted
    for name, layer in model.named_modules():
        if name.endswith("experts"):
            entries |= {f"{name}: {key}": json.dumps(value) for key, value in state.state_of(layer, layer.quant_method).items() if "weight_loader" not in key}
    if not against:
        torch.save({"entries": entries, "tensors": [tensor.cpu() for tensor in tensors]}, path)
        return {"entries": len(entries), "tensors": len(tensors)}
    kept = torch.load(path, mmap=True)
    found = [f"{key}: SGLang {kept['entries'].get(key, 'none')[:200]}, plug-in {entries.get(key, 'none')[:200]}"
             for key in sorted(kept["entries"].keys() | entries.keys()) if kept["entries"].get(key) != entries.get(key)]
    empty = [line for line in found if "_scale: " in line and "[0]" in line]  # raw scales that SGLang keeps beside wrapped ones
    found = [line for line in found if line not in empty]
    equal = 0
    for one, other in zip(kept["tensors"], tensors):
        if one.shape != other.shape and not other.numel():
            continue
        same = torch.equal(one.to(other.device).reshape(-1).view(torch.uint8) if one.is_contiguous() else one.to(other.device),
                           other.reshape(-1).view(torch.uint8) if other.is_contiguous() else other)
        equal += same
        if not same:
            found.append(f"a tensor of {list(one.shape)} {one.dtype} differs")
    return {"entries": len(entries), "tensors_equal": equal, "empty_raw_scales": len(empty), "differences": found[:20]}


if __name__ == "__main__":
    sys.exit(main())
