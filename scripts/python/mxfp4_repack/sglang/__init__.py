"""Plug-in of SGLang that takes expert weights from a blob, or makes them from the checkpoint.

The entry point (group sglang.srt.plugins) calls register() in every process of SGLang. If MXFP4_REPACK_BLOB is set,
it wraps the method classes that convert MXFP4 experts, and the loader, by SGLang's own registry of hooks. The
variables are those of the vLLM plug-in, with the same values (mxfp4_repack.vllm); SGLANG.md says more. No process
loads torch through this file. Needs Python 3.9.
"""
from __future__ import annotations

import os
from typing import Any, Optional

from mxfp4_repack.plugin import engine
from mxfp4_repack.plugin.engine import log

__all__ = ["register"]

_wrapper: Optional[Any] = None


def register() -> None:
    """The entry point. Never raises: SGLang would start without a word of it."""
    global _wrapper
    try:
        engine.use(engine.SGLANG)
        from mxfp4_repack.plugin.settings import Settings
        settings = Settings.from_environment(os.environ)
        if settings is None or _wrapper is not None:
            return
        from mxfp4_repack.sglang.wrap import Wrapper
        _wrapper = Wrapper(settings)
        _wrapper.install()
    except Exception as error:  # SGLang must start, whatever the error is
        log.error("mxfp4-repack: the plug-in is off: %s", error)
