"""AITER's class of mega MoE, for mega.py: vLLM's own, with AITER's shuffles from its own files and its kernel left out."""
import importlib
import os
import sys
import types

import engine
import mega

CLASS = "vllm.models.deepseek_v4.amd.mega_moe"


def at_hand():
    """Whether the release has the class, and tests/engines keeps AITER's shuffles."""
    import aiter_source

    return importlib.util.find_spec(CLASS) is not None and (engine.CACHE / f"{aiter_source.PACKAGE}-{aiter_source.VERSION}" / "done").exists()


class Runtime:
    """Stands for AITER's kernel: it keeps what the class hands it."""

    def __init__(self, **words):
        self.words = words


def kind(rank, ranks):
    """The class and what its constructor takes beside mega.py's words; the group of ranks is this one's."""
    import aiter_source
    import torch

    sources = aiter_source.sources(str(engine.CACHE))
    aiter_source.install(sources[aiter_source.VERSION])
    kernel = "aiter.ops.flydsl.kernels.mega_moe"
    for name, made in ((kernel, {"MegaMoEV2": Runtime, "__path__": []}), (f"{kernel}.mega_moe_config", {
            "FIXED_SLOT_MAX_MTPR": 255, "build_mega_moe_bundle_plan": lambda *a, **k: types.SimpleNamespace(fixed_slot_dispatch=True)})):
        sys.modules[name] = types.ModuleType(name)
        vars(sys.modules[name]).update(made)
    torch.accelerator.current_device_index = lambda: 0
    module = importlib.import_module(CLASS)
    module.get_ep_group = lambda: types.SimpleNamespace(rank_in_group=rank, world_size=ranks, cpu_group=None)
    return module.DeepseekV4AiterMegaMoEExperts, {"swiglu_limit": 10.0}


def check(report, program, proved, same_state, is_error, revision):
    """48 tensors are a model's, and none is read from the second start on."""
    engine.plays("amd-aiter", "0.1.19")
    model = mega.make("mega")
    for ranks in (1, 2):
        flags = ("--tp-size", 1, "--dp-size", ranks, "--enable-expert-parallel", "--all2all-backend", "mori_high_throughput", "--env", "VLLM_ROCM_USE_AITER=1")
        program("convert", model, "-o", f"mega-{ranks}", "-q", "--arch", "gfx950", "--moe-backend", "aiter_mega_moe", "--revision", revision, *flags)
        for rank in range(ranks):
            own = proved(mega.AITER, model, rank, ranks, None)
            for way, directory in {"blob": os.path.abspath(f"mega-{ranks}"), "no blob": ""}.items():
                result = proved(mega.AITER, model, rank, ranks, directory)
                same_state(f"mega MoE of AITER, rank {rank} of {ranks}, {way}", result, own, layers=mega.LAYERS)
                if not is_error(result):
                    report(f"  {own['read']} tensors read by vLLM, {result['read']} with the plug-in", result["read"] == 0, result["lines"])
