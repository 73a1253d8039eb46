"""Reads a layer's tensors, wraps those of triton_kernels, and compares with what the engine made.

For the Triton group weights are wrapped tensors of triton_kernels, and scales are precision configs;
there the engine's own code runs on raw tensors without data, while a stand-in that wraps the blob's
bytes replaces triton_kernels' convert_layout. So the engine itself chooses layouts, sets the kernel's
constraints and builds its objects, and each choice is compared with the blob's.
"""
from __future__ import annotations

import contextlib
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence

from mxfp4_repack.plugin import engine
from mxfp4_repack.plugin.facts import Mismatch
from mxfp4_repack.plugin.live import dtype_name
from mxfp4_repack.plugin.names import SLOTS

# In the order in which _swizzle_mxfp4 asks for layouts.
WRAPPED = ("w13_weight", "w13_weight_scale", "w2_weight", "w2_weight_scale")
# Options of layouts that number an axis of the experts' three, from the start or from the end.
COUNTED, AXES = ("major_dim", "mx_axis"), 3
# If torch lacks the type, engines take the bytes as uint8.
MAY_LACK_FP4 = ("AITER_MXFP4_MXFP4",)


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


def check_plain(layer: Any) -> None:
    """Raises Mismatch for a layer whose tensors are wrapped."""
    if is_wrapped(layer):
        raise Mismatch("tensors", "wrapped ones", "plain ones")


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
        self.made: Dict[str, Any] = {}  # what the engine's own conversion gave, by name
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
        # An engine may leave options to their defaults, so compare the layouts that the options make.
        shape: Optional[List[int]] = _ints(data.shape)
        if isinstance(layout, type):
            expected_layout = _layout_values(layout, init_shape, want["layout_kwargs"])
            made = _layout_values(layout, data.shape, options)
        else:
            shape = shape if init_shape else None
            expected_layout = _layout_values(given_class, None, self._options(name, given_class))
            made = _kept(layout)
        for what, expected, found in (
                ("layout class", want["layout"], given_class.__name__),
                ("shape before the layout", init_shape and list(init_shape), shape),
                ("layout options", expected_layout, made),
                ("logical shape", list(want["logical_shape"]), _ints(tensor.shape)),
                ("logical type", want["logical_dtype"], _logical_dtype(tensor.dtype))):
            if expected != found:
                raise Mismatch(f"{what} of {name}", expected, found)
        return name

    def _options(self, name: str, layout: Any) -> Dict[str, Any]:
        """The blob's, and the one of StridedLayout that a blob leaves out: the axis whose elements lie side by side."""
        options = dict(self._layer.info(name).storage["layout_kwargs"])
        if layout.__name__ == "StridedLayout" and "major_dim" not in options:
            strides = list(self._tensors[name].stride())
            options.update({"major_dim": strides.index(1)} if 1 in strides else {})
        return options

    def finished(self) -> None:
        if self._calls != len(WRAPPED):
            raise Mismatch("calls of convert_layout", len(WRAPPED), self._calls)


class StandIn(_Asked):
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
        """`differences`, and one more if the engine asked for fewer layouts than the blob has."""
        try:
            self.finished()
        except Mismatch as mismatch:
            return self.differences + [str(mismatch)]
        return self.differences

    def __call__(self, tensor: Any, layout: Any, **options: Any) -> Any:
        made = self.original(tensor, layout, **options)
        try:
            name = self._next(tensor, layout, options)
            self.made[name] = made.storage.data
            self.differences += tensor_differences(name, self._tensors[name], made.storage.data)
        except Mismatch as mismatch:
            self.differences.append(str(mismatch))
        return made


def _layout_values(layout_class: Any, shape: Optional[Sequence[int]],
                   options: Mapping[str, Any]) -> Any:
    """What a layout of triton_kernels keeps of its arguments and their defaults."""
    # From 3.8 on some classes want an axis that counts from the end.
    from_end = {name: value - AXES if name in COUNTED else value for name, value in options.items()}
    said = None
    for given in (options, from_end):
        try:
            return _kept(layout_class(**given) if shape is None else layout_class(shape, **given))
        except Exception as error:
            said = said or f"{layout_class.__name__} refuses {dict(options)}: {error}"
    return said


def _kept(layout: Any) -> Dict[str, Any]:
    kept = {name: _ints(value) if isinstance(value, (tuple, list)) else value
            for name, value in sorted(vars(layout).items())}
    for name in COUNTED:
        if isinstance(kept.get(name), int) and kept[name] < 0:
            kept[name] += AXES
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
    """Where the six values that the engine made, and what it left in its layer `live` beside them, differ from the
    blob's; for wrapped tensors LayoutWitness compares all but the biases."""
    found: List[str] = []
    beside = [name for name in tensors if name not in SLOTS]
    for slot, value in [*zip(SLOTS, result), *((name, getattr(live, name, None)) for name in beside)]:
        if slot in WRAPPED and is_wrapped(layer):
            continue
        blob = tensors.get(slot)
        if blob is None or value is None:
            if blob is not value:
                found.append(f"{slot}: {engine.name() if blob is None else 'the blob'} alone has it")
            continue
        found += tensor_differences(slot, blob, value)
    return found


def tensor_differences(name: str, blob: Any, live: Any) -> List[str]:
    import torch
    if not isinstance(live, torch.Tensor):
        return [f"{name}: a tensor in the blob, {type(live).__name__} in {engine.name()}"]
    for what, ours, theirs in (("type", str(blob.dtype), str(live.dtype)),
                               ("shape", _ints(blob.shape), _ints(live.shape)),
                               ("strides", _strides(blob), _strides(live))):
        if ours != theirs:
            return [f"{name}: {what} {ours} in the blob, {theirs} in {engine.name()}"]
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
                  for t in (codes, _scale_codes(raw[name].detach(), dtype_name(raw[name].dtype)))]
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
