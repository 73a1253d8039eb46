"""blob_input.py PROGRAM INGEST MAKE_CHECKPOINT, in an empty directory: blobs of every style for many targets, each converted for some others.

What no flag says is as the blob was made for: the checkpoint gets those flags too."""
import filecmp
import glob
import json
import os
import random
import shutil
import subprocess
import sys

import layer_files
import numpy

PROGRAM, INGEST, MAKE_CHECKPOINT = sys.argv[1:]
RANDOM = random.Random(int(os.environ.get("MXFP4_SEED", "1")))
TARGETS = (["--arch", "sm90"], ["--arch", "sm90", "--tp-size", "2"], ["--arch", "sm100"], ["--arch", "sm100", "--tp-size", "2"],
           ["--arch", "sm80"], ["--arch", "sm90", "--tp-size", "2", "--enable-expert-parallel"],
           ["--arch", "gfx942"], ["--arch", "gfx950", "--env", "VLLM_ROCM_USE_AITER=1"], ["--arch", "gfx942", "--tp-size", "2"],
           ["--arch", "x86_64"], ["--arch", "sm120", "--backend", "MARLIN"],
           ["--arch", "sm90", "--emit", "loaded"], ["--arch", "sm90", "--backend", "EMULATION", "--layers", "0"],
           ["--arch", "sm90", "--revision", "0.22.0"])


# What a drawn target is made of, beside a backend of a drawn release.
MACHINES = ("--arch sm90", "--arch sm100", "--arch sm80", "--arch sm89", "--arch sm120", "--arch gfx950", "--arch gfx942", "--arch gfx1250",
            "--platform xpu", "--arch x86_64")
MORE = ("", "", "--tp-size 2", "--knob params_dtype=float16", "--knob marlin_input_dtype=fp8", "--knob humming_input_dtype=float8e4m3",
        "--knob cuda_compiler=13.2", "--activation silu", "--activation situ", "--env VLLM_ROCM_USE_AITER=1", "--level 2")
DRAWS = int(os.environ.get("MXFP4_DRAWS", "6"))


def run(*arguments):
    return subprocess.run([PROGRAM, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def listed(what, *flags):
    return json.loads(run("list", what, "--json", *flags).stdout)[what]


def drawn_targets():
    """Backends of any release with any machine: most of them refuse."""
    revisions = [row["revision"] for row in listed("revisions")]
    for _ in range(DRAWS):
        revision = RANDOM.choice(revisions)
        backend = RANDOM.choice(listed("backends", "--revision", revision))["backend"]
        words = f"--revision {revision} --backend {backend} {RANDOM.choice(MACHINES)} {RANDOM.choice(MORE)}"
        yield words.split()


def tree(directory):
    return sorted(os.path.relpath(path, directory) for path in glob.glob(directory + "/**", recursive=True) if os.path.isfile(path))


def same_files(one, other, only=""):
    names = [name for name in tree(one) if only in name]
    assert names == [name for name in tree(other) if only in name], (names, tree(other))
    for name in names:
        assert filecmp.cmp(f"{one}/{name}", f"{other}/{name}", shallow=False), f"{other}/{name} differs from {one}/{name}"


def tensors_of(directory):
    return {name: (array, os.path.basename(path)) for path in glob.glob(directory + "/*.safetensors")
            for name, array in layer_files.read(path)[0].items()}


def check_published(checkpoint, blob, whole):
    """Every tensor of unpack --as-published is the checkpoint's: name, type, shape, bytes and shard."""
    shutil.rmtree("published", ignore_errors=True)
    done = run("unpack", blob, "-o", "published", "--as-published")
    assert done.returncode == 0, done.stderr
    want, have = tensors_of(checkpoint), tensors_of("published")
    assert have and set(have) <= set(want), set(have) - set(want)
    rounded = "rounds" in done.stderr or "gate and up" in done.stderr
    for name, (array, shard) in have.items():
        assert shard == want[name][1], f"{name} is in {shard}"
        if not rounded:
            assert array.dtype == want[name][0].dtype and numpy.array_equal(array, want[name][0]), name
    lost = [name for name in want if name not in have and ".experts." in name and "shared" not in name]
    assert not whole or not lost or "bias" in lost[0] or "input_scale" in lost[0], lost[:3]
    with open("published/model.safetensors.index.json", encoding="utf-8") as file:
        assert json.load(file)["weight_map"] == {name: shard for name, (_, shard) in have.items()}
    if whole:  # else its config.json promises more layers
        again = run("convert", "published", "-o", "from-published", "--arch", "sm90", "--backend", "MARLIN", "--dry-run")
        assert again.returncode == 0, again.stderr


def by_name(flags):
    """The flags by what they say: of a pair its name, too; machine and platform are one."""
    found, words = {}, list(flags)
    while words:
        name = words.pop(0)
        value = words.pop(0) if words and not words[0].startswith("--") else None
        key = "--arch" if name == "--platform" else name + value.partition("=")[0] if name in ("--env", "--knob") else name
        found[key] = [name] if value is None else [name, value]
    return found


def laid_over(below, flags):
    """`flags`, and of the blob's those that they leave open."""
    kept = {key: words for key, words in by_name(below).items() if key not in ("--emit", "--level", "--layers")}
    return [word for words in {**kept, **by_name(flags)}.values() for word in words]


def check_style(name, checkpoint):
    made = {}
    for flags in (*TARGETS, *drawn_targets()):
        out = f"{name}-{len(made)}"
        done = run("convert", checkpoint, "-o", out, *flags)
        if done.returncode == 0:
            made[out] = flags
        else:
            assert done.returncode in (2, 4), done.stderr
    assert len(made) >= 3, made
    exact = 0
    for blob, blob_flags in made.items():
        lossy = False
        # Its own target, the next one, and one that is drawn.
        names = list(made)
        at = names.index(blob)
        for first in {blob, names[(at + 1) % len(names)], RANDOM.choice(names)}:
            flags = made[first]
            if "--layers" in blob_flags and "--layers" not in flags:
                continue
            for out in ("out", "want"):
                shutil.rmtree(out, ignore_errors=True)
            done = run("convert", blob, "-o", "out", *flags)
            lossy = done.returncode == 4 and "not have all of its checkpoint" in done.stderr
            if lossy:
                break
            both, want = laid_over(blob_flags, flags), first
            if sorted(both) != sorted(flags):
                asked, want = run("convert", checkpoint, "-o", "want", *both), "want"
                assert done.returncode == asked.returncode, (blob_flags, flags, done.stderr, asked.stderr)
            if done.returncode == 0:
                same_files(want, "out")
        exact += not lossy
        if lossy:
            continue
        check_published(checkpoint, blob, "--layers" not in blob_flags)
    print(f"{name}: {len(made)} blobs, {exact} of them exact")
    assert exact


subprocess.run([MAKE_CHECKPOINT, "small", "--layers", "1"], check=True, stdout=subprocess.DEVNULL)
check_style("small", "small")
for directory in sorted(os.listdir(INGEST)):
    if os.path.isfile(f"{INGEST}/{directory}/config.json") and directory != "bad":
        check_style(directory, f"{INGEST}/{directory}")
