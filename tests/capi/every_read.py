"""Every system call with which the C library reads a blob fails once, with each error that it may give, is short,
gives nothing, or gives other bytes. The library then gives the right bytes or refuses, in one line that names a file.

    every_read.sh                        a sample: MXFP4_READS cases (240), drawn by MXFP4_SEED (1)
    MXFP4_READS=all every_read.sh        all of them, in MXFP4_JOBS processes (1)
    MXFP4_READS=zstd:direct:pread:3:flip every_read.sh     that one, as a failure prints it
"""
import collections
import os
import subprocess
import sys

import jobs

FAULTS, FAULT_TEST = os.environ["FAULTS"], os.environ["FAULT_TEST"]
BLOBS, WAYS = ("plain", "zstd", "level9"), ("eager", "lazy", "direct")
READ = ["EIO", "ESTALE", "EINTR", "short", "zero", "flip"]
LOOK = ["EIO", "ESTALE", "EACCES"]
ERRORS = {"open": ["EIO", "EACCES", "EMFILE", "ENOENT", "ESTALE"], "fstat": LOOK, "stat": LOOK, "mmap": ["ENOMEM"],
          "read": ["EIO", "ESTALE", "EINTR", "short", "zero"], "pread": READ, "preadv": READ}
# A read that is only interrupted or short loses nothing.
HARMLESS = ("EINTR", "short")


def run(blob, way, **variables):
    options = os.environ.get("ASAN_OPTIONS", "")
    command = [FAULT_TEST, way, os.path.abspath(blob), "plain/layer-00000.safetensors"]
    return subprocess.run(command, capture_output=True, text=True, timeout=120,
                          env={**os.environ, "LD_PRELOAD": FAULTS, "FAULT_PATH": f"/{blob}/",
                               "ASAN_OPTIONS": f"{options}:verify_asan_link_order=0", **variables})


def prepare():
    """The blobs are in the first process's folder."""
    for name in BLOBS:
        if not os.path.exists(name):
            os.symlink(f"../{name}", name)


def all_cases():
    for blob in BLOBS:
        for way in WAYS:
            log = os.path.abspath("calls")
            if os.path.exists(log):
                os.remove(log)
            done = run(blob, way, FAULT_CALLS=log)
            assert done.returncode == 0, (blob, way, done.stdout, done.stderr)
            with open(log, errors="replace") as file:
                counts = collections.Counter(line.split(" ", 1)[0] for line in file)
            assert counts["open"] >= 2 and counts["pread"] + counts["preadv"] >= 2, counts
            for call, count in counts.items():
                for at in range(1, count + 1):
                    for error in ERRORS.get(call, []):
                        yield f"{blob}:{way}:{call}:{at}:{error}"


def judge(case):
    """What is wrong; None if nothing is. Or MISSED."""
    blob, way, call, at, error = case.split(":")
    hit = os.path.abspath("hit")
    if os.path.exists(hit):
        os.remove(hit)
    done = run(blob, way, FAULT_AT=f"{call}:{at}:{error}", FAULT_HIT=hit)
    if not os.path.exists(hit):
        return jobs.MISSED
    said = f"exit {done.returncode}: {done.stdout}{done.stderr}"
    if done.returncode not in (0, 3):
        return said
    if done.returncode == 3 and (done.stdout.count("\n") != 1 or f"/{blob}/" not in done.stdout):
        return f"not one line that names a file: {said}"
    if done.returncode == 3 and error in HARMLESS and call != "open":
        return f"refused for nothing: {said}"
    return None


if __name__ == "__main__":
    sys.exit(jobs.main("MXFP4_READS", 240, prepare, lambda: list(all_cases()), judge))
