"""The hook: answers a call of vLLM's converter from the blob or by vLLM's own conversion.

An answer never mixes both: the hook reads, checks and builds all of a blob's tensors before it
returns any, and if anything fails it calls the original function with the original arguments. If
the raw experts were not loaded, there is nothing to convert, and the hook raises BlobRefused.
"""
from __future__ import annotations

import functools
import inspect
import logging
import os
import sys
import threading
import time
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple

from mxfp4_repack import BlobError, open_blob
from mxfp4_repack.vllm import build, checkpoint, converter_code, facts, proofs
from mxfp4_repack.vllm.facts import Mismatch
from mxfp4_repack.vllm.live import CONVERTED, ORIGIN, Live, Origin, current_origin, dtype_name
from mxfp4_repack.vllm.names import IN_THE_MODEL
from mxfp4_repack.vllm.skip import SkippedLayers

log = logging.getLogger("vllm.mxfp4_repack")

RAW = build.SLOTS[:4]
BIASES = build.SLOTS[4:]


class BlobRefused(RuntimeError):
    """The blob does not fit, and vLLM must not or cannot convert by itself."""


class Hook:
    """State of one process."""

    def __init__(self, settings: Any, origin: Optional[Origin] = None) -> None:
        self.settings = settings
        self._origin = origin
        self.taken: List[str] = []  # names of layers that came from the blob
        self.converted: List[str] = []  # names of layers that vLLM converted
        self._skipped = SkippedLayers(self)
        self._inside = threading.local()
        self._blobs: Dict[Tuple[str, int], Any] = {}
        self._owners: Dict[str, str] = {}  # layer of the blob -> layer of vLLM
        self._waiting: Set[str] = set()  # layers that were made and not converted
        self._verified: Set[Tuple[Any, ...]] = set()
        self._refuted = ""  # why the blob is not used any more

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
              kwargs: Mapping[str, Any]) -> Optional["_Call"]:
        """None if this vLLM passes its converter other arguments than the known ones."""
        try:
            return _Call(family, original, oracle, args, kwargs)
        except Exception as error:
            why = f"the arguments of {original.__name__} are not understood: {_reason(error)}"
        no_raw = any(getattr(value, "is_meta", False) for value in (*args, *kwargs.values()))
        if no_raw or self._lacks_raw(self._origin or current_origin()):
            raise BlobRefused(f"mxfp4-repack: not from the blob, and the raw experts were not "
                              f"loaded: {why}")
        if self.settings.strict:
            raise BlobRefused(f"mxfp4-repack: not from the blob: {why}")
        log.warning("mxfp4-repack: vLLM converts: %s", why)
        return None

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
        if self.settings.skip_raw:
            return self._skipped.create_weights(unchanged, method, layer, arguments)
        return unchanged()

    def skips(self, tensor_name: str) -> bool:
        """Whether a tensor of the checkpoint need not be read."""
        return self._skipped.covers(tensor_name)

    # --- facts ---

    def blob(self, live: Live) -> Any:
        """The blob of the layer's rank, opened once. Raises Mismatch."""
        rank, ranks = live.rank
        directory = self._directory(live)
        if (directory, rank) not in self._blobs:
            opened: Any
            try:
                opened = open_blob(directory, rank=rank, check=self.settings.check,
                                   direct=self.settings.direct)
            except (BlobError, OSError) as error:
                opened = str(error)  # the exception would keep its frames' tensors alive
            self._blobs[directory, rank] = opened
        blob = self._blobs[directory, rank]
        if isinstance(blob, str):
            raise Mismatch(f"rank {rank} of {ranks}", blob)
        return blob

    def _directory(self, live: Live) -> str:
        """Where the blob is. Raises Mismatch."""
        if self.settings.blob != IN_THE_MODEL:
            return str(self.settings.blob)
        directory = None if live.origin is None else checkpoint.model_directory(live.origin)
        if directory is None:
            raise Mismatch("checkpoint", "a model directory here",
                           "none" if live.origin is None else live.origin.model)
        return directory

    def agree(self, live: Live) -> Tuple[Any, Mapping[str, Any]]:
        """The blob and its entry for the layer; raises Mismatch unless every fact agrees."""
        if self._refuted:
            raise Mismatch("earlier layer", self._refuted, "another result")
        if live.origin is None:
            raise Mismatch("configuration", "its own", "none that is current")
        build.check_backend(live.backend)
        blob = self.blob(live)
        entry = checkpoint.find_layer(blob.manifest["layers"], live.layer.layer_name)
        name, owner = live.layer.layer_name, self._owners.get(entry["prefix"])
        if owner not in (None, name):  # of another model in this process, with equal names inside
            raise Mismatch("layer", f"{entry['prefix']}, which {owner} took", name)
        facts.compare(blob.manifest, entry, live)
        if self.verify_mode(live, blob) == "none" and not self._known(live, blob):
            facts.compare_revision(blob.manifest, live)
        if not self.settings.trust_source:
            checkpoint.compare_source(blob.manifest, blob.root, live.origin)
        self._owners[entry["prefix"]] = name
        return blob, entry

    def verify_mode(self, live: Live, blob: Any) -> str:
        """none, first or all: by default code that is not known to make the blob's bytes has to prove
        once that it does."""
        if self.settings.verify is not None:
            return str(self.settings.verify)
        return "none" if self._known(live, blob) else "first"

    @staticmethod
    def _known(live: Live, blob: Any) -> bool:
        return live.knows(blob.manifest["revision"]) or proofs.proven(live, blob.digest)

    # --- one layer ---

    def _convert(self, call: "_Call") -> Any:
        self._skipped.forget(call.name)  # only the first load may skip raw experts
        try:
            answer = self._answer(call)
        except Exception as error:
            why, reload = _reason(error), _is_reload(error)
        else:
            return self._verify(call, answer) if isinstance(answer, _Candidate) else answer
        # Outside the except clause: the exception's frames hold the blob's tensors.
        return self._fall_back(call, why, reload)

    def _answer(self, call: "_Call") -> "Tuple[Any, ...] | _Candidate":
        """The six values from the blob, or the blob's tensors to compare with vLLM's own values."""
        layer, name, start = call.layer, call.name, time.monotonic()
        if getattr(layer, CONVERTED, False):
            raise Mismatch("first conversion", "the weights of the first", "a reload")
        setattr(layer, CONVERTED, True)
        live = call.live()
        blob, entry = self.agree(live)
        verify = self.verify_mode(live, blob)
        kind = (blob.root, *live.kind)
        verify_now = verify == "all" or (verify == "first" and kind not in self._verified)
        if verify_now and call.raw_missing:
            raise Mismatch("verification", "nothing to compare with", f"the mode {verify}")
        with blob.layer(entry["prefix"]) as source:
            tensors = build.read(source, call.device(), live.backend)
            if not call.raw_missing:
                build.same_scales(source, blob.manifest["target"], tensors, call.arguments)
            if verify_now:
                return _Candidate(source, tensors, live, blob.digest, kind)
            result = self._build(call, source, tensors, live.backend)
        self.taken.append(name)
        log.info("mxfp4-repack: %s: taken from %s in %.2f s", name, source.path,
                 time.monotonic() - start)
        return result

    def _done(self, name: str) -> None:
        """Notes a finished layer; after a model's last one logs the counts and frees the loader's
        buffers."""
        if name not in self._waiting:  # a reload
            return
        self._waiting.remove(name)
        if not self._waiting:
            self._sum_up()

    def _sum_up(self) -> None:
        roots = ", ".join(dict.fromkeys(directory for directory, _ in self._blobs)) or self.settings.blob
        log.info("mxfp4-repack: %d layers taken from %s, %d converted by vLLM", len(self.taken), roots,
                 len(self.converted))
        loader = sys.modules.get("mxfp4_repack.loader")
        if loader is not None:
            loader.release()

    def finish(self, model: Any) -> None:
        """Called after `model` was loaded. Raises BlobRefused if experts have no data."""
        for name, parameter in model.named_parameters():
            if parameter.is_meta and name.rpartition(".")[2] in build.SLOTS:
                raise BlobRefused(f"mxfp4-repack: {name} was not loaded, and vLLM did not ask for "
                                  "the blob's")
        if self._waiting or not self.taken + self.converted:
            why = ("vLLM did not ask for the weights of " + ", ".join(sorted(self._waiting))
                   if self._waiting else "the model has no MXFP4 experts that vLLM converts")
            if self.settings.strict:
                raise BlobRefused(f"mxfp4-repack: {why}")
            log.warning("mxfp4-repack: %s", why)
            self._sum_up()

    def _build(self, call: "_Call", source: Any, tensors: Mapping[str, Any],
               backend: str) -> Tuple[Any, ...]:
        saved = call.saved_parameters()
        try:
            result = build.build(source, tensors, call.arguments, backend, call)
        except Exception:
            call.restore(saved)
            raise
        call.after()
        return result

    def _fall_back(self, call: "_Call", why: str, reload: bool) -> Any:
        if call.raw_missing or self._lacks_raw(call.origin):
            raise BlobRefused(f"mxfp4-repack: {call.name}: not from the blob, and its raw experts "
                              f"were not loaded: {why}")
        if self.settings.strict and not reload:
            raise BlobRefused(f"mxfp4-repack: {call.name}: not from the blob: {why}")
        log.log(logging.INFO if reload else logging.WARNING,
                "mxfp4-repack: %s: vLLM converts it: %s", call.name, why)
        self.converted.append(call.name)
        return call({})

    def _lacks_raw(self, origin: Optional[Origin]) -> bool:
        """Whether vLLM has no raw experts to convert: its model is a directory of convert --include-rest, or
        config.json says so of a model whose files are not here."""
        return model_lacks_raw(origin) or (self.settings.packed and (
            origin is None or checkpoint.model_directory(origin) is None))

    def _verify(self, call: "_Call", candidate: "_Candidate") -> Any:
        """Runs vLLM's own conversion, compares it with the blob, and returns vLLM's result."""
        source, tensors = candidate.source, candidate.tensors
        if build.is_wrapped(source):
            with build.convert_layout_replaced(build.LayoutWitness(source, tensors)) as witness:
                result = call({})
            found = witness.all_differences()
        else:
            result, found = call({}), []
        self.converted.append(call.name)
        found = found + build.differences(source, tensors, result)
        if not found:
            self._verified.add(candidate.kind)
            proofs.remember(candidate.live, candidate.digest)
            log.info("mxfp4-repack: %s: vLLM's own conversion equals %s", call.name, source.path)
            return result
        self._refuted = f"{call.name}, {found[0]}"
        text = (f"mxfp4-repack: {call.name}: {source.path} is not what vLLM makes: "
                f"{'; '.join(found)}")
        if self.settings.strict:
            raise BlobRefused(text)
        log.error("%s; the blob is not used", text)
        return result


class _Candidate(NamedTuple):
    """A layer's tensors from the blob, to compare with what vLLM makes."""

    source: Any
    tensors: Mapping[str, Any]
    live: Live
    digest: str
    kind: Tuple[Any, ...]


def _reason(error: Exception) -> str:
    return str(error) if isinstance(error, Mismatch) else f"{type(error).__name__}: {error}"


def _is_reload(error: Exception) -> bool:
    return isinstance(error, Mismatch) and error.fact == "first conversion"


class _Call:
    """A call of a converter, which can be repeated with some arguments, by name, replaced."""

    def __init__(self, family: str, original: Callable[..., Any], oracle: Any,
                 args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        self.family, self._original, self._oracle = family, original, oracle
        self._signature = inspect.signature(original)
        self._args, self._kwargs = args, kwargs
        self.arguments = self._signature.bind(*args, **kwargs).arguments
        self.layer = self.arguments["layer"]
        self.name = getattr(self.layer, "layer_name", "a layer")
        raw = self.arguments["w13_weight"]
        self.raw_missing = bool(getattr(raw, "is_meta", False)) or model_lacks_raw(self.origin)

    def __call__(self, replaced: Mapping[str, Any]) -> Any:
        # Pass positional arguments by position again: the original may be another plug-in's wrapper.
        names = list(self._signature.parameters)[:len(self._args)]
        args = [replaced.get(name, value) for name, value in zip(names, self._args)]
        others = {name: value for name, value in replaced.items() if name not in names}
        return self._original(*args, **{**self._kwargs, **others})

    def live(self) -> Live:
        arguments = self.arguments
        scale = arguments.get("w13_input_scale")
        return Live(
            self.layer, method=self.layer.quant_method, family=self.family,
            backend=arguments["mxfp4_backend"].name,
            shapes={name: arguments[name].shape for name in RAW},
            biases={name: None if arguments.get(name) is None else
                    dtype_name(arguments[name].dtype) for name in BIASES},
            fingerprint=converter_code.oracle_fingerprint(self._oracle), origin=self.origin,
            activation=arguments.get("activation"),
            input_scales=None if scale is None else True)

    def device(self) -> Any:
        raw = self.arguments["w13_weight"]
        return self.layer.moe_config.device if raw.is_meta else raw.device

    def saved_parameters(self) -> Dict[str, Any]:
        return {name: getattr(self.layer, name) for name in build.SLOTS
                if getattr(self.layer, name, None) is not None}

    def restore(self, saved: Mapping[str, Any]) -> None:
        """Puts back the parameters that the original deleted before it failed: the next call reads
        them."""
        for name, value in saved.items():
            if getattr(self.layer, name, None) is not value:
                if hasattr(self.layer, name):
                    delattr(self.layer, name)
                setattr(self.layer, name, value)

    def after(self) -> None:
        """Has the side effects of the original, which did not run, and replaces parameters without
        data."""
        name = self.arguments["mxfp4_backend"].name
        if name == "AITER_MXFP4_BF16" and "activation" in self._signature.parameters:
            os.environ["AITER_BF16_FP8_MOE_BOUND"] = "0"  # the generic converter since 2026-08
        replace_meta_parameters(self.layer, self.device)

    @property
    def origin(self) -> Optional[Origin]:
        return getattr(self.layer, ORIGIN, None) or current_origin()


def model_lacks_raw(origin: Optional[Origin]) -> bool:
    """Whether vLLM loads a model directory that has a blob and no raw experts."""
    return origin is not None and checkpoint.lacks_raw_experts(checkpoint.model_directory(origin))


def replace_meta_parameters(layer: Any, device: Callable[[], Any]) -> None:
    """Replaces parameters without data by empty ones with the same attributes.

    Since 0.33.0, vLLM keeps the object of a parameter that it replaces unless it is on meta.
    """
    import torch
    for name in build.SLOTS:
        parameter = layer._parameters.get(name)
        if parameter is not None and parameter.is_meta:
            empty = torch.nn.Parameter(torch.empty(0, dtype=parameter.dtype, device=device()),
                                       requires_grad=False)
            for attribute, value in vars(parameter).items():
                vars(empty).setdefault(attribute, value)
            layer._parameters[name] = empty
