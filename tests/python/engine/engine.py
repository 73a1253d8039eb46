"""vLLM's own loading code on a CPU: a platform that answers as a CUDA machine and keeps its tensors in host memory.

What is faked lies below vLLM's code and is that of tests/engines/world.py: the device's capability, packages, questions to compiled
kernels. Everything from EngineArgs to the converted layers is the release's own.
"""
import contextlib
import copy
import importlib
import logging
import os
import pathlib
import sys
import types

HERE = pathlib.Path(__file__).resolve().parent
CACHE = pathlib.Path(os.environ.get("MXFP4_ENGINES_CACHE", "/nonexistent"))
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "engines")]

import world  # noqa: E402
from expert_state import addresses, differing, experts, state  # noqa: E402, F401
from settings import WITHOUT_KERNELS, known  # noqa: E402


class Messages:
    """The plug-in's lines. A filter, since vLLM takes away the handlers of its loggers when an engine starts."""

    def __init__(self):
        self.lines = []

    def filter(self, record):
        self.lines.append(record.getMessage())
        return True

    def clear(self):
        lines, self.lines = self.lines, []
        return lines


def humming_pin(site):
    """The humming-kernels that the release in `site` pins, where tests/engines keeps it; else None."""
    (metadata,) = pathlib.Path(site).glob("vllm-*.dist-info/METADATA")
    pins = [line.partition("==")[2].split(";")[0].split()[0] for line in metadata.read_text(encoding="utf-8").splitlines()
            if line.startswith("Requires-Dist: humming-kernels") and "==" in line]
    kept = [pin for pin in pins if (CACHE / f"humming-kernels-{pin}" / "done").exists()]
    return kept[0] if kept else None


def start(site, arch, faked=None):
    """Prepares this process for the release in `site` on a machine of `arch`, with packages of which only the presence is played."""
    rocm = arch.startswith("gfx")
    world.PLATFORM_CLASSES["host"] = f"host_platform.{'Rocm' if rocm else 'Cuda'}OnHost"
    pin = None if rocm else humming_pin(site)
    scene = world.start(site, "host", arch, real=("triton_kernels", "humming") if pin else ("triton_kernels",), faked=("aiter",) * rocm if faked is None else faked)
    if pin:
        import humming_kernels
        humming_kernels.install(pin, str(CACHE), scene)
        import torch

        import vllm.utils.humming
        vllm.utils.humming.create_humming_locks = lambda device: torch.zeros(1056, dtype=torch.int32)  # asks the device for its units
    else:
        scene.starting = True  # 0.23.0 asks every quantization, and this one imports the package
        with contextlib.suppress(ImportError):
            importlib.import_module("vllm.model_executor.layers.quantization.humming")
        scene.starting = False
    os.environ.update(VLLM_ENABLE_V1_MULTIPROCESSING="0", HF_HUB_OFFLINE="1", OMP_NUM_THREADS="1")
    import converters
    import torch

    torch.cuda.get_device_capability = lambda *a, **k: scene.capability
    torch.cuda.get_device_properties = lambda *a, **k: types.SimpleNamespace(gcnArchName=scene.arch)
    import vllm.model_executor.models.gpt_oss  # registers fakes of operators, which prepare() then adds
    from vllm.distributed import parallel_state

    before = parallel_state._TP
    converters.prepare(torch, scene)
    fake_triton_target(scene)  # after it: prepare() takes every platform but CUDA's own for AMD's
    parallel_state._TP = before  # ranks are real here
    import vllm.model_executor.models.registry as registry
    registry._run_in_subprocess = lambda inspect: inspect()  # a process of its own would not have the fakes
    return scene


def fake_triton_target(scene):
    """What triton_kernels asks for its layouts; Triton itself finds no driver here."""
    from triton.backends.compiler import GPUTarget
    from triton.language import target_info

    def current_target():
        if scene.arch.startswith("gfx"):
            return GPUTarget("hip", scene.arch, 64)
        major, minor = scene.capability
        return GPUTarget("cuda", 10 * major + minor, 32)
    current_target.__triton_builtin__ = True
    target_info.current_target = current_target


def plays(distribution, version):
    """Lets a package that is stood in for be found as pip would have installed it."""
    folder = pathlib.Path("distributions", f"{distribution.replace('-', '_')}-{version}.dist-info")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n", encoding="utf-8")
    if str(folder.parent.resolve()) not in sys.path:
        sys.path.append(str(folder.parent.resolve()))


def messages():
    found = Messages()
    log = logging.getLogger("vllm.mxfp4_repack")
    log.addFilter(found)
    log.setLevel(logging.INFO)
    return found


def config_of(**arguments):
    from vllm.engine.arg_utils import EngineArgs

    return EngineArgs(**{"skip_tokenizer_init": True, "enforce_eager": True, "max_model_len": 256, "dtype": "bfloat16",
                         **known(WITHOUT_KERNELS), **arguments}).create_engine_config()


_ready = False


def load(config, rank=0, world_size=1, port=29611):
    """The model as vLLM's get_model() makes it."""
    global _ready
    from vllm.config import set_current_vllm_config
    from vllm.distributed.parallel_state import ensure_model_parallel_initialized, init_distributed_environment
    from vllm.model_executor.model_loader import get_model

    with set_current_vllm_config(config):
        if not _ready:
            init_distributed_environment(world_size=world_size, rank=rank, distributed_init_method=f"tcp://127.0.0.1:{port}",
                                         local_rank=rank, backend="gloo")
            ensure_model_parallel_initialized(config.parallel_config.tensor_parallel_size, 1)
            _ready = True
        config.compilation_config.static_forward_context.clear()
        return get_model(vllm_config=config)


def play_gpu():
    """The stand-in for CUDA's driver that FAKE_CUDA names runs the GPU's kernel; memory of the CPU is the GPU's."""
    import ctypes

    ctypes.CDLL(os.environ["FAKE_CUDA"])  # its name inside is libcuda.so.1
    from mxfp4_repack import loader
    from mxfp4_repack.native_gpu import open_gpu
    from mxfp4_repack.vllm import sent

    gpu = open_gpu(0, 2, 16 << 20)
    sent._is_gpu = lambda device: True
    loader.make_into = lambda layer, device, flats, tensors: layer.make_on_gpu(
        gpu, {name: flat.data_ptr() for name, flat in flats.items()}, {name: (tensor.data_ptr(), tensor.nbytes) for name, tensor in tensors.items()})


def reload(config, model, directory, sent=False):
    """vLLM's own reload of raw weights from `directory` into `model`; sent: as tensors that a trainer has."""
    import torch
    from vllm.config import set_current_vllm_config
    from vllm.model_executor.model_loader import get_model_loader
    from vllm.model_executor.model_loader.reload import finalize_layerwise_reload, initialize_layerwise_reload

    with set_current_vllm_config(config), torch.device(config.device_config.device):
        config.model_config.model = str(directory)
        how = copy.copy(config.load_config)
        if sent:
            how.load_format, how.model_loader_extra_config = "auto", {}
        weights = get_model_loader(how).get_all_weights(config.model_config, model)
        initialize_layerwise_reload(model)
        model.load_weights(weights)
        finalize_layerwise_reload(model, config.model_config)
