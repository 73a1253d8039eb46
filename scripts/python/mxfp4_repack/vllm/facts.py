"""The facts that must agree between a manifest and the running vLLM before a byte is used.

FACTS lists them, one in a row: its name, what the blob's manifest says, what vLLM says. compare()
raises Mismatch for the first fact that differs or is unknown. Nothing here changes anything.
"""
from __future__ import annotations

import os
import sys
from typing import Any, Mapping, Tuple

from mxfp4_repack.plugin import facts as common
from mxfp4_repack.plugin.facts import RAW_DTYPES, Fact, Mismatch, OneOf, padded_shape, recipe
from mxfp4_repack.plugin.live import kind_of_arch
from mxfp4_repack.vllm.conversion import flags as flags  # beside compare() for Sources
from mxfp4_repack.vllm.converter_code import REVISIONS, releases_with
from mxfp4_repack.vllm.live import Live, live_arch, live_platform
from mxfp4_repack.vllm.names import FAMILIES

# Load formats that read the checkpoint's own tensors.
LOAD_FORMATS = ("auto", "hf", "safetensors", "pt", "npcache", "mistral", "fastsafetensors",
                "runai_streamer", "instanttensor")

def _is_marlin(manifest: Mapping[str, Any], live: Live) -> bool:
    return live.backend in ("MARLIN", "BATCHED_MARLIN")


def _is_aiter_generic(manifest: Mapping[str, Any], live: Live) -> bool:
    return live.backend == "AITER_MXFP4_BF16" and live.family == "generic"


def _situ_of_blob(manifest: Mapping[str, Any], entry: Mapping[str, Any]) -> str:
    name = manifest["layout"].rsplit("/", 1)[-1]
    return {"bf16-situ": "situ", "bf16-situ-a8w4": "situ with a8w4",
            "int4": "situ as int4"}.get(name, "another")


def _situ_of_live(live: Live, manifest: Mapping[str, Any]) -> str:
    if live.activation.rsplit(".", 1)[-1] != "situ":
        return "another"
    # A switch before 0.31, a variable with several values since; vLLM itself parses what it knows.
    chosen = getattr(sys.modules.get("vllm.envs"), "VLLM_ROCM_USE_AITER_MOE_SITUV2", None)
    if chosen is not None:
        return "situ with a8w4" if str(chosen).lower() == "a8w4" else "situ"
    a8w4 = os.environ.get("VLLM_ROCM_USE_AITER_MOE_SITUV2_A8W4", "0").lower()
    return "situ with a8w4" if a8w4 in ("1", "true") else "situ"


def _apart(is_so: Any) -> str:
    return "apart" if is_so else "mixed"


def _separates(manifest: Mapping[str, Any], live: Live) -> bool:
    """Whether this vLLM's converter keeps gate and up apart if a switch says so (since 0.32)."""
    return (_is_aiter_generic(manifest, live) and _situ_of_live(live, manifest) == "another" and
            hasattr(live.layer.moe_config, "use_mxfp4_w4a4_dsv4"))


FACTS: Tuple[Fact, ...] = (
    Fact("method class", lambda m, e: OneOf(FAMILIES), lambda v, m: v.method),
    Fact("backend", lambda m, e: m["target"]["backend"], lambda v, m: v.backend),
    # convert --emit loaded stops before any backend's layout.
    Fact("layout", lambda m, e: "loaded" if m["layout"] == "loaded" else "the backend's",
         lambda v, m: "the backend's"),
    Fact("family", lambda m, e: m["target"]["family"], lambda v, m: v.family),
    Fact("load format", lambda m, e: OneOf(LOAD_FORMATS), lambda v, m: v.load_format),
    Fact("platform", lambda m, e: m["target"]["platform"], lambda v, m: live_platform()),
    # The blob's architecture is empty if nothing in the layout depends on it.
    Fact("architecture", lambda m, e: kind_of_arch(m["target"]["arch"]), lambda v, m: live_arch(),
         lambda m, v: bool(m["target"]["arch"])),
    Fact("expert parallel rank and size",
         lambda m, e: (m["rank"]["ep_rank"], m["rank"]["ep_size"]),
         lambda v, m: (v.parallel.ep_rank if v.parallel.ep_size > 1 else 0, v.parallel.ep_size)),
    Fact("tensor parallel rank and size",
         lambda m, e: (m["rank"]["tp_rank"], m["rank"]["tp_size"]),
         lambda v, m: (v.parallel.tp_rank, v.parallel.tp_size)),
    Fact("redundant experts", lambda m, e: 0,
         lambda v, m: v.layer.moe_config.num_experts - v.layer.moe_config.num_logical_experts),
    Fact("fused shared experts", lambda m, e: 0, lambda v, m: v.fused_shared_experts),
    Fact("number of local experts", lambda m, e: len(recipe(m, e)["experts"]),
         lambda v, m: v.layer.local_num_experts),
    Fact("placement of experts", lambda m, e: list(recipe(m, e)["experts"]),
         lambda v, m: v.experts),
    padded_shape("w13_weight"), padded_shape("w2_weight"),
    padded_shape("w13_weight_scale"), padded_shape("w2_weight_scale"),
    Fact("hidden size", lambda m, e: recipe(m, e)["hidden_size"],
         lambda v, m: v.layer.moe_config.hidden_dim_unpadded),
    Fact("slice of the intermediate size", lambda m, e: [recipe(m, e)["intermediate_begin"], recipe(m, e)["intermediate_end"]],
         lambda v, m: v.intermediate_range(m["model"]["loader"], m["revision"])),
    Fact("w13_bias", lambda m, e: RAW_DTYPES.get(recipe(m, e)["bias"], recipe(m, e)["bias"]),
         lambda v, m: v.biases["w13_bias"] or "none"),
    Fact("w2_bias", lambda m, e: RAW_DTYPES.get(recipe(m, e)["bias"], recipe(m, e)["bias"]),
         lambda v, m: v.biases["w2_bias"] or "none"),
    Fact("input scales", lambda m, e: recipe(m, e)["input_scales"], lambda v, m: v.input_scales),
    Fact("params dtype", lambda m, e: m["target"]["knobs"].get("params_dtype", "bfloat16"),
         lambda v, m: v.params_dtype),
    Fact("VLLM_MARLIN_INPUT_DTYPE",
         lambda m, e: m["target"]["knobs"].get("marlin_input_dtype", "none"),
         lambda v, m: os.environ.get("VLLM_MARLIN_INPUT_DTYPE") or "none", _is_marlin),
    Fact("activations of HUMMING", lambda m, e: m["target"]["knobs"].get("humming_input_dtype", "none"),
         lambda v, m: v.humming_input, lambda m, v: v.backend == "HUMMING"),
    Fact("activation", _situ_of_blob, _situ_of_live, _is_aiter_generic),
    Fact("gate and up", lambda m, e: _apart(m["layout"] == "aiter/bf16-separated"),
         lambda v, m: _apart(v.layer.moe_config.use_mxfp4_w4a4_dsv4), _separates),
)


def compare(manifest: Mapping[str, Any], entry: Mapping[str, Any], live: Live) -> None:
    """Raises Mismatch unless every fact agrees; compare_revision() compares the converters' code."""
    common.compare(FACTS, manifest, entry, live)
    common.compare_library(manifest, REVISIONS.get(manifest["revision"], {}).get("kernel_libraries", {}))


def compare_revision(blob: Any, live: Live) -> None:
    if not live.makes(blob):
        raise Mismatch("code of vLLM's converters", blob.manifest["revision"], " or ".join(releases_with(live.fingerprint)) or
                       f"code of no known revision ({live.fingerprint})")
