"""Acts on modules as soon as other code has imported them, and never imports them itself."""
from __future__ import annotations

import importlib.abc
import sys
from typing import Any, Callable, Dict

from mxfp4_repack.plugin.engine import log

Action = Callable[[Any], None]  # (module)


class AfterImport(importlib.abc.MetaPathFinder):
    """Leaves finding a module to the other finders, and acts on the module once it was executed.

    If an action fails, the module stays as it is. There is one action for a module; after the last
    one the finder takes itself out of sys.meta_path.
    """

    def __init__(self, actions: Dict[str, Action]) -> None:
        self._actions = dict(actions)

    def install(self) -> None:
        """Also acts on modules that were imported before."""
        sys.meta_path.insert(0, self)
        for name in list(self._actions):
            if name in sys.modules:
                self.act(sys.modules[name])

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
        action = self._actions.pop(module.__name__, None)
        if not self._actions and self in sys.meta_path:
            sys.meta_path.remove(self)
        try:
            if action is not None:
                action(module)
        except Exception as error:
            log.error("mxfp4-repack: %s stays as it is: %s", module.__name__, error)


class _ActingLoader(importlib.abc.Loader):
    """Calls another loader, then `act` once; the module keeps no reference to this loader."""

    def __init__(self, loader: Any, act: Action) -> None:
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
