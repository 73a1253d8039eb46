"""The whole state that a conversion leaves in a layer and its method: an entry for each parameter, buffer and attribute."""
import hashlib

# What the plug-in notes on a layer, and what differs between two objects of one layer.
OWN = ("_mxfp4_repack_origin", "_mxfp4_repack_converted", "_mxfp4_repack_device")
UNCOMPARED = ("_modules", "training", "quant_method", "moe_runner_config", "runner", "_fp8")


def tensor_entry(tensor):
    import torch

    if tensor.is_meta:
        return ["without data", str(tensor.dtype), list(tensor.shape)]
    steps = tensor.stride()
    order = sorted(range(tensor.dim()), key=lambda i: (-steps[i], i))
    stored = tensor.detach()
    if order != list(range(tensor.dim())):
        stored = stored.permute(order)
    stored = stored.contiguous()
    strides = [None if n == 1 else step for n, step in zip(tensor.shape, steps)]
    return [str(tensor.dtype), list(tensor.shape), strides, str(tensor.device),
            hashlib.sha256(stored.cpu().reshape(-1).view(torch.uint8).numpy().tobytes()).hexdigest()]


def entry(value, depth=0):
    import torch

    if isinstance(value, torch.Tensor):
        attributes = {name: entry(one, depth + 1) for name, one in sorted(vars(value).items())}
        return ["tensor", type(value).__name__, tensor_entry(value), attributes]
    if isinstance(value, (str, int, float, bool, type(None))):
        return value
    if isinstance(value, (list, tuple)):
        return [entry(one, depth + 1) for one in value]
    if isinstance(value, dict):
        return {str(name): entry(one, depth + 1) for name, one in value.items()}
    if type(value).__module__.startswith("triton_kernels") and depth < 6:
        kept = vars(value) if hasattr(value, "__dict__") else {name: getattr(value, name) for name in value.__slots__}
        return [type(value).__name__, {name: entry(one, depth + 1) for name, one in sorted(kept.items())}]
    return type(value).__name__


def state_of(layer, method):
    """name -> entry."""
    made = {}
    for place, values in (("parameter", layer._parameters), ("buffer", layer._buffers), ("layer", vars(layer)), ("method", vars(method))):
        for name, value in values.items():
            if name not in OWN + UNCOMPARED and not (place == "layer" and name in ("_parameters", "_buffers")):
                made[f"{place} {name}"] = entry(sorted(value) if isinstance(value, set) else value)
    return made


def differences(wanted, found, skipped):
    """Where two states differ. A layer whose raw scales SGLang keeps beside wrapped ones has empty ones if they were skipped."""
    wrapped = any("triton_tensor" in name for name in wanted)
    made = []
    for name in sorted(wanted.keys() | found.keys()):
        a, b = wanted.get(name, "none"), found.get(name, "none")
        if a == b:
            continue
        kept_raw = wrapped and skipped and name.startswith("parameter") and name.endswith("_scale")
        if kept_raw and b[2][1] == [0] and b[3] == a[3]:
            continue
        made.append(f"{name}: SGLang {str(a)[:300]}, plug-in {str(b)[:300]}")
    return made
