"""The hook: answers a layer's conversion from a source or by the engine's own conversion.

A source is a blob, or the checkpoint from which the weights are made; sources.py decides which. An
answer never mixes both ways: the hook reads, checks and builds all of a layer's tensors before it
returns any, and if anything fails it calls the original function with the original arguments. If
the raw experts were not loaded, there is nothing to convert, and the hook raises BlobRefused.
"""
from __future__ import annotations

import contextlib
import functools
import inspect
import logging
import sys
import threading
import time
from typing import Any, Callable, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple

from mxfp4_repack.made import MadeBlob
from mxfp4_repack.plugin import build, checkpoint, engine, proofs
from mxfp4_repack.plugin.calls import PARAMETERS, Call, model_lacks_raw
from mxfp4_repack.plugin.engine import log
from mxfp4_repack.plugin.facts import Mismatch
from mxfp4_repack.plugin.live import Live, Origin
from mxfp4_repack.plugin.names import BLOB, CHECKPOINT, CONVERTED, ORIGIN
from mxfp4_repack.plugin.skip import SkippedLayers
from mxfp4_repack.plugin.sources import Sources

NOT_FROM = {BLOB: "not from the blob", CHECKPOINT: "not made from the checkpoint"}


class BlobRefused(RuntimeError):
    """No source fits, and the engine must not or cannot convert by itself."""


class Hook:
    """State of one process."""

    facts: Any  # the engine's; see Sources

    def __init__(self, settings: Any, origin: Optional[Origin] = None) -> None:
        self.settings = settings
        self.origin = origin
        self.sources = Sources(settings, self.facts)
        self.taken: List[str] = []  # names of layers that came from a blob
        self.made: List[str] = []  # names of layers that were made from the checkpoint
        self.converted: List[str] = []  # names of layers that the engine converted
        self._skipped = SkippedLayers(self)
        self._inside = threading.local()
        self.waiting: Set[str] = set()  # layers that were created and not converted
        self._verified: Set[Tuple[Any, ...]] = set()
        self._said: Set[Any] = set()

    # --- what an engine's own hook says ---

    def current_origin(self) -> Optional[Origin]:
        """The origin by the engine's current configuration; None if none is current."""
        raise NotImplementedError

    def planned(self, method: Any, layer: Any, arguments: Mapping[str, Any]) -> Live:
        """The layer whose parameters `method` is about to create. Raises Mismatch for one that the engine's
        own code has to load. `arguments`: those of create_weights."""
        raise NotImplementedError

    def method_call(self, original: Callable[..., Any], method: Any, layer: Any) -> Call:
        """A layer's conversion by its method. Raises any error for a layer that has other parameters than the known
        ones."""
        raise NotImplementedError

    # --- what the wrappers call ---

    @contextlib.contextmanager
    def converting(self) -> Iterator[bool]:
        """Whether this is the outermost conversion of the thread: one converter calls the other."""
        if getattr(self._inside, "converting", False):
            yield False
            return
        self._inside.converting = True
        try:
            yield True
        finally:
            self._inside.converting = False

    def create_weights(self, original: Callable[..., Any], method: Any, args: Sequence[Any],
                       kwargs: Mapping[str, Any]) -> Any:
        """Called instead of a method's create_weights; notes where the weights will come from."""
        unchanged = functools.partial(original, method, *args, **kwargs)
        try:
            arguments = inspect.signature(original).bind(method, *args, **kwargs).arguments
            layer = arguments["layer"]
            setattr(layer, ORIGIN, self.origin or self.current_origin())
            self.waiting.add(layer.layer_name)
        except Exception as error:
            log.warning("mxfp4-repack: create_weights is not understood: %s", error)
            return unchanged()
        if len(self.waiting) == 1:
            prepare_loader(self.settings.makes)
        if self.settings.skip_raw:
            return self._skipped.create_weights(unchanged, method, layer, arguments)
        return unchanged()

    def process_weights(self, original: Callable[..., Any], method: Any, layer: Any) -> None:
        """Called instead of process_weights_after_loading() of a method class that converts by itself."""
        with self.converting() as outermost:
            if not outermost:
                original(method, layer)
                return
            try:
                call = self.method_call(original, method, layer)
            except Exception as error:  # another class than the known one, or a reload
                name = getattr(layer, "layer_name", "a layer")
                self.leave(name, f"{engine.name()} converts it", f"unknown parameters: {error}")
                original(method, layer)
            else:
                name = call.name
                self.answer(call)
        self.done(name)

    def skip(self, prefix: str, name: str) -> None:
        """The checkpoint's raw tensors below `prefix` need not be read."""
        self._skipped.add(prefix, name)

    def skips(self, tensor_name: str) -> bool:
        """Whether a tensor of the checkpoint need not be read."""
        return self._skipped.covers(tensor_name)

    # --- one layer ---

    def answer(self, call: Call) -> Any:
        self._skipped.forget(call.name)  # only the first load may skip raw experts
        try:
            answer = self._from_source(call)
        except Exception as error:
            why, reload = reason(error), _is_reload(error)
        else:
            return self._verify(call, answer) if isinstance(answer, _Candidate) else answer
        # Outside the except clause: the exception's frames hold the source's tensors.
        return self._fall_back(call, why, reload)

    def _from_source(self, call: Call) -> "Tuple[Any, ...] | _Candidate":
        """What the conversion returns, from a source, or the source's tensors to compare with the engine's own."""
        layer, name, start = call.layer, call.name, time.monotonic()
        if getattr(layer, CONVERTED, False):
            raise Mismatch("first conversion", "the weights of the first", "a reload")
        setattr(layer, CONVERTED, True)
        live = call.live()
        blob, entry = self.sources.agree(live)
        verify = self.sources.verify_mode(live, blob)
        kind = (blob.root, *live.kind)
        verify_now = verify == "all" or (verify == "first" and kind not in self._verified)
        if verify_now and call.raw_missing:
            raise Mismatch("verification", f"the mode is {verify}, and without raw experts there is nothing to "
                                           "compare with")
        with blob.layer(entry["prefix"]) as source:
            tensors = build.read(source, call.device(), live.backend)
            if not call.raw_missing:
                build.same_scales(source, blob.manifest["target"], tensors, call.arguments)
            if verify_now:
                return _Candidate(source, blob, tensors, live, kind)
            result = self._build(call, source, tensors)
            self.placed(call.layer, live, blob, source, tensors)
        self.came_from(blob, name, source.path, time.monotonic() - start)
        return result

    def placed(self, layer: Any, live: Live, blob: Any, source: Any, tensors: Mapping[str, Any]) -> None:
        """Called once `tensors`, by the source's names, are what the layer's kernel will read: an engine that loads
        weights again notes where."""

    def came_from(self, blob: Any, name: str, path: str, seconds: float) -> None:
        """Notes a layer that has a source's tensors."""
        made = isinstance(blob, MadeBlob)
        (self.made if made else self.taken).append(name)
        log.info("mxfp4-repack: %s: %s from %s in %.2f s", name, "made" if made else "taken", path, seconds)

    def done(self, name: str) -> None:
        """Notes a finished layer; after a model's last one logs the counts and frees the loader's
        buffers."""
        if name not in self.waiting:  # a reload
            return
        self.waiting.remove(name)
        if not self.waiting:
            self.sum_up()

    def sum_up(self) -> None:
        blobs, checkpoints = (", ".join(self.sources.roots(kind)) for kind in (BLOB, CHECKPOINT))
        loader = sys.modules.get("mxfp4_repack.loader")
        parts = []
        if blobs or not checkpoints:
            parts.append(f"{len(self.taken)} layers taken from {blobs or self.settings.blob}")
        if checkpoints:
            by = loader.made_by() if loader is not None else ""
            parts.append(f"{len(self.made)} {'' if parts else 'layers '}made from {checkpoints}" + (f" by {by}" if by else ""))
        log.info("mxfp4-repack: %s, %d converted by %s", ", ".join(parts), len(self.converted), engine.name())
        self.sources.forget_comparisons()
        if loader is not None:
            loader.release()

    def finish(self, model: Any) -> None:
        """Called after `model` was loaded. Raises BlobRefused if experts have no data."""
        for name, parameter in model.named_parameters():
            if parameter.is_meta and name.rpartition(".")[2] in PARAMETERS:
                raise BlobRefused(f"mxfp4-repack: {name} was not loaded, and {engine.name()} did not ask for "
                                  "its converted weights")
        if self.waiting or not self.taken + self.made + self.converted:
            why = (f"{engine.name()} did not ask for the weights of " + ", ".join(sorted(self.waiting))
                   if self.waiting else f"the model has no MXFP4 experts that {engine.name()} converts")
            if self.settings.strict:
                raise BlobRefused(f"mxfp4-repack: {why}")
            log.warning("mxfp4-repack: %s", why)
            self.sum_up()

    def _build(self, call: Call, source: Any, tensors: Mapping[str, Any]) -> Any:
        saved = call.saved()
        try:
            return call.build(source, tensors)
        except Exception:
            call.restore(saved)
            raise

    def _fall_back(self, call: Call, why: str, reload: bool) -> Any:
        if call.raw_missing or self.lacks_raw(call.origin):
            raise BlobRefused(f"mxfp4-repack: {call.name}: {self.not_from}, and its raw experts "
                              f"were not loaded: {why}")
        self.leave(call.name, f"{engine.name()} converts it", why, reload)
        return call({})

    def leave(self, name: str, what: str, why: str, reload: bool = False) -> None:
        """Notes a layer that is left to the engine. Raises BlobRefused if that must not be."""
        if self.settings.strict and not reload:
            raise BlobRefused(f"mxfp4-repack: {name}: {self.not_from}: {why}")
        self.say(name, what, why, logging.INFO if reload else logging.WARNING)
        self.converted.append(name)

    @property
    def not_from(self) -> str:
        return NOT_FROM.get(self.settings.source, "neither from a blob nor made from the checkpoint")

    def say(self, name: str, what: str, why: str, level: int = logging.WARNING) -> None:
        """Logs what happens to a layer; if it happened to others for the same reason, one line has said so."""
        if (what, why) in self._said:
            level = logging.DEBUG
        elif why in self._said:
            level = min(level, logging.INFO)
        self._said |= {why, (what, why)}
        log.log(level, "mxfp4-repack: %s: %s: %s", name, what, why)

    def lacks_raw(self, origin: Optional[Origin]) -> bool:
        """Whether the engine has no raw experts to convert: its model is a directory of convert --include-rest, or
        config.json says so of a model whose files are not here."""
        return model_lacks_raw(origin) or (self.settings.packed and (
            origin is None or checkpoint.model_directory(origin) is None))

    def _verify(self, call: Call, candidate: "_Candidate") -> Any:
        """Runs the engine's own conversion, compares it with the source's, and returns the engine's result."""
        source, tensors = candidate.source, candidate.tensors
        result, found = call.compared(source, tensors)
        self.converted.append(call.name)
        if not found:
            self._verified.add(candidate.kind)
            proofs.remember(candidate.live, candidate.blob.digest)
            self.placed(call.layer, candidate.live, candidate.blob, source, call.made)
            log.info("mxfp4-repack: %s: %s's own conversion equals %s", call.name, engine.name(), source.path)
            return result
        self.sources.refute(candidate.blob.root, f"{call.name}, {found[0]}")
        text = (f"mxfp4-repack: {call.name}: {source.path} is not what {engine.name()} makes: "
                f"{'; '.join(found)}")
        if self.settings.strict:
            raise BlobRefused(text)
        log.error("%s; it is not used", text)
        return result


class _Candidate(NamedTuple):
    """A layer's tensors from a source, to compare with what the engine makes."""

    source: Any
    blob: Any
    tensors: Mapping[str, Any]
    live: Live
    kind: Tuple[Any, ...]


def prepare_loader(makes: str) -> None:
    """Lets the loader's ring and threads be made while the engine makes the model's other layers."""
    from mxfp4_repack import loader
    loader.let_make(makes)
    if sys.modules["torch"].cuda.is_initialized():
        loader.prepare("cuda")


def reason(error: Exception) -> str:
    return str(error) if isinstance(error, Mismatch) else f"{type(error).__name__}: {error}"


def _is_reload(error: Exception) -> bool:
    return isinstance(error, Mismatch) and error.fact == "first conversion"
