"""What a layer that the plug-in leaves to vLLM has to look like."""
import unittest

from hook_env import SLOTS, World, bits, golden, make_blob

CASE = "cpu/gpt_oss_e2_h128*"


class FallBack(unittest.TestCase):
    """`refused` runs one conversion and expects vLLM's result for exactly the raw tensors."""

    def setUp(self):
        self.enterContext = getattr(self, "enterContext", None) or self._enter

    def _enter(self, context):
        value = context.__enter__()
        self.addCleanup(context.__exit__, None, None, None)
        return value

    def refused(self, fact, made=None, case=None, revision="seed", set_up=None, known=True,
                layer_facts=None, environment=None):
        """A fall back with one warning that names `fact`, and BlobRefused when strict."""
        case = case or golden(CASE)
        made = made or make_blob(case, revision)
        for strict in (None, "1"):
            environment = dict(environment or {}, MXFP4_REPACK_STRICT=strict)
            with self.subTest(fact=fact, strict=strict), \
                    World(revision, blob=made[1], model=made[0], **environment) as world:
                world.start(known=known)
                if set_up:
                    set_up(world)
                layer = world.layer(case, **(layer_facts or {}))
                if callable(getattr(self, "on_layer", None)):
                    self.on_layer(world, layer)
                raw = {slot: getattr(layer, slot, None) for slot in SLOTS}
                before = {slot: None if t is None else bits(t).tobytes() for slot, t in raw.items()}
                if strict:
                    from mxfp4_repack.vllm import hook
                    with self.assertRaisesRegex(RuntimeError, fact) as caught:
                        world.convert(case, layer)
                    self.assertIs(type(caught.exception), hook.BlobRefused)
                    for slot, tensor in raw.items():
                        self.assertIs(getattr(layer, slot, None), tensor)
                    continue
                world.convert(case, layer)
                self.check_own(world, layer, raw, before)
                (line,) = world.messages.text()
                self.assertRegex(line, "vLLM converts it: .*" + fact)
                self.assertNotIn("\n", line)
                self.line = line

    def check_own(self, world, layer, raw, before):
        """The original was called once, with the very arguments, and its result is on the layer."""
        import vllm.standin
        method = layer.quant_method
        self.assertEqual(world.hook.taken, [])
        self.assertEqual(world.hook.converted, [layer.layer_name])
        for slot, tensor in raw.items():
            if tensor is not None:
                self.assertEqual(bits(tensor).tobytes(), before[slot], "raw bytes were written")
        if method.mxfp4_backend.name in ("TRITON",):
            self.assertEqual(bits(method.values[0].storage.data).transpose(0, 2, 1).tobytes(),
                             before["w13_weight"])
            return
        ((_, arguments),) = vllm.standin.calls
        for value, slot in zip(arguments, SLOTS):
            self.assertIs(value, raw[slot])
        for value, slot in zip(method.values, SLOTS):
            own = None if raw[slot] is None else bits(vllm.standin.turned(raw[slot])).tobytes()
            self.assertEqual(None if value is None else bits(value).tobytes(), own)
