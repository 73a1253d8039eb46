#!/usr/bin/env python3
"""The environment variables that releases define (vllm/envs.py): what a user may set, and what the program must answer.

usage: variables.py [--cache DIR] VERSION...

Writes testdata/engines/variables.json: {"wheels": {VERSION: file, digest, pins}, "variables": {NAME: [first release, last release]}}. Nothing is
executed. Needs Python alone.
"""
import argparse
import ast
import json
import os

import store
import wheels

PATH = os.path.join(store.FOLDER, "variables.json")


def names(version, cache):
    """The keys of the table in envs.py that maps a name to its reader."""
    with open(os.path.join(wheels.site(version, cache), "vllm", "envs.py"), encoding="utf-8") as file:
        tree = ast.parse(file.read())
    found = {key.value for node in ast.walk(tree) if isinstance(node, ast.Dict) for key in node.keys
             if isinstance(key, ast.Constant) and isinstance(key.value, str)}
    return {name for name in found if name.startswith("VLLM_")}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cache", default=wheels.default_cache())
    parser.add_argument("versions", nargs="+")
    options = parser.parse_args()
    made = {}
    for version in options.versions:
        for name in names(version, options.cache):
            made.setdefault(name, [version, version])[1] = version
    document = {"wheels": {version: wheels.provenance(version, options.cache) for version in options.versions}, "variables": dict(sorted(made.items()))}
    with open(PATH, "w") as out:
        rows = ",\n".join(f"  {json.dumps(name)}: {json.dumps(releases)}" for name, releases in document["variables"].items())
        out.write(json.dumps({"wheels": document["wheels"]}, indent=1)[:-2] + ',\n "variables": {\n' + rows + "\n }\n}\n")
    print(f"{len(made)} variables of {len(options.versions)} releases in {PATH}")


if __name__ == "__main__":
    main()
