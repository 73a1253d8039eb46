"""Puts what was built into a wheel, without the libraries that a release's wheel carries: built_wheel.py SOURCE
PROGRAM LIBRARY DIR. Its names, entry points and dependencies are those of scripts/python/pyproject.toml."""
import base64
import hashlib
import os
import re
import sys
import tomllib
import zipfile

source, program, library, out = sys.argv[1:]
root = os.path.join(source, "scripts", "python")
with open(os.path.join(root, "pyproject.toml"), "rb") as file:
    project = tomllib.load(file)["project"]
with open(os.path.join(root, "mxfp4_repack", "__init__.py")) as file:
    version = re.search(r'__version__ = "(.*)"', file.read()).group(1)
name = project["name"].replace("-", "_")
info = f"{name}-{version}.dist-info"

members = {}  # path in the wheel: bytes, whether it can be executed
for folder, _, files in os.walk(os.path.join(root, "mxfp4_repack")):
    for file in files:
        path = os.path.join(folder, file)
        if "__pycache__" not in path:
            with open(path, "rb") as opened:
                members[os.path.relpath(path, root)] = opened.read(), False
for path, place in ((program, "mxfp4_repack/bin/mxfp4-repack"), (library, "mxfp4_repack/lib/libmxfp4_repack.so.0"),
                    (os.path.join(source, "scripts", "probe-target"), "mxfp4_repack/bin/probe-target")):
    with open(path, "rb") as opened:
        members[place] = opened.read(), True
entries = {"console_scripts": project["scripts"], **project["entry-points"]}
text = "\n".join(f"[{group}]\n" + "".join(f"{key} = {value}\n" for key, value in rows.items()) for group, rows in entries.items())
metadata = f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {version}\nRequires-Python: {project['requires-python']}\n"
metadata += "".join(f"Requires-Dist: {each}\n" for each in project["dependencies"])
tag = "py3-none-any"
members[f"{info}/METADATA"] = metadata.encode(), False
members[f"{info}/WHEEL"] = f"Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: false\nTag: {tag}\n".encode(), False
members[f"{info}/entry_points.txt"] = text.encode(), False
record = "".join(f"{path},sha256={base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b'=').decode()},{len(data)}\n"
                 for path, (data, _) in members.items())
members[f"{info}/RECORD"] = (record + f"{info}/RECORD,,\n").encode(), False
with zipfile.ZipFile(os.path.join(out, f"{name}-{version}-{tag}.whl"), "w") as wheel:
    for path, (data, runs) in members.items():
        entry = zipfile.ZipInfo(path)
        entry.external_attr = (0o100755 if runs else 0o100644) << 16
        wheel.writestr(entry, data)
