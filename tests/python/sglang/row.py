"""One path of one release of SGLang with the plug-in, on a CPU: the state of a layer must be what SGLang's own conversion leaves.

usage: row.py VERSION ROW...      rows of tests/engines/sglang/layouts.py, each in a process of its own; $BIN is the program

The method classes, the registry of hooks, load_plugins() and the reader of checkpoints are the wheel's. Stood in for: what
tests/engines/sglang/world.py and layouts.py name, among it FusedMoE and its copy of weights into parameters, Fp8MoEMethod's
parameters, and the device. Prints a line for each size, with the layers and entries that were equal.
"""
import contextlib
import importlib
import json
import logging
import os
import subprocess
import sys
import tempfile
import types

HERE = os.path.dirname(os.path.abspath(__file__))
TESTS = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [os.path.join(TESTS, "engines", "sglang"), os.path.join(TESTS, "engines"), os.path.join(os.path.dirname(TESTS), "scripts", "python")]

import add
import layouts
import wheels
import world
from state import differences, state_of
from checkpoints import write_model

PREFIX = "model.layers.0.mlp.experts"
SIZES = ((7101, 2, 256, 256), (7104, 1, 768, 640), (7106, 1, 2880, 192), (7107, 1, 320, 2880))
MODES = {"a blob": {}, "a blob, raw experts skipped": {"MXFP4_REPACK_SKIP_RAW": "1"},
         "made": {"MXFP4_REPACK_SOURCE": "checkpoint"},
         "made, raw experts skipped": {"MXFP4_REPACK_SOURCE": "checkpoint", "MXFP4_REPACK_SKIP_RAW": "1"}}


class Lines(logging.Handler):
    def __init__(self):
        super().__init__()
        self.lines = []

    def emit(self, record):
        self.lines.append((record.levelno, record.getMessage()))


LINES = Lines()


@contextlib.contextmanager
def zeroed():
    """Memory that SGLang and triton_kernels leave as they find it holds zeros here."""
    import torch

    with torch.device("cpu"):  # torch notes which functions take a device when it is first asked
        torch.zeros(0)
    fresh, strided = torch.empty, torch.empty_strided
    torch.empty = lambda *a, **k: fresh(*a, **k).zero_()
    torch.empty_strided = lambda *a, **k: strided(*a, **k).zero_()
    try:
        yield
    finally:
        torch.empty, torch.empty_strided = fresh, strided


def play(row, version, site):
    """SGLang's process: its modules, its arguments, and the distributions that are installed, in the folder `site`."""
    world.REAL |= {"sglang.srt.plugins", "sglang.srt.plugins.hook_registry"}
    cache = wheels.default_cache()
    root = wheels.package("sglang", version, cache, (".py",))
    pins = add.pins(root)
    for name, pinned in (("mxfp4-repack", "0.0.0"), ("flashinfer-python", pins["flashinfer-python"]), ("sglang-kernel", pins["sglang-kernel"])):
        info = os.path.join(site, f"{name.replace('-', '_')}-{pinned}.dist-info")
        os.mkdir(info)
        with open(os.path.join(info, "METADATA"), "w") as out:
            out.write(f"Metadata-Version: 2.1\nName: {name}\nVersion: {pinned}\n")
    with open(os.path.join(site, "mxfp4_repack-0.0.0.dist-info", "entry_points.txt"), "w") as out:
        out.write("[sglang.srt.plugins]\nmxfp4_repack = mxfp4_repack.sglang:register\n")
    sys.path.insert(0, site)
    kind = layouts.play(row, root, add.kernels_of(pins["sglang-kernel"], cache), pins["flashinfer-python"], cache)
    importlib.import_module("sglang.srt.utils")
    sys.modules["sglang"].__version__ = version
    context = importlib.import_module("sglang.srt.runtime_context")
    context.get_server_args = lambda: SERVER
    return kind


SERVER = types.SimpleNamespace(model_path="", load_format="auto", revision=None, download_dir=None, flashinfer_mxfp4_moe_precision="default",
                               enable_eplb=False, init_expert_location="trivial", ep_num_redundant_experts=0, cpu_offload_gb=0)


class Plugin:
    """The plug-in in this process, turned on by its settings for one layer at a time."""

    def __init__(self):
        os.environ["MXFP4_REPACK_BLOB"] = "/nowhere"
        importlib.import_module("sglang.srt.plugins").load_plugins()
        import mxfp4_repack.sglang as plugin
        self.wrapper = plugin._wrapper
        logger = logging.getLogger("sglang.mxfp4_repack")
        logger.addHandler(LINES)
        logger.setLevel(logging.DEBUG)
        logger.propagate = False

    def off(self):
        self.wrapper._hook = Passing()

    def set(self, blob, **environment):
        """A new hook, as a new process has one."""
        from mxfp4_repack.plugin.settings import Settings
        from mxfp4_repack.sglang.hook import Hook
        LINES.lines.clear()
        self.wrapper._hook = Hook(Settings.from_environment({"MXFP4_REPACK_BLOB": blob, **environment}))
        return self.wrapper._hook


class Passing:
    """A hook that leaves everything to SGLang."""

    def create_weights(self, original, method, args, kwargs):
        return original(method, *args, **kwargs)

    def create_moe_runner(self, original, *args, **kwargs):
        return original(*args, **kwargs)

    def process_weights(self, original, *args):
        return original(*args)


def converted(kind, drawn, sizes, tp=(0, 1), ep=(0, 1)):
    """A layer from its creation to the end of its conversion, and its method. What was raw and without data is not loaded."""
    experts, hidden, inter = sizes
    with zeroed():
        layer, method = layouts.layer_and_method(kind, experts, hidden, inter, tp, ep)
        if hasattr(method, "create_moe_runner") and kind in ("trtllm", "cutlass"):
            runner = layer.moe_runner_config
            runner.swiglu_limit = 10.0
            method.create_moe_runner(layer, runner)
            method.moe_runner_config = runner
        meta = [name for name, parameter in layer.named_parameters() if parameter.is_meta]
        if not meta:
            layouts.loaded(kind, layer, drawn)
        method.process_weights_after_loading(layer)
    return layer, method, bool(meta)


def part(kind, drawn, tp, ep):
    """What the loaders give one rank: its experts, its rows of gate and up, its columns of w2; w2's bias only to the first tensor-parallel rank."""
    experts, rows, _ = drawn["w13_weight"].shape
    inter = rows // 2 // tp[1]
    made = {name: tensor[ep[0] * (experts // ep[1]):(ep[0] + 1) * (experts // ep[1])] for name, tensor in drawn.items()}
    for name, tensor in made.items():
        if name.startswith("w13") and kind == "oss":  # pairs
            made[name] = tensor[:, 2 * tp[0] * inter:2 * (tp[0] + 1) * inter]
        elif name.startswith("w13"):
            halves = tensor.reshape(tensor.shape[0], 2, rows // 2, *tensor.shape[2:])[:, :, tp[0] * inter:(tp[0] + 1) * inter]
            made[name] = halves.reshape(tensor.shape[0], 2 * inter, *tensor.shape[2:])
        elif name == "w2_bias":
            made[name] = tensor if tp[0] == 0 else tensor.new_zeros(tensor.shape)
        else:
            width = tensor.shape[2] // tp[1]
            made[name] = tensor[:, :, tp[0] * width:(tp[0] + 1) * width]
    return {name: tensor.contiguous() for name, tensor in made.items()}


def ranks(kind, plugin, version, row):
    """The second of two ranks, of either kind: (layers, entries, faults)."""
    import torch
    import sample

    taken, entries, found = 0, 0, []
    drawn = sample.as_torch(torch, sample.drawn({"seed": 13, "E": 4, "H": 256, "I": 512, "bias": kind == "oss", "backend": "-"}), "cpu")
    for tp, ep, flags in (((1, 2), (0, 1), ()), ((0, 1), (1, 2), ("--enable-expert-parallel",))):
        mine, sizes = part(kind, drawn, tp, ep), (4 // ep[1], 256, 512 // tp[1])
        with tempfile.TemporaryDirectory() as folder:
            model, blob = write_model(kind, folder, drawn, (4, 256, 512), version, row, flags=("--tp-size", "2", *flags))
            if blob is None:
                found.append(model)
                continue
            SERVER.model_path = model
            plugin.off()
            wanted = state_of(*converted(kind, mine, sizes, tp, ep)[:2])
            for mode in ("a blob, raw experts skipped", "made, raw experts skipped"):
                hook = plugin.set(blob, **MODES[mode])
                layer, method, skipped = converted(kind, mine, sizes, tp, ep)
                faults = differences(wanted, state_of(layer, method), skipped)
                if not skipped or hook.taken + hook.made != [PREFIX] or faults:
                    found.append(f"{tp} {ep} {mode}: skipped {skipped}, {hook.taken}, {hook.made}, {LINES.lines}, {faults[:3]}")
                taken, entries = taken + 1, entries + len(wanted)
    for line in found:
        print(json.dumps({"rank": line}))
    return taken, entries, found


def facts_that_differ(kind, plugin, version, row):
    """One fact at a time: SGLang's own result, and a warning that names the fact. The faults that were found."""
    import torch
    import sample

    sizes, found = (2, 256, 256), []
    drawn = sample.as_torch(torch, sample.drawn({"seed": 9, "E": 2, "H": 256, "I": 256, "bias": kind == "oss", "backend": "-"}), "cpu")
    with tempfile.TemporaryDirectory() as folder:
        model, blob = write_model(kind, folder, drawn, sizes, version, row)
        if blob is None:
            return [model]
        SERVER.model_path = model
        plugin.off()
        wanted = state_of(*converted(kind, drawn, sizes)[:2])
        for fact, place, name, value in (
                ("load format", SERVER, "load_format", "dummy"), ("deployment", SERVER, "enable_eplb", True), ("checkpoint", SERVER, "model_path", folder),
                ("release", sys.modules["sglang"], "__version__", "0.0.1")):
            former = getattr(place, name)
            hook = plugin.set(blob, MXFP4_REPACK_VERIFY="none", MXFP4_REPACK_SKIP_RAW="1")
            setattr(place, name, value)
            try:
                layer, method, skipped = converted(kind, drawn, sizes)
            except Exception as error:
                found.append(f"{fact}: {type(error).__name__}: {error}")
                continue
            finally:
                setattr(place, name, former)
            warnings = [text for level, text in LINES.lines if level >= logging.WARNING]
            if skipped or hook.taken or fact not in " ".join(warnings) or differences(wanted, state_of(layer, method), False):
                found.append(f"{fact}: skipped {skipped}, taken {hook.taken}, {warnings}, {differences(wanted, state_of(layer, method), False)[:2]}")
    for line in found:
        print(json.dumps({"fact": line}))
    return found


def run(version, row, site):
    kind = play(row, version, site)
    import torch
    import sample

    plugin = Plugin()
    failed = taken = entries = 0
    for seed, *sizes in SIZES:
        drawn = sample.as_torch(torch, sample.drawn({"seed": seed, "E": sizes[0], "H": sizes[1], "I": sizes[2], "bias": kind == "oss", "backend": "-"}), "cpu")
        with tempfile.TemporaryDirectory() as folder:
            plugin.off()
            try:
                wanted = state_of(*converted(kind, drawn, sizes)[:2])
            except Exception as error:
                print(json.dumps({"row": row, "sizes": sizes, "sglang stops": f"{type(error).__name__}: {error}"}))
                continue
            model, blob = write_model(kind, folder, drawn, sizes, version, layouts.ROWS[row])
            if blob is None:
                print(json.dumps({"row": row, "sizes": sizes, "program refuses": model}))
                continue
            SERVER.model_path = model
            for mode, environment in MODES.items():
                hook = plugin.set(blob, **environment)
                layer, method, skipped = converted(kind, drawn, sizes)
                found = differences(wanted, state_of(layer, method), skipped)
                source = hook.made if "made" in mode else hook.taken
                complaints = [text for level, text in LINES.lines if level >= logging.WARNING]
                if source != [PREFIX] or skipped != ("skipped" in mode) or complaints:
                    found.append(f"taken {hook.taken}, made {hook.made}, converted {hook.converted}, skipped {skipped}: {LINES.lines}")
                taken += source == [PREFIX]
                entries += len(wanted)
                failed += bool(found)
                print(json.dumps({"row": row, "sizes": sizes, "mode": mode, "entries": len(wanted), "differences": found}), flush=True)
    failed += len(facts_that_differ(kind, plugin, version, layouts.ROWS[row]))
    more = ranks(kind, plugin, version, layouts.ROWS[row])
    taken, entries, failed = taken + more[0], entries + more[1], failed + len(more[2])
    print(json.dumps({"row": row, "version": version, "layers": taken, "entries": entries, "failed": failed}), flush=True)
    return 1 if failed else 0


def main():
    version, *rows = sys.argv[1:]
    if len(rows) == 1:
        with tempfile.TemporaryDirectory() as site:
            return run(version, rows[0], site)
    return max(subprocess.run([sys.executable, os.path.abspath(__file__), version, row]).returncode for row in rows)


if __name__ == "__main__":
    sys.exit(main())
