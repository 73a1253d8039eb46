"""Weights loaded again into a running model, by the load format: the same addresses, the new bytes."""
import importlib
import os
import shutil
import tempfile
import unittest
from types import SimpleNamespace
from unittest import mock

import numpy as np

import hook_env
import layer_files
from hook_env import PREFIX, World, copied, golden, make_blob
from mxfp4_repack import MismatchError, NotFoundError
from mxfp4_repack.native import require_same_checkpoint
import test_vllm_hook_load as loads
import test_vllm_hook_skip as skip_tests

CASE = "cpu/gpt_oss_e2_h128*"
CASES = (CASE, "marlin/gpt_oss*", "flashinfer_trtllm_mxfp4_bf16/gpt_oss*", "triton/gpt_oss_sm90*e3*")
OTHER = "model.norm.weight"


def other_model(case):
    """A model whose files have the same names and sizes, and other weights."""
    model, _ = make_blob(case)
    base = tempfile.mkdtemp(dir=hook_env.scratch.name)
    other = shutil.copytree(model, os.path.join(base, "other"))
    path = os.path.join(other, "model.safetensors")
    tensors, metadata = layer_files.read(path)
    types = {f"{PREFIX}.{name[3:]}": kind for name, kind in case.types.items() if name.startswith("in.")}
    layer_files.write(path, {name: (types[name], tensor[::-1].copy()) for name, tensor in tensors.items()}, metadata)
    return other


@unittest.skipUnless(skip_tests.HAS_META_CONTEXT, "this torch has no context for the meta device")
class Reload(unittest.TestCase):
    created = skip_tests.SecondStage.created
    state = staticmethod(skip_tests.SecondStage.state)
    load = loads.LoadFormat.load

    def setUp(self):
        for patch in (mock.patch("platform.machine", lambda: "x86_64"), mock.patch.dict(os.environ, {"MXFP4_REPACK": hook_env.BIN})):
            patch.start()
            self.addCleanup(patch.stop)

    def loaded(self, world, case, extra):
        os.environ["MXFP4_REPACK"] = hook_env.BIN  # World clears it
        return self.load(world, case, extra)

    @staticmethod
    def begun(world, model, directory, extra):
        """vLLM asks a new loader for the weights in `directory`."""
        import vllm.model_executor.model_loader as loaders
        world.config.model_config.model = directory

        def get_all_weights(self, model_config, model):
            from vllm.model_executor.model_loader import weight_utils
            names = (f"{PREFIX}.gate_up_proj_blocks", f"{PREFIX}.down_proj_scales", OTHER)
            yield from ((name, directory) for name in names if not weight_utils.should_skip_weight(name, None))

        loaders._LOAD_FORMAT_TO_MODEL_LOADER["auto"].get_all_weights = get_all_weights
        config = SimpleNamespace(load_format="mxfp4_repack", model_loader_extra_config=extra, download_dir=None)
        return loaders.get_model_loader(config).get_all_weights(world.config.model_config, model)

    def reload(self, world, model, directory, extra):
        """Names that vLLM was given, once it has loaded them."""
        layerwise = importlib.import_module("vllm.model_executor.model_loader.reload.layerwise")
        from mxfp4_repack.vllm.sent import is_held
        weights = self.begun(world, model, directory, extra)
        layerwise.initialize_layerwise_reload(model)
        found = [name for name, _ in weights]
        layerwise.finalize_layerwise_processing(model, None)
        self.assertEqual(layerwise.get_layerwise_info(model.layer).can_load(), is_held(model.layer))
        utils = importlib.import_module("vllm.model_executor.model_loader.weight_utils")
        self.assertFalse(hasattr(utils.should_skip_weight, "_mxfp4_repack"))
        return found

    def addresses(self, model):
        from mxfp4_repack.plugin.places import tensors_of
        return sorted(tensor.data_ptr() for tensor in tensors_of(model.layer))

    @staticmethod
    def wipe(model):
        """As memory is after a sleep of level 2."""
        from mxfp4_repack.plugin.places import tensors_of
        for tensor in tensors_of(model.layer):
            tensor.detach().zero_()

    def fresh(self, case, directory):
        """The state of a start with the weights in `directory`."""
        with World(model=directory) as world:
            return self.state(self.loaded(world, case, {"strict": True}).layer)

    def test_the_same_and_other_weights_in_place(self):
        ran = 0
        for pattern in CASES:
            case = golden(pattern)
            made = make_blob(case)
            if made is None:
                continue
            with self.subTest(case=case.name):
                model, blob = made
                other = other_model(case)
                try:
                    want = {directory: self.fresh(case, directory) for directory in (model, other)}
                except (RuntimeError, AssertionError):
                    continue  # a type is lacking, or the rules refuse a known defect
                for extra in ({"blob": blob}, {}):
                    with World(model=model) as world:
                        running = self.loaded(world, case, {"strict": True, **extra})
                        if not self.meta:
                            continue
                        places = self.addresses(running)
                        for directory in (other, model):
                            self.wipe(running)
                            found = self.reload(world, running, directory, {"strict": True, **extra})
                            self.assertEqual(found, [OTHER])
                            self.assertEqual(self.state(running.layer), want[directory])
                            self.assertEqual(self.addresses(running), places)
                            source = blob if extra and directory == model else directory
                            self.assertRegex(world.messages.text(0)[-1], f"1 layers loaded again in place from {source} in .* s, 0 by vLLM")
                            self.assertEqual(world.messages.text(), [])
                        ran += 1
        self.assertGreaterEqual(ran, 4)

    def test_files_are_let_go(self):
        case = golden(CASE)
        model, blob = copied(make_blob(case))  # other tests of the process may have the first ones open
        other = other_model(case)
        with World(model=model) as world:
            running = self.loaded(world, case, {"blob": blob, "strict": True})
            self.reload(world, running, other, {"blob": blob, "strict": True})
            links = [os.readlink(f"/proc/self/fd/{name}") for name in os.listdir("/proc/self/fd") if os.path.lexists(f"/proc/self/fd/{name}")]
            self.assertEqual([link for link in links if link.startswith((model, blob, other))], [])

    def test_weights_written_since_the_conversion(self):
        """A trainer writes files of the same names and sizes: the blob is of the former ones."""
        case = golden(CASE)
        model, blob = copied(make_blob(case))
        other = other_model(case)
        want = self.fresh(case, other)
        with World(model=model) as world:
            running = self.loaded(world, case, {"blob": blob, "strict": True})
            shutil.copyfile(os.path.join(other, "model.safetensors"), os.path.join(model, "model.safetensors"))
            os.utime(os.path.join(model, "model.safetensors"), ns=(0, 0))  # times prove nothing
            self.assertEqual(self.reload(world, running, model, {"blob": blob, "strict": True}), [OTHER])
            self.assertEqual(self.state(running.layer), want)
            self.assertIn(f"in place from {model} in", world.messages.text(0)[-1])
            self.assertRegex(world.messages.text()[0], "the blob does not fit.*is not the blob.s checkpoint: layer 0 ")

    def test_another_models_blob_is_never_served(self):
        """A fine-tune lies where its base was, with the base's blob beside it, in it or named: whatever the options
        say, no layer is taken from the blob."""
        case = golden(CASE)
        other = other_model(case)
        want = self.fresh(case, other)
        made = refused = 0
        for place in ("named", "beside", "inside"):
            model, blob = copied(make_blob(case))
            shutil.copyfile(os.path.join(other, "model.safetensors"), os.path.join(model, "model.safetensors"))
            if place != "named":
                blob = shutil.move(blob, model + "-mxfp4_repack" if place == "beside" else os.path.join(model, "mxfp4_repack"))
            for source in (None, "blob", "checkpoint", "check"):
                for strict in (False, True):
                    for check in ("none", "sizes", "checksums"):
                        extra = {"strict": strict, "check": check, "verify": "none"}
                        extra.update({"blob": blob} if place == "named" else {}, **({"source": source} if source else {}))
                        with self.subTest(place=place, **extra), World(model=model) as world:
                            try:
                                running = self.loaded(world, case, extra)
                                if self.meta:  # else vLLM's own stand-in converted it
                                    self.assertEqual(self.state(running.layer), want)
                                made += 1
                            except RuntimeError as error:
                                self.assertRegex(str(error), "is not the blob.s checkpoint: layer 0 ")
                                self.assertTrue(strict or source in ("blob", "check"), "refused without a reason")
                                refused += 1
                            self.assertFalse([line for line in world.messages.text(0) if ": taken from" in line])
        self.assertGreaterEqual(made, 24)
        self.assertGreaterEqual(refused, 9)

    def test_one_byte_is_seen_by_check_source(self):
        """A byte that no sample looks at: check="source" reads every one of the checkpoint."""
        case = golden(CASE)
        model, blob = copied(make_blob(case))
        extra = {"blob": blob, "strict": True, "verify": "none", "check": "source"}
        with World(model=model) as world:
            running = self.loaded(world, case, extra)
            self.assertEqual(self.state(running.layer), self.fresh(case, model))
        with open(os.path.join(blob, "mxfp4_repack.json"), "rb") as file:
            manifest = file.read()
        path = os.path.join(model, "model.safetensors")
        with open(path, "r+b") as file:
            size = file.seek(0, os.SEEK_END)
            for at in range(size - 1, 0, -1):  # the last tensor's, until the sample does not see it
                file.seek(at)
                old = file.read(1)
                file.seek(at)
                file.write(bytes([old[0] ^ 1]))
                file.flush()
                try:
                    require_same_checkpoint(model, manifest)
                    break
                except MismatchError:
                    file.seek(at)
                    file.write(old)
        with World(model=model) as world, self.assertRaisesRegex(RuntimeError, "checksum"):
            self.loaded(world, case, extra)

    @unittest.skipUnless(os.geteuid() == 0, "needs root, who may give files away")
    def test_a_blob_of_another_user_is_not_found(self):
        case = golden(CASE)
        for given in ("mxfp4_repack.json", ""):
            model, blob = copied(make_blob(case))
            blob = shutil.move(blob, model + "-mxfp4_repack")
            os.chown(os.path.join(blob, given), 65534, -1)
            for extra, count in (({}, 0), ({"blob": blob}, 1)):
                with World(model=model) as world:
                    self.loaded(world, case, extra)
                    self.assertEqual(len([line for line in world.messages.text(0) if ": taken from" in line]), count)
                    self.assertEqual(len([line for line in world.messages.text() if "belongs to user 65534" in line]), 1 - count)

    def test_what_is_refused_changes_nothing(self):
        case = golden(CASE)
        model, blob = make_blob(case)
        other = other_model(case)
        cut = other_model(case)
        os.truncate(os.path.join(cut, "model.safetensors"), os.path.getsize(os.path.join(cut, "model.safetensors")) - 100)
        wrong = make_blob(golden("xpu/gpt_oss*typical"))[0]
        for directory, extra, text in ((other, {"blob": blob, "source": "blob"}, "was named for .*: nothing is loaded from"),
                                       (cut, {"strict": True}, "neither from a blob nor made from the checkpoint: .*model.safetensors"),
                                       (wrong, {"strict": True}, "neither from a blob nor made from the checkpoint: ")):
            with World(model=model) as world:
                running = self.loaded(world, case, extra)
                before = self.state(running.layer)
                with self.assertRaisesRegex(RuntimeError, text):
                    self.begun(world, running, directory, extra)
                self.assertEqual(self.state(running.layer), before)
                layerwise = importlib.import_module("vllm.model_executor.model_loader.reload.layerwise")
                self.assertFalse(layerwise.get_layerwise_info(running.layer).can_load())

    def test_what_does_not_fit_is_vllms_with_one_line(self):
        case = golden(CASE)
        model, blob = make_blob(case)
        wrong = make_blob(golden("xpu/gpt_oss*typical"))[0]
        with World(model=model) as world:
            running = self.loaded(world, case, {})
            found = self.reload(world, running, wrong, {})
            self.assertEqual(len(found), 3)
            (line,) = world.messages.text()
            self.assertRegex(line, f"{PREFIX}: vLLM loads it again: ")
        with World(model=model) as world:  # vLLM converted it at first
            running = self.loaded(world, case, {"blob": "/nowhere", "source": "blob"})
            known = len(world.messages.text())
            self.assertEqual(len(self.reload(world, running, model, {})), 3)
            (line,) = world.messages.text()[known:]
            self.assertRegex(line, "vLLM loads it again: first load: ")

    def test_an_update_that_replaced_a_tensor(self):
        """Another tensor at its place: the layer is vLLM's."""
        case = golden(CASE)
        model, _ = make_blob(case)
        with World(model=model) as world:
            running = self.loaded(world, case, {})
            import torch
            own = running.layer._parameters["w13_weight"]
            running.layer._parameters["w13_weight"] = torch.nn.Parameter(own.detach().clone(), requires_grad=False)
            self.assertEqual(len(self.reload(world, running, model, {})), 3)
            self.assertRegex(world.messages.text()[-1], "place of w13_weight: ")

    def test_weights_that_a_trainer_sends(self):
        """The GPU makes the layer from them, in place, as often as they come; vLLM gets the others. Its kernel is played here: tests/capi/gpu.sh."""
        import torch
        case = golden(CASE)
        model, _ = make_blob(case)
        tensors = {name: torch.from_numpy(array.copy()) for name, array in layer_files.read(os.path.join(model, "model.safetensors"))[0].items()
                   if array.dtype == np.uint8}
        made = []

        def make_into(source, device, flats, held):
            if set(held) != set(tensors):
                raise NotFoundError("file", "", f"{sorted(set(tensors) - set(held))} is not there")
            made.append(all(torch.equal(held[name], tensor) for name, tensor in tensors.items()))
            for flat in flats.values():
                flat.zero_()

        with World(model=model) as world, mock.patch("mxfp4_repack.vllm.sent._is_gpu", lambda device: True), \
                mock.patch("mxfp4_repack.loader.make_into", make_into):
            running = self.loaded(world, case, {"strict": True})
            layerwise = importlib.import_module("vllm.model_executor.model_loader.reload.layerwise")
            before, places = self.state(running.layer), self.addresses(running)

            def send(*parts):
                layerwise.initialize_layerwise_reload(running)
                others = [running.load_weights(iter(part)) for part in parts]
                layerwise.finalize_layerwise_processing(running, None)
                return others

            items = list(tensors.items())
            for parts in (([*items, (OTHER, None)],), (items[:1], [(OTHER, None), *items[1:]])):
                self.assertIn([OTHER], send(*parts))
                self.assertRegex(world.messages.text(0)[-1], "1 layers made from weights that were sent, in")
                self.assertEqual(self.addresses(running), places)
                self.assertNotEqual(self.state(running.layer), before)
            self.assertEqual(made, [True, True])
            send([(OTHER, None)])  # no expert: nothing is made
            with self.assertRaisesRegex(RuntimeError, "the weights that were sent: .*is not there"):
                send(items[1:])
            self.assertEqual(self.addresses(running), places)
            self.assertEqual(self.reload(world, running, model, {"strict": True}), [OTHER])  # from files, still
            self.assertEqual(self.state(running.layer), before)
            send(items)
            self.assertEqual(made, [True] * 3)


if __name__ == "__main__":
    unittest.main()
