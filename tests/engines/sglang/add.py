"""Adds a release of SGLang to the test data: executes its wheel's choices and bytes, stores them, and says what differs from another release.

usage: add.py VERSION [--after VERSION] [--cache DIR]     (scripts/add-release sglang-VERSION calls this)
"""
import argparse
import glob
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]
import store
import wheels


def pins(site):
    """Distribution -> version that the wheel's requirements pin."""
    (metadata,) = glob.glob(os.path.join(site, "sglang-*.dist-info", "METADATA"))
    found = {}
    for line in open(metadata, encoding="utf-8"):
        if line.startswith("Requires-Dist: ") and "==" in line and "extra ==" not in line:
            package, _, version = line[len("Requires-Dist: "):].split(";")[0].strip().partition("==")
            found[package.split("[")[0].replace("_", "-")] = version
    return found


def kernels_of(version, cache):
    """The triton_kernels of the release's sglang-kernel; of sgl_kernel its names of scalar types only."""
    site = wheels.package("sglang-kernel", version, cache, (".py",))
    package = os.path.join(site, "sgl_kernel")
    for name in os.listdir(package):
        if name not in ("scalar_type.py", "__init__.py"):
            continue
        if name == "__init__.py":
            open(os.path.join(package, name), "w").close()  # it loads the compiled kernels
    return site


def differences(before, after):
    """Every question of both whose answers differ."""
    for key, places in after["rows"].items():
        old = before["rows"].get(key)
        for i, place in enumerate(places):
            one = after["answers"][place]
            other = before["answers"][old[i]] if old else None
            if one != other:
                yield f"{key} {store.PARALLEL[i]}: {other} -> {one}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("version")
    parser.add_argument("--after", help="release to compare with (default: the newest known)")
    parser.add_argument("--cache", default=wheels.default_cache())
    arguments = parser.parse_args()
    version = arguments.version.removeprefix("sglang-")
    site = wheels.package("sglang", version, arguments.cache, (".py",))
    pinned = pins(site)
    kernels = kernels_of(pinned["sglang-kernel"], arguments.cache)
    print(f"pins: {pinned}")
    known = store.old("choices", {"releases": {}})["releases"]
    after = (arguments.after or max((v for v in known if v != version), default="", key=lambda v: tuple(map(int, v.split("."))))).removeprefix("sglang-")
    with tempfile.TemporaryDirectory() as folder:
        chosen, made = os.path.join(folder, "choices.json"), os.path.join(folder, "layouts.jsonl")
        with open(chosen, "w") as out:
            subprocess.run([sys.executable, os.path.join(HERE, "choices.py"), "--all", f"{version}={site}"], stdout=out, check=True)
        with open(made, "w") as out:
            subprocess.run([sys.executable, os.path.join(HERE, "layouts.py"), arguments.cache, site, kernels, pinned["flashinfer-python"]], stdout=out, check=True)
        store.store_plugin(version, pinned, site)
        store.store_choices([chosen])
        store.store_layouts([f"{version}={made}"])
    if after:
        releases = json.load(open(store.path("choices")))["releases"]
        for line in differences(releases[after], releases[version]):
            print(line)


if __name__ == "__main__":
    main()
