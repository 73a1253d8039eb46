"""Fingerprints of the releases' converters, which the plug-in knows: scripts/python/mxfp4_repack/vllm/fingerprints.json.

{"converters": {FINGERPRINT: [RELEASE, ...]}, "gpt_oss": {BACKEND: {FINGERPRINT: [RELEASE, ...]}}, "generic": likewise, CLASS: likewise}

`converters` covers the source text of both converters and of _swizzle_mxfp4 (converter_code.py of the plug-in); a branch covers what runs
for one backend (fingerprint.py there), in a converter or in a method class that converts by itself.
"""
import hashlib
import importlib.util
import inspect
import json
import os
import re

import store
import wheels

PLUGIN = os.path.join(store.FOLDER, "..", "..", "scripts", "python", "mxfp4_repack", "vllm", "fingerprint.py")
FILE = os.path.join(os.path.dirname(PLUGIN), "fingerprints.json")
LAYERS = ("vllm", "model_executor", "layers")
COVERED = (("fused_moe/oracle/mxfp4.py", ("convert_gpt_oss_weight_to_mxfp4_moe_kernel_format", "convert_weight_to_mxfp4_moe_kernel_format")),
           ("quantization/utils/mxfp4_utils.py", ("_swizzle_mxfp4",)))


def plugin():
    spec = importlib.util.spec_from_file_location("fingerprint", PLUGIN)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def whole(site):
    """The fingerprint of both converters' text."""
    text = ""
    for file, names in COVERED:
        lines = open(os.path.join(site, *LAYERS, file), encoding="utf-8").readlines()
        for name in names:
            start = next(i for i, line in enumerate(lines) if line.startswith(f"def {name}("))
            text += "".join(inspect.getblock(lines[start:]))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def of_release(version, cache):
    """(place in the table, fingerprint) pairs of a release."""
    site = wheels.site(version, cache)
    code = plugin()
    yield ("converters",), whole(site)
    for family, branches in code.branch_fingerprints(code.Sources(site)).items():
        for backend, digest in branches.items():
            yield (family, backend), digest


def known():
    return json.load(open(FILE)) if os.path.exists(FILE) else {"converters": {}, "gpt_oss": {}, "generic": {}}


def forget(table, version):
    """Takes a release out of every list, and lists without releases out of the table."""
    for place in [table["converters"], *(branch for name, branches in table.items() if name != "converters" for branch in branches.values())]:
        for digest in list(place):
            place[digest] = [v for v in place[digest] if v != version]
            if not place[digest]:
                del place[digest]


def record(version, cache):
    """Writes a release's fingerprints into the table."""
    table = known()
    forget(table, version)
    for place, digest in of_release(version, cache):
        at = table
        for name in place:
            at = at.setdefault(name, {})
        at[digest] = sorted([*at.get(digest, []), version], key=lambda v: tuple(map(int, v.split("."))))
    with open(FILE, "w") as out:
        out.write(re.sub(r"\[\s+([^\]]*?)\s+\]", lambda m: "[" + " ".join(m[1].split()) + "]", json.dumps(table, indent=1)) + "\n")


def changes(old, new):
    """Lines that name the backends whose converter code differs."""
    table = known()
    yield "converter code:"
    for family in ("gpt_oss", "generic"):
        changed, come = [], []
        for backend, digests in table[family].items():
            places = [releases for releases in digests.values() if new in releases]
            if places and not any(old in releases for releases in digests.values()):
                come.append(backend)
            elif places and old not in places[0]:
                changed.append(backend)
        yield f"  {family}: changed for {changed}, new {come}"
