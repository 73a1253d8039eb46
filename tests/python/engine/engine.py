"""vLLM's own loading code on a CPU: a platform that answers as a CUDA machine and keeps its tensors in host memory.

What is faked lies below vLLM's code and is that of tests/engines/world.py: the device's capability, packages, questions to compiled
kernels. Everything from EngineArgs to the converted layers is the release's own.
"""
import logging
import os
import pathlib
import sys
import types

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "engines")]

import world  # noqa: E402

# What an engine without its compiled kernels needs.
WITHOUT_KERNELS = {"compilation_config": {"custom_ops": ["none"]}, "attention_backend": "TRITON_ATTN", "disable_custom_all_reduce": True,
                   "ir_op_priority": {"rms_norm": ["native"], "fused_add_rms_norm": ["native"]}}


class Messages(logging.Handler):
    """The plug-in's lines."""

    def __init__(self):
        super().__init__(logging.INFO)
        self.lines = []

    def emit(self, record):
        self.lines.append(record.getMessage())

    def clear(self):
        lines, self.lines = self.lines, []
        return lines


def start(site, arch):
    """Prepares this process for the release in `site` on a machine of `arch`."""
    world.PLATFORM_CLASSES["host"] = "host_platform.CudaOnHost"
    scene = world.start(site, "host", arch, real=("triton_kernels",))
    os.environ.update(VLLM_ENABLE_V1_MULTIPROCESSING="0", HF_HUB_OFFLINE="1", OMP_NUM_THREADS="1")
    import converters
    import torch

    torch.cuda.get_device_capability = lambda *a, **k: scene.capability
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
        major, minor = scene.capability
        return GPUTarget("cuda", 10 * major + minor, 32)
    current_target.__triton_builtin__ = True
    target_info.current_target = current_target


def messages():
    found = Messages()
    log = logging.getLogger("vllm.mxfp4_repack")
    log.addHandler(found)
    log.setLevel(logging.INFO)
    log.propagate = False
    return found


def config_of(**arguments):
    from vllm.engine.arg_utils import EngineArgs

    known = {f for f in EngineArgs.__dataclass_fields__}
    defaults = {k: v for k, v in WITHOUT_KERNELS.items() if k in known}
    return EngineArgs(**{"skip_tokenizer_init": True, "enforce_eager": True, "max_model_len": 256, "dtype": "bfloat16",
                         **defaults, **arguments}).create_engine_config()


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


def reload(config, model, directory):
    """vLLM's own reload of raw weights from `directory` into `model`."""
    import torch
    from vllm.config import set_current_vllm_config
    from vllm.model_executor.model_loader import get_model_loader
    from vllm.model_executor.model_loader.reload import finalize_layerwise_reload, initialize_layerwise_reload

    with set_current_vllm_config(config), torch.device(config.device_config.device):
        config.model_config.model = str(directory)
        weights = get_model_loader(config.load_config).get_all_weights(config.model_config, model)
        initialize_layerwise_reload(model)
        model.load_weights(weights)
        finalize_layerwise_reload(model, config.model_config)


# The state of a model's experts, as plain values ----------------------------------------------------

OBJECTS = ("FusedMoEQuantConfig", "FusedMoEQuantDesc", "PrecisionConfig", "FlexCtx", "InFlexData", "OutFlexData", "Tensor", "Storage")


def experts(model):
    """(name, module) of every module whose weights a converter makes."""
    return [(name, module) for name, module in model.named_modules()
            if hasattr(getattr(module, "quant_method", None), "mxfp4_backend")]


def state(model):
    """{entry: value} of every parameter, wrapper object and quantization configuration of the expert layers."""
    found = {}
    for name, module in experts(model):
        found[f"{name}: class"] = type(module).__name__
        found[f"{name}: backend"] = module.quant_method.mxfp4_backend.name
        for key, tensor in [*module.named_parameters(), *module.named_buffers()]:
            add(found, f"{name}.{key}", tensor)
        for key, value in vars(module).items():
            if key.startswith(("w13", "w2")):
                add(found, f"{name}.attr.{key}", value)
        for key in ("w13_precision_config", "w2_precision_config", "moe_quant_config"):
            add(found, f"{name}.method.{key}", getattr(module.quant_method, key, None))
    return found


def add(found, name, value, depth=0):
    import torch

    if isinstance(value, torch.Tensor):
        found[name] = (type(value).__name__, str(value.dtype), tuple(value.shape), tuple(value.stride()), str(value.device), content(value),
                       sorted(key for key in vars(value) if not key.startswith("_dynamo")))
    elif depth < 7 and hasattr(value, "__dict__") and (type(value).__name__ in OBJECTS or type(value).__module__.startswith("triton_kernels")):
        found[name] = type(value).__qualname__
        for key, item in sorted(vars(value).items()):
            add(found, f"{name}.{key}", item, depth + 1)
    elif isinstance(value, (int, float, str, bool, type(None), list, tuple, torch.dtype)):
        found[name] = repr(value)
    else:
        found[name] = type(value).__name__


def content(tensor):
    import hashlib

    import torch

    if tensor.is_meta:
        return None
    # The whole storage of a view too: padding in it is read by kernels.
    raw = tensor.detach().cpu().contiguous().reshape(-1)
    return hashlib.sha256(raw.view(torch.uint8).numpy().tobytes()).hexdigest()


def differing(first, second):
    return [name for name in {**first, **second} if first.get(name, types.SimpleNamespace()) != second.get(name)]
