"""Makes from a source's tensors the values that vLLM's converters return, and compares both.

The six values are w13, w2, their scales and their biases. For most backends all are plain tensors.
For the Triton group weights are wrapped tensors of triton_kernels, and scales are precision configs;
there vLLM's own converter runs on raw tensors without data, while a stand-in that wraps the blob's
bytes replaces triton_kernels' convert_layout. So vLLM itself chooses layouts, sets the kernel's
constraints and builds its objects, and each choice is compared with the blob's. Likewise HUMMING: its
converter runs on stand-ins of the raw tensors, and only the package's transformation is replaced.
"""
from __future__ import annotations

import contextlib
import importlib
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

from mxfp4_repack.vllm.facts import Mismatch

# In the order in which the converters return them.
SLOTS = ("w13_weight", "w2_weight", "w13_weight_scale", "w2_weight_scale", "w13_bias", "w2_bias")
# In the order in which _swizzle_mxfp4 asks for layouts.
WRAPPED = ("w13_weight", "w13_weight_scale", "w2_weight", "w2_weight_scale")

# Backend -> how its six values are made.
PLAIN, AS_LOADED, TRANSFORMED = "plain", "as loaded", "transformed"
BUILDERS = {
    # The original returns the tensors that it is given; call it for its side effects.
    "EMULATION": AS_LOADED, "XPU": AS_LOADED, "B12X_MXFP4_MXFP8": AS_LOADED, "B12X_MXFP4_BF16": AS_LOADED,
    "FLASHINFER_MOE_EP_DEEP_GEMM": AS_LOADED,
    "DEEPGEMM_MXFP4": PLAIN, "MARLIN": PLAIN, "BATCHED_MARLIN": PLAIN, "CPU": PLAIN,
    "FLASHINFER_TRTLLM_MXFP4_MXFP8": PLAIN, "FLASHINFER_TRTLLM_MXFP4_BF16": PLAIN,
    "FLASHINFER_CUTLASS_MXFP4_MXFP8": PLAIN, "FLASHINFER_CUTLASS_MXFP4_BF16": PLAIN,
    "CUTLASS_MXFP4_MXFP4": PLAIN,
    "AITER_MXFP4_BF16": PLAIN, "AITER_MXFP4_MXFP4": PLAIN, "AITER_TRITON_MXFP4_MXFP4": PLAIN,
    # Wrapped, by their storage:
    "TRITON": PLAIN, "TRITON_UNFUSED": PLAIN, "AITER_MXFP4_FP8": PLAIN, "AITER_TRITON_MXFP4_BF16": PLAIN,
    "HUMMING": TRANSFORMED,
    "DEEP_GEMM_MEGA_MOE": PLAIN,  # copied into the parameters: mega.py
}
# If torch lacks the type, vLLM takes the bytes as uint8.
MAY_LACK_FP4 = ("AITER_MXFP4_MXFP4",)


def check_backend(name: str) -> None:
    if name not in BUILDERS:
        raise Mismatch("backend", "tensors only", f"{name}, whose conversion does more")


def is_wrapped(layer: Any) -> bool:
    """Whether a layer of the blob holds bytes of triton_kernels' wrapped tensors."""
    return "layout" in layer.info("w13_weight").storage


def read(layer: Any, device: Any, backend: str) -> Dict[str, Any]:
    """All tensors of a layer, slot -> torch tensor on `device`."""
    tensors: Dict[str, Any] = layer.to_device(device)
    for name, tensor in tensors.items():
        want = layer.info(name).torch_dtype
        have = str(tensor.dtype).rsplit(".", 1)[-1]
        if have != want and not (want == "float4_e2m1fn_x2" and backend in MAY_LACK_FP4):
            raise Mismatch(f"type of {name}", want, f"a torch that gives {have}")
    return tensors


def build(layer: Any, tensors: Mapping[str, Any], call: Any, backend: str) -> Tuple[Any, ...]:
    """The six values. `call` is vLLM's converter, called with some of its arguments replaced."""
    import torch
    values = {slot: tensors.get(slot) for slot in SLOTS}
    if is_wrapped(layer):
        # The converter reads only their shapes: the data comes from the stand-in.
        shapes = {name: torch.empty_like(call.arguments[name], device="meta") for name in WRAPPED}
        with convert_layout_replaced(_StandIn(layer, tensors)) as stand_in:
            made = list(call(shapes))
        stand_in.finished()
        made[4:] = values["w13_bias"], values["w2_bias"]
        return tuple(made)
    if BUILDERS[backend] == AS_LOADED:
        return tuple(call(values))
    if BUILDERS[backend] == TRANSFORMED:
        with transformation_replaced(call, tensors):
            return tuple(call({}))
    return tuple(values[slot] for slot in SLOTS)


def check_plain(layer: Any) -> None:
    """Raises Mismatch for a layer whose tensors are wrapped."""
    if is_wrapped(layer):
        raise Mismatch("tensors", "wrapped ones", "plain ones")


# --- HUMMING ---

@contextlib.contextmanager
def transformation_replaced(call: Any, tensors: Mapping[str, Any]) -> Iterator[None]:
    """vLLM's schemas and the kernel's configurations come from shapes; the package transforms data in one
    function, once for w13 and once for w2. The stand-ins have the raw tensors' shapes and no memory."""
    import torch

    try:
        transform = importlib.import_module("humming.transform")
        original = transform.transform_humming_tensors
    except (ImportError, AttributeError) as error:
        raise Mismatch("humming-kernels", "transform_humming_tensors", f"none ({error})") from None
    layers = iter(("w13_", "w2_"))

    def transformed(config: Any, raw: Mapping[str, Any]) -> Dict[str, Any]:
        prefix = next(layers)
        return {name[len(prefix):]: tensor for name, tensor in tensors.items() if name.startswith(prefix)}

    for name in SLOTS:
        parameter = call.layer._parameters.get(name)
        if parameter is not None:
            row = torch.empty(parameter.shape[-1], dtype=parameter.dtype, device=call.device())
            call.layer._parameters[name] = torch.nn.Parameter(row.expand(parameter.shape), requires_grad=False)
    transform.transform_humming_tensors = transformed
    try:
        yield
    finally:
        transform.transform_humming_tensors = original
    if next(layers, None) is not None:
        raise Mismatch("calls of transform_humming_tensors", 2, "fewer")


# --- the Triton group ---

@contextlib.contextmanager
def convert_layout_replaced(function: Any) -> Iterator[Any]:
    import triton_kernels.tensor as tk
    original = tk.convert_layout
    function.original = original
    tk.convert_layout = function
    try:
        yield function
    finally:
        tk.convert_layout = original


class _Asked:
    """Follows the four calls of convert_layout and compares what they ask for."""

    def __init__(self, layer: Any, tensors: Mapping[str, Any]) -> None:
        self.original: Any = None
        self._layer, self._tensors = layer, tensors
        self._calls = 0

    def _next(self, tensor: Any, layout: Any, options: Mapping[str, Any]) -> str:
        """`layout`: a class, which takes the tensor's shape and options; from 3.8 on an object."""
        if self._calls == len(WRAPPED):
            raise Mismatch("calls of convert_layout", len(WRAPPED), "more")
        name = WRAPPED[self._calls]
        self._calls += 1
        want = self._layer.info(name).storage
        data = tensor.storage.data
        init_shape = want.get("layout_init_shape")
        given_class = layout if isinstance(layout, type) else type(layout)
        # vLLM may leave options to their defaults, so compare the layouts that the options make.
        expected_layout = _layout_values(given_class, init_shape, want["layout_kwargs"])
        if isinstance(layout, type):
            shape: Optional[List[int]] = _ints(data.shape)
            made = _layout_values(layout, data.shape, options)
        else:
            shape, made = None, _kept(layout)
        for what, expected, found in (
                ("layout class", want["layout"], given_class.__name__),
                ("shape before the layout", init_shape and list(init_shape), shape),
                ("layout options", expected_layout, made),
                ("logical shape", list(want["logical_shape"]), _ints(tensor.shape)),
                ("logical type", want["logical_dtype"], _logical_dtype(tensor.dtype))):
            if expected != found:
                raise Mismatch(f"{what} of {name}", expected, found)
        return name

    def finished(self) -> None:
        if self._calls != len(WRAPPED):
            raise Mismatch("calls of convert_layout", len(WRAPPED), self._calls)


class _StandIn(_Asked):
    """A convert_layout that returns the blob's bytes."""

    def __call__(self, tensor: Any, layout: Any, **options: Any) -> Any:
        import triton_kernels.tensor as tk
        name = self._next(tensor, layout, options)
        if isinstance(layout, type):
            layout = layout(tensor.storage.data.shape, **options)
        return tk.Tensor(tk.Storage(self._tensors[name], layout), dtype=tensor.dtype,
                         shape=tensor.shape, shape_max=tensor.shape_max)


class LayoutWitness(_Asked):
    """Calls convert_layout; `differences` lists where its result is not the blob's."""

    def __init__(self, layer: Any, tensors: Mapping[str, Any]) -> None:
        super().__init__(layer, tensors)
        self.differences: List[str] = []

    def all_differences(self) -> List[str]:
        """`differences`, and one more if vLLM asked for fewer layouts than the blob has."""
        try:
            self.finished()
        except Mismatch as mismatch:
            return self.differences + [str(mismatch)]
        return self.differences

    def __call__(self, tensor: Any, layout: Any, **options: Any) -> Any:
        made = self.original(tensor, layout, **options)
        try:
            name = self._next(tensor, layout, options)
            self.differences += tensor_differences(name, self._tensors[name], made.storage.data)
        except Mismatch as mismatch:
            self.differences.append(str(mismatch))
        return made


def _layout_values(layout_class: Any, shape: Optional[Sequence[int]],
                   options: Mapping[str, Any]) -> Any:
    """What a layout of triton_kernels keeps of its arguments and their defaults."""
    try:
        layout = layout_class(**options) if shape is None else layout_class(shape, **options)
    except Exception as error:
        return f"{layout_class.__name__} refuses {dict(options)}: {error}"
    return _kept(layout)


def _kept(layout: Any) -> Dict[str, Any]:
    kept = {name: _ints(value) if isinstance(value, (tuple, list)) else value
            for name, value in sorted(vars(layout).items())}
    if kept.get("major_dim", 0) < 0:  # an axis counted from the end; experts have three
        kept["major_dim"] += 3
    return kept


def _ints(shape: Sequence[Any]) -> List[int]:
    return [int(n) for n in shape]


def _logical_dtype(dtype: Any) -> str:
    """triton_kernels' FP4 is a description: exponent and mantissa bits, and a sign. From 3.8 on its
    integers are such, too."""
    bits = tuple(getattr(dtype, name, None)
                 for name in ("bitwidth_exponent", "bitwidth_mantissa", "is_signed"))
    if bits[0] is None and hasattr(dtype, "bitwidth"):
        return f"{'int' if dtype.is_signed else 'uint'}{dtype.bitwidth}"
    return "fp4_e2m1" if bits == (2, 1, True) else str(dtype).rsplit(".", 1)[-1]


# --- comparison ---

def differences(layer: Any, tensors: Mapping[str, Any], result: Sequence[Any], live: Any) -> List[str]:
    """Where the six values that vLLM made, and what it left in its layer `live` beside them, differ from the
    blob's; for wrapped tensors LayoutWitness compares all but the biases."""
    found: List[str] = []
    beside = [name for name in tensors if name not in SLOTS]
    for slot, value in [*zip(SLOTS, result), *((name, getattr(live, name, None)) for name in beside)]:
        if slot in WRAPPED and is_wrapped(layer):
            continue
        blob = tensors.get(slot)
        if blob is None or value is None:
            if blob is not value:
                found.append(f"{slot}: {'vLLM' if blob is None else 'the blob'} alone has it")
            continue
        found += tensor_differences(slot, blob, value)
    return found


def tensor_differences(name: str, blob: Any, live: Any) -> List[str]:
    import torch
    if not isinstance(live, torch.Tensor):
        return [f"{name}: a tensor in the blob, {type(live).__name__} in vLLM"]
    for what, ours, theirs in (("type", str(blob.dtype), str(live.dtype)),
                               ("shape", _ints(blob.shape), _ints(live.shape)),
                               ("strides", _strides(blob), _strides(live))):
        if ours != theirs:
            return [f"{name}: {what} {ours} in the blob, {theirs} in vLLM"]
    if not torch.equal(_bits(blob), _bits(live)):
        wrong = int((_bits(blob) != _bits(live)).sum())
        return [f"{name}: {wrong} of {blob.numel()} elements differ"]
    return []


def _strides(tensor: Any) -> List[Optional[int]]:
    """The strides, with None for a dimension of size one: no kernel reads its stride."""
    return [None if n == 1 else int(step) for n, step in zip(tensor.shape, tensor.stride())]


def _bits(tensor: Any) -> Any:
    """The elements' bits as integers: then NaN equals itself, and types without arithmetic compare."""
    import torch
    return tensor.detach().view(
        {1: torch.uint8, 2: torch.int16, 4: torch.int32}[tensor.element_size()])


# --- the same checkpoint ---

# Codes that padding may add: their counts are not compared.
FILLS = (0, 1, 127)
# Knobs with which layouts change scales.
RECODING_KNOBS = {"params_dtype", "marlin_input_dtype", "humming_input_dtype"}


def same_scales(layer: Any, target: Mapping[str, Any], tensors: Mapping[str, Any],
                raw: Mapping[str, Any]) -> None:
    """Raises Mismatch if the blob cannot have been made from these raw scales.

    A layout moves and pads scales but does not change them, so each code must occur as often in the
    blob as in the raw scales. A checkpoint with other weights of the same sizes fails this test.
    `target`: the manifest's.
    """
    import torch
    if RECODING_KNOBS & set(target["knobs"]):
        return
    for name in ("w13_weight_scale", "w2_weight_scale"):
        codes = _scale_codes(tensors[name], layer.info(name).torch_dtype)
        if codes is None:
            continue
        counts = [torch.bincount(t.reshape(-1), minlength=256).tolist()
                  for t in (codes, raw[name].detach().view(torch.uint8))]
        for code, (ours, theirs) in enumerate(zip(*counts)):
            if code not in FILLS and ours != theirs:
                raise Mismatch(f"checkpoint, by {name}", f"{ours} scales of {code}", theirs)


def _scale_codes(tensor: Any, dtype: str) -> Any:
    import torch
    if dtype == "float32":  # 2 ** (code - 127): the code is the exponent
        return ((tensor.reshape(-1).view(torch.int32) >> 23) & 255).to(torch.uint8)
    # Strides only order the elements; memory order counts the same.
    flat = torch.as_strided(tensor, (tensor.numel(),), (1,)).view(torch.uint8)
    return flat if dtype in ("uint8", "int32", "float8_e8m0fnu", "float8_e4m3fn") else None
