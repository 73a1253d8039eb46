"""What the running vLLM says of a layer, as the flags with which the program plans its conversion.

vLLM chose backend, sizes and ranks; the program is only asked which bytes follow. Its plan is compared
with vLLM fact by fact afterwards, as a blob's manifest is.
"""
from __future__ import annotations

import os
import sys
from typing import Any, Dict

from mxfp4_repack.vllm import converter_code
from mxfp4_repack.vllm.live import Live, live_arch, live_platform

# Variables that change the bytes of AITER's layouts.
AITER_VARIABLES = ("VLLM_ROCM_USE_AITER_MOE_SITUV2", "VLLM_ROCM_USE_AITER_MOE_SITUV2_A8W4",
                   "VLLM_ROCM_USE_AITER_MOE_A4W4_DSV4")


def flags(live: Live) -> Dict[str, Any]:
    """The flags of open_checkpoint() for the rank that holds the layer."""
    made: Dict[str, Any] = {
        "rank": live.rank[0], "revision": revision(live), "backend": live.backend, "family": live.family,
        "platform": live_platform(), "pad": "{}x{}".format(*live.padded_sizes), **_ranks(live), "knob": _knobs(live)}
    arch = live_arch()
    if arch:
        made["arch"] = arch
    if live.backend.startswith("AITER_"):
        made["env"] = {name: os.environ[name] for name in AITER_VARIABLES if name in os.environ}
    return made


def revision(live: Live) -> str:
    """The rules to ask: the running release's own; those of the newest one with the same code; else the newest,
    whose bytes vLLM's own conversion has to prove."""
    version = str(getattr(sys.modules.get("vllm"), "__version__", "")).partition("+")[0]
    names = list(converter_code.REVISIONS)
    if f"vllm-{version}" in names:
        return f"vllm-{version}"
    return (converter_code.releases_with(live.fingerprint) or names)[-1]


def _ranks(live: Live) -> Dict[str, Any]:
    """vLLM gives the layer all ranks of TP, DP and PCP as one number."""
    parallel = live.parallel
    ranks = live.rank[1]
    sizes = {"dp_size": int(getattr(parallel, "dp_size", 1) or 1),
             "pcp_size": int(getattr(parallel, "pcp_size", 1) or 1)}
    inner = sizes["dp_size"] * sizes["pcp_size"]
    if ranks % inner:
        return {"tp_size": ranks}
    made: Dict[str, Any] = {"tp_size": ranks // inner, **{name: n for name, n in sizes.items() if n > 1}}
    if parallel.ep_size > 1:
        made["enable_expert_parallel"] = True
        first = live.experts[0] if live.experts else 0
        linear = live.experts == list(range(first, first + len(live.experts)))
        made["expert_placement"] = "linear" if linear else "round_robin"
    return made


def _knobs(live: Live) -> Dict[str, str]:
    made = {}
    if live.params_dtype != "bfloat16":
        made["params_dtype"] = live.params_dtype
    marlin = os.environ.get("VLLM_MARLIN_INPUT_DTYPE")
    if marlin and live.backend in ("MARLIN", "BATCHED_MARLIN"):
        made["marlin_input_dtype"] = marlin
    if live.backend == "HUMMING" and live.humming_input != "none":
        made["humming_input_dtype"] = live.humming_input
    return made
