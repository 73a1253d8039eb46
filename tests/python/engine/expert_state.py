"""What a loaded model holds, as plain values that processes can send each other and compare."""
import types

OBJECTS = ("FusedMoEQuantConfig", "FusedMoEQuantDesc", "PrecisionConfig", "FlexCtx", "InFlexData", "OutFlexData", "Tensor", "Storage")


def experts(model):
    """(name, module) of every module whose weights a converter makes."""
    return [(name, module) for name, module in model.named_modules()
            if hasattr(getattr(module, "quant_method", None), "mxfp4_backend")]


def state(model):
    """{entry: value} of every parameter, and of the expert layers' wrapper objects and quantization configurations."""
    found, layers = {}, experts(model)
    for key, tensor in [*model.named_parameters(), *model.named_buffers()]:
        if not key.startswith(tuple(f"{name}." for name, _ in layers)):
            add(found, key, tensor)
    for name, module in layers:
        found[f"{name}: class"] = type(module).__name__
        found[f"{name}: method"] = type(module.quant_method).__name__
        found[f"{name}: backend"] = module.quant_method.mxfp4_backend.name
        for key, tensor in [*module.named_parameters(), *module.named_buffers()]:
            add(found, f"{name}.{key}", tensor)
        for key, value in vars(module).items():
            if key.startswith(("w13", "w2")):
                add(found, f"{name}.attr.{key}", value)
        for key in ("weight_schemas", "input_schemas", "humming_configs"):
            if hasattr(module, key):
                found[f"{name}.{key}"] = repr(getattr(module, key))
        for key in ("w13_precision_config", "w2_precision_config", "moe_quant_config"):
            add(found, f"{name}.method.{key}", getattr(module.quant_method, key, None))
    return found


def described(tensor):
    return (type(tensor).__name__, str(tensor.dtype), tuple(tensor.shape), tuple(tensor.stride()), str(tensor.device), content(tensor),
            sorted(key for key in vars(tensor) if not key.startswith("_dynamo")))


def addresses(model):
    """{entry: address} of every parameter, and of the tensors in the expert layers' objects."""
    found = {key: tensor.data_ptr() for key, tensor in model.named_parameters()}
    for name, module in experts(model):
        for place, values in (("attr", vars(module)), ("method", vars(module.quant_method))):
            for key, value in values.items():
                add(found, f"{name}.{place}.{key}", value, leaf=lambda tensor: tensor.data_ptr())
    return {key: value for key, value in found.items() if isinstance(value, int) and value}


def add(found, name, value, depth=0, leaf=described):
    import torch

    if isinstance(value, torch.Tensor):
        found[name] = leaf(value)
    elif depth < 7 and hasattr(value, "__dict__") and (type(value).__name__ in OBJECTS or type(value).__module__.startswith("triton_kernels")):
        found[name] = type(value).__qualname__
        for key, item in sorted(vars(value).items()):
            add(found, f"{name}.{key}", item, depth + 1, leaf)
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
