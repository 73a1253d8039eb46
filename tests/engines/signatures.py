"""The parameters that a release's functions and classes take, of those that tests/python/standin stands in for.

    signatures.py VERSION... [--cache DIR]

Reads the wheels' Python files, runs nothing, and writes testdata/engines/signatures.json:
{release: {module: {name: [parameters]}}}, a parameter with its default, a class as "class". A module that only imports a name is followed to the one that defines it.
"*x" and "**x" collect; a class without __init__ that is a dataclass has its fields as parameters of __init__.
tests/python/test_standins.py compares.
"""
import argparse
import ast
import json
import os

import store
import wheels

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
STANDINS = os.path.join(ROOT, "tests", "python", "standin", "common")
FILE = os.path.join(store.FOLDER, "signatures.json")
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def parameters(function):
    found = function.args
    plain = found.posonlyargs + found.args
    pairs = list(zip(plain, [None] * (len(plain) - len(found.defaults)) + found.defaults)) + list(zip(found.kwonlyargs, found.kw_defaults))
    return [one.arg + (f"={ast.unparse(default)}" if default else "") for one, default in pairs] + \
        [stars + one.arg for stars, one in (("*", found.vararg), ("**", found.kwarg)) if one]


def of_class(node):
    """{name: parameters} of its methods, and of its construction."""
    found = {f"{node.name}.{one.name}": parameters(one) for one in node.body if isinstance(one, FUNCTIONS)}
    if f"{node.name}.__init__" not in found and any("dataclass" in ast.unparse(one) for one in node.decorator_list):
        found[f"{node.name}.__init__"] = ["self", *(one.target.id + (f"={ast.unparse(one.value)}" if one.value else "") for one in node.body
                                                   if isinstance(one, ast.AnnAssign))]
    return found


def defined(tree):
    """{name: parameters} of what a module's text defines, in any of its branches."""
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            found.update({node.name: "class", **of_class(node)})
    for top in tree.body:
        for node in ast.walk(top) if isinstance(top, (ast.If, ast.Try)) else [top]:
            if isinstance(node, FUNCTIONS):
                found.setdefault(node.name, parameters(node))
    return found


def standins():
    """{module: {name: parameters}} of the stand-ins that all releases share."""
    found = {}
    for folder, _, names in os.walk(STANDINS):
        for name in names:
            path = os.path.join(folder, name)
            if name.endswith(".py") and name != "standin.py":
                module = os.path.relpath(path, STANDINS)[:-len(".py")].removesuffix("/__init__").replace("/", ".")
                with open(path, encoding="utf-8") as file:
                    found[module] = defined(ast.parse(file.read()))
    return {module: names for module, names in sorted(found.items()) if names}


def file_of(site, module):
    """triton_kernels are those that the wheel brings along."""
    base = os.path.join(site, "vllm", "third_party") if module.startswith("triton_kernels") else site
    path = os.path.join(base, *module.split("."))
    return next((one for one in (path + ".py", os.path.join(path, "__init__.py")) if os.path.exists(one)), None)


def find(site, module, name):
    """{name: parameters} of the module that defines a class or function; None where there is none."""
    path = file_of(site, module)
    if not path:
        return None
    with open(path, encoding="utf-8") as file:
        tree = ast.parse(file.read())
    names = defined(tree)
    if name in names:
        return names
    package = module if path.endswith("__init__.py") else module.rpartition(".")[0]
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and any(one.name == name for one in node.names):
            above = package.split(".")[:len(package.split(".")) - node.level + 1] if node.level else []
            return find(site, ".".join(above + (node.module.split(".") if node.module else [])), name)
    return None


def of_release(site):
    found = {}
    for module, names in standins().items():
        for name in names:
            owner = name.partition(".")[0]
            known = find(site, module, owner)
            if known and name in known:
                found.setdefault(module, {})[name] = known[name]
    return found


def stored():
    """{release: {module: {name: parameters}}} of the data."""
    with open(FILE, encoding="utf-8") as file:
        return json.load(file)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("versions", nargs="+", metavar="VERSION")
    parser.add_argument("--cache", default=wheels.default_cache())
    arguments = parser.parse_args()
    found = stored() | {version: of_release(wheels.site(version, arguments.cache)) for version in arguments.versions}
    with open(FILE, "w", encoding="utf-8") as out:
        json.dump(found, out, indent=1, sort_keys=True)
        out.write("\n")


if __name__ == "__main__":
    main()
