"""One layer, its configuration and its machine as the running SGLang has them. Changes nothing."""
from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
import platform
import sys
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from mxfp4_repack.plugin import live as common
from mxfp4_repack.plugin.facts import Mismatch
from mxfp4_repack.plugin.live import Origin, fits_release, kind_of_arch
from mxfp4_repack.plugin.names import BLOCK
from mxfp4_repack.sglang.names import FP4_EXPERTS

# The program's revisions of SGLang, name -> object:
#   kernel_libraries  {library: version} that the release pins; sglang_kernel: of that package
#   code              {name of a module of method classes: first 16 digits of SHA-256 over its file}
with open(os.path.join(os.path.dirname(__file__), "revisions.json"), encoding="utf-8") as _file:
    REVISIONS: Dict[str, Dict[str, Any]] = json.load(_file)

# Backends of which SGLang's own conversion was executed through this plug-in.
BACKENDS = ("FLASHINFER_CUTLASS_MXFP4_BF16", "FLASHINFER_CUTLASS_MXFP4_MXFP8", "FLASHINFER_TRTLLM_MXFP4_MXFP8",
            "MARLIN", "TRITON")


def current_origin() -> Optional[Origin]:
    """The origin by SGLang's current arguments; None if there are none."""
    try:
        from sglang.srt.runtime_context import get_server_args
        arguments = get_server_args()
        return None if arguments is None else origin_of(arguments)
    except Exception:  # none is current
        return None


def origin_of(arguments: Any) -> Origin:
    refusals = []
    for switch, off in (("enable_eplb", False), ("init_expert_location", "trivial"), ("ep_num_redundant_experts", 0),
                        ("elastic_ep_backend", None), ("cpu_offload_gb", 0), ("enable_paged_experts", False),
                        ("kt_weight_path", None), ("weight_cache_mode", "off")):
        value = getattr(arguments, switch, off)
        if value and value != off:
            refusals.append(f"{switch} is {value}")
    load_format = getattr(arguments, "load_format", "auto")
    return Origin(model=str(arguments.model_path), revision=getattr(arguments, "revision", None),
                  download_dir=getattr(arguments, "download_dir", None),
                  load_format=str(getattr(load_format, "value", load_format)).lower(), refusals=tuple(refusals))


class Live(common.Live):
    """One layer as SGLang has it, before its conversion or even before its weights are loaded."""

    @classmethod
    def of(cls, method: Any, layer: Any, origin: Optional[Origin], shapes: Mapping[str, Sequence[int]],
           with_bias: bool) -> "Live":
        """Raises Mismatch for a path that the plug-in does not know. with_bias: as create_weights() is called."""
        bias = "bfloat16" if with_bias else None
        backend = backend_of(method)
        return cls(layer, method=method, family=_family(method, layer), backend=backend, shapes=shapes,
                   biases={"w13_bias": bias, "w2_bias": bias}, fingerprint=code_of(method, backend), origin=origin)

    def makes(self, blob: Any) -> bool:
        running, manifest = running_revision(), blob.manifest
        if running != manifest["revision"] and not fits_release(blob, running):
            return False
        known = REVISIONS.get(running, {})
        # triton_kernels comes with sglang-kernel, has no version of its own, and stores values by its own rules.
        if self.backend == "TRITON" and kernel_version() != known.get("sglang_kernel"):
            return False
        return bool(self.fingerprint) and self.fingerprint == "-".join(
            known.get("code", {}).get(name, "") for name in code_files(self._method, self.backend))

    def check_backend(self) -> None:
        if self.backend not in BACKENDS:
            raise Mismatch("backend", "one that the plug-in knows", self.backend)

    @property
    def rank(self) -> Tuple[int, int]:  # type: ignore[override]
        layer = self.layer
        if layer.moe_ep_size > 1:
            return int(layer.moe_ep_rank), int(layer.moe_ep_size)
        return int(layer.moe_tp_rank), int(layer.moe_tp_size)

    @property
    def experts(self) -> List[int]:
        """Global numbers of the experts here: contiguous. Other placements are refused as deployments."""
        first = int(self.layer.moe_ep_rank) * int(self.layer.num_local_experts)
        return list(range(first, first + int(self.layer.num_local_experts)))

    @property
    def hidden(self) -> int:
        """Unpadded. Up to 0.5.16 a layer keeps only the size rounded up, and gpt-oss's is the checkpoint's then."""
        return int(getattr(self.layer, "hidden_size_unpadded", self.layer.hidden_size))

    @property
    def intermediate_range(self) -> List[int]:
        """The part of the model that SGLang's loader reads here: gpt-oss's in whole blocks
        (models/gpt_oss.py, _load_mxfp4_experts_weights), the generic one in equal parts."""
        ranks, rank = int(self.layer.moe_tp_size), int(self.layer.moe_tp_rank)
        size = int(self.layer.intermediate_size_per_partition) * ranks
        stride = -(-(size // BLOCK) // ranks) * BLOCK if self.family == "gpt_oss" else size // ranks
        begin = min(rank * stride, size)
        return [begin, min(begin + stride, size)]


def running_revision() -> str:
    version = str(getattr(sys.modules.get("sglang"), "__version__", "unknown"))
    return "sglang-" + version.partition("+")[0]


def kernel_version() -> Optional[str]:
    try:
        return importlib.metadata.version("sglang-kernel").partition("+")[0]
    except importlib.metadata.PackageNotFoundError:
        return None


def code_files(method: Any, backend: str) -> List[str]:
    """The modules whose code converts, beside the method class's."""
    module = type(method).__module__.rpartition(".")[2]
    return [module, "marlin_utils_fp4"] if backend == "MARLIN" else [module]


def code_of(method: Any, backend: str) -> str:
    """The fingerprints of those files; empty if one cannot be read."""
    folder = os.path.dirname(str(getattr(sys.modules[type(method).__module__], "__file__", "")))
    made = []
    for name in code_files(method, backend):
        try:
            with open(os.path.join(folder, name + ".py"), "rb") as file:
                made.append(hashlib.sha256(file.read()).hexdigest()[:16])
        except OSError:
            return ""
    return "-".join(made)


def _family(method: Any, layer: Any) -> str:
    if type(method).__name__ in FP4_EXPERTS:
        return "generic"
    return "gpt_oss" if getattr(layer.moe_runner_config, "gate_up_interleaved", True) else "generic"


def backend_of(method: Any) -> str:
    """The program's name of the path that the method's own switches take. Raises Mismatch."""
    kind = type(method).__name__
    if getattr(method, "_use_sm90_humming", False):
        raise Mismatch("precision of flashinfer_mxfp4", "default", "fp8")
    if kind == "Mxfp4FlashinferCutlassMoEMethod":
        return "FLASHINFER_CUTLASS_MXFP4_" + ("MXFP8" if method._use_mxfp8_act_scaling else "BF16")
    if kind == "Mxfp4FlashinferTrtllmMoEMethod":
        if not getattr(sys.modules[type(method).__module__], "_USE_OFFICIAL_SHUFFLE", True):
            raise Mismatch("SGLANG_MXFP4_USE_OFFICIAL_SHUFFLE", "on", "off")
        return "FLASHINFER_TRTLLM_MXFP4_MXFP8"
    if kind == "Mxfp4MarlinMoEMethod":
        return "MARLIN"
    if kind != "Mxfp4MoEMethod":
        raise Mismatch("method class", "one that the plug-in knows", kind)
    for switch in ("use_deep_gemm", "use_mega_moe"):
        if getattr(method, switch, False):
            raise Mismatch("conversion", "a layout that is known", f"another, of {switch}")
    if method.use_marlin:
        return "MARLIN"
    kernel = getattr(method, "_fi_kernel", None)
    if kernel:
        return {"trtllm_sm100": "FLASHINFER_TRTLLM_MXFP4_MXFP8", "cutlass_sm90": "FLASHINFER_CUTLASS_MXFP4_BF16",
                "cutlass_sm120": "FLASHINFER_CUTLASS_MXFP4_MXFP8"}.get(kernel, kernel)
    if method.use_triton_kernels:
        return "TRITON"
    raise Mismatch("conversion", "MXFP4 weights", "another: AITER, or an upcast to BF16")


def live_platform() -> str:
    import sglang.srt.utils as utils
    for name, ask in (("cuda", "is_cuda"), ("rocm", "is_hip"), ("xpu", "is_xpu"), ("cpu", "is_cpu")):
        if getattr(utils, ask)():
            return name
    return "other"


def live_arch() -> str:
    """As mxfp4-repack spells it: sm90, gfx950, x86_64."""
    import torch
    kind = live_platform()
    if kind == "cuda":
        major, minor = torch.cuda.get_device_capability()
        return f"sm{major}{minor}"
    if kind == "rocm":
        properties: Any = torch.cuda.get_device_properties(torch.cuda.current_device())
        return str(properties.gcnArchName).partition(":")[0]
    return kind_of_arch(platform.machine().lower()) if kind == "cpu" else ""
