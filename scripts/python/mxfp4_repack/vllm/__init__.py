"""Plug-in of vLLM that takes expert weights from a blob: what is installed, and when.

The entry point (group vllm.general_plugins) calls register() in every process of vLLM. It adds the
load format mxfp4_repack, as soon as vLLM itself imports its loaders, and nothing else. Where
MXFP4_REPACK_BLOB is set, the two functions of vLLM that convert MXFP4 experts are wrapped as soon
as vLLM imports them. No process loads torch or Triton through this file.

    MXFP4_REPACK_BLOB      directory that mxfp4-repack wrote, or a model directory around it
    MXFP4_REPACK_VERIFY    none, first, all: also convert, compare, and use vLLM's own result
    MXFP4_REPACK_CHECK     sizes, checksums, none: how closely a layer's file is looked at
    MXFP4_REPACK_STRICT    1: an error instead of vLLM's own conversion
    MXFP4_REPACK_SKIP_RAW  1: neither read nor hold the raw experts of layers that the blob has
    MXFP4_REPACK_SOURCE    check, trust: whether the model must be the one that was converted

VLLM.md says more, and which releases it was run with. Needs Python 3.9.
"""
from __future__ import annotations

import contextlib
import functools
import logging
import os
from typing import Any, Iterator, Mapping, NamedTuple, Optional

from mxfp4_repack.vllm.after_import import AfterImport
from mxfp4_repack.vllm.names import (
    DEFAULT_LOADER, LOAD_FORMAT, LOADERS, METHODS, ORACLE, QUANT_METHOD, QUANTIZATION, QUARK,
    WEIGHT_UTILS)

__all__ = ["Settings", "register"]

# Below vLLM's own logger, which has the handlers.
log = logging.getLogger("vllm.mxfp4_repack")

_registered = False
_environment: Optional["EnvironmentHook"] = None


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
    global _registered
    try:
        if not _registered:
            _registered = True
            AfterImport({LOADERS: _register_loader, QUANTIZATION: _register_method}).install()
        register_environment()
    except Exception as error:  # whatever it is, vLLM must come up
        log.error("mxfp4-repack: the plug-in is off: %s", error)


def register_environment() -> None:
    """Wraps vLLM's converters if MXFP4_REPACK_BLOB is set and they are not wrapped yet."""
    global _environment
    settings = Settings.from_environment(os.environ)
    if settings is None or _environment is not None:
        return
    _environment = EnvironmentHook(settings)
    actions = {ORACLE: "patch_oracle", METHODS: "patch_methods", QUARK: "patch_methods"}
    if settings.skip_raw:
        actions.update({WEIGHT_UTILS: "patch_weight_utils", DEFAULT_LOADER: "patch_loader"})
    finder = AfterImport({module: functools.partial(_environment.patch, function)
                          for module, function in actions.items()})
    finder.install()


class EnvironmentHook:
    """The hook of the environment's settings, made when vLLM first imports what it patches."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.hook: Any = None

    def patch(self, function: str, module: Any) -> None:
        """Calls the function of this name in patches."""
        from mxfp4_repack.vllm import patches
        if self.hook is None:
            from mxfp4_repack.vllm.hook import Hook
            self.hook = Hook(self.settings)
        getattr(patches, function)(module, self.hook)


def _register_loader(module: Any) -> None:
    from mxfp4_repack.vllm.load_format import BlobLoader
    with _quiet(module.__name__):
        module.register_model_loader(LOAD_FORMAT)(BlobLoader)


def _register_method(module: Any) -> None:
    from mxfp4_repack.vllm.quantization import PackedConfig
    with _quiet(module.__name__):
        module.register_quantization_config(QUANT_METHOD)(PackedConfig)


@contextlib.contextmanager
def _quiet(logger: str) -> Iterator[None]:
    """Without vLLM's line about each registration: most processes use none of it."""
    def drop(record: logging.LogRecord) -> bool:
        return record.levelno > logging.INFO

    logging.getLogger(logger).addFilter(drop)
    try:
        yield
    finally:
        logging.getLogger(logger).removeFilter(drop)
