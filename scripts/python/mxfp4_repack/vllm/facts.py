"""What must be the same in a blob and in the running vLLM before a byte of the blob is used.

FACTS is the list, one row each: a name, what the blob's manifest says, what vLLM says. compare()
raises Mismatch for the first that differs or cannot be found out. Nothing here changes anything.

The names of vLLM's attributes are those of a2c8fc6657 (class FusedMoE) and 017e9f4448 (class
RoutedExperts); both have them.
"""
from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import inspect
import json
import os
import platform
import sys
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

# What the plug-in needs to know of the program's revisions, name -> object:
#   kernel_libraries  {library: version} that the revision asks for
#   converters        first 16 digits of SHA-256 over the source of both converters and of
#                     _swizzle_mxfp4, absent where they were not read
#   generic_slice     "checkpoint": the generic loader gives each rank I / tp rows of the checkpoint,
#                     "tensor": as many as its tensors have
with open(os.path.join(os.path.dirname(__file__), "revisions.json"), encoding="utf-8") as _file:
    REVISIONS: Dict[str, Dict[str, Any]] = json.load(_file)
FINGERPRINTS = {revision["converters"]: name for name, revision in REVISIONS.items()
                if "converters" in revision}
# The same fingerprint of every release, and those of the branches that run for one backend:
#   converters {fingerprint: [release]}, gpt_oss and generic {backend: {fingerprint: [release]}}
with open(os.path.join(os.path.dirname(__file__), "fingerprints.json"), encoding="utf-8") as _file:
    RELEASES: Dict[str, Any] = json.load(_file)
# layout -> {library: versions with whose code its bytes were executed}
with open(os.path.join(os.path.dirname(__file__), "tested.json"), encoding="utf-8") as _file:
    TESTED: Dict[str, Dict[str, List[str]]] = json.load(_file)

METHOD_CLASSES = ("GptOssMxfp4MoEMethod", "Mxfp4MoEMethod", "QuarkOCP_MX_MoEMethod")
# Those that read the checkpoint's own tensors.
LOAD_FORMATS = ("auto", "hf", "safetensors", "pt", "npcache", "mistral", "fastsafetensors",
                "runai_streamer", "instanttensor")
BLOCK = 32  # codes that share a scale
ORIGIN = "_mxfp4_repack_origin"  # on the layer: where its weights come from
CONVERTED = "_mxfp4_repack_converted"  # on the layer, from its first conversion on
RAW_DTYPES = {None: "none", "BF16": "bfloat16", "F16": "float16", "F32": "float32"}
# Where a version can be asked for. triton_kernels has none of its own in vLLM: the layout classes
# that it gives are compared instead, in build.
DISTRIBUTIONS = {"flashinfer": ("flashinfer-python", "flashinfer"), "AITER": ("amd-aiter", "aiter")}


class Mismatch(Exception):
    """A fact, what the blob says and what vLLM says: vLLM converts the layer itself.

    Without `live`: what is wrong with the blob itself.
    """

    def __init__(self, fact: str, blob: Any, live: Any = None) -> None:
        self.fact, self.blob, self.live = fact, blob, live
        super().__init__(f"{fact}: {blob}" if live is None else
                         f"{fact}: the blob has {_text(blob)}, vLLM has {_text(live)}")


class OneOf(Tuple[Any, ...]):
    """Several values that would all do."""


class Origin(NamedTuple):
    """What the engine's configuration says about the weights of a layer."""

    model: str = ""
    revision: Optional[str] = None
    download_dir: Optional[str] = None
    load_format: str = "unknown"
    refusals: Tuple[str, ...] = ()  # why raw weights must be there in any case

    @classmethod
    def of(cls, config: Any) -> "Origin":
        model, load, parallel = config.model_config, config.load_config, config.parallel_config
        refusals = []
        if _offloads(config):
            refusals.append("weights are offloaded to the CPU")
        for switch in ("enable_eplb", "enable_elastic_ep"):
            if getattr(parallel, switch, False):
                refusals.append(f"{switch} is on")
        load_format = getattr(load.load_format, "value", load.load_format)
        return cls(model=str(getattr(model, "model_weights", "") or model.model),
                   revision=getattr(model, "revision", None),
                   download_dir=getattr(load, "download_dir", None),
                   load_format=str(load_format).lower(), refusals=tuple(refusals))


def current_origin() -> Optional[Origin]:
    """Of the configuration that is current now, if one is."""
    module = sys.modules.get("vllm.config")
    ask = getattr(module, "get_current_vllm_config_or_none", None) or getattr(
        module, "get_current_vllm_config", None)
    try:
        config = ask() if ask is not None else None
        return Origin.of(config) if config is not None else None
    except Exception:  # none is current: some releases raise
        return None


def _offloads(config: Any) -> bool:
    if getattr(getattr(config, "cache_config", None), "cpu_offload_gb", 0):
        return True
    offload = getattr(config, "offload_config", None)
    return bool(getattr(getattr(offload, "uva", None), "cpu_offload_gb", 0) or
                getattr(getattr(offload, "prefetch", None), "offload_group_size", 0))


class Live:
    """One layer as vLLM has it, before its conversion or already before its weights are loaded."""

    def __init__(self, layer: Any, *, method: Any, family: str, backend: str,
                 shapes: Mapping[str, Sequence[int]], biases: Mapping[str, Optional[str]],
                 fingerprint: str, origin: Optional[Origin], activation: Any = None,
                 input_scales: Optional[bool] = None, params_dtype: Any = None) -> None:
        self.layer, self.family, self.backend = layer, family, backend
        self.method = type(method).__name__
        self.shapes = {name: tuple(int(n) for n in shape) for name, shape in shapes.items()}
        self.biases = biases  # torch's names of types, by slot
        self.fingerprint = fingerprint
        self.revision = FINGERPRINTS.get(fingerprint)
        self.origin = origin
        if activation is None:
            activation = getattr(layer, "activation", None)
        self.activation = str(getattr(activation, "value", activation)).lower()
        self._input_scales, self._params_dtype = input_scales, params_dtype

    def knows(self, revision: str) -> bool:
        """Whether this vLLM's code is known to make the revision's bytes: both converters are the
        same, or at least all that runs for this layer's backend."""
        release = revision.replace("vllm-", "", 1)
        if self.revision == revision or release in RELEASES["converters"].get(self.fingerprint, ()):
            return True
        branches = RELEASES.get(self.family, {}).get(self.backend, {})
        return release in branches.get(installed_branch(self.family, self.backend), ())

    @property
    def kind(self) -> Tuple[Any, ...]:
        """What layers have in common that one conversion speaks for."""
        return self.backend, self.family, tuple(sorted(self.shapes.items())), tuple(
            sorted(self.biases.items()))

    @property
    def load_format(self) -> str:
        return "unknown" if self.origin is None else self.origin.load_format

    @property
    def parallel(self) -> Any:
        return self.layer.moe_config.moe_parallel_config

    @property
    def rank(self) -> Tuple[int, int]:
        """(rank, ranks) of the blob's directories: of TP or of EP, whichever splits the layer."""
        p = self.parallel
        return (p.ep_rank, p.ep_size) if p.ep_size > 1 else (p.tp_rank, p.tp_size)

    @property
    def experts(self) -> List[int]:
        """Global numbers of the experts here, in local order."""
        manager = getattr(self.layer, "expert_map_manager", None)
        if manager is not None:
            here = ((int(manager.map_global_to_local(e)), e)
                    for e in range(manager.global_num_experts) if manager.is_local_expert(e))
            return [e for _, e in sorted(here)]
        to_local = getattr(self.layer, "_expert_map", None)
        if to_local is None:
            return list(range(self.layer.local_num_experts))
        local = [(place, e) for e, place in enumerate(to_local.tolist()) if place >= 0]
        return [e for _, e in sorted(local)]

    @property
    def fused_shared_experts(self) -> int:
        manager = getattr(self.layer, "expert_map_manager", None)
        owner = self.layer if manager is None else manager
        return int(getattr(owner, "num_fused_shared_experts", 0) or 0)

    @property
    def input_scales(self) -> bool:
        if self._input_scales is not None:
            return self._input_scales
        return getattr(self.layer, "w13_input_scale", None) is not None

    @property
    def params_dtype(self) -> str:
        own = self._params_dtype
        return dtype_name(self.layer.params_dtype if own is None else own)

    @property
    def padded_intermediate(self) -> int:
        return self.shapes["w13_weight"][1] // 2

    @property
    def intermediate(self) -> int:
        """Of the model, unpadded."""
        return int(self.layer.moe_config.intermediate_size_per_partition_unpadded *
                   self.parallel.tp_size)

    def intermediate_range(self, loader: str, revision: str) -> List[int]:
        """The part of the model that vLLM's loader reads here."""
        size, ranks = self.intermediate, self.parallel.tp_size
        if loader in ("gpt_oss_stacked", "gpt_oss_per_expert", "quark_stacked") or (
                loader == "loaded" and self.family == "gpt_oss"):
            stride = -(-(size // BLOCK) // ranks) * BLOCK
        elif REVISIONS.get(revision, {}).get("generic_slice") == "checkpoint":
            stride = size // ranks
        else:
            stride = self.padded_intermediate
        begin = min(self.parallel.tp_rank * stride, size)
        return [begin, min(begin + stride, size)]


class Fact(NamedTuple):
    name: str
    blob: Callable[[Mapping[str, Any], Mapping[str, Any]], Any]  # (manifest, layer's entry)
    live: Callable[[Live, Mapping[str, Any]], Any]  # (layer, manifest)
    applies: Callable[[Mapping[str, Any], Live], bool] = lambda manifest, live: True


def _padded_shape(slot: str) -> Fact:
    """Of a raw tensor, each of which says two padded sizes."""
    def blob(manifest: Mapping[str, Any], entry: Mapping[str, Any]) -> Tuple[int, ...]:
        sizes = entry["sizes"]
        hidden, inner = sizes["padded_hidden_size"], sizes["padded_intermediate_size"]
        rows, columns = (2 * inner, hidden) if slot.startswith("w13") else (hidden, inner)
        return sizes["num_experts"], rows, columns // (BLOCK if slot.endswith("scale") else 2)

    return Fact(f"padded shape of {slot}", blob, lambda v, m: v.shapes[slot])


def _is_marlin(manifest: Mapping[str, Any], live: Live) -> bool:
    return live.backend in ("MARLIN", "BATCHED_MARLIN")


def _is_aiter_generic(manifest: Mapping[str, Any], live: Live) -> bool:
    return live.backend == "AITER_MXFP4_BF16" and live.family == "generic"


def _situ_of_blob(manifest: Mapping[str, Any], entry: Mapping[str, Any]) -> str:
    name = manifest["layout"].rsplit("/", 1)[-1]
    return {"bf16-situ": "situ", "bf16-situ-a8w4": "situ with a8w4"}.get(name, "another")


def _situ_of_live(live: Live, manifest: Mapping[str, Any]) -> str:
    if live.activation.rsplit(".", 1)[-1] != "situ":
        return "another"
    a8w4 = os.environ.get("VLLM_ROCM_USE_AITER_MOE_SITUV2_A8W4", "0").lower()
    return "situ with a8w4" if a8w4 in ("1", "true") else "situ"


FACTS: Tuple[Fact, ...] = (
    Fact("method class", lambda m, e: OneOf(METHOD_CLASSES), lambda v, m: v.method),
    Fact("backend", lambda m, e: m["target"]["backend"], lambda v, m: v.backend),
    # convert --emit loaded stops before any backend's layout.
    Fact("layout", lambda m, e: "loaded" if m["layout"] == "loaded" else "the backend's",
         lambda v, m: "the backend's"),
    Fact("family", lambda m, e: m["target"]["family"], lambda v, m: v.family),
    Fact("load format", lambda m, e: OneOf(LOAD_FORMATS), lambda v, m: v.load_format),
    Fact("platform", lambda m, e: m["target"]["platform"], lambda v, m: live_platform()),
    # Empty: nothing in the layout depends on it.
    Fact("architecture", lambda m, e: m["target"]["arch"], lambda v, m: live_arch(),
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
    Fact("number of local experts", lambda m, e: e["sizes"]["num_experts"],
         lambda v, m: v.layer.local_num_experts),
    Fact("placement of experts", lambda m, e: list(m["rank"]["experts"]), lambda v, m: v.experts),
    _padded_shape("w13_weight"), _padded_shape("w2_weight"),
    _padded_shape("w13_weight_scale"), _padded_shape("w2_weight_scale"),
    Fact("hidden size", lambda m, e: e["sizes"]["hidden_size"],
         lambda v, m: v.layer.moe_config.hidden_dim_unpadded),
    Fact("slice of the intermediate size", lambda m, e: list(m["rank"]["intermediate_range"]),
         lambda v, m: v.intermediate_range(m["model"]["loader"], m["revision"])),
    Fact("w13_bias", lambda m, e: RAW_DTYPES.get(e["sizes"]["bias"], e["sizes"]["bias"]),
         lambda v, m: v.biases["w13_bias"] or "none"),
    Fact("w2_bias", lambda m, e: RAW_DTYPES.get(e["sizes"]["bias"], e["sizes"]["bias"]),
         lambda v, m: v.biases["w2_bias"] or "none"),
    Fact("input scales", lambda m, e: e["sizes"]["input_scales"], lambda v, m: v.input_scales),
    Fact("params dtype", lambda m, e: m["target"]["knobs"].get("params_dtype", "bfloat16"),
         lambda v, m: v.params_dtype),
    Fact("VLLM_MARLIN_INPUT_DTYPE",
         lambda m, e: m["target"]["knobs"].get("marlin_input_dtype", "none"),
         lambda v, m: os.environ.get("VLLM_MARLIN_INPUT_DTYPE") or "none", _is_marlin),
    Fact("activation", _situ_of_blob, _situ_of_live, _is_aiter_generic),
)


def compare(manifest: Mapping[str, Any], entry: Mapping[str, Any], live: Live) -> None:
    """Raises Mismatch unless every fact agrees; the code of vLLM's converters is none of them."""
    for fact in FACTS:
        if not fact.applies(manifest, live):
            continue
        want = fact.blob(manifest, entry)
        try:
            have = fact.live(live, manifest)
        except Exception as error:
            raise Mismatch(fact.name, want, f"unknown ({error})") from error
        if have not in want if isinstance(want, OneOf) else have != want:
            raise Mismatch(fact.name, want, have)
    compare_library(manifest)


def compare_revision(manifest: Mapping[str, Any], live: Live) -> None:
    if not live.knows(manifest["revision"]):
        raise Mismatch("code of vLLM's converters", manifest["revision"],
                       live.revision or f"code of no known revision ({live.fingerprint})")


def compare_library(manifest: Mapping[str, Any]) -> None:
    """Of layouts whose bytes depend on the version of a kernel library."""
    name, _, version = manifest.get("kernel_library", "").partition(" ")
    if name not in DISTRIBUTIONS:
        return
    # A layout that stayed the same names the version it was taken from.
    pinned = REVISIONS.get(manifest["revision"], {}).get("kernel_libraries", {})
    tested = TESTED.get(manifest["layout"], {}).get(name, [])
    versions = OneOf(dict.fromkeys([version, pinned.get(name, version), *tested]))
    for distribution in DISTRIBUTIONS[name]:
        try:
            found = importlib.metadata.version(distribution)
        except importlib.metadata.PackageNotFoundError:
            continue
        if found.partition("+")[0] not in versions:
            raise Mismatch(f"version of {name}", versions, found)
        return
    raise Mismatch(f"version of {name}", versions, "none that could be found")


def fingerprint(functions: Sequence[Any]) -> str:
    """Of the code of the two converters and of _swizzle_mxfp4, in this order."""
    text = "".join(inspect.getsource(inspect.unwrap(function)) for function in functions)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


_fingerprints: Dict[str, str] = {}


def oracle_fingerprint(oracle: Any) -> str:
    """Of the module's converters, which may be wrapped already."""
    key = f"{oracle.__name__} {getattr(oracle, '__file__', '')}"
    if key not in _fingerprints:
        try:
            _fingerprints[key] = fingerprint([
                oracle.convert_gpt_oss_weight_to_mxfp4_moe_kernel_format,
                oracle.convert_weight_to_mxfp4_moe_kernel_format, oracle._swizzle_mxfp4])
        except (AttributeError, OSError, TypeError):  # another function, or no source
            with open(oracle.__file__, "rb") as source:
                _fingerprints[key] = hashlib.sha256(source.read()).hexdigest()[:16]
    return _fingerprints[key]


@functools.lru_cache(maxsize=None)
def installed_branch(family: str, backend: str) -> str:
    """The branch fingerprint of the vLLM that is installed; empty where its source says none."""
    from mxfp4_repack.vllm import fingerprint as branches
    try:
        return branches.branch_fingerprint(branches.Sources(), family, backend)
    except (OSError, LookupError, SyntaxError, ValueError, AttributeError):
        return ""


def fingerprint_of_tree(root: str) -> str:
    """The same of a source tree or an installed package, without importing it."""
    layers = os.path.join(root, "vllm", "model_executor", "layers")
    found = []
    for file, names in ((("fused_moe", "oracle", "mxfp4.py"),
                         ("convert_gpt_oss_weight_to_mxfp4_moe_kernel_format",
                          "convert_weight_to_mxfp4_moe_kernel_format")),
                        (("quantization", "utils", "mxfp4_utils.py"), ("_swizzle_mxfp4",))):
        with open(os.path.join(layers, *file), encoding="utf-8") as source:
            lines = source.readlines()
        for name in names:
            (start,) = (i for i, line in enumerate(lines) if line.startswith(f"def {name}("))
            found.append("".join(inspect.getblock(lines[start:])))
    return hashlib.sha256("".join(found).encode()).hexdigest()[:16]


def live_platform() -> str:
    current = _current_platform()
    for name in ("cuda", "rocm", "xpu", "cpu"):
        if getattr(current, f"is_{name}")():
            return name
    return "other"


def live_arch() -> str:
    """As mxfp4-repack spells it: sm90, gfx950, x86_64."""
    kind = live_platform()
    if kind == "cuda":
        major, minor = tuple(_current_platform().get_device_capability())[:2]
        return f"sm{major}{minor}"
    if kind == "rocm":
        import torch
        index = torch.cuda.current_device()
        properties: Any = torch.cuda.get_device_properties(index)
        return str(properties.gcnArchName).partition(":")[0]
    return platform.machine().lower() if kind == "cpu" else ""


def _current_platform() -> Any:
    from vllm.platforms import current_platform
    return current_platform


def dtype_name(dtype: Any) -> str:
    return str(dtype).rsplit(".", 1)[-1]


def _text(value: Any) -> str:
    """Short, for one line: runs of numbers are joined."""
    if isinstance(value, OneOf):
        return ", ".join(str(v) for v in value[:-1]) + " or " * (len(value) > 1) + str(value[-1])
    if isinstance(value, (list, tuple)) and len(value) > 6 and all(
            isinstance(v, int) for v in value):
        runs: List[List[int]] = []
        for v in value:
            if runs and runs[-1][1] + 1 == v:
                runs[-1][1] = v
            else:
                runs.append([v, v])
        shown = ", ".join(f"{a}" if a == b else f"{a}-{b}" for a, b in runs[:6])
        return f"[{shown}{', ...' if len(runs) > 6 else ''}]"
    return str(value)


if __name__ == "__main__":
    # python3 -m mxfp4_repack.vllm.facts DIR...: which revision's converters a vLLM tree has
    for tree in sys.argv[1:]:
        text = fingerprint_of_tree(tree)
        print(tree, text, FINGERPRINTS.get(text, "no known revision"))
