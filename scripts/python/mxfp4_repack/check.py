"""mxfp4-repack-check: what would this engine take the experts from, and how fast? In one screen, before it is started.

    mxfp4-repack-check [MODEL] [--blob DIR] [FLAGS of the deployment, as for mxfp4-repack fits: --tp-size 2 ...]

Run it in the serving environment, with the variables of the server. --blob: the blob that the server will be given.

Exit status: 0 from a blob or from the checkpoint, 1 by the engine's own conversion, not at all, or not from --blob's, 2 wrong arguments, 3 no engine or
no program is installed here, 6 the program failed.
"""
from __future__ import annotations

import argparse
import json
import mmap
import os
import signal
import subprocess
import sys
import tempfile
import time
from importlib import metadata
from typing import Any, Dict, Iterator, List, Optional, Sequence, Tuple

from mxfp4_repack.arguments import is_address
from mxfp4_repack.blob import BLOB_FOLDER, find_blobs
from mxfp4_repack.errors import BlobError, DependencyError
from mxfp4_repack.plugin.checkpoint import model_directory
from mxfp4_repack.plugin.engine import SGLANG, VLLM, Engine
from mxfp4_repack.plugin.live import Origin
from mxfp4_repack.plugin.names import BLOB, IN_THE_MODEL
from mxfp4_repack.plugin.settings import Settings
from mxfp4_repack.program import find_program, probe_script
from mxfp4_repack.readers import readers_of_rank
from mxfp4_repack.sglang.live import BACKENDS

TAKEN, CONVERTED, USAGE, NOTHING, FAILED = 0, 1, 2, 3, 6
GROUPS = {"vllm": "vllm.general_plugins", "sglang": "sglang.srt.plugins"}
LISTS = {"vllm": "VLLM_PLUGINS", "sglang": "SGLANG_PLUGINS"}
NAME = "mxfp4_repack"
OWN = "the engine's own conversion"
_READ = 256 << 20


def engine() -> Tuple[Engine, str]:
    """The engine of this environment, and its version."""
    for each in (VLLM, SGLANG):
        try:
            return each, metadata.version(each.package)
        except metadata.PackageNotFoundError:
            continue
    raise DependencyError("vLLM", "", f"neither it nor SGLang is installed for {sys.executable}; run this in the serving environment")


def plugin(package: str) -> Optional[str]:
    """Why the engine would not load the plug-in."""
    found = metadata.entry_points()
    group = found.select(group=GROUPS[package]) if hasattr(found, "select") else found.get(GROUPS[package], ())
    if not any(each.name == NAME for each in group):
        return f"not found: this package is not installed for {sys.executable}"
    listed = os.environ.get(LISTS[package])
    if listed is not None and NAME not in listed.split(","):
        return f"not loaded: {LISTS[package]} is set without {NAME}"
    return None


def facts() -> Dict[str, Any]:
    """Of this machine, as mxfp4-repack-probe prints them."""
    done = subprocess.run([sys.executable, probe_script()], stdout=subprocess.PIPE, check=True, text=True)
    found: Dict[str, Any] = json.loads(done.stdout)
    return found


def asked(*words: str) -> Tuple[int, Dict[str, Any]]:
    """The program's exit code and JSON."""
    done = subprocess.run([find_program(), *words, "--json", "-q"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode == 2:
        raise ValueError(done.stderr.strip())
    if done.returncode not in (0, 1, 4, 7):
        raise RuntimeError(done.stderr.strip())
    return done.returncode, json.loads(done.stdout)


def places_of(model: str, named: Optional[str]) -> List[str]:
    """Where the plug-in looks for a blob."""
    return [named] if named else [os.path.join(model, BLOB_FOLDER), f"{os.path.normpath(model)}-{BLOB_FOLDER}"]


def first_blob(places: Sequence[str]) -> Optional[str]:
    for path in places:
        try:
            if find_blobs(path):
                return path
        except BlobError:
            continue
    return None


def read_speed(directory: str) -> str:
    """How fast the largest file comes past the system's page cache."""
    files = [os.path.join(folder, name) for folder, _, names in os.walk(directory) for name in names]
    path = max(files, key=os.path.getsize)
    total, buffer, begin = 0, mmap.mmap(-1, 8 << 20), time.monotonic()
    try:
        file = os.open(path, os.O_RDONLY | getattr(os, "O_DIRECT", 0))
    except OSError:
        return "the file system reads through the page cache only"
    try:
        while total < _READ and (count := os.preadv(file, [buffer], total)) > 0:
            total += count
    finally:
        os.close(file)
    return f"{total / max(time.monotonic() - begin, 1e-9) / 1e9:.1f} GB/s by one reader, past the page cache"


def source(here: Engine, model: str, named: Optional[str], words: Sequence[str], target: str) -> Iterator[Tuple[str, str]]:
    """Lines of the screen about a model; the last one is ("used", ...). named: the blob of --blob."""
    variables = Settings.from_environment(os.environ) if named is None else None
    if here is SGLANG and named is None and variables is None:
        yield "used", f"{OWN}: MXFP4_REPACK_BLOB is not set"
        return
    if variables and variables.blob != IN_THE_MODEL:
        named = variables.blob
    wants_blob = variables is None or variables.source == BLOB
    blob, code = None, 1
    if wants_blob:
        places = places_of(model, named)
        blob = first_blob(places)
        if blob:
            code, fit = asked("fits", blob, "--target", target, *words)
            said = {True: "fits", False: "does not fit", None: "not known to fit"}[fit["fits"]]
            yield "blob", "\n          ".join([f"{blob} {said} {fit['revision']}", *fit["reasons"]])
        else:
            yield "blob", f"none: not {' nor '.join(places)}"
    yield "disk", read_speed(blob if blob and code != 1 and not is_address(blob) else model)
    by_load_format = here is VLLM and variables is None  # which goes on to the checkpoint
    decided = asked("explain", model, "--target", target, *words)[1] if here is SGLANG or not blob or code == 1 else {}
    backend = decided.get("backend")
    if here is SGLANG and backend and backend not in BACKENDS:
        yield "used", f"{OWN}: the plug-in leaves {backend} to it"
    elif blob and code != 1:
        yield "used", "the blob" + (", which the first start proves" if code == 7 else "")
    elif wants_blob and not by_load_format:
        yield "used", f"{OWN}: {'the blob does not fit' if blob else 'there is no such blob'}"
    else:
        yield "used", f"{'the checkpoint' if decided.get('layout') else OWN if backend else 'nothing'}: {decided['answer']}"


def check(model: Optional[str], named: Optional[str], words: Sequence[str]) -> int:
    here, version = engine()
    missing, machine = plugin(here.package), facts()
    share = len(os.sched_getaffinity(0))
    rows: List[Tuple[str, str]] = [
        ("engine", f"{here.name} {version}"), ("plug-in", missing or "found"),
        ("machine", f"{machine['platform']} {machine['arch']}"), ("readers", f"{readers_of_rank(1)} of {share} CPUs, for one rank")]
    with tempfile.TemporaryDirectory() as folder:
        target = os.path.join(folder, "facts.json")
        with open(target, "w", encoding="utf-8") as file:
            json.dump(machine, file)
        if model:
            rows += source(here, model, named, words, target)
    if missing:
        rows = [row for row in rows if row[0] != "used"] + [("used", f"{OWN}: the plug-in is not there")]
    print("\n".join(f"{name:9} {text}" for name, text in rows))
    name, text = rows[-1]
    wanted = ("the blob",) if named else ("the blob", "the checkpoint")
    return CONVERTED if name == "used" and not text.startswith(wanted) else TAKEN


def main(argv: Optional[Sequence[str]] = None) -> int:
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `| head` ends it quietly
    words = list(sys.argv[1:] if argv is None else argv)
    if "-h" in words or "--help" in words:
        print((__doc__ or "").strip())
        return TAKEN
    model = words.pop(0) if words and not words[0].startswith("-") else None
    if words and not model:
        return _complain(USAGE, "no MODEL before the flags")
    if model and not is_address(model):
        directory = model_directory(Origin(model))
        if directory is None:
            return _complain(USAGE, f"{model}: neither a directory nor a model in the hub's cache here: hf download {model}")
        model = directory
    parser = argparse.ArgumentParser(prog="mxfp4-repack-check", add_help=False, allow_abbrev=False)
    parser.add_argument("--blob")
    own, words = parser.parse_known_args(words)
    try:
        return check(model, own.blob, words)
    except ValueError as error:
        return _complain(USAGE, str(error))
    except DependencyError as error:
        return _complain(NOTHING, str(error))
    except (OSError, RuntimeError, subprocess.CalledProcessError) as error:
        return _complain(FAILED, str(error))


def _complain(status: int, what: str) -> int:
    print(f"mxfp4-repack-check: {what}", file=sys.stderr)
    return status


if __name__ == "__main__":
    sys.exit(main())
