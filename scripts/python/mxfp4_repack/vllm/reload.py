"""Weights loaded again into a running model: vLLM's reload_weights(), after sleep level 2 too.

vLLM makes a new loader, asks it for all weights of the same or another model, puts the parameters of every
layer back as they were before their first load, loads, converts, and copies what came out into the tensors that
were there. Experts that a converter rearranged do not survive this in many releases; VLLM.md says in which. So
layers whose tensors once came from a source are left out: they are filled from a source again, in place, and
vLLM loads the others. Everything is checked before anything is changed.
"""
from __future__ import annotations

import os
import time
from typing import Any, Iterable, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from mxfp4_repack.made import MadeBlob
from mxfp4_repack.plugin import checkpoint, places
from mxfp4_repack.plugin.calls import model_lacks_raw
from mxfp4_repack.plugin.engine import log
from mxfp4_repack.plugin.facts import Mismatch
from mxfp4_repack.plugin.hook import BlobRefused, prepare_loader, reason
from mxfp4_repack.plugin.live import Origin
from mxfp4_repack.plugin.names import BLOB, CHECKPOINT, ORIGIN, PLACES
from mxfp4_repack.plugin.settings import Settings
from mxfp4_repack.vllm.patches import reading_patched
from mxfp4_repack.vllm.sent import guard, info_of, is_held, let_go

Weights = Iterable[Tuple[str, Any]]


class _Layer(NamedTuple):
    module: Any
    places: places.Places
    blob: Any
    entry: Mapping[str, Any]

    @property
    def name(self) -> str:
        return str(self.places.live.layer.layer_name)


def origin_of_first(model: Any) -> Optional[Origin]:
    """Where the weights came from at first; None for a model that this plug-in did not load."""
    found = (vars(module).get(ORIGIN) for module in model.modules())
    return next((origin for origin in found if origin is not None), None)


def settings_of_reload(settings: Settings, first: Origin, origin: Origin) -> Settings:
    """A blob that the user named is the first model's: another model's files may have the same names and sizes."""
    directories = [os.path.realpath(checkpoint.model_directory(one) or one.model) for one in (first, origin)]
    if not settings.named or directories[0] == directories[1] or settings.source == CHECKPOINT:
        return settings
    if settings.source == BLOB:
        raise BlobRefused(f"mxfp4-repack: {settings.blob} was named for {directories[0]}: nothing is loaded from "
                          f"{directories[1]}")
    return settings._replace(source=CHECKPOINT)


class Reload:
    """One reload of one model."""

    def __init__(self, hook: Any, model: Any) -> None:
        """Decides which layers are filled in place. Raises BlobRefused if vLLM must not, or cannot, load another."""
        self._hook, self._model = hook, model
        self._left = 0
        checkpoint.lacks_raw_experts.cache_clear()  # the files may be others by now
        prepare_loader(hook.settings.makes)
        self._covered: List[_Layer] = [layer for module in model.modules() if vars(module).get(ORIGIN) is not None
                                       for layer in self._decided(module)]
        for layer in self._covered:
            hook.skip(layer.entry["prefix"], layer.name)

    def _decided(self, module: Any) -> Sequence[_Layer]:
        try:
            return [self._agreed(module)]
        except Exception as error:
            why = reason(error)
        name = str(getattr(module, "layer_name", getattr(module, "prefix", "a layer")))
        if model_lacks_raw(self._hook.origin):
            raise BlobRefused(f"mxfp4-repack: {name}: {self._hook.not_from}, and {self._hook.origin.model} has no raw "
                              f"experts to load again: {why}")
        self._hook.leave(name, "vLLM loads it again", why)
        if is_held(module):
            let_go(module)
        self._left += 1
        return []

    def _agreed(self, module: Any) -> _Layer:
        noted = vars(module).get(PLACES)
        if noted is None:
            raise Mismatch("first load", "its tensors came from no source, or are kept in a form of the class's own")
        live, origin, sources = noted.live, self._hook.origin, self._hook.sources
        if origin.refusals:
            raise Mismatch("deployment", "converted experts only", origin.refusals[0])
        if live.input_scales:
            raise Mismatch("input scales", "none", "some, which are loaded beside the weights")
        live.origin = origin
        blob, entry = sources.agree(live)
        same = places.conversion_of(blob.manifest) == noted.conversion
        # Code that made this conversion's bytes once makes them of other weights, too.
        proven = same and isinstance(blob, MadeBlob) and self._hook.settings.verify is None
        if sources.verify_mode(live, blob) != "none" and not proven:
            raise Mismatch("verification", "a reload in place leaves nothing to compare with")
        with blob.layer(entry["prefix"]) as source:  # raises unless its file is there and whole
            places.memory(module, noted, source)
        return _Layer(module, noted, blob, entry)

    def weights(self, rest: Any) -> Weights:
        """What vLLM has to load, the covered layers' raw tensors left out, which are filled first. rest: gives all
        weights, and is called once vLLM asks for the first."""
        for layer in self._covered:
            guard(layer.module)
        return self._weights(rest)

    def _weights(self, rest: Any) -> Iterator[Tuple[str, Any]]:
        whole = False
        try:
            self._unguard_unless_begun()
            begin = time.monotonic()
            for layer in self._covered:
                self._fill(layer)
            seconds = time.monotonic() - begin
            with reading_patched(self._hook):
                yield from rest()
            log.info("mxfp4-repack: %d layers loaded again in place from %s in %.2f s, %d by vLLM", len(self._covered),
                     ", ".join(dict.fromkeys(layer.blob.root for layer in self._covered)) or "no source", seconds, self._left)
            whole = True
        finally:
            self._end(whole)

    def _fill(self, layer: _Layer) -> None:
        from mxfp4_repack import loader
        with layer.blob.layer(layer.entry["prefix"]) as source:
            flats = places.memory(layer.module, layer.places, source)
            try:
                loader.load_into(source, next(iter(flats.values())).device, flats)
            except Exception as error:
                raise BlobRefused(f"mxfp4-repack: {layer.name}: its weights are not whole until they are loaded again: "
                                  f"{reason(error)}") from None

    def _unguard_unless_begun(self) -> None:
        """Where vLLM copies weights that need no conversion, it leaves the layers as they are, and never ends."""
        guarded = {id(layer.module) for layer in self._covered}
        if not any(info_of(module).can_load() for module in self._model.modules() if id(module) not in guarded):
            self._free()

    def _end(self, whole: bool) -> None:
        from mxfp4_repack import loader
        if not whole:
            self._free()
        self._covered = []
        self._hook.sources.close()
        loader.release()

    def _free(self) -> None:
        for layer in self._covered:
            info_of(layer.module).reset()

