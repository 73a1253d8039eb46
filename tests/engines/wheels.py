"""Wheels of releases: fetched from PyPI with pip, without dependencies, into a cache outside the repository."""
import fcntl
import glob
import os
import shutil
import subprocess
import sys
import zipfile

PLATFORMS = ("manylinux_2_24_x86_64", "manylinux_2_28_x86_64", "manylinux_2_31_x86_64", "manylinux_2_34_x86_64", "manylinux_2_35_x86_64",
             "manylinux1_x86_64", "manylinux2014_x86_64")


def default_cache():
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(base, "mxfp4-repack", "engines")


def site(version, cache):
    """The folder with the Python files of a release's wheel, fetched if need be. The wheel itself is not kept."""
    return package("vllm", version, cache, (".py",))


def package(name, version, cache, keep):
    """The folder with the files of a package's wheel whose names end with one of `keep`, fetched if need be, once for all processes."""
    folder = os.path.join(cache, f"{name}-{version}")
    os.makedirs(cache, exist_ok=True)
    with open(folder + ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not os.path.exists(os.path.join(folder, "done")):
            fetch(version, folder, name, keep)
    return os.path.join(folder, "site")


def fetch(version, folder, name, keep):
    wheel_folder = os.path.join(folder, "dl")
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(wheel_folder)
    command = [sys.executable, "-m", "pip", "download", "-q", "--no-cache-dir", "--no-deps", "--only-binary=:all:", "--abi", "abi3", "--abi", "cp38", "--abi", "cp312",
               "--abi", "none", "--python-version", "3.12", "-d", wheel_folder, f"{name}=={version}", "--platform", "any"]
    for platform in PLATFORMS:
        command += ["--platform", platform]
    subprocess.run(command, check=True)
    (wheel,) = glob.glob(os.path.join(wheel_folder, "*.whl"))
    with open(os.path.join(folder, "wheel.sha256"), "w") as out:
        digest = subprocess.run(["sha256sum", wheel], check=True, capture_output=True, text=True).stdout.split()[0]
        out.write(f"{digest}  {os.path.basename(wheel)}\n")
    with zipfile.ZipFile(wheel) as archive:
        for member in archive.namelist():
            if member.endswith(keep) or ".dist-info/" in member:
                archive.extract(member, os.path.join(folder, "site"))
    shutil.rmtree(wheel_folder)
    open(os.path.join(folder, "done"), "w").close()


def provenance(version, cache):
    """Name, SHA-256 and build date of the wheel, and the pins of its requirements that layouts depend on."""
    folder = os.path.join(cache, f"vllm-{version}")
    digest, name = open(os.path.join(folder, "wheel.sha256")).read().split()
    (metadata,) = glob.glob(os.path.join(folder, "site", "*.dist-info", "METADATA"))
    pins = {}
    for line in open(metadata, encoding="utf-8"):
        if line.startswith("Requires-Dist: ") and "==" in line and "extra ==" not in line:
            package, _, version_ = line[len("Requires-Dist: "):].split(";")[0].strip().partition("==")
            if package.split("[")[0] in ("torch", "flashinfer-python", "humming-kernels", "tilelang"):
                pins[package.split("[")[0]] = version_
    return {"file": name, "sha256": digest, "pins": pins}


def torch_site(version, cache):
    """The folder of the torch that the release pins, for its compiled extensions, which load with no other: "" where it is the one of this process,
    None where it is not at hand."""
    import torch

    pinned = provenance(version, cache)["pins"]["torch"]
    if torch.__version__.split("+")[0] == pinned:
        return ""
    folder = os.path.join(cache, f"torch-{pinned}", "site")
    if os.path.isdir(os.path.join(folder, "torch")):
        return folder
    print(f"{version}: no torch {pinned} in {folder}: DEEPGEMM_MXFP4 and CPU are not run")
    return None
