"""Judges every blob at or below the paths given: python3 tests/witness [--program PROGRAM] PATH...

With --program, a blob that is refused may be one that a test damaged: PROGRAM verify has to refuse it, too (20
are drawn where there are more). Blobs of more than 32 MiB are left out. The last line says how many were judged.
Exit 77 without the packages that it needs."""
import os
import random
import stat
import subprocess
import sys

sys.path[:0] = [__file__.rsplit("/", 2)[0]]

try:
    import witness
except ImportError as error:
    print(f"SKIP: witness: {error.name} is not installed")
    sys.exit(77)

MOST_BYTES = 32 << 20
MOST_VERIFIED = 20  # drawn: beside a sanitizer a process takes half a second


def fault_of(directory):
    """What is wrong with the blob of one rank, in words; None: nothing."""
    try:
        for name in os.listdir(directory):
            mode = os.stat(os.path.join(directory, name)).st_mode
            if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
                return f"{directory}/{name}: not a file"  # reading a pipe would wait
        witness.judge(directory)
    except (OSError, witness.Refused) as error:
        return str(error)
    return None


def too_large(directory):
    return sum(entry.stat(follow_symlinks=False).st_size for entry in os.scandir(directory)) > MOST_BYTES


def main(arguments):
    program = None
    if arguments[:1] == ["--program"]:
        program, arguments = arguments[1], arguments[2:]
    whole, large, refused = 0, 0, []
    for path in arguments:
        found = witness.blobs_at(path)
        if not found and program is None:
            sys.exit(f"witness: {path}: no blob")
        for directory in found:
            if too_large(directory):
                large += 1
                continue
            fault = fault_of(directory)
            if fault is None:
                whole += 1
            else:
                refused.append((directory, fault))
    for directory, fault in random.sample(refused, min(len(refused), MOST_VERIFIED)):
        if program is None:
            sys.exit(f"witness: {fault}")
        if not subprocess.run([program, "verify", directory], stdin=subprocess.DEVNULL, capture_output=True).returncode:
            sys.exit(f"witness: {fault}; the program's verify finds nothing")
    print(f"witness: {whole} whole, {len(refused)} damaged as verify says, {large} too large")


main(sys.argv[1:])
