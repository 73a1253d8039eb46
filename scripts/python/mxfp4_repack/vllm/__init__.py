"""Plug-in of vLLM that takes converted expert weights from a blob: what is installed, and when.

The entry point (group vllm.general_plugins) calls register() in every process of vLLM. With
MXFP4_REPACK_BLOB unset nothing happens. Else the two functions of vLLM that convert MXFP4 experts
are wrapped, as soon as vLLM itself imports them, and no sooner: processes that only parse arguments
load neither torch nor Triton through this file. The wrappers are in mxfp4_repack.vllm.hook.

    MXFP4_REPACK_BLOB      directory that mxfp4-repack wrote, or a model directory around it
    MXFP4_REPACK_VERIFY    none, first, all: also convert, compare, and use vLLM's own result
    MXFP4_REPACK_CHECK     sizes, checksums, none: how closely a layer's file is looked at
    MXFP4_REPACK_STRICT    1: an error instead of vLLM's own conversion
    MXFP4_REPACK_SKIP_RAW  1: neither read nor hold the raw experts of layers that the blob has
    MXFP4_REPACK_SOURCE    check, trust: whether the model must be the one that was converted

Written for vLLM a2c8fc6657 (2026-05-18) and 017e9f4448 (2026-08-17); VLLM.md beside this file says
more. Needs Python 3.9.
"""
from __future__ import annotations

import functools
import importlib.abc
import logging
import os
import sys
from typing import Any, Callable, Dict, Mapping, NamedTuple, Optional

from mxfp4_repack.vllm.names import (
    CONVERTERS, DEFAULT_LOADER, IMPORTERS, METHOD_CLASSES, METHODS, ORACLE, QUARK, WEIGHT_UTILS)

__all__ = ["Settings", "register"]

# Below vLLM's own logger, which has the handlers.
log = logging.getLogger("vllm.mxfp4_repack")

_MARK = "_mxfp4_repack"


class Settings(NamedTuple):
    """What the environment says; from_environment() raises ValueError for what it cannot mean."""

    blob: str
    verify: Optional[str] = None  # None: "none" for a known vLLM, "first" for another
    check: str = "sizes"
    strict: bool = False
    skip_raw: bool = False
    trust_source: bool = False

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Optional["Settings"]:
        blob = environment.get("MXFP4_REPACK_BLOB", "")
        if not blob:
            return None

        def choice(name: str, *values: str) -> Optional[str]:
            value = environment.get(name, "").strip().lower()
            if value and value not in values:
                raise ValueError(f"{name} is {value!r}; it can be {', '.join(values)}")
            return value or None

        def switch(name: str) -> bool:
            return choice(name, "0", "1") == "1"

        return cls(blob=os.path.abspath(blob),
                   verify=choice("MXFP4_REPACK_VERIFY", "none", "first", "all"),
                   check=choice("MXFP4_REPACK_CHECK", "sizes", "checksums", "none") or "sizes",
                   strict=switch("MXFP4_REPACK_STRICT"),
                   skip_raw=switch("MXFP4_REPACK_SKIP_RAW"),
                   trust_source=choice("MXFP4_REPACK_SOURCE", "check", "trust") == "trust")


def register() -> None:
    """The entry point. Never raises: vLLM would not start."""
    try:
        settings = Settings.from_environment(os.environ)
        if settings is None or _finder() is not None:
            return
        actions: Dict[str, Callable[[Any, Any], None]] = {
            ORACLE: _patch_oracle, METHODS: _patch_methods, QUARK: _patch_methods}
        if settings.skip_raw:
            actions.update({WEIGHT_UTILS: _patch_weight_utils, DEFAULT_LOADER: _patch_loader})
        finder = _AfterImport(settings, actions)
        sys.meta_path.insert(0, finder)
        for name in actions:  # what was imported before
            if name in sys.modules:
                finder.act(sys.modules[name])
    except Exception as error:  # whatever it is, vLLM must come up
        log.error("mxfp4-repack: the plug-in is off: %s", error)


def _finder() -> Optional["_AfterImport"]:
    # By name: the module may have been imported twice under different paths.
    for finder in sys.meta_path:
        if type(finder).__name__ == "_AfterImport" and hasattr(finder, _MARK):
            return finder  # type: ignore[return-value]
    return None


class _AfterImport(importlib.abc.MetaPathFinder):
    """Lets the other finders find a module, and acts on it when it has been executed."""

    def __init__(self, settings: Settings, actions: Dict[str, Callable[[Any, Any], None]]) -> None:
        self._actions = actions
        self._settings = settings
        self._hook: Any = None
        setattr(self, _MARK, True)

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> Any:
        if fullname not in self._actions:
            return None
        for finder in sys.meta_path:
            if finder is self or not hasattr(finder, "find_spec"):
                continue
            spec = finder.find_spec(fullname, path, target)
            if spec is not None:
                if spec.loader is not None:
                    spec.loader = _ActingLoader(spec.loader, self.act)
                return spec
        return None

    def act(self, module: Any) -> None:
        """Patches a module that is complete; a failure leaves vLLM as it is."""
        try:
            if self._hook is None:
                from mxfp4_repack.vllm.hook import Hook
                self._hook = Hook(self._settings)
            self._actions[module.__name__](module, self._hook)
        except Exception as error:
            log.error("mxfp4-repack: %s stays as it is: %s", module.__name__, error)


class _ActingLoader(importlib.abc.Loader):
    """Another loader, and one call after it; the module keeps no trace of this one."""

    def __init__(self, loader: Any, act: Callable[[Any], None]) -> None:
        self._loader = loader
        self._act = act

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def create_module(self, spec: Any) -> Any:
        return self._loader.create_module(spec)

    def exec_module(self, module: Any) -> None:
        module.__loader__ = self._loader
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        self._act(module)


def is_wrapper(function: Any) -> bool:
    return hasattr(function, _MARK)


def _mark(wrapper: Any) -> Any:
    setattr(wrapper, _MARK, True)
    return wrapper


def _patch_oracle(module: Any, hook: Any) -> None:
    for name, family in CONVERTERS.items():
        original = getattr(module, name, None)
        if original is None:
            log.error("mxfp4-repack: %s has no %s: this vLLM is not known", ORACLE, name)
            continue
        if is_wrapper(original):
            continue
        wrapper = _mark(_converter(hook, family, original, module))
        setattr(module, name, wrapper)
        for importer in IMPORTERS:
            other = sys.modules.get(importer)
            if other is not None and getattr(other, name, None) is original:
                setattr(other, name, wrapper)


def _converter(hook: Any, family: str, original: Any, oracle: Any) -> Any:
    @functools.wraps(original)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return hook.convert(family, original, oracle, args, kwargs)

    return wrapper


def _patch_methods(module: Any, hook: Any) -> None:
    for name in METHOD_CLASSES[module.__name__]:
        method = getattr(module, name, None)
        original = getattr(method, "create_weights", None)
        if original is None or is_wrapper(original):
            continue

        def wrapper(self: Any, *args: Any, _original: Any = original, **kwargs: Any) -> Any:
            return hook.create_weights(_original, self, args, kwargs)

        setattr(method, "create_weights", _mark(functools.wraps(original)(wrapper)))


def _patch_weight_utils(module: Any, hook: Any) -> None:
    original = module.should_skip_weight
    if is_wrapper(original):
        return

    @functools.wraps(original)
    def wrapper(weight_name: str, *args: Any, **kwargs: Any) -> bool:
        return hook.skips(weight_name) or bool(original(weight_name, *args, **kwargs))

    module.should_skip_weight = _mark(wrapper)


def _patch_loader(module: Any, hook: Any) -> None:
    loader = module.DefaultModelLoader
    original = loader._get_weights_iterator
    if is_wrapper(original):
        return

    # Not every iterator asks should_skip_weight; this one drops what was read for nothing.
    @functools.wraps(original)
    def wrapper(self: Any, *args: Any, **kwargs: Any) -> Any:
        weights = original(self, *args, **kwargs)
        return (item for item in weights if not hook.skips(item[0]))

    loader._get_weights_iterator = _mark(wrapper)
