"""The command line programs that belong to this package.

A wheel has the program in the package's folder `bin/`; main() below is the environment's command
`mxfp4-repack`, and `python -m mxfp4_repack`. In a source tree, MXFP4_REPACK or PATH names the program. The
command `mxfp4-repack-probe`, probe() below, prints the facts of a serving machine.
"""
from __future__ import annotations

import os
import runpy
import shutil
import sys
from pathlib import Path
from typing import NoReturn

from mxfp4_repack.errors import DependencyError


def find_program() -> str:
    """The program's path: MXFP4_REPACK, else the one inside this package, else the first in PATH.

    Raises DependencyError if there is none."""
    named = os.environ.get("MXFP4_REPACK")
    if named:
        return named
    inside = Path(__file__).with_name("bin") / "mxfp4-repack"
    if inside.is_file():
        return str(inside)
    found = shutil.which("mxfp4-repack")
    # What `pip install` of a source tree puts into PATH is main() below, which would call itself.
    if found and not _is_script(found):
        return found
    raise DependencyError("mxfp4-repack", "", "the program is neither in this package nor in PATH; "
                                              "install it, or name it in MXFP4_REPACK")


def _is_script(path: str) -> bool:
    """False for what cannot be read: the system may run it all the same."""
    try:
        with open(path, "rb") as file:
            return file.read(4) != b"\x7fELF"
    except OSError:
        return False


def main() -> NoReturn:
    """Becomes the program: the same arguments, standard streams, signals and exit code."""
    try:
        program = find_program()
        # MXFP4_REPACK may name this command itself, which then has to find another one.
        environment = {name: value for name, value in os.environ.items() if name != "MXFP4_REPACK"}
        os.execve(program, ["mxfp4-repack", *sys.argv[1:]], environment)
    except DependencyError as error:
        print(error, file=sys.stderr)
    except OSError as error:
        print(f"{program}: cannot be run: {error.strerror}", file=sys.stderr)
    sys.exit(6)


def probe_script() -> str:
    """scripts/probe-target, which a wheel carries."""
    here = Path(__file__).resolve()
    for script in (here.with_name("bin") / "probe-target", here.parents[2] / "probe-target"):  # wheel, source tree
        if script.is_file():
            return str(script)
    raise DependencyError("mxfp4-repack-probe", "", "not in this package; Debian's mxfp4-repack has it")


def probe() -> None:
    """Runs it in this interpreter: the engine's."""
    try:
        runpy.run_path(probe_script(), run_name="__main__")
    except DependencyError as error:
        sys.exit(str(error))
