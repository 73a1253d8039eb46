"""The facts that must agree between a manifest and the running SGLang before a byte is used."""
from __future__ import annotations

from typing import Any, Dict, Mapping

from mxfp4_repack.plugin import facts as common
from mxfp4_repack.plugin.facts import RAW_DTYPES, Fact, Mismatch, OneOf, recipe
from mxfp4_repack.plugin.live import dtype_name, kind_of_arch
from mxfp4_repack.sglang.live import REVISIONS, Live, live_arch, live_platform, running_revision
from mxfp4_repack.sglang.names import METHOD_CLASSES

# Load formats that read the checkpoint's own tensors.
LOAD_FORMATS = ("auto", "safetensors", "pt", "npcache", "mistral", "fastsafetensors", "instanttensor", "runai_streamer")
# The blob's backend -> SGLang's of equal bytes.
SAME_BYTES = {"FLASHINFER_TRTLLM_MXFP4_BF16": "FLASHINFER_TRTLLM_MXFP4_MXFP8"}


def _backend(manifest: Mapping[str, Any], entry: Mapping[str, Any]) -> str:
    backend = str(manifest["target"]["backend"])
    return SAME_BYTES.get(backend, backend)


def _all_to_all(live: Live, manifest: Mapping[str, Any]) -> str:
    from sglang.srt.layers.moe.utils import get_moe_a2a_backend
    return "none" if get_moe_a2a_backend().is_none() else "another"


FACTS = (
    Fact("method class", lambda m, e: OneOf(METHOD_CLASSES.values()), lambda v, m: v.method),
    # Methods that wrap another one keep experts elsewhere, or in pages.
    Fact("the layer's own method", lambda m, e: True, lambda v, m: v.layer.quant_method is v._method),
    Fact("backend", _backend, lambda v, m: v.backend),
    # convert --emit loaded stops before any backend's layout.
    Fact("layout", lambda m, e: "loaded" if m["layout"] == "loaded" else "the backend's",
         lambda v, m: "the backend's"),
    Fact("family", lambda m, e: m["target"]["family"], lambda v, m: v.family),
    # EPLB and a location of experts that was given change which experts a rank holds, others where they lie.
    Fact("deployment", lambda m, e: "plain", lambda v, m: v.origin.refusals[0] if v.origin.refusals else "plain"),
    Fact("load format", lambda m, e: OneOf(LOAD_FORMATS), lambda v, m: v.load_format),
    Fact("platform", lambda m, e: m["target"]["platform"], lambda v, m: live_platform()),
    # The blob's architecture is empty if nothing in the layout depends on it.
    Fact("architecture", lambda m, e: kind_of_arch(m["target"]["arch"]), lambda v, m: live_arch(),
         lambda m, v: bool(m["target"]["arch"])),
    Fact("all-to-all", lambda m, e: "none", _all_to_all),
    Fact("expert-parallel rank and size", lambda m, e: (m["rank"]["ep_rank"], m["rank"]["ep_size"]),
         lambda v, m: (v.layer.moe_ep_rank, v.layer.moe_ep_size)),
    Fact("tensor-parallel rank and size", lambda m, e: (m["rank"]["tp_rank"], m["rank"]["tp_size"]),
         lambda v, m: (v.layer.moe_tp_rank, v.layer.moe_tp_size)),
    Fact("draft model", lambda m, e: False, lambda v, m: bool(getattr(v.layer, "is_draft", False))),
    Fact("fused shared experts", lambda m, e: 0,
         lambda v, m: int(getattr(v.layer, "num_fused_shared_experts", 0) or 0)),
    Fact("number of local experts", lambda m, e: len(recipe(m, e)["experts"]), lambda v, m: v.layer.num_local_experts),
    Fact("placement of experts", lambda m, e: list(recipe(m, e)["experts"]), lambda v, m: v.experts),
    Fact("hidden size", lambda m, e: recipe(m, e)["hidden_size"], lambda v, m: v.hidden),
    Fact("slice of the intermediate size", lambda m, e: [recipe(m, e)["intermediate_begin"], recipe(m, e)["intermediate_end"]],
         lambda v, m: v.intermediate_range),
    Fact("w13_bias", lambda m, e: RAW_DTYPES.get(recipe(m, e)["bias"], recipe(m, e)["bias"]),
         lambda v, m: v.biases["w13_bias"] or "none"),
    Fact("w2_bias", lambda m, e: RAW_DTYPES.get(recipe(m, e)["bias"], recipe(m, e)["bias"]),
         lambda v, m: v.biases["w2_bias"] or "none"),
    Fact("input scales", lambda m, e: recipe(m, e)["input_scales"], lambda v, m: False),
    Fact("params dtype", lambda m, e: m["target"]["knobs"].get("params_dtype", "bfloat16"),
         lambda v, m: dtype_name(v.layer.params_dtype)),
)


def compare(manifest: Mapping[str, Any], entry: Mapping[str, Any], live: Live) -> None:
    """Raises Mismatch unless every fact agrees; compare_revision() compares the code that converts."""
    common.compare(FACTS, manifest, entry, live)
    pinned = REVISIONS.get(manifest["revision"], REVISIONS.get(running_revision(), {}))
    common.compare_library(manifest, pinned.get("kernel_libraries", {}))


def compare_revision(blob: Any, live: Live) -> None:
    if not live.makes(blob):
        raise Mismatch("release", blob.manifest["revision"], f"{running_revision()}, code {live.fingerprint}")


def flags(live: Live) -> Dict[str, Any]:
    """The flags of open_checkpoint() for the rank that holds the layer."""
    names = list(REVISIONS)
    running = running_revision()
    made: Dict[str, Any] = {
        "rank": live.rank[0], "revision": running if running in names else names[-1], "backend": live.backend,
        "family": live.family, "platform": live_platform(), "tp_size": live.rank[1]}
    if live.layer.moe_ep_size > 1:
        made["enable_expert_parallel"] = True
    arch = live_arch()
    return {**made, "arch": arch} if arch else made
