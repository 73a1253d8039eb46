"""The SGLang plug-in in a process made of stand-ins: standin/sglang for SGLang, standin/faketorch for torch. The blobs, the program and the
plug-in are real. What the plug-in shares with vLLM's is tested there; tests/python/sglang does the same with the classes of SGLang's wheels, for more
paths."""
import contextlib
import importlib
import json
import logging
import os
import subprocess
import sys
import tempfile
import unittest
from types import SimpleNamespace
from unittest import mock

import hook_env
from hook_env import STANDIN, Messages, need_program

sys.path[:0] = [os.path.join(hook_env.HERE, "sglang"), os.path.join(hook_env.ROOT, "tests", "engines")]
import mxfp4_repack
import torch
from checkpoints import write_model
import sample
from state import differences, state_of

PREFIX = "model.layers.0.mlp.experts"
MODULE = "sglang.srt.layers.quantization.mxfp4_flashinfer_cutlass_moe"
SIZES = (2, 256, 256)
ROW = ("sm120", "", "", "FLASHINFER_CUTLASS_MXFP4_MXFP8")
LAYERS = 2
_made = {}


def unload():
    for name in list(sys.modules):
        if name.split(".")[0] in ("sglang", "flashinfer") or name.startswith(("mxfp4_repack.sglang", "mxfp4_repack.plugin")):
            del sys.modules[name]
    for package in ("sglang", "plugin"):
        vars(mxfp4_repack).pop(package, None)


def drawn():
    row = {"seed": 11, "E": SIZES[0], "H": SIZES[1], "I": SIZES[2], "bias": False, "backend": "-"}
    return {name: torch.from_numpy(array) for name, (_, array) in sample.drawn(row).items()}


def checkpoint():
    """(model, blob) of two layers, made once."""
    need_program()
    if not _made:
        os.environ["BIN"] = hook_env.BIN
        _made["pair"] = write_model("cutlass", tempfile.mkdtemp(dir=hook_env.scratch.name), drawn(), SIZES, "0.5.23", ROW, LAYERS)
    if _made["pair"][1] is None:
        raise AssertionError(_made["pair"][0])
    return _made["pair"]


def versions(name):
    return {"flashinfer-python": "0.7.2", "sglang-kernel": "0.4.10"}[name]


class Layer(torch.nn.Module):
    """A layer as FusedMoE makes it, with the facts of a rank."""

    def __init__(self, number=0, **facts):
        super().__init__()
        experts, hidden, inter = SIZES
        vars(self).update(
            num_experts=experts, num_local_experts=experts, hidden_size=hidden, hidden_size_unpadded=hidden, intermediate_size_per_partition=inter,
            layer_name=PREFIX.replace("0", str(number)), params_dtype=torch.bfloat16, moe_tp_rank=0, moe_tp_size=1, moe_ep_rank=0, moe_ep_size=1, num_fused_shared_experts=0,
            is_draft=False, moe_runner_config=SimpleNamespace(activation="silu"))
        self.number, other = number, facts.pop("other_method", False)
        method = sys.modules[MODULE].Mxfp4FlashinferCutlassMoEMethod(None, "p")
        vars(self).update(facts, quant_method=None if other else method)
        method.create_weights(self, experts, hidden, inter, torch.bfloat16, weight_loader="loader")
        method.create_moe_runner(self, self.moe_runner_config)
        vars(self)["quant_method"] = SimpleNamespace(process_weights_after_loading=method.process_weights_after_loading) if other else method

    def load(self, name, tensor):
        """FusedMoE's copy, up first, of the whole tensors that drawn() gives."""
        number, _, slot = name.partition(".")
        if int(number) == self.number:
            half = tensor.shape[1] // 2 if slot.startswith("w13") else 0
            parameter = self._parameters[slot.replace("_scale", "_scale_inv")]
            parameter[:, :tensor.shape[1] - half] = tensor[:, half:]
            parameter[:, tensor.shape[1] - half:] = tensor[:, :half]


class World:
    """A process of SGLang, nearly."""

    def __init__(self, version="0.5.23", known=True, **environment):
        self.version, self.known, self.environment, self.messages = version, known, environment, Messages()

    def __enter__(self):
        self._stack = contextlib.ExitStack()
        unload()
        self._stack.callback(unload)
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("MXFP4_REPACK_", "SGLANG_")) or k == "MXFP4_REPACK_LIBRARY"}
        self._stack.enter_context(mock.patch.dict(os.environ, clean, clear=True))
        os.environ.update(XDG_CACHE_HOME=tempfile.mkdtemp(dir=hook_env.scratch.name), MXFP4_REPACK=hook_env.BIN, **self.environment)
        self._stack.enter_context(mock.patch.object(sys, "path", [os.path.join(STANDIN, "sglang"), *sys.path]))
        self._stack.enter_context(mock.patch.object(sys, "meta_path", list(sys.meta_path)))
        self._stack.enter_context(mock.patch("importlib.metadata.version", versions))
        self._stack.enter_context(mock.patch.object(torch.cuda, "get_device_capability", lambda *a: (12, 0), create=True))
        logger = logging.getLogger("sglang.mxfp4_repack")
        logger.addHandler(self.messages)
        self._stack.callback(logger.removeHandler, self.messages)
        logger.setLevel(logging.DEBUG)
        logger.propagate = False
        importlib.import_module("sglang").__version__ = self.version
        self.model, self.blob = checkpoint()
        importlib.import_module("sglang.srt.runtime_context").arguments = self.arguments = SimpleNamespace(
            model_path=self.model, load_format="auto", revision=None, download_dir=None, enable_eplb=False)
        registry = importlib.import_module("sglang.srt.plugins.hook_registry")
        from mxfp4_repack import sglang as plugin
        plugin.register()
        registry.HookRegistry.apply_hooks()
        self.plugin = plugin
        importlib.import_module(MODULE)
        self.loader = importlib.import_module("sglang.srt.model_loader.loader")
        if self.known and plugin._wrapper is not None:
            from mxfp4_repack.sglang import live
            method = sys.modules[MODULE].Mxfp4FlashinferCutlassMoEMethod(None, "p")
            code = {"mxfp4_flashinfer_cutlass_moe": live.code_of(method, ROW[3])}
            self._stack.enter_context(mock.patch.dict(live.REVISIONS["sglang-0.5.23"], {"code": code}))
        return self

    def __exit__(self, *error):
        return self._stack.__exit__(*error)

    @property
    def hook(self):
        return self.plugin._wrapper.hook

    def load(self, **facts):
        tensors = {f"{number}.{name}": tensor for number in range(LAYERS) for name, tensor in drawn().items()}
        # What the hook decides by are the checkpoint's own names; the copy is of whole tensors.
        names = {f"{number}.{slot}": f"layers.{number}.ffn.experts.0.w1.weight" for number in range(LAYERS) for slot in drawn()}
        self.run = self.loader.DefaultModelLoader({names[n] + "|" + n: t for n, t in tensors.items()}, [
            lambda number=number: Layer(number, **facts) for number in range(LAYERS)])
        plain = Layer.load
        with mock.patch.object(Layer, "load", lambda layer, name, tensor: plain(layer, name.rpartition("|")[2], tensor)), \
                mock.patch("mxfp4_repack.plugin.checkpoint.is_raw_name", lambda name: "|" in name) if self.environment else contextlib.nullcontext():
            return self.run.load_model(model_config=None, device_config=None).layers


def states(layers):
    return [state_of(layer, layer.quant_method) for layer in layers]


def own():
    """What SGLang's own conversion leaves."""
    with World() as world:
        made = states(world.load())
        assert world.plugin._wrapper is None and len(world.run.loaded) == LAYERS * 4
        return made


class Sglang(unittest.TestCase):
    def equal(self, wanted, layers):
        found = [line for one, other in zip(wanted, states(layers)) for line in differences(one, other, False)]
        self.assertEqual(found, [])

    def test_state_equals_sglangs_own(self):
        wanted = own()
        for source in ("blob", "checkpoint"):
            for skip in ("0", "1"):
                with self.subTest(source=source, skip=skip), World(
                        MXFP4_REPACK_BLOB=checkpoint()[1], MXFP4_REPACK_SOURCE=source, MXFP4_REPACK_SKIP_RAW=skip, MXFP4_REPACK_STRICT="1") as world:
                    layers = world.load()
                    self.equal(wanted, layers)
                    self.assertEqual((len(world.hook.taken), len(world.hook.made), world.hook.converted), ((2, 0, []) if source == "blob" else (0, 2, [])))
                    self.assertEqual(len(world.run.loaded), 0 if skip == "1" else 8)
                    self.assertEqual(world.messages.text(), [])
                    self.assertEqual(len([line for line in world.messages.text(20) if "0 converted by SGLang" in line]), 1)

    def test_one_fact_that_differs(self):
        """SGLang converts each layer itself, one line says why, and nothing of the blob stays in memory."""
        wanted = own()
        for fact, change, facts in (
                ("tensor-parallel rank and size", None, {"moe_tp_size": 2}), ("expert-parallel rank and size", None, {"moe_ep_rank": 1}),
                ("draft model", None, {"is_draft": True}), ("fused shared experts", None, {"num_fused_shared_experts": 1}),
                ("hidden size", None, {"hidden_size_unpadded": 224}), ("slice of the intermediate size", None, {"intermediate_size_per_partition": 128}),
                ("params dtype", None, {"params_dtype": torch.float16}), ("the layer's own method", None, {"other_method": True}),
                ("load format", lambda w: vars(w.arguments).update(load_format="dummy"), {}),
                ("deployment", lambda w: vars(w.arguments).update(enable_eplb=True), {}),
                ("layer: the blob has none", None, {"layer_name": "model.layers.7.mlp.experts"}),
                ("platform", lambda w: vars(importlib.import_module("sglang.srt.utils")).update(kind="hip"), {}),
                ("all-to-all", lambda w: vars(importlib.import_module("sglang.srt.layers.moe.utils").backend).update(name="deepep"), {}),
                ("architecture", lambda w: w._stack.enter_context(mock.patch.object(torch.cuda, "get_device_capability", lambda *a: (9, 0), create=True)), {}),
                ("checkpoint", lambda w: vars(w.arguments).update(model_path=tempfile.mkdtemp(dir=hook_env.scratch.name)), {}),
                ("precision of flashinfer_mxfp4", lambda w: setattr(sys.modules[MODULE].Mxfp4FlashinferCutlassMoEMethod, "create_moe_runner", humming), {})):
            with self.subTest(fact), World(MXFP4_REPACK_BLOB=checkpoint()[1]) as world:
                if change:
                    change(world)
                layers = world.load(**facts)
                self.assertEqual((world.hook.taken, world.hook.made, len(world.hook.converted)), ([], [], 2))
                warnings = world.messages.text()
                self.assertEqual(len(warnings), 1, warnings)
                self.assertIn(fact, warnings[0])
                if not facts and fact not in ("precision of flashinfer_mxfp4",):
                    self.equal(wanted, layers)

    def test_a_release_that_is_not_known_proves_itself_once(self):
        """The first layer of a kind is compared with SGLang's own; the next process skips raw experts."""
        cache = tempfile.mkdtemp(dir=hook_env.scratch.name)
        wanted = own()
        for taken in (1, 2):
            with World(known=False, MXFP4_REPACK_BLOB=checkpoint()[1], MXFP4_REPACK_SKIP_RAW="1") as world:
                os.environ["XDG_CACHE_HOME"] = cache
                self.equal(wanted, world.load())
                self.assertEqual(len(world.hook.taken), taken)
                self.assertEqual(any("own conversion equals" in line for line in world.messages.text(20)), taken == 1)

    def test_off_without_a_blob_and_never_in_the_way(self):
        with World() as world:
            self.assertIsNone(world.plugin._wrapper)
        with World(MXFP4_REPACK_BLOB="x", MXFP4_REPACK_CHECK="other") as world:
            self.assertIsNone(world.plugin._wrapper)
            self.assertIn("the plug-in is off: MXFP4_REPACK_CHECK is 'other'", logged(world))

    def test_the_plug_in_knows_the_programs_revisions(self):
        """sglang/revisions.json names the same revisions and packages as the program."""
        need_program()
        said = subprocess.run([hook_env.BIN, "list", "revisions", "--engine", "sglang", "--json"], stdout=subprocess.PIPE, check=True, text=True).stdout
        path = os.path.join(hook_env.ROOT, "scripts", "python", "mxfp4_repack", "sglang", "revisions.json")
        with open(path, encoding="utf-8") as file:
            known = json.load(file)
        program = {one["revision"]: one["kernel_libraries"] for one in json.loads(said)["revisions"]}
        self.assertEqual(set(known), set(program))
        for name, one in known.items():
            self.assertIn(f"flashinfer {one['kernel_libraries']['flashinfer']}, sglang-kernel {one['sglang_kernel']},", program[name])
            self.assertEqual(len(one["code"]), 5)


def humming(self, layer, moe_runner_config):
    self._use_sm90_humming = True


def logged(world):
    return " ".join(world.messages.text(0))


if __name__ == "__main__":
    unittest.main()
