"""mxfp4-repack-check: does the program decide and pack as the vLLM installed here does?

Run it in the serving environment. It asks vLLM's own selector about this machine, with every name that
--moe-backend takes, and its own converter to pack small random layers; then it asks the program the
same, and compares. It also checks a release of vLLM that the program does not know.

Exit status: 0 all equal, 1 something differs, 2 wrong arguments, 3 nothing could be compared, since vLLM or the
program is not installed here or no selector answered, 6 vLLM or the program failed.
"""
from __future__ import annotations

import argparse
import collections
import importlib.util
import itertools
import json
import os
import platform
import signal
import subprocess
import sys
import tempfile
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

from mxfp4_repack.errors import DependencyError
from mxfp4_repack.program import find_program
from mxfp4_repack.vllm import ask, sample

EQUAL, DIFFERENT, NOTHING, FAILED = 0, 1, 3, 6
# Kernel packages, by the program's names for them.
PACKAGES = {
    "flashinfer": ("flashinfer",), "aiter": ("aiter",), "humming": ("humming",),
    "b12x": ("b12x",), "deep_gemm": ("deep_gemm", "vllm.third_party.deep_gemm"),
    "triton_kernels": ("triton_kernels", "vllm.third_party.triton_kernels"), "quark": ("quark",),
}
ACTIVATIONS = ("silu", "swigluoai")
ROUTINGS = ("Renormalize", "DeepseekV4", "Default")
KEYS = (None, "mxfp8", "mxfp4", "fp8_per_tensor_static")
PARALLEL = {"tp": 1, "pcp": 1, "dp": 1, "enable_expert_parallel": False,
            "all2all_backend": "allgather_reducescatter", "enable_eplb": False,
            "sequence_parallel": False}
PARALLELS = (PARALLEL, {**PARALLEL, "tp": 2}, {**PARALLEL, "tp": 2, "enable_expert_parallel": True})
SIZES = ((7101, 2, 256, 256, True), (7103, 3, 512, 128, False), (7104, 1, 384, 640, True))


def installed(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return False


def flashinfer_flags() -> List[str]:
    """What vLLM asks of flashinfer beyond its presence."""
    from vllm.utils import flashinfer
    flags = ["flashinfer"] if flashinfer.has_flashinfer() else []
    if flashinfer.has_flashinfer_cutlass_fused_moe():
        flags.append("flashinfer_cutlass")
    try:
        from flashinfer import ActivationType
        flags += ["flashinfer_situ"] if hasattr(ActivationType, "Situ") else []
    except ImportError:
        pass
    return flags


def machine() -> Dict[str, Any]:
    """Platform, architecture, packages and variables as vLLM sees them here."""
    from vllm.platforms import current_platform as here

    names = {"cuda": here.is_cuda(), "rocm": here.is_rocm(), "xpu": here.is_xpu(),
             "cpu": here.is_cpu()}
    name = next((key for key, value in names.items() if value), "other")
    arch = ""
    if name == "cuda":
        arch = f"sm{here.get_device_capability().to_int()}"
    elif name == "rocm":
        import torch
        arch = torch.cuda.get_device_properties(0).gcnArchName.split(":")[0]
    elif name == "cpu":
        arch = processor()
    libs = [flag for flag, modules in PACKAGES.items()
            if flag != "flashinfer" and any(map(installed, modules))]
    env = {key: value for key, value in os.environ.items() if key.startswith("VLLM_")}
    return {"platform": name, "arch": arch, "libs": sorted(libs + flashinfer_flags()), "env": env}


def processor() -> str:
    """The CPU as the program names it, asked of torch as vLLM does."""
    import torch

    name = platform.machine().lower()
    if name not in ("x86_64", "amd64"):
        return name
    if torch.cpu._is_amx_tile_supported():
        return "x86_64-amx"
    has_bf16 = getattr(torch.cpu, "_is_avx512_bf16_supported", lambda: False)
    return "x86_64-avx512" if has_bf16() else "x86_noamx"


def moe_backends() -> List[str]:
    """The names that this vLLM's --moe-backend takes."""
    from vllm.config.kernel import KernelConfig
    return sorted(set(ask.names_of(KernelConfig, "moe_backend")) | {"auto"})


def cases(facts: Mapping[str, Any], backends: Sequence[str],
          model_type: str) -> Iterator[Dict[str, Any]]:
    for selector, backend, activation, routing, key, parallel in itertools.product(
            ask.SELECTORS, backends, ACTIVATIONS, ROUTINGS, KEYS, PARALLELS):
        if selector == "deepseek_v4" and key is not None:
            continue
        yield {**facts, "selector": selector, "moe_backend": backend, "activation_override": None,
               "model_activation": key, "activation": activation, "is_act_and_mul": True,
               "routing_method": routing, "parallel": parallel, "lora": False,
               **({"model_type": model_type} if model_type else {})}


class Program:
    """The command line program with one revision's rules."""

    def __init__(self, path: str, revision: str) -> None:
        self.path, self.revision = path, revision

    def decide(self, asked: Sequence[Mapping[str, Any]]) -> List[Dict[str, Any]]:
        text = "".join(json.dumps(case) + "\n" for case in asked)
        ran = subprocess.run(
            [self.path, "explain", "--batch", "-", "-v", "--revision", self.revision], input=text,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        answers = [json.loads(line) for line in ran.stdout.splitlines()]
        if len(answers) != len(asked):
            raise RuntimeError(f"{self.path}: {ran.stderr.strip()[:400]}")
        return answers


def choose_revision(program: str, wanted: Optional[str], version: str) -> Tuple[str, str]:
    """The revision to compare with, and the reason for it."""
    ran = subprocess.run([program, "list", "revisions", "--json"], check=True, text=True,
                         stdout=subprocess.PIPE)
    rows = json.loads(ran.stdout)["revisions"]
    names = [row["revision"] for row in rows]
    if wanted:
        return wanted, "as asked"
    release = "vllm-" + version.partition("+")[0]
    if release in names:
        return release, "the release that is installed"
    newest = next(row["revision"] for row in rows if row["default"])
    return newest, f"the newest that is known; {release} is not"


def differs(want: Mapping[str, Any], got: Mapping[str, Any]) -> List[str]:
    """Names of the members in which the program's answer differs from vLLM's."""
    names = [key for key in ("backend", "experts_class", "error", "message")
             if want["expect"].get(key) != got.get(key)]
    if [list(step) for step in got.get("trace", [])] != want["trace"]:
        names.append("trace")
    return names


def check_decisions(selectors: Any, program: Program, asked: Sequence[Mapping[str, Any]],
                    report: List[str]) -> Tuple[int, int, collections.Counter]:
    """(equal, differing, how often vLLM chose each backend)"""
    answers = [(case, selectors.decide(case)) for case in asked]
    known = [(case, want) for case, want in answers if "absent" not in want]
    chosen = collections.Counter(want["expect"]["backend"] for _, want in known
                                 if "backend" in want["expect"])
    differing = 0
    for (case, want), got in zip(known, program.decide([case for case, _ in known])):
        names = differs(want, got)
        if not names:
            continue
        differing += 1
        if differing <= 20:
            report += [f"differs in {', '.join(names)}: {json.dumps(case)}",
                       f"  vLLM:    {json.dumps(want)}", f"  program: {json.dumps(got)}"]
    return len(known) - differing, differing, chosen


def check_bytes(selectors: Any, program: Program, facts: Mapping[str, Any],
                backends: Sequence[str], report: List[str]) -> Tuple[List[str], List[str]]:
    """(backends whose bytes are equal, those whose bytes differ), each with its family."""
    device = "cuda" if facts["platform"] in ("cuda", "rocm") else "cpu"
    equal, differing = [], []
    for backend, family in itertools.product(backends, sample.FUNCTIONS):
        outcomes = set()
        for seed, experts, hidden, inter, bias in SIZES:
            row = {"platform": facts["platform"], "arch": facts["arch"], "backend": backend,
                   "family": family, "seed": seed, "E": experts, "H": hidden, "I": inter,
                   "bias": bias or family == "gpt_oss"}
            title = f"{backend} ({family}) of {experts} experts, H {hidden}, I {inter}"
            try:
                want = sample.converted(selectors, row, device)
            except Exception as error:
                report.append(f"{title}: vLLM's converter stops: {type(error).__name__}: {error}")
                continue
            with tempfile.TemporaryDirectory() as folder:
                got = sample.packed(program.path, folder, row, program.revision)
            if isinstance(got, str):
                report.append(f"{title}: the program refuses: {got}")
                continue
            wrong = [name for name in want if got.get(name) != want[name]]
            outcomes.add(not wrong)
            if wrong:
                report.append(f"{title}: {', '.join(wrong)} differ: vLLM {want}, program {got}")
        if outcomes:
            (equal if outcomes == {True} else differing).append(f"{backend} ({family})")
    return equal, differing


def model_type_of(model: Optional[str]) -> str:
    if not model:
        return ""
    with open(os.path.join(model, "config.json"), encoding="utf-8") as file:
        return str(json.load(file).get("model_type", ""))


def arguments_of(argv: Optional[Sequence[str]]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="mxfp4-repack-check", description=(__doc__ or "").split("\n")[0].split(": ", 1)[1],
        epilog=(__doc__ or "").rpartition("\n\n")[2])
    parser.add_argument("--model", metavar="DIR", help="model whose config.json names its type")
    parser.add_argument("--revision", metavar="NAME",
                        help="rules to compare with (default: the installed release, else the newest)")
    parser.add_argument("--program", metavar="FILE", help="mxfp4-repack to compare with")
    parser.add_argument("--report", metavar="FILE", help="write the differences there too")
    return parser.parse_args(argv)


def check(arguments: argparse.Namespace) -> int:
    import vllm

    path = arguments.program or find_program()
    revision, why = choose_revision(path, arguments.revision, vllm.__version__)
    program, facts, report = Program(path, revision), machine(), []
    selectors = ask.Selectors()
    asked = list(cases(facts, moe_backends(), model_type_of(arguments.model)))
    same, differing, chosen = check_decisions(selectors, program, asked, report)
    backends = [name for name, _ in chosen.most_common() if name != "NONE"]
    equal, unequal = check_bytes(selectors, program, facts, backends, report)
    head = [f"vLLM {vllm.__version__}, rules of {revision} ({why})", f"machine: {json.dumps(facts)}"]
    verdict = f"{same} decisions equal, {differing} differ; bytes equal for " + (
        ", ".join(equal) or "no layout")
    if unequal:
        verdict += "; bytes differ for " + ", ".join(unequal)
    text = "\n".join([*head, *report, verdict]) + "\n"
    sys.stdout.write(text)
    if arguments.report:
        with open(arguments.report, "w", encoding="utf-8") as file:
            file.write(text)
    if differing or unequal:
        return DIFFERENT
    return EQUAL if same else NOTHING


def main(argv: Optional[Sequence[str]] = None) -> int:
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `| head` ends it quietly
    arguments = arguments_of(argv)
    if not installed("vllm"):
        return _complain(NOTHING, f"vLLM is not installed for {sys.executable}; run this in the serving environment")
    try:
        return check(arguments)
    except DependencyError as error:
        return _complain(NOTHING, str(error))
    except (ImportError, OSError, RuntimeError) as error:
        return _complain(FAILED, f"{type(error).__name__}: {error}")


def _complain(status: int, what: str) -> int:
    print(f"mxfp4-repack-check: {what}", file=sys.stderr)
    return status


if __name__ == "__main__":
    sys.exit(main())
