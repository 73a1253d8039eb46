"""A registry of hooks that wraps methods of classes, as SGLang's does for AROUND."""
import enum
import functools
import pkgutil


class HookType(enum.Enum):
    AROUND = "around"


class HookRegistry:
    _hooks = {}
    _patched = set()

    @classmethod
    def register(cls, target, hook, hook_type, *, source=None):
        cls._hooks.setdefault(target, []).append(hook)

    @classmethod
    def apply_hooks(cls):
        for target, hooks in cls._hooks.items():
            if target in cls._patched:
                continue
            cls._patched.add(target)
            path, _, name = target.rpartition(".")
            owner = pkgutil.resolve_name(path)
            for hook in hooks:
                setattr(owner, name, cls._around(getattr(owner, name), hook))

    @staticmethod
    def _around(original, hook):
        @functools.wraps(original)
        def wrapper(*args, **kwargs):
            return hook(original, *args, **kwargs)
        return wrapper
