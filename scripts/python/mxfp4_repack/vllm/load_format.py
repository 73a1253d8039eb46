"""The load format: vllm serve MODEL --load-format mxfp4_repack.

Experts come from a blob if there is one that fits; else they are made from the checkpoint, on the way to the
device. Other tensors are read by the same loader and loaded by vLLM's own. The plug-in replaces vLLM's
converters and its iterator over files while load_model() runs, and puts them back at its end. This module must
be imported after vLLM's package of loaders.
"""
from __future__ import annotations

import copy
import os
from typing import Any, Optional

from vllm.model_executor.model_loader import get_model_loader
from vllm.model_executor.model_loader.base_loader import BaseModelLoader

from mxfp4_repack.plugin import checkpoint
from mxfp4_repack.plugin.live import Origin
from mxfp4_repack.plugin.names import EITHER
from mxfp4_repack.plugin.settings import Settings
from mxfp4_repack.vllm import reload
from mxfp4_repack.vllm.hook import Hook
from mxfp4_repack.vllm.live import origin_of
from mxfp4_repack.vllm.patches import import_converting_mega, patched
from mxfp4_repack.vllm.sent import Sent

# Keys of --model-loader-extra-config. Other keys go to the loader of tensors that are not experts.
OWN_KEYS = ("blob", "verify", "check", "strict", "source", "direct", "others", "pass",
            "load_format")


def _option(key: str) -> str:
    return f"model_loader_extra_config: {key}"


def _text(key: str, value: Any) -> str:
    """An option as its variable has it. JSON's null, which never comes here, leaves an option out."""
    if isinstance(value, (str, os.PathLike)):
        return os.fsdecode(value)
    if key in ("strict", "direct", "others") and isinstance(value, (bool, int)):
        return str(int(value))
    raise ValueError(f"{_option(key)} is {value!r}, expected a text")


class BlobLoader(BaseModelLoader):  # type: ignore[misc]
    """vLLM's loader of another load format, with experts from a blob or made from the checkpoint.

    load_format: the other format, "auto" unless model_loader_extra_config says another. blob: the
    blob's directory; by default MXFP4_REPACK_BLOB, MODEL/mxfp4_repack or MODEL-mxfp4_repack. source:
    "blob" or "checkpoint", to allow only one. verify, check, strict, direct, others and pass are the
    values of the variables MXFP4_REPACK_VERIFY and so on.
    """

    def __init__(self, load_config: Any) -> None:
        super().__init__(load_config)
        extra = load_config.model_loader_extra_config or {}
        if not isinstance(extra, dict):
            raise ValueError(f"load format mxfp4_repack: model_loader_extra_config is {extra!r}; it "
                             f"can be an object with {', '.join(OWN_KEYS)}")
        self._own = {key: _text(key, extra[key]) for key in OWN_KEYS if extra.get(key) is not None}
        rest = copy.copy(load_config)
        rest.load_format = self._own.pop("load_format", "auto")
        if rest.load_format.lower() == load_config.load_format:
            raise ValueError(f"{_option('load_format')} is {rest.load_format!r}; it is for the other tensors")
        rest.model_loader_extra_config = {k: v for k, v in extra.items() if k not in OWN_KEYS}
        self._read(os.curdir)  # an option without a meaning is refused before a model is downloaded
        self._rest = get_model_loader(rest)
        self._origin: Optional[Origin] = None

    def __getattr__(self, name: str) -> Any:
        if name == "_rest":
            raise AttributeError(name)
        return getattr(self._rest, name)

    def download_model(self, model_config: Any) -> None:
        self._rest.download_model(model_config)

    def load_weights(self, model: Any, model_config: Any) -> None:
        """Loads again into a loaded model, by vLLM's own loader."""
        self._rest.load_weights(model, model_config)

    def get_all_weights(self, model_config: Any, model: Any) -> Any:
        """Weights for a reload into a loaded model. Experts that came from a source do so again; see reload.py."""
        first = reload.origin_of_first(model)
        if first is None:
            return self._rest.get_all_weights(model_config, model)
        self._origin = first._replace(model=str(model_config.model), revision=getattr(model_config, "revision", None))
        if not os.path.isdir(self._origin.model):
            self._rest.download_model(model_config)
        hook = Hook(reload.settings_of_reload(self._settings(), first, self._origin), self._origin)
        hook.device = self._device_of_others(hook.settings, next(model.parameters()).device)
        try:
            found = reload.Reload(hook, model)
        except Exception:
            hook.sources.close()
            raise
        return found.weights(lambda: self._rest.get_all_weights(model_config, model))

    def load_model(self, vllm_config: Any, model_config: Any, *args: Any, **kwargs: Any) -> Any:
        """Takes or makes the experts; vLLM loads and converts the layers for which that cannot be done."""
        rest_config = self._rest.load_config
        self._origin = origin_of(vllm_config)._replace(
            model=str(getattr(model_config, "model_weights", "") or model_config.model),
            revision=getattr(model_config, "revision", None),
            load_format=str(rest_config.load_format).lower())
        if not os.path.isdir(self._origin.model):
            self._rest.download_model(model_config)  # vLLM would, but after it has created the layers
        hook = Hook(self._settings(), self._origin)
        device = getattr(vllm_config.load_config, "device", None) or getattr(
            getattr(vllm_config, "device_config", None), "device", None)
        hook.device = self._device_of_others(hook.settings, device)
        import_converting_mega(vllm_config)
        try:
            with patched(hook):
                model = self._rest.load_model(
                    *args, vllm_config=vllm_config, model_config=model_config, **kwargs)
            hook.finish(model)
            Sent(hook, model)
        finally:
            hook.sources.close()
        return model

    @staticmethod
    def _device_of_others(settings: Settings, named: Any) -> Any:
        import torch
        if named is None or settings.others is False:
            return None
        device = torch.device(named)
        return device if settings.others or device.type == "cuda" else None

    def _settings(self) -> Settings:
        assert self._origin is not None
        directory = checkpoint.model_directory(self._origin) or self._origin.model
        beside = os.path.normpath(directory) + "-mxfp4_repack"
        return self._read(beside if os.path.isdir(beside) else directory)

    def _read(self, blob: str) -> Settings:
        """What options say, else the environment; `blob` unless one of them names another."""
        said = {k: v for k, v in os.environ.items() if k.startswith("MXFP4_REPACK_")}
        said.update({"MXFP4_REPACK_" + key.upper(): text for key, text in self._own.items()})
        options = {"MXFP4_REPACK_" + key.upper(): _option(key) for key in self._own}
        settings = Settings.from_environment({"MXFP4_REPACK_BLOB": blob, **said}, EITHER, options)
        if settings is None:
            raise ValueError("load format mxfp4_repack: the blob's name is empty")
        return settings._replace(skip_raw=True, named="MXFP4_REPACK_BLOB" in said)
