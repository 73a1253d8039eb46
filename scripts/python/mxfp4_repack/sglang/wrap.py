"""Registers the plug-in's functions in SGLang's own registry of hooks, as soon as SGLang has imported their targets.

An import of a method class asks SGLang what it runs on, which a process knows only after its arguments; so nothing
is imported here.
"""
from __future__ import annotations

import sys
from typing import Any, Callable, Dict

from mxfp4_repack.plugin.after_import import AfterImport
from mxfp4_repack.plugin.settings import Settings
from mxfp4_repack.sglang.names import LOADER, LOADER_CLASS, METHOD_CLASSES


class Wrapper:
    """The hook of this process, made when SGLang first imports what it wraps."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._hook: Any = None
        self._registering = False

    @property
    def hook(self) -> Any:
        if self._hook is None:
            from mxfp4_repack.sglang.hook import Hook
            self._hook = Hook(self.settings)
        return self._hook

    def install(self) -> None:
        """Called by load_plugins(), which applies the hooks of modules that are imported already."""
        self._registering = True
        try:
            actions: Dict[str, Callable[[Any], None]] = {name: self.wrap_methods for name in METHOD_CLASSES}
            AfterImport({**actions, LOADER: self.wrap_loader}).install()
        finally:
            self._registering = False

    def wrap_methods(self, module: Any) -> None:
        path = f"{module.__name__}.{METHOD_CLASSES[module.__name__]}."
        self._around({
            path + "create_weights": lambda original, method, *args, **kwargs:
                self.hook.create_weights(original, method, args, kwargs),
            path + "create_moe_runner": lambda *args, **kwargs: self.hook.create_moe_runner(*args, **kwargs),
            path + "process_weights_after_loading": lambda *args: self.hook.process_weights(*args),
        })

    def wrap_loader(self, module: Any) -> None:
        path = f"{module.__name__}.{LOADER_CLASS}."

        def weights(original: Any, *args: Any, **kwargs: Any) -> Any:
            return (item for item in original(*args, **kwargs) if not self.hook.skips(item[0]))

        self._around({path + "_get_weights_iterator": weights,
                      path + "load_model": lambda *args, **kwargs: self.hook.loaded(*args, **kwargs)})

    def _around(self, functions: Dict[str, Callable[..., Any]]) -> None:
        registry = sys.modules["sglang.srt.plugins.hook_registry"]
        for target, function in functions.items():
            registry.HookRegistry.register(target, function, registry.HookType.AROUND)
        if not self._registering:
            registry.HookRegistry.apply_hooks()
