"""The hook: answers a call of vLLM's converter from a source or by vLLM's own conversion.

A source is a blob, or the checkpoint from which the weights are made; sources.py decides which. An
answer never mixes both ways: the hook reads, checks and builds all of a layer's tensors before it
returns any, and if anything fails it calls the original function with the original arguments. If
the raw experts were not loaded, there is nothing to convert, and the hook raises BlobRefused.
"""
from __future__ import annotations

import functools
import inspect
import logging
import sys
import threading
import time
from typing import Any, Callable, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple

from mxfp4_repack.made import MadeBlob
from mxfp4_repack.vllm import build, checkpoint, proofs
from mxfp4_repack.vllm.calls import PARAMETERS, Call, ConverterCall, MethodCall, model_lacks_raw
from mxfp4_repack.vllm.facts import Mismatch
from mxfp4_repack.vllm.live import CONVERTED, ORIGIN, Live, Origin, current_origin
from mxfp4_repack.vllm.mega import MegaLayers
from mxfp4_repack.vllm.names import BLOB, CHECKPOINT
from mxfp4_repack.vllm.skip import SkippedLayers
from mxfp4_repack.vllm.sources import Sources

log = logging.getLogger("vllm.mxfp4_repack")

NOT_FROM = {BLOB: "not from the blob", CHECKPOINT: "not made from the checkpoint"}


class BlobRefused(RuntimeError):
    """No source fits, and vLLM must not or cannot convert by itself."""


class Hook:
    """State of one process."""

    def __init__(self, settings: Any, origin: Optional[Origin] = None) -> None:
        self.settings = settings
        self._origin = origin
        self.sources = Sources(settings)
        self.taken: List[str] = []  # names of layers that came from a blob
        self.made: List[str] = []  # names of layers that were made from the checkpoint
        self.converted: List[str] = []  # names of layers that vLLM converted
        self._skipped = SkippedLayers(self)
        self._mega = MegaLayers(self)
        self._inside = threading.local()
        self._waiting: Set[str] = set()  # layers that were created and not converted
        self._verified: Set[Tuple[Any, ...]] = set()
        self._said: Set[Any] = set()

    # --- what the wrappers call ---

    def convert(self, family: str, original: Callable[..., Any], oracle: Any,
                args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Called instead of the converter of `family`, `original` in the module `oracle`."""
        if getattr(self._inside, "converting", False):  # one converter calls the other
            return original(*args, **kwargs)
        self._inside.converting = True
        try:
            call = self._call(family, original, oracle, args, kwargs)
            if call is None:
                return original(*args, **kwargs)
            result = self._convert(call)
        finally:
            self._inside.converting = False
        self._done(call.name)
        return result

    def _call(self, family: str, original: Callable[..., Any], oracle: Any, args: Sequence[Any],
              kwargs: Mapping[str, Any]) -> Optional[ConverterCall]:
        """None if this vLLM passes its converter other arguments than the known ones."""
        try:
            return ConverterCall(family, original, oracle, args, kwargs)
        except Exception as error:
            why = f"the arguments of {original.__name__} are not understood: {_reason(error)}"
        no_raw = any(getattr(value, "is_meta", False) for value in (*args, *kwargs.values()))
        if no_raw or self._lacks_raw(self._origin or current_origin()):
            raise BlobRefused(f"mxfp4-repack: {self._not_from}, and the raw experts were not "
                              f"loaded: {why}")
        if self.settings.strict:
            raise BlobRefused(f"mxfp4-repack: {self._not_from}: {why}")
        log.warning("mxfp4-repack: vLLM converts: %s", why)
        return None

    def process_weights(self, original: Callable[..., Any], method: Any, layer: Any) -> None:
        """Called instead of process_weights_after_loading() of a method class that converts by itself."""
        if getattr(self._inside, "converting", False):
            return original(method, layer)
        self._inside.converting = True
        try:
            try:
                call = MethodCall(original, method, layer)
            except AttributeError as error:  # another class than the known one
                self.leave(getattr(layer, "layer_name", "a layer"), "vLLM converts it", str(error))
                return original(method, layer)
            self._convert(call)
        finally:
            self._inside.converting = False
        self._done(call.name)

    def create_weights(self, original: Callable[..., Any], method: Any, args: Sequence[Any],
                       kwargs: Mapping[str, Any]) -> Any:
        """Called instead of a method's create_weights; notes where the weights will come from."""
        unchanged = functools.partial(original, method, *args, **kwargs)
        try:
            arguments = inspect.signature(original).bind(method, *args, **kwargs).arguments
            layer = arguments["layer"]
            setattr(layer, ORIGIN, self._origin or current_origin())
            self._waiting.add(layer.layer_name)
        except Exception as error:
            log.warning("mxfp4-repack: create_weights is not understood: %s", error)
            return unchanged()
        if len(self._waiting) == 1:
            _prepare_loader()
        if self.settings.skip_raw:
            return self._skipped.create_weights(unchanged, method, layer, arguments)
        return unchanged()

    def mega_created(self, experts: Any) -> None:
        """Called once vLLM has made experts of mega MoE."""
        self._mega.created(experts, self._origin or current_origin())

    def skip(self, prefix: str, name: str) -> None:
        """The checkpoint's raw tensors below `prefix` need not be read."""
        self._skipped.add(prefix, name)

    def skips(self, tensor_name: str) -> bool:
        """Whether a tensor of the checkpoint need not be read."""
        return self._skipped.covers(tensor_name)

    # --- one layer ---

    def _convert(self, call: Call) -> Any:
        self._skipped.forget(call.name)  # only the first load may skip raw experts
        try:
            answer = self._answer(call)
        except Exception as error:
            why, reload = _reason(error), _is_reload(error)
        else:
            return self._verify(call, answer) if isinstance(answer, _Candidate) else answer
        # Outside the except clause: the exception's frames hold the source's tensors.
        return self._fall_back(call, why, reload)

    def _answer(self, call: Call) -> "Tuple[Any, ...] | _Candidate":
        """The six values from a source, or its tensors to compare with vLLM's own values."""
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
                return _Candidate(source, blob.root, tensors, live, blob.digest, kind)
            result = self._build(call, source, tensors)
        self.came_from(blob, name, source.path, time.monotonic() - start)
        return result

    def came_from(self, blob: Any, name: str, path: str, seconds: float) -> None:
        """Notes a layer that has a source's tensors."""
        made = isinstance(blob, MadeBlob)
        (self.made if made else self.taken).append(name)
        log.info("mxfp4-repack: %s: %s from %s in %.2f s", name, "made" if made else "taken", path, seconds)

    def _done(self, name: str) -> None:
        """Notes a finished layer; after a model's last one logs the counts and frees the loader's
        buffers."""
        if name not in self._waiting:  # a reload
            return
        self._waiting.remove(name)
        if not self._waiting:
            self._sum_up()

    def _sum_up(self) -> None:
        blobs, checkpoints = (", ".join(self.sources.roots(kind)) for kind in (BLOB, CHECKPOINT))
        parts = []
        if blobs or not checkpoints:
            parts.append(f"{len(self.taken)} layers taken from {blobs or self.settings.blob}")
        if checkpoints:
            parts.append(f"{len(self.made)} {'' if parts else 'layers '}made from {checkpoints}")
        log.info("mxfp4-repack: %s, %d converted by vLLM", ", ".join(parts), len(self.converted))
        loader = sys.modules.get("mxfp4_repack.loader")
        if loader is not None:
            loader.release()

    def finish(self, model: Any) -> None:
        """Called after `model` was loaded. Raises BlobRefused if experts have no data."""
        try:
            self._mega.finish()
        except Exception as error:
            raise BlobRefused(f"mxfp4-repack: {self._not_from}, and the raw experts were not loaded: "
                              f"{_reason(error)}") from None
        if self._mega.names and not self._waiting:
            self._sum_up()
        for name, parameter in model.named_parameters():
            if parameter.is_meta and name.rpartition(".")[2] in PARAMETERS:
                raise BlobRefused(f"mxfp4-repack: {name} was not loaded, and vLLM did not ask for its "
                                  "converted weights")
        if self._waiting or not self.taken + self.made + self.converted:
            why = ("vLLM did not ask for the weights of " + ", ".join(sorted(self._waiting))
                   if self._waiting else "the model has no MXFP4 experts that vLLM converts")
            if self.settings.strict:
                raise BlobRefused(f"mxfp4-repack: {why}")
            log.warning("mxfp4-repack: %s", why)
            self._sum_up()

    def _build(self, call: Call, source: Any, tensors: Mapping[str, Any]) -> Any:
        saved = call.saved_parameters()
        try:
            return call.build(source, tensors)
        except Exception:
            call.restore(saved)
            raise

    def _fall_back(self, call: Call, why: str, reload: bool) -> Any:
        if call.raw_missing or self._lacks_raw(call.origin):
            raise BlobRefused(f"mxfp4-repack: {call.name}: {self._not_from}, and its raw experts "
                              f"were not loaded: {why}")
        self.leave(call.name, "vLLM converts it", why, reload)
        return call({})

    def leave(self, name: str, what: str, why: str, reload: bool = False) -> None:
        """Notes a layer that is left to vLLM. Raises BlobRefused if that must not be."""
        if self.settings.strict and not reload:
            raise BlobRefused(f"mxfp4-repack: {name}: {self._not_from}: {why}")
        self.say(name, what, why, logging.INFO if reload else logging.WARNING)
        self.converted.append(name)

    @property
    def _not_from(self) -> str:
        return NOT_FROM.get(self.settings.source, "neither from a blob nor made from the checkpoint")

    def say(self, name: str, what: str, why: str, level: int = logging.WARNING) -> None:
        """Logs what happens to a layer; if it happened to others for the same reason, one line has said so."""
        if (what, why) in self._said:
            level = logging.DEBUG
        elif why in self._said:
            level = min(level, logging.INFO)
        self._said |= {why, (what, why)}
        log.log(level, "mxfp4-repack: %s: %s: %s", name, what, why)

    def _lacks_raw(self, origin: Optional[Origin]) -> bool:
        """Whether vLLM has no raw experts to convert: its model is a directory of convert --include-rest, or
        config.json says so of a model whose files are not here."""
        return model_lacks_raw(origin) or (self.settings.packed and (
            origin is None or checkpoint.model_directory(origin) is None))

    def _verify(self, call: Call, candidate: "_Candidate") -> Any:
        """Runs vLLM's own conversion, compares it with the source's, and returns vLLM's result."""
        source, tensors = candidate.source, candidate.tensors
        if build.is_wrapped(source):
            with build.convert_layout_replaced(build.LayoutWitness(source, tensors)) as witness:
                result = call({})
            found = witness.all_differences()
        else:
            result, found = call({}), []
        self.converted.append(call.name)
        found = found + build.differences(source, tensors, result, call.layer)
        if not found:
            self._verified.add(candidate.kind)
            proofs.remember(candidate.live, candidate.digest)
            log.info("mxfp4-repack: %s: vLLM's own conversion equals %s", call.name, source.path)
            return result
        self.sources.refute(candidate.root, f"{call.name}, {found[0]}")
        text = (f"mxfp4-repack: {call.name}: {source.path} is not what vLLM makes: "
                f"{'; '.join(found)}")
        if self.settings.strict:
            raise BlobRefused(text)
        log.error("%s; it is not used", text)
        return result


class _Candidate(NamedTuple):
    """A layer's tensors from a source, to compare with what vLLM makes."""

    source: Any
    root: str
    tensors: Mapping[str, Any]
    live: Live
    digest: str
    kind: Tuple[Any, ...]


def _prepare_loader() -> None:
    """Lets the loader's ring and threads be made while vLLM makes the model's other layers."""
    torch = sys.modules["torch"]
    if torch.cuda.is_initialized():
        from mxfp4_repack import loader
        loader.prepare("cuda")


def _reason(error: Exception) -> str:
    return str(error) if isinstance(error, Mismatch) else f"{type(error).__name__}: {error}"


def _is_reload(error: Exception) -> bool:
    return isinstance(error, Mismatch) and error.fact == "first conversion"
