"""Every layout that any revision gives to a backend, through the program: convert, unpack, convert again; and
convert the blob itself, which has to give the same blob, file by file, or to say what is lost.
All layouts of the two commits and the newest release; of other releases those that these do not list.
Wherever nothing is declared lost, the unpacked tensors are the input's and the second blob's files are
the first one's. Each layout's bytes are also what its formula says (formulas.py), with sizes that are drawn.
every_layout.py PROGRAM [STEP], in an empty directory: of the rows every STEP-th goes the round."""
import glob
import itertools
import json
import os
import random
import shutil
import subprocess
import sys

import formulas
import layer_files
import numpy

PROGRAM = sys.argv[1]
STEP = int(sys.argv[2]) if len(sys.argv) > 2 else 1
MACHINES = (["--arch", "sm90"], ["--arch", "sm100"], ["--arch", "sm80"], ["--arch", "sm89"], ["--arch", "sm120"], ["--arch", "gfx950"],
            ["--arch", "gfx942"], ["--arch", "gfx1250"], ["--platform", "xpu"], ["--arch", "x86_64"])
FP16 = ["--knob", "params_dtype=float16", "--knob", "humming_input_dtype=none"]
KNOBS = {"MARLIN": (["--knob", "marlin_input_dtype=fp8"],),
         "BATCHED_MARLIN": (["--knob", "marlin_input_dtype=fp8"],),
         "HUMMING": (*(["--knob", "humming_input_dtype=" + name] for name in ("float8e4m3", "float8e4m3-group128", "int8", "float4e2m1")),
                     ["--knob", "cuda_compiler=12.8"], ["--knob", "cuda_compiler=13.2"], FP16, [*FP16, "--knob", "cuda_compiler=13.2"]),
         "AITER_MXFP4_BF16": (["--activation", "situ"],
                              ["--activation", "situ", "--env", "VLLM_ROCM_USE_AITER=1",
                               "--env", "VLLM_ROCM_USE_AITER_MOE_SITUV2_A8W4=1"],
                              ["--env", "VLLM_ROCM_USE_AITER=1", "--env", "VLLM_ROCM_USE_AITER_MOE_A4W4_DSV4=1"],
                              ["--activation", "situ", "--knob", "aiter_weight=int4"]),
         "AITER_TRITON_MXFP4_MXFP4": (["--activation", "silu"], ["--activation", "swigluoai"])}
# Backends that take no padding and no biases.
WHOLE = ("DEEP_GEMM_MEGA_MOE", "AITER_MEGA_MOE")


def run(*arguments):
    return subprocess.run([PROGRAM, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def listed(what, *flags):
    return json.loads(run("list", what, "--json", *flags).stdout)[what]


def make_input(path, family, input_scales=False, biases=True, hidden=320, inter=160):
    """Sizes that most layouts pad, so that cropping is seen too."""
    experts = 2
    generator = numpy.random.default_rng(5)
    codes = lambda *shape: ("U8", generator.integers(0, 256, shape, dtype="u1"))
    scales = lambda *shape: ("U8", generator.integers(118, 126, shape, dtype="u1"))
    bias = lambda *shape: ("BF16", generator.integers(0x3C00, 0x3F00, shape, dtype="u2"))
    tensors = {}
    for layer in (0, 3):
        prefix = "model.layers.%d.mlp.experts." % layer
        tensors.update({prefix + "w13_weight": codes(experts, 2 * inter, hidden // 2),
                        prefix + "w2_weight": codes(experts, hidden, inter // 2),
                        prefix + "w13_weight_scale": scales(experts, 2 * inter, hidden // 32),
                        prefix + "w2_weight_scale": scales(experts, hidden, inter // 32)})
        if biases:
            tensors.update({prefix + "w13_bias": bias(experts, 2 * inter), prefix + "w2_bias": bias(experts, hidden)})
        if input_scales:
            for name in ("w13_input_scale", "w2_input_scale"):
                tensors[prefix + name] = ("F32", numpy.full(experts, 0.5, "f4"))
    layer_files.write(path, tensors, {"family": family.removeprefix("drawn_")})


def tensors_of(directory):
    return {name: array for path in glob.glob(directory + "/layer-*")
            for name, array in layer_files.read(path)[0].items()}


def files_of(directory):
    return {path[len(directory):]: open(path, "rb").read()
            for path in glob.glob(directory + "/**", recursive=True) if os.path.isfile(path)}


def convert_blob(flags, lost):
    """The blob as the input of convert, and its experts as the checkpoint has them."""
    for directory in ("third", "published"):
        shutil.rmtree(directory, ignore_errors=True)
    third = run("convert", "packed", "-o", "third", *flags)
    if lost:
        assert third.returncode == 4 and "not have all of its checkpoint" in third.stderr, third.stderr
        return
    assert third.returncode == 0, third.stderr
    first, again = files_of("packed"), files_of("third")
    assert first.keys() == again.keys(), (first.keys(), again.keys())
    for name in first:
        assert first[name] == again[name], name + " differs when made from the blob"
    published = run("unpack", "packed", "-o", "published", "--as-published")
    assert published.returncode == 0, published.stderr


def round_trip(source, flags):
    """As round_trip_loaded; then the blob itself."""
    lost = round_trip_loaded(source, flags)
    convert_blob(flags, lost)
    if not lost:
        want = layer_files.read(source)[0]
        have = {name: array for path in glob.glob("published/*.safetensors")
                for name, array in layer_files.read(path)[0].items()}
        assert want.keys() == have.keys(), (want.keys(), have.keys())
        for name in want:
            assert numpy.array_equal(want[name], have[name]), name + " is not what was published"
    return lost


def round_trip_loaded(source, flags):
    """The bits that inspect says are lost, or nothing; raises if unpack says otherwise. What unpack refuses is lost."""
    for directory in ("packed", "back", "again"):
        shutil.rmtree(directory, ignore_errors=True)
    first = run("convert", source, "-o", "packed", *flags)
    assert first.returncode == 0, first.stderr
    unpacked = run("unpack", "packed", "-o", "back")
    if unpacked.returncode == 4 and "cannot be restored" in unpacked.stderr:
        return unpacked.stderr.splitlines()[0]
    assert unpacked.returncode == 0, unpacked.stderr
    if "not exact" in unpacked.stderr or "not in the blob" in unpacked.stderr:
        return unpacked.stderr.splitlines()[0]
    want, back = layer_files.read(source)[0], tensors_of("back")
    assert want.keys() == back.keys(), (want.keys(), back.keys())
    for name in want:
        assert numpy.array_equal(want[name], back[name]), name + " is not what was packed"
    second = run("convert", "back", "-o", "again", *flags)
    assert second.returncode == 0, second.stderr
    for path in sorted(glob.glob("packed/layer-*")):
        with open(path, "rb") as one, open(path.replace("packed", "again"), "rb") as other:
            assert one.read() == other.read(), path + " differs when made from what was unpacked"
    return ""


def manifest_tensors(directory):
    """Of each layer {name: [type, shape]}."""
    with open(directory + "/mxfp4_repack.json", encoding="utf-8") as file:
        for layer in json.load(file)["layers"]:
            yield {tensor["name"].split(".")[-1]: [tensor["dtype"], tensor["shape"]] for tensor in layer["tensors"]}


def check_formula(layouts, layout, source, flags):
    """Sizes as they are if the layout takes them, else padded."""
    family = "gpt_oss" if "gpt_oss" in source else "generic"
    for pad in ("none", "auto"):
        for directory in ("packed", "back"):
            shutil.rmtree(directory, ignore_errors=True)
        made = [run("convert", source, "-o", out, "--pad", pad, *flags, *emit)
                for out, emit in (("packed", ()), ("back", ("--emit", "loaded")))]
        if made[0].returncode == 0:
            break
    assert made[0].returncode == made[1].returncode == 0 or source.startswith("drawn"), made
    if made[0].returncode != 0:
        return
    for loaded, written in zip(manifest_tensors("back"), manifest_tensors("packed")):
        formulas.check_outputs(layouts[layout]["outputs"], loaded, written)
    for path in sorted(glob.glob("packed/layer-*")):
        loaded, written = ({name.split(".")[-1]: array for name, array in layer_files.read(file)[0].items()}
                           for file in (path.replace("packed", "back"), path))
        formulas.check(layouts, layout, loaded, written, family, "humming_input_dtype=int8" in flags)


def make_inputs(prefix="", **sizes):
    for family in (prefix + "gpt_oss", prefix + "generic"):
        make_input(family + ".safetensors", family, **sizes)
        make_input(family + "_scales.safetensors", family, input_scales=True, **sizes)
        make_input(family + "_plain.safetensors", family, biases=False, **sizes)
        make_input(family + "_whole.safetensors", family, **{**sizes, "biases": False, "hidden": 384, "inter": 256})


def main():
    make_inputs()
    drawn = {name: 32 * random.randint(2, 16) for name in ("hidden", "inter")}
    print("formulas with", drawn)
    make_inputs("drawn_", **drawn)
    layouts = {row["id"]: row for row in listed("layouts")}
    rows, made, known, lossy, missing = set(), set(), set(), 0, set(layouts)
    evaluated = set()
    revisions = [row["revision"] for row in listed("revisions")]
    newest = {name.split("-")[0]: name for name in revisions}  # of each engine
    whole = [name for name in revisions if name.startswith("vllm-20") or name in newest.values()]
    for revision in whole + [name for name in revisions if name not in whole]:
        served = {(row["backend"], family, row["layout"]) for row in listed("backends", "--revision", revision)
                  for family in ("gpt_oss", "generic")
                  if row["family"] in (family, "both") and row["layout"]} - (made if revision in whole else known)
        known |= served
        pairs = sorted({(backend, family) for backend, family, _ in served})
        for (backend, family), machine in itertools.product(pairs, MACHINES):
            for knobs in ([], *KNOBS.get(backend, ())):
                variant = "_whole" if backend in WHOLE else "_scales" if backend == "AITER_MXFP4_FP8" else "_plain" if knobs[:2] == FP16[:2] else ""
                source = family + variant + ".safetensors"
                flags = ["--revision", revision, "--backend", backend, *machine, *knobs]
                planned = run("convert", source, "-o", "planned", "--dry-run", "--json", *flags)
                if planned.returncode != 0:
                    assert planned.returncode in (2, 3, 4), planned.stderr
                    continue
                layout = json.loads(planned.stdout)["layout"]
                made.add((backend, family, layout))
                row = (backend, family, layout, *knobs)
                if row in rows:
                    continue
                rows.add(row)
                try:
                    if (layout, flags[-1]) not in evaluated and (layout in missing or "int8" in flags[-1]):
                        evaluated.add((layout, flags[-1]))
                        check_formula(layouts, layout, source, flags)
                        check_formula(layouts, layout, "drawn_" + source, flags)
                except AssertionError as error:
                    sys.exit("%s: %s" % (" ".join(flags), error))
                missing.discard(layout)
                if len(rows) % STEP:
                    continue
                try:
                    lossy += bool(round_trip(source, flags))
                except AssertionError as error:
                    sys.exit("%s: %s" % (" ".join(flags), error))
    tried = len(rows) // STEP
    print("%d rows, %d tried: %d exact, %d declare a loss" % (len(rows), tried, tried - lossy, lossy))
    if missing:
        sys.exit("no target reaches %s" % ", ".join(sorted(missing)))


main()
