"""Plug-in of vLLM that takes expert weights from a blob, or makes them from the checkpoint: what it
installs, and when.

The entry point (group vllm.general_plugins) calls register() in every process of vLLM. As soon as
vLLM imports its loaders, register() adds the load format mxfp4_repack; as soon as vLLM imports its
quantization methods, the method mxfp4_repack. If MXFP4_REPACK_BLOB is set, it also wraps the two
functions of vLLM that convert MXFP4 experts, as soon as vLLM imports them. No process loads torch or
Triton through this file.

    MXFP4_REPACK_BLOB      directory that mxfp4-repack wrote, or a model directory around it
    MXFP4_REPACK_VERIFY    none, first, all: also convert, compare, and use vLLM's own result
    MXFP4_REPACK_CHECK     sizes, checksums, source, none: how closely to check a layer's file
    MXFP4_REPACK_STRICT    1: an error instead of vLLM's own conversion
    MXFP4_REPACK_SKIP_RAW  1: neither read nor hold the raw experts of layers that the blob has
    MXFP4_REPACK_SOURCE    blob, checkpoint: only this one; trust: the model's files are not compared
                           with those that were converted
    MXFP4_REPACK_DIRECT    1: read the blob past the system's page cache
    MXFP4_REPACK_PASS      cpu, gpu: who makes experts that are not in a blob; else the GPU if it can

VLLM.md says more, and with which releases the plug-in was run. Needs Python 3.9.
"""
from __future__ import annotations

import contextlib
import logging
from typing import Any, Iterator

from mxfp4_repack.plugin import engine
from mxfp4_repack.plugin.after_import import AfterImport
from mxfp4_repack.plugin.engine import log
from mxfp4_repack.vllm.environment import register_environment
from mxfp4_repack.vllm.names import LOAD_FORMAT, LOADERS, QUANT_METHOD, QUANTIZATION

__all__ = ["register"]

_registered = False


def register() -> None:
    """The entry point. Never raises: vLLM would not start."""
    global _registered
    try:
        if not _registered:
            _registered = True
            engine.use(engine.VLLM)
            AfterImport({LOADERS: _register_loader, QUANTIZATION: _register_method}).install()
        register_environment()
    except Exception as error:  # vLLM must start, whatever the error is
        log.error("mxfp4-repack: the plug-in is off: %s", error)


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
    """Drops vLLM's log line about a registration, which most processes do not use."""
    def drop(record: logging.LogRecord) -> bool:
        return record.levelno > logging.INFO

    logging.getLogger(logger).addFilter(drop)
    try:
        yield
    finally:
        logging.getLogger(logger).removeFilter(drop)
