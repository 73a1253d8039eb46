"""Gives a model directory of `convert --include-rest` its own quantization method back.

The directory holds no raw experts, so its config.json names a method that no engine knows: an engine
without this plug-in stops with an error. The plug-in puts the checkpoint's own method back, and turns
the blob on for this process and those that it starts.
"""
from __future__ import annotations

import os
from typing import Any, Optional

from vllm.model_executor.layers.quantization import (
    QUANTIZATION_METHODS, get_quantization_config)
from vllm.model_executor.layers.quantization.base_config import QuantizationConfig

from mxfp4_repack.plugin.names import IN_THE_MODEL
from mxfp4_repack.vllm.environment import register_environment
from mxfp4_repack.vllm.names import QUANT_METHOD, QUANT_METHOD_KEY

_RAY_VARIABLES = "VLLM_RAY_EXTRA_ENV_VARS_TO_COPY"


class PackedConfig(QuantizationConfig):  # type: ignore[misc]
    """Never instantiated: vLLM asks only the class, before any built-in one."""

    @classmethod
    def override_quantization_method(cls, hf_quant_cfg: Any, user_quant: Optional[str],
                                     hf_config: Any = None) -> Optional[str]:
        """The method that vLLM takes for the original checkpoint; None for other models."""
        if hf_quant_cfg.get("quant_method") != QUANT_METHOD:
            return None
        # A checkpoint that names no method is served with --quantization, packed or not.
        own = hf_quant_cfg.pop(QUANT_METHOD_KEY, user_quant)
        if not isinstance(own, str):
            raise ValueError(f"config.json: quantization_config.{QUANT_METHOD_KEY} is missing: the "
                             "checkpoint names no quantization method, nor does --quantization")
        hf_quant_cfg["quant_method"] = own
        _turn_on()
        others = [name for name in QUANTIZATION_METHODS if name != QUANT_METHOD]
        for name in others:
            method = get_quantization_config(name).override_quantization_method(
                hf_quant_cfg, user_quant, hf_config=hf_config)
            if method is not None:
                return str(method)
        return own


def _turn_on() -> None:
    # config.json may say anything about its own place: the hook asks which model vLLM was given.
    variables = {"MXFP4_REPACK_BLOB": IN_THE_MODEL, "MXFP4_REPACK_SKIP_RAW": "1", "MXFP4_REPACK_PACKED": "1"}
    for name, value in variables.items():
        os.environ.setdefault(name, value)
    copied = [name for name in os.environ.get(_RAY_VARIABLES, "").split(",") if name]
    os.environ[_RAY_VARIABLES] = ",".join(dict.fromkeys([*copied, *variables]))
    register_environment()
