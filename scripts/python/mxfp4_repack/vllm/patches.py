"""Replaces functions of vLLM, for good or while one model is loaded."""
from __future__ import annotations

import contextlib
import functools
import importlib
import sys
from typing import Any, Callable, Iterator, List, Tuple

from mxfp4_repack.plugin.engine import log
from mxfp4_repack.vllm.names import (
    BY_THEMSELVES, CONVERTERS, CONVERTING_MEGA, DEFAULT_LOADER, IMPORTERS, MEGA, MEGA_CLASS, METHOD_CLASSES,
    ORACLE, QUANTIZATION, WEIGHT_UTILS)

_MARK = "_mxfp4_repack"
_ABSENT = object()

Put = Callable[[Any, str, Any], None]  # (owner, name of attribute, value)


def is_wrapper(function: Any) -> bool:
    return hasattr(function, _MARK)


def _original(function: Any) -> Any:
    """The function inside this plug-in's wrappers; another plug-in's wrappers stay around it."""
    while is_wrapper(function):
        function = function.__wrapped__
    return function


def _wrap(original: Any, wrapper: Any) -> Any:
    wrapped = functools.wraps(original)(wrapper)
    setattr(wrapped, _MARK, True)
    return wrapped


def patch_oracle(module: Any, hook: Any, put: Put = setattr) -> None:
    for name, family in CONVERTERS.items():
        current = getattr(module, name, None)
        if current is None:
            log.error("mxfp4-repack: %s has no %s: this vLLM is not known", ORACLE, name)
            continue
        wrapper = _converter(hook, family, _original(current))
        put(module, name, wrapper)
        for importer in IMPORTERS:
            other = sys.modules.get(importer)
            if other is not None and getattr(other, name, None) is current:
                put(other, name, wrapper)


def _converter(hook: Any, family: str, original: Any) -> Any:
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return hook.convert(family, original, args, kwargs)

    return _wrap(original, wrapper)


def patch_methods(module: Any, hook: Any, put: Put = setattr) -> None:
    for name in METHOD_CLASSES[module.__name__]:
        method = getattr(module, name, None)
        if getattr(method, "create_weights", None) is None:
            continue
        original = _original(method.create_weights)

        def wrapper(self: Any, *args: Any, _original: Any = original, **kwargs: Any) -> Any:
            return hook.create_weights(_original, self, args, kwargs)

        put(method, "create_weights", _wrap(original, wrapper))
        if name in BY_THEMSELVES:
            put(method, "process_weights_after_loading", _processing(hook, method))


def _processing(hook: Any, method: Any) -> Any:
    original = _original(method.process_weights_after_loading)

    def wrapper(self: Any, layer: Any) -> None:
        hook.process_weights(original, self, layer)

    return _wrap(original, wrapper)


def patch_mega(module: Any, hook: Any, put: Put = setattr) -> None:
    original = _original(vars(getattr(module, MEGA_CLASS))["__init__"])

    def wrapper(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        hook.mega_created(self)

    put(getattr(module, MEGA_CLASS), "__init__", _wrap(original, wrapper))


def patch_converting_mega(kind: Any, hook: Any, put: Put = setattr) -> None:
    made, converted = _original(vars(kind)["__init__"]), _original(vars(kind)["finalize_weights"])

    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        made(self, *args, **kwargs)
        if type(self) is kind:  # a subclass is not finished yet
            hook.mega_created(self)

    def finalize(self: Any, *args: Any, **kwargs: Any) -> Any:
        return hook.mega_converts(functools.partial(converted, self, *args, **kwargs), self)

    put(kind, "__init__", _wrap(made, init))
    put(kind, "finalize_weights", _wrap(converted, finalize))


def patch_weight_utils(module: Any, hook: Any, put: Put = setattr) -> None:
    original = _original(module.should_skip_weight)

    def wrapper(weight_name: str, *args: Any, **kwargs: Any) -> bool:
        return hook.skips(weight_name) or bool(original(weight_name, *args, **kwargs))

    put(module, "should_skip_weight", _wrap(original, wrapper))


def patch_loader(module: Any, hook: Any, put: Put = setattr) -> None:
    loader = module.DefaultModelLoader
    original = _original(loader._get_weights_iterator)

    # Not every iterator of vLLM asks should_skip_weight; this drops what the others read in vain.
    def wrapper(self: Any, *args: Any, **kwargs: Any) -> Any:
        weights = original(self, *args, **kwargs)
        return (item for item in weights if not hook.skips(item[0]))

    put(loader, "_get_weights_iterator", _wrap(original, wrapper))


def patch_iterator(module: Any, hook: Any, put: Put = setattr) -> None:
    original = _original(getattr(module, "safetensors_weights_iterator", None))
    if original is None:
        return

    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return hook.other_weights(original, args, kwargs)

    put(module, "safetensors_weights_iterator", _wrap(original, wrapper))


def _package(module: str) -> str:
    """The package of a quantization to which a module of a method class belongs."""
    return ".".join(module.split(".")[:QUANTIZATION.count(".") + 2])


def import_converting_mega(config: Any) -> None:
    """Imports the models' modules whose experts convert by themselves, if `config` asks for mega MoE."""
    for name in CONVERTING_MEGA.get(getattr(getattr(config, "kernel_config", None), "moe_backend", None), ()):
        with contextlib.suppress(Exception):  # a release without it, or a machine without what it imports
            importlib.import_module(name)


@contextlib.contextmanager
def _put_back() -> Iterator[Put]:
    """A setattr() whose doings are undone afterwards."""
    former: List[Tuple[Any, str, Any]] = []

    def put(owner: Any, name: str, value: Any) -> None:
        former.append((owner, name, vars(owner).get(name, _ABSENT)))
        setattr(owner, name, value)

    try:
        yield put
    finally:
        for owner, name, value in reversed(former):
            if value is _ABSENT:
                delattr(owner, name)
            else:
                setattr(owner, name, value)


def _patch_reading(hook: Any, put: Put) -> None:
    patch_weight_utils(importlib.import_module(WEIGHT_UTILS), hook, put)
    patch_loader(importlib.import_module(DEFAULT_LOADER), hook, put)
    patch_iterator(importlib.import_module(DEFAULT_LOADER), hook, put)


@contextlib.contextmanager
def reading_patched(hook: Any) -> Iterator[None]:
    """Replaces what reads files, and nothing that converts."""
    with _put_back() as put:
        _patch_reading(hook, put)
        yield


@contextlib.contextmanager
def patched(hook: Any) -> Iterator[None]:
    """Replaces all of the functions above, and puts them back afterwards."""
    # Import all users first: one imported while patched would keep a wrapper for good. Methods of other
    # checkpoints than this are in packages that are not imported.
    for name in (*IMPORTERS, *(name for name in METHOD_CLASSES if _package(name) in sys.modules)):
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    with _put_back() as put:
        patch_oracle(importlib.import_module(ORACLE), hook, put)
        for name in METHOD_CLASSES:
            if name in sys.modules:
                patch_methods(sys.modules[name], hook, put)
        with contextlib.suppress(ImportError, AttributeError):  # since 0.33.0
            patch_mega(importlib.import_module(MEGA), hook, put)
        for name, kind in (item for classes in CONVERTING_MEGA.values() for item in classes.items()):
            if hasattr(getattr(sys.modules.get(name), kind, None), "finalize_weights"):
                patch_converting_mega(getattr(sys.modules[name], kind), hook, put)
        _patch_reading(hook, put)
        yield
