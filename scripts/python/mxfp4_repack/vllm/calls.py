"""What the hook answers: one layer's conversion by vLLM, which can be answered from a source or run.

ConverterCall is a call of one of the oracle's converters. MethodCall is the processing of a method class
that converts by itself, of compressed-tensors and AutoRound.
"""
from __future__ import annotations

import contextlib
import inspect
import os
import sys
from typing import Any, Callable, Iterator, List, Mapping, Optional, Sequence, Tuple

from mxfp4_repack.plugin.build import LayoutWitness, check_plain, convert_layout_replaced, differences, is_wrapped
from mxfp4_repack.plugin.calls import Call as Base, replace_parameter
from mxfp4_repack.plugin.facts import Mismatch
from mxfp4_repack.plugin.live import Origin, dtype_name
from mxfp4_repack.plugin.names import ORIGIN, SLOTS
from mxfp4_repack.vllm import build, converter_code
from mxfp4_repack.vllm.live import Live, current_origin
from mxfp4_repack.vllm.names import CUTLASS

RAW = SLOTS[:4]
BIASES = SLOTS[4:]


class Call(Base):
    @property
    def origin(self) -> Optional[Origin]:
        return getattr(self.layer, ORIGIN, None) or current_origin()

    def device(self) -> Any:
        raw = self.arguments["w13_weight"]
        return self.layer.moe_config.device if raw.is_meta else raw.device

    def compared(self, source: Any, tensors: Mapping[str, Any]) -> Tuple[Any, List[str]]:
        if not is_wrapped(source):
            result = self({})
            self.made = self._made(tensors, result)
            return result, differences(source, tensors, result, self.layer)
        with convert_layout_replaced(LayoutWitness(source, tensors)) as witness:
            result = self({})
        self.made = {**self._made(tensors, result), **witness.made}
        return result, witness.all_differences() + differences(source, tensors, result, self.layer)


    def _made(self, tensors: Mapping[str, Any], result: Sequence[Any]) -> Mapping[str, Any]:
        slots = dict(zip(SLOTS, result))
        return {name: slots[name] if name in slots else getattr(self.layer, name, None) for name in tensors}


class ConverterCall(Call):
    """A call of a converter of the oracle."""

    def __init__(self, family: str, original: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        self.family, self._original = family, original
        self._signature = inspect.signature(original)
        self._args, self._kwargs = args, kwargs
        self.arguments = self._signature.bind(*args, **kwargs).arguments
        self.layer = self.arguments["layer"]
        self.arguments["w13_weight"]  # KeyError: another converter

    def __call__(self, replaced: Mapping[str, Any]) -> Any:
        # Pass positional arguments by position again: the original may be another plug-in's wrapper.
        names = list(self._signature.parameters)[:len(self._args)]
        args = [replaced.get(name, value) for name, value in zip(names, self._args)]
        others = {name: value for name, value in replaced.items() if name not in names}
        return self._original(*args, **{**self._kwargs, **others})

    def live(self) -> Live:
        arguments = self.arguments
        scale = arguments.get("w13_input_scale")
        return Live(
            self.layer, method=self.layer.quant_method, family=self.family,
            backend=arguments["mxfp4_backend"].name,
            shapes={name: arguments[name].shape for name in RAW},
            biases={name: None if arguments.get(name) is None else
                    dtype_name(arguments[name].dtype) for name in BIASES},
            fingerprint=converter_code.installed_code(), origin=self.origin,
            activation=arguments.get("activation"),
            input_scales=None if scale is None else True)

    def build(self, source: Any, tensors: Mapping[str, Any]) -> Any:
        backend = self.arguments["mxfp4_backend"].name
        result = build.build(source, tensors, self, backend)
        if backend == "AITER_MXFP4_BF16" and "activation" in self._signature.parameters:
            os.environ["AITER_BF16_FP8_MOE_BOUND"] = "0"  # as the generic converter does since 2026-08
        replace_meta_parameters(self.layer, self.device)
        return result


class MethodCall(Call):
    """process_weights_after_loading() of a method class that asks no converter.

    It renames the packed weights, then swizzles the scales (CUTLASS), repacks both for Marlin, or leaves
    both as they are, and makes its kernel. Bound to a source's tensors, the two steps do nothing.
    """

    def __init__(self, original: Callable[..., Any], method: Any, layer: Any) -> None:
        self._original, self._method, self.layer = original, method, layer
        self.backend = backend_of(method)
        self.arguments = {slot: getattr(layer, PACKED.get(slot, slot)) for slot in RAW}

    def __call__(self, replaced: Mapping[str, Any]) -> Any:
        self._original(self._method, self.layer)
        return tuple(getattr(self.layer, slot, None) for slot in SLOTS)

    def live(self) -> Live:
        return Live(
            self.layer, method=self._method, family="generic", backend=self.backend,
            shapes={name: self.arguments[name].shape for name in RAW},
            biases=dict.fromkeys(BIASES), fingerprint=converter_code.installed_code(),
            origin=self.origin, input_scales=False)

    def build(self, source: Any, tensors: Mapping[str, Any]) -> Any:
        check_plain(source)
        marlin = self.backend == "MARLIN"
        for slot in RAW:
            name = PACKED.get(slot, slot)
            replace_parameter(self.layer, name, self._empty(slot) if marlin else tensors[slot])
        with self._steps_replaced(tensors):
            return self({})

    def _empty(self, slot: str) -> Any:
        import torch
        return torch.empty(0, dtype=self.arguments[slot].dtype, device=self.device())

    @contextlib.contextmanager
    def _steps_replaced(self, tensors: Mapping[str, Any]) -> Iterator[None]:
        module = sys.modules[type(self._method).__module__]
        if "workspace" in module.prepare_moe_fp4_layer_for_marlin.__code__.co_names and self.backend == "MARLIN":
            raise Mismatch("conversion", "tensors only", "one that makes a workspace too")  # up to 0.29
        from vllm.model_executor.layers.fused_moe.experts import cutlass_moe

        def repacked(layer: Any, *args: Any, **kwargs: Any) -> None:
            for slot in RAW:
                module.replace_parameter(layer, slot, tensors[slot])

        steps = ((module, "prepare_moe_fp4_layer_for_marlin", repacked),
                 (cutlass_moe, "swizzle_mxfp4_scales", lambda scales, *sizes: scales))
        own = [(owner, name, getattr(owner, name)) for owner, name, _ in steps]
        for owner, name, step in steps:
            setattr(owner, name, step)
        try:
            yield
        finally:
            for owner, name, step in own:
                setattr(owner, name, step)


PACKED = {"w13_weight": "w13_weight_packed", "w2_weight": "w2_weight_packed"}


def backend_of(method: Any) -> str:
    """The backend of a method class. Classes that ask no converter say MARLIN of CUTLASS, too."""
    return CUTLASS if getattr(method, "use_cutlass_mxfp4", False) else str(method.mxfp4_backend.name)


def replace_meta_parameters(layer: Any, device: Callable[[], Any]) -> None:
    """Replaces parameters without data by empty ones with the same attributes.

    Since 0.33.0, vLLM keeps the object of a parameter that it replaces unless it is on meta.
    """
    import torch
    for name in SLOTS:
        parameter = layer._parameters.get(name)
        if parameter is not None and parameter.is_meta:
            replace_parameter(layer, name, torch.empty(0, dtype=parameter.dtype, device=device()))
