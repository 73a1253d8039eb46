"""What cell_row.py fakes beside engine.py: one rank of many in a process alone, a model without its attention, packages of a serving image."""
import enum
import importlib
import inspect
import json
import pathlib
import re
import shutil
import sys
import types

import engine

ATTENTION = re.compile(r"(Attention|Vision|Compressor|Indexer)", re.I)


def alone(rank, ranks):
    """This process is one of `ranks`, and the others never answer: nothing that loads experts asks them."""
    import torch
    from torch.testing._internal.distributed.fake_pg import FakeStore

    distributed = torch.distributed
    begin, group = distributed.init_process_group, distributed.new_group
    distributed.init_process_group = lambda *a, **k: begin(backend="fake", store=FakeStore(), rank=rank, world_size=ranks)
    distributed.new_group = lambda members=None, *a, **k: group(members, backend="fake")
    from vllm.distributed import parallel_state
    from vllm.distributed.device_communicators import shm_broadcast

    # Its answer comes through shared memory whose name another rank sends.
    parallel_state.in_the_same_node_as = lambda *a, **k: [True] * ranks
    shm_broadcast.MessageQueue.create_from_process_group = staticmethod(lambda *a, **k: None)


def absent():
    import torch

    class Absent(torch.nn.Module):
        """In place of a part of the model that holds no experts."""

        def __init__(self, *args, **kwargs):
            super().__init__()
            self.o_proj = self.wo_b = self.out_proj = types.SimpleNamespace()
            self.prepare_compressor_gemm_fusion = self.prepare_attn_preshuffle = lambda: 0

    return Absent


def without_attention(names):
    """Takes attention and towers out of the models' modules, and the quantization out of every linear layer."""
    stand_in = absent()
    for name in names:
        module = importlib.import_module(name)
        import torch

        for key, value in list(vars(module).items()):
            if isinstance(value, type) and issubclass(value, torch.nn.Module) and ATTENTION.search(key) and "ForC" not in key:
                setattr(module, key, stand_in)
            elif key.startswith("_select") and "attn" in key:
                setattr(module, key, lambda *a, **k: stand_in)
    from vllm.model_executor.layers.linear import LinearBase

    begin = LinearBase.__init__
    signature = inspect.signature(begin)

    def plain(self, *args, **kwargs):
        given = signature.bind(self, *args, **kwargs)
        given.arguments["quant_config"] = None
        begin(*given.args, **given.kwargs)
    LinearBase.__init__ = plain


# The processors of the cells' GPUs.
ARCHES = {"A100": "sm80", "H100": "sm90", "H200": "sm90", "B200": "sm100", "GB200": "sm100", "B300": "sm103", "GB300": "sm103", "MI300X": "gfx942",
          "MI325X": "gfx942", "MI350X": "gfx950", "MI355X": "gfx950"}
PARTS = {
    "cuda": ("vllm.models.deepseek_v4.nvidia.model", "vllm.models.deepseek_v41.nvidia.model", "vllm.models.deepseek_v41.nvidia.vl_model",
             "vllm.models.kimi_k3.nvidia.model"),
    "rocm": ("vllm.models.deepseek_v4.amd.model", "vllm.models.deepseek_v41.amd.model", "vllm.models.deepseek_v41.amd.vl_model",
             "vllm.models.kimi_k3.amd.linear", "vllm.models.kimi_k3.amd.model", "vllm.models.deepseek_v32.amd.model",
             "vllm.model_executor.models.deepseek_v2", "vllm.model_executor.models.kimi_k25", "vllm.model_executor.models.qwen3_5"),
}
IMAGE = {"cuda": ("flashinfer", "deep_gemm", "flashinfer_cutlass", "flashinfer_situ"), "rocm": ("aiter",)}


def start_of(gpu):
    """The machine as which a process has to start for such a card."""
    return ARCHES[gpu] if ARCHES[gpu].startswith("gfx") else "sm90"


def play(gpu, environment):
    scene = engine.world.Scene.current
    scene.set(ARCHES[gpu], scene.libs, environment)


class OnHost(types.ModuleType):
    """torch for a class that makes tensors on the device by its number."""

    accelerator = types.SimpleNamespace(current_device_index=lambda: "cpu")

    def __getattr__(self, name):
        import torch
        return getattr(torch, name)


def start(site, arch):
    """Prepares this process for the release in `site` on such a machine, with what a serving image has. vLLM looks at an AMD card while it is imported."""
    import torch

    platform = "rocm" if arch.startswith("gfx") else "cuda"
    if platform == "rocm":
        import triton_source
        versions = triton_source.sources(row_version(site), str(engine.CACHE))
        if versions:
            triton_source.install(next(iter(versions.values())))
    engine.start(site, arch, IMAGE[platform])
    if platform == "rocm":
        import aiter_source
        aiter_source.install(aiter_source.sources(str(engine.CACHE))["0122c48149c1"])
        engine.world.Scene.values["aiter.ActivationType"] = enum.Enum("ActivationType", "No Silu Gelu Swiglu Situv2")
    else:
        flashinfer(site)
    torch.accelerator.current_device_index = lambda: 0
    torch.cuda.Stream = torch.cuda.Event = type("Unused", (), {"__init__": lambda self, *a, **k: None})
    without_attention(PARTS[platform])
    # Kimi-K3's kernel behind its experts.
    tail = sys.modules["vllm.models.kimi_k3.nvidia.ops.latent_moe_tail"] = types.ModuleType("latent_moe_tail")
    tail.KimiK3LatentMoETailOp = types.SimpleNamespace(initialize=lambda **k: types.SimpleNamespace(contract=types.SimpleNamespace(max_num_tokens=16)))
    import vllm.model_executor.layers.fused_moe.experts.trtllm_mxfp4_moe as trtllm
    trtllm.torch = OnHost("torch")
    manager = importlib.import_module("vllm.model_executor.layers.fused_moe.expert_map_manager")
    manager.init_aiter_topK_meta_data = lambda *a, **k: None  # a buffer of the device's for routing


def row_version(site):
    (metadata,) = pathlib.Path(site).glob("vllm-*.dist-info")
    return metadata.name.removesuffix(".dist-info").removeprefix("vllm-")


def flashinfer(site):
    """What converters call of flashinfer is the pinned package's own; every other name of it is there and does nothing."""
    import kernels

    (metadata,) = pathlib.Path(site).glob("vllm-*.dist-info/METADATA")
    pin = re.search(r"^Requires-Dist: flashinfer-python==(\S+)", metadata.read_text(encoding="utf-8"), re.M).group(1)
    kernels.install_flashinfer(pin, str(engine.CACHE))
    engine.plays("flashinfer-python", pin)
    own = {name: vars(sys.modules.pop(name)) for name in kernels.NAMES}
    for name, made in own.items():
        module = importlib.import_module(name)
        for key in kernels.NAMES[name]:
            if key in made:
                setattr(module, key, made[key])


def play_library(blob):
    """AITER is here in the version after which the blob's layout is named; its functions gave the same in every version at hand."""
    manifest = json.loads(next(pathlib.Path(blob).rglob("mxfp4_repack.json")).read_text())
    name, _, version = manifest.get("kernel_library", "").partition(" ")
    if name == "AITER":
        for folder in pathlib.Path("distributions").glob("amd_aiter-*"):
            shutil.rmtree(folder)
        engine.plays("amd-aiter", version)


def expert_modules(model):
    mega = [(name, module) for name, module in model.named_modules() if type(module).__name__.endswith("MegaMoEExperts")]
    return engine.experts(model) + mega


def state_of_experts(model):
    names = tuple(name + end for name, _ in expert_modules(model) for end in (".", ":"))
    left_out = (".shared_", ".e_score_correction_bias")  # of other tensors, which the small checkpoints lack
    return {key: value for key, value in engine.state(model).items() if key.startswith(names) and not any(word in key for word in left_out)}


def bytes_of_experts(model):
    """SHA-256 of every tensor that the experts hold, as they lie and in the order of their dimensions."""
    import torch

    from expert_state import add

    found = {}

    def leaf(tensor):
        lying = tensor.detach().as_strided((tensor.untyped_storage().nbytes() // tensor.element_size(),), (1,), 0) if not tensor.is_meta else None
        return {sha(tensor), sha(lying)} if lying is not None else set()

    for name, module in expert_modules(model):
        places = {**dict(module.named_parameters()), **dict(module.named_buffers()), **vars(module), **vars(getattr(module, "quant_method", module))}
        for key, value in places.items():
            add(found, f"{name}|{key}", value, leaf=leaf)
    by_layer = {}
    for key, value in found.items():
        if isinstance(value, set):
            by_layer.setdefault(key.partition("|")[0], set()).update(value)
    return by_layer


def sha(tensor):
    import hashlib

    import torch

    return hashlib.sha256(tensor.detach().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()).hexdigest()


def tensors_of_blob(directory, rank, held):
    """How many tensors a rank's blob has, and which of them the engine's layer does not hold byte by byte."""
    import hashlib
    import mxfp4_repack

    number, missing = 0, []
    with mxfp4_repack.open_blob(directory, rank=rank) as blob:
        for layer, (prefix, held_here) in zip(blob.layers, sorted(held.items())):
            with blob.layer(layer) as source:
                for name in source:
                    number += 1
                    if hashlib.sha256(source.numpy(name).tobytes()).hexdigest() not in held_here:
                        missing.append(f"{layer}.{name}")
    return number, missing
