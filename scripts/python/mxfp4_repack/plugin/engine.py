"""Which engine this process serves with: its name in messages, and the logger that has its handlers."""
from __future__ import annotations

import logging
from typing import Any, NamedTuple


class Engine(NamedTuple):
    name: str
    package: str


VLLM = Engine("vLLM", "vllm")
SGLANG = Engine("SGLang", "sglang")

_current = VLLM


def use(engine: Engine) -> None:
    """Called by an engine's entry point: a process has one engine."""
    global _current
    _current = engine


def name() -> str:
    return _current.name


def package() -> str:
    return _current.package


class _Log:
    """The logger below the engine's own."""

    def __getattr__(self, attribute: str) -> Any:
        return getattr(logging.getLogger(f"{_current.package}.mxfp4_repack"), attribute)


log: Any = _Log()
