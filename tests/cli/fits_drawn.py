"""fits against a fresh conversion: `fits_drawn.py PROGRAM TESTDATA COUNT` draws blobs, releases and machines. A blob fits if a
conversion for that deployment gives the same tensors for the same backend, and does not if it gives others or is refused."""
import glob
import json
import os
import random
import shutil
import subprocess
import sys

PROGRAM, TESTDATA, COUNT = sys.argv[1], sys.argv[2], int(sys.argv[3])
SEED = int(os.environ.get("MXFP4_SEED", "1"))
RANDOM = random.Random(SEED)
MODELS = ("gptoss_hf", "gptoss_original", "dsv4", "quark_w4a4", "ct_kimi", "ct_mxfp4")
RELEASES = ("0.33.0", "0.33.0", "0.32.0", "0.31.0", "0.30.0", "0.29.0", "0.26.0", "sglang-0.5.23", "sglang-0.5.16")
ARCHES = ("sm80", "sm90", "sm100", "sm120", "gfx942", "gfx950")
WORLDS = ((), (), ("--tp-size", "2"), ("--tp-size", "2", "--enable-expert-parallel"))
EXTRAS = ((), (), (), ("--env", "VLLM_USE_FLASHINFER_MOE_MXFP4_MXFP8=1"), ("--env", "VLLM_ROCM_USE_AITER=1"), ("--no-lib", "flashinfer"),
          ("--activation", "silu"))


def run(*words):
    return subprocess.run([PROGRAM, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def convert(model, out, words):
    """What the blob holds, by rank and tensor; None if there is none."""
    shutil.rmtree(out, ignore_errors=True)
    done = run("convert", model, "-o", out, "-q", *words)
    assert done.returncode in (0, 4), done.stderr
    found = []
    for path in sorted(glob.glob(out + "/**/mxfp4_repack.json", recursive=True)):
        with open(path) as file:
            manifest = json.load(file)
        found.append(manifest["target"]["backend"])  # the plug-in takes no other backend's blob
        found.append([(tensor["name"], tensor["dtype"], tensor["shape"], tensor["storage"], tensor["xxh3_128"])
                      for layer in manifest["layers"] for tensor in layer["tensors"]])
    return found if done.returncode == 0 else None


def engine(release):
    return "sglang" if release.startswith("sglang") else "vllm"


def main():
    models = [name for name in MODELS if os.path.isdir(f"{TESTDATA}/ingest/{name}")]
    assert len(models) >= 3, models
    verdicts = {0: 0, 1: 0}
    tried = 0
    while sum(verdicts.values()) < COUNT:
        tried += 1
        assert tried < 20 * COUNT, "hardly any deployment has a blob"
        model = f"{TESTDATA}/ingest/{RANDOM.choice(models)}"
        there = RANDOM.choice(RELEASES)
        # Another engine calls its backends otherwise, and so it is asked in its own words.
        here = RANDOM.choice([release for release in RELEASES if engine(release) == engine(there)])
        arch, world, extra = RANDOM.choice(ARCHES), RANDOM.choice(WORLDS), RANDOM.choice(EXTRAS)
        made = ["--revision", here, "--arch", arch, *world, *extra]
        blob = convert(model, "blob", made)
        if blob is None:
            continue
        asked = ["--revision", there]
        other = arch
        if RANDOM.random() < 0.4:
            other = RANDOM.choice(ARCHES)
            asked += ["--arch", other]
        fresh = convert(model, "fresh", ["--revision", there, "--arch", other, *world, *extra])
        done = run("fits", "blob", *asked)
        expected = 0 if fresh == blob else 1
        assert done.returncode == expected, (
            f"seed {SEED}: {model} {made}, then {asked}: exit {done.returncode}, a conversion "
            f"{'is refused' if fresh is None else 'differs' if expected else 'is equal'}\n{done.stdout}{done.stderr}")
        verdicts[expected] += 1
    print(f"seed {SEED}: {verdicts[0]} fit, {verdicts[1]} do not, {tried} tried")


main()
