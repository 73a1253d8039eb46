"""Turns the plug-in on for a whole process if MXFP4_REPACK_BLOB is set."""
from __future__ import annotations

import functools
import os
from typing import Any, Optional

from mxfp4_repack.plugin.after_import import AfterImport
from mxfp4_repack.plugin.settings import Settings
from mxfp4_repack.vllm.names import DEFAULT_LOADER, METHOD_CLASSES, ORACLE, WEIGHT_UTILS

_environment: Optional["EnvironmentHook"] = None


def register_environment() -> None:
    """Wraps vLLM's converters if MXFP4_REPACK_BLOB is set and they are not wrapped yet."""
    global _environment
    settings = Settings.from_environment(os.environ)
    if settings is None or _environment is not None:
        return
    _environment = EnvironmentHook(settings)
    actions = {ORACLE: "patch_oracle", **dict.fromkeys(METHOD_CLASSES, "patch_methods")}
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
