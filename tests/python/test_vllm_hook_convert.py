"""The vLLM plug-in's substitution: every backend's objects, and what vLLM itself still does."""
import ctypes.util
import glob
import http.server
import os
import subprocess
import sys
import tempfile
import threading
import unittest
from unittest import mock

import far_handler
import hook_env
import layer_files
from hook_env import (PREFIX, SLOTS, World, bits, goldens, golden, make_blob, torch,
                      versions)

TYPES = {"U8": "uint8", "BF16": "bfloat16", "F32": "float32", "F16": "float16", "I32": "int32",
         "F8_E4M3": "float8_e4m3fn"}


class Substitution(unittest.TestCase):
    maxDiff = None

    def each_case(self, revision):
        ran = 0
        for case in goldens():
            made = make_blob(case, revision)
            if made is None:
                continue
            with self.subTest(case=case.name, revision=revision), versions(revision), \
                    World(revision, blob=made[1], model=made[0]) as world:
                world.start()
                needed = {storage.get("torch_dtype", "uint8")
                          for _, storage in hook_env.file_tensors(made[1]).values()}
                lacking = sorted(t for t in needed if not hasattr(torch, t))
                layer = world.convert(case)
                if lacking and case.backend != "AITER_MXFP4_MXFP4":
                    self.assertEqual(world.hook.converted, [PREFIX])
                    self.assertIn(lacking[0], world.messages.text()[0])
                    continue
                self.assertEqual(world.messages.text(), [])
                self.assertEqual(world.hook.taken, [PREFIX])
                self.check(case, revision, layer, made[1])
                ran += 1
        return ran

    def check(self, case, revision, layer, blob):
        import vllm.standin
        method, stored = layer.quant_method, hook_env.file_tensors(blob)
        wrapped = "layout" in stored["w13_weight"][1]
        if case.backend not in ("EMULATION", "XPU"):
            self.assertEqual(vllm.standin.calls, [], "vLLM converted too")
        for slot, value in zip(SLOTS, method.values):
            if slot not in stored:
                self.assertIsNone(value, slot)
                continue
            array, storage = stored[slot]
            tensor = value
            if wrapped and slot in hook_env.WRAPPED:
                tensor = self.unwrap(slot, value, storage)
            shape = storage.get("storage_shape", list(array.shape))
            strides = storage.get("storage_strides")
            self.assertEqual(list(tensor.shape), shape, slot)
            if strides:
                self.assertEqual(list(tensor.stride()), strides, slot)
            want_type = storage.get("torch_dtype", TYPES.get(str(array.dtype), None))
            if want_type:
                found = str(tensor.dtype)
                self.assertIn(found, ("torch." + want_type, "torch.uint8"), slot)
                if hasattr(torch, want_type):
                    self.assertEqual(found, "torch." + want_type, slot)
            # The kernel's view, laid out again in the order of memory.
            order = sorted(range(len(shape)), key=lambda i: -tensor.stride()[i] if shape[i] > 1
                           else -1 << 60)
            memory = bits(tensor).transpose(order).tobytes()
            self.assertEqual(memory, array.tobytes(), slot)
            if revision == "seed":
                self.assertEqual(memory, case.outs[slot].tobytes(), slot)
            for flag in storage.get("flags", ()):
                self.assertTrue(getattr(value, flag), flag)
                self.assertTrue(getattr(getattr(layer, slot), flag), flag)
        if wrapped:
            self.check_wrapped_layer(case, revision, layer)

    def unwrap(self, slot, value, storage):
        if slot.endswith("_scale"):
            self.assertEqual(type(value).__name__, "PrecisionConfig")
            self.assertIsNotNone(value.flex_ctx.rhs_data)
            value = value.weight_scale
        self.assertEqual(list(value.shape), storage["logical_shape"])
        self.assertEqual(list(value.shape_max), storage["logical_shape"])
        layout = value.storage.layout
        self.assertEqual(type(layout).__name__, storage["layout"])
        self.assertEqual(vars(layout), {**storage["layout_kwargs"], "initial_shape": storage["layout_init_shape"]})
        return value.storage.data

    def check_wrapped_layer(self, case, revision, layer):
        from triton_kernels import tensor
        from triton_kernels.matmul_ogs_details import opt_flags
        self.assertIs(type(layer.w13_weight), tensor.Tensor)
        self.assertNotIn("w13_weight", layer._parameters)
        self.assertEqual("w13_weight_scale" in layer._parameters,
                         revision == "seed" or case.backend == "AITER_MXFP4_FP8")
        if case.facts["arch"] == "sm90":
            self.assertEqual(opt_flags.in_force, {"split_k": 1})
        if case.backend == "AITER_MXFP4_FP8":
            context = layer.quant_method.w13_precision_config.flex_ctx
            self.assertEqual(bits(context.lhs_data.scale).tobytes(),
                             case.outs["w13_input_scale"].tobytes())

    def test_reference_revision(self):
        backends = {case.backend for case in goldens()}
        self.assertEqual(len(backends), 15)  # all but NONE and HUMMING
        self.assertGreaterEqual(self.each_case("seed"), 20 if hook_env.REAL_TORCH else 30)

    def test_newer_revision(self):
        self.assertGreaterEqual(self.each_case("newer"), 12 if hook_env.REAL_TORCH else 20)

    def test_slack_behind_hopper_scales_is_mapped_and_zero(self):
        case = golden("triton/gpt_oss_sm90_e2_h64*")
        made = make_blob(case)
        self.assertEqual(hook_env.file_tensors(made[1])["w13_weight_scale"][1]["slack_bytes"], 64)
        with World(blob=made[1], model=made[0]) as world:
            layer = world.start().convert(case)
            data = layer.quant_method.values[2].weight_scale.storage.data
            behind = torch.as_strided(data, (data.numel() + 64,), (1,))[data.numel():]
            self.assertEqual(bytes(bits(behind)), bytes(64))

    def test_scalar_input_scales_are_left_to_vllm(self):
        """The newer EMULATION also sets them on the layer, so the original is called."""
        case = golden("emulation/gpt_oss*typical")
        made = make_blob(case, "newer")
        with World("newer", blob=made[1], model=made[0]) as world:
            layer = world.start().convert(case)
            self.assertEqual(world.hook.taken, [PREFIX])
            self.assertEqual(bits(layer.w13_weight).tobytes(), case.outs["w13_weight"].tobytes())

    def test_nested_call_is_the_originals(self):
        """The newer generic converter calls the other one, which is wrapped as well."""
        case = golden("aiter_mxfp4_mxfp4/*")
        case.family = "generic"
        made = make_blob(case, "newer")
        for right in (True, False):
            with World("newer", blob=made[1], model=made[0]) as world, versions("newer"):
                world.start()
                name = "Mxfp4MoEMethod" if right else "GptOssMxfp4MoEMethod"
                layer = world.layer(case, method=world.method(case, name))
                world.convert(case, layer)
                import vllm.standin
                self.assertEqual(len(world.hook.taken), right)
                self.assertEqual(len(world.hook.converted), not right)
                self.assertEqual(len(vllm.standin.calls), not right)

    def test_generic_aiter_sets_what_its_converter_sets(self):
        case = golden("aiter_mxfp4_bf16/gpt_oss*")
        case.family = "generic"
        made = make_blob(case, "newer")
        with World("newer", blob=made[1], model=made[0]) as world, versions("newer"):
            world.start().convert(case)
            if world.hook.taken:
                self.assertEqual(os.environ["AITER_BF16_FP8_MOE_BOUND"], "0")
            else:
                self.assertTrue(hook_env.REAL_TORCH)


class Ranks(unittest.TestCase):
    """A checkpoint with gpt-oss's names, split over ranks: each layer of each rank; odd ranks from a server."""

    @classmethod
    def setUpClass(cls):
        hook_env.need_program()
        cls.base = tempfile.mkdtemp(dir=hook_env.scratch.name)
        cls.model = os.path.join(cls.base, "model")
        cls.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), far_handler.Ranges)
        threading.Thread(target=cls.server.serve_forever, daemon=True).start()
        cls.addClassCleanup(cls.server.server_close)
        cls.addClassCleanup(cls.server.shutdown)
        subprocess.run([sys.executable, os.path.join(hook_env.ROOT, "scripts", "make-checkpoint"),
                        cls.model], check=True, stdout=subprocess.DEVNULL)

    def convert(self, name, *flags):
        out = os.path.join(self.base, name)
        subprocess.run([hook_env.BIN, "convert", self.model, "-o", out, "-q", "--backend", "TRITON",
                        "--arch", "sm90", "--revision", hook_env.REVISIONS["seed"], *flags],
                       check=True)
        return out

    def loaded(self, directory, index):
        """What vLLM's loader would hold for a layer, as a case; `directory` of --emit loaded."""
        tensors, _ = layer_files.read(os.path.join(directory, "layer-%05d.safetensors" % index))
        case = golden("triton/gpt_oss_sm90_e3*")
        prefix = PREFIX.replace("0", str(index))
        case.ins = {name[len(prefix) + 1:]: tensor for name, tensor in tensors.items()}
        return case, prefix

    def check(self, flags, directories, facts):
        blob = self.convert("blob" + flags[-1], *flags)
        loaded = self.convert("loaded" + flags[-1], "--emit", "loaded", "--compress", "none",
                              *flags)
        for rank, directory in enumerate(directories):
            far = rank % 2 and ctypes.util.find_library("curl")
            named = f"http://127.0.0.1:{self.server.server_port}{blob}/" if far else blob
            with World(blob=named, model=self.model) as world, mock.patch.dict(os.environ, no_proxy="*"):
                world.start()
                for index in range(2):
                    case, prefix = self.loaded(os.path.join(loaded, directory), index)
                    layer = world.convert(case, name=prefix, hidden_unpadded=704, **facts(rank))
                    (path,) = glob.glob(os.path.join(blob, directory, "layer-%05d.*" % index))
                    stored, _ = layer_files.read(path)
                    data = layer.w13_weight.storage.data
                    self.assertEqual(bits(data).transpose(0, 2, 1).tobytes(),
                                     stored[prefix + ".w13_weight"].tobytes())
                self.assertEqual(world.messages.text(), [])
                self.assertEqual(len(world.hook.taken), 2)
                self.assertIn(named.rstrip("/"), world.messages.text(0)[-1])

    def test_tensor_parallel(self):
        self.check(["--tp-size", "2"], ["rank-00-of-02", "rank-01-of-02"],
                   lambda rank: {"tp": (rank, 2), "inner_unpadded": 352})

    def test_expert_parallel(self):
        self.check(["--enable-expert-parallel", "--tp-size", "4"],
                   ["rank-%02d-of-04" % rank for rank in range(4)],
                   lambda rank: {"ep": (rank, 4), "ids": [rank], "inner_unpadded": 704})

    def test_ranks_swapped(self):
        """Names and manifests that claim rank 0 around rank 1's bytes: the scales tell."""
        blob = self.convert("swapped", "--tp-size", "2")
        case, prefix = self.loaded(os.path.join(self.convert(
            "raw", "--tp-size", "2", "--emit", "loaded", "--compress", "none"), "rank-01-of-02"), 0)
        with World(blob=blob, model=self.model) as world:
            world.start().convert(case, name=prefix, hidden_unpadded=704, tp=(0, 2),
                                  inner_unpadded=352)
            self.assertEqual(world.hook.taken, [])
            self.assertIn("checkpoint, by w13_weight_scale", world.messages.text()[0])



if __name__ == "__main__":
    unittest.main()
