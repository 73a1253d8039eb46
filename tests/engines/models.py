#!/usr/bin/env python3
"""What each model class of a release passes to its experts: activation, routing, biases, sizes. Read from the wheel's files, nothing is executed.

usage: models.py [--cache DIR] VERSION...

Starts at the registry's architectures, follows the classes that a model's class names, through packages and platform branches, and keeps the
arguments of every call that makes a layer of fused experts. Writes testdata/engines/models.json: {"wheels": {VERSION: file, digest, pins},
"models": [row...]}; a row names the architectures, the file and class that make the call, the arguments as they are written there, and the releases in
which it came out so. Needs Python alone.
"""
import argparse
import ast
import json
import os

import store
import wheels

PATH = os.path.join(store.FOLDER, "models.json")
MAKERS = {"FusedMoE", "FusedMoEFactory", "SharedFusedMoE"}
# Arguments that a decision or the bytes depend on.
KEPT = ("activation", "scoring_func", "renormalize", "use_grouped_topk", "num_expert_group", "e_score_correction_bias", "custom_routing_function",
        "routing_method_type", "routed_scaling_factor", "has_bias", "swiglu_limit", "hidden_size", "intermediate_size", "ckpt_names")


def name_of(node):
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else None


class Module:
    """One file: its classes, its functions and values at the top, and what it imports from other models."""

    def __init__(self, name, path, site):
        self.file, self.classes, self.imports, self.others = os.path.relpath(path, site), {}, {}, {}
        tree = ast.parse(open(path, encoding="utf-8").read())
        parts = name.split(".") if path.endswith("__init__.py") else name.split(".")[:-1]
        for node in tree.body:
            if isinstance(node, ast.FunctionDef):
                self.others[node.name] = node
            elif isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
                for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                    if isinstance(target, ast.Name):
                        self.others[target.id] = node.value
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                self.classes[node.name] = node
            elif isinstance(node, ast.ImportFrom):
                base = parts[:len(parts) - node.level + 1] if node.level else []
                origin = ".".join([*base, *([node.module] if node.module else [])])
                for alias in node.names if ".models" in origin else ():
                    self.imports.setdefault(alias.asname or alias.name, []).append((origin, alias.name))


class Modules:
    """The wheel's modules, read when they are first asked for. Platform branches are all followed."""

    def __init__(self, site):
        self.site, self.read, self.named, self.called = site, {}, {}, {}
        self.registry = self.read_registry()

    def read_registry(self):
        """{architecture: (module, class)}."""
        path, entries = os.path.join(self.site, "vllm", "model_executor", "models", "registry.py"), {}
        for node in ast.walk(ast.parse(open(path, encoding="utf-8").read())):
            for key, value in zip(node.keys, node.values) if isinstance(node, ast.Dict) else ():
                literal = isinstance(value, ast.Tuple) and len(value.elts) == 2 and all(isinstance(e, ast.Constant) for e in value.elts)
                if isinstance(key, ast.Constant) and literal:
                    module, name = (e.value for e in value.elts)
                    entries[key.value] = (module if module.startswith("vllm.") else "vllm.model_executor.models." + module, name)
        return entries

    def get(self, name):
        if name not in self.read:
            base = os.path.join(self.site, *name.split("."))
            path = next(filter(os.path.exists, (base + ".py", os.path.join(base, "__init__.py"))), None)
            self.read[name] = Module(name, path, self.site) if path else None
        return self.read[name]

    def find(self, module, name, seen=frozenset()):
        """The modules that define a class which `module` knows by `name`: (module, name)."""
        here = self.get(module)
        if here is None or (module, name) in seen:
            return []
        if name in here.classes:
            return [(module, name)]
        return [found for origin in here.imports.get(name, ()) for found in self.find(*origin, seen | {(module, name)})]

    def nodes(self, key):
        """The syntax of a class, and of what it names at the top of its own file."""
        module = self.get(key[0])
        waiting, seen = [module.classes[key[1]]], set()
        while waiting:
            for node in ast.walk(waiting.pop()):
                yield node
                name = name_of(node)
                if isinstance(node, ast.Name) and name in module.others and name not in seen:
                    seen.add(name)
                    waiting.append(module.others[name])

    def look(self, key):
        """Classes that a class names, or whose architecture it names to the registry, and its makers' calls."""
        if key not in self.named:
            names, others, made = {}, [], []
            for node in self.nodes(key):
                if isinstance(node, (ast.Name, ast.Attribute)):
                    names[name_of(node)] = None
                elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in self.registry:
                    others += self.find(*self.registry[node.value])
                elif isinstance(node, ast.Call) and name_of(node.func) in MAKERS:
                    made.append({k.arg: ast.unparse(k.value) for k in node.keywords if k.arg in KEPT})
            others += [found for name in names if name.lstrip("_")[:1].isupper() and name not in MAKERS for found in self.find(key[0], name)]
            self.named[key], self.called[key] = others, made
        return self.named[key], self.called[key]

    def calls(self, module, name):
        """The calls of all classes that a class names, at any distance."""
        waiting, seen = self.find(module, name), set()
        while waiting:
            key = waiting.pop()
            if key in seen:
                continue
            seen.add(key)
            others, made = self.look(key)
            for arguments in made:
                yield {"file": self.get(key[0]).file, "class": key[1], "arguments": arguments}
            waiting += others


def rows_of(version, cache):
    """[{architectures, file, class, arguments}] of a release."""
    modules, rows = Modules(wheels.site(version, cache)), {}
    for architecture, (module, name) in sorted(modules.registry.items()):
        for row in modules.calls(module, name):
            rows.setdefault(json.dumps(row), {"architectures": [], **row})["architectures"].append(architecture)
    for row in rows.values():
        row["architectures"] = sorted(set(row["architectures"]))
    return list(rows.values())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cache", default=wheels.default_cache())
    parser.add_argument("versions", nargs="+")
    options = parser.parse_args()
    kept = {}
    for version in options.versions:
        for row in rows_of(version, options.cache):
            kept.setdefault(json.dumps(row, sort_keys=True), {**row, "releases": []})["releases"].append(version)
    models = sorted(kept.values(), key=lambda row: (row["file"], row["class"], row["releases"]))
    document = {"wheels": {version: wheels.provenance(version, options.cache) for version in options.versions}}
    with open(PATH, "w") as out:
        head = json.dumps(document, indent=1)
        out.write(head[:-2] + ',\n "models": [\n' + ",\n".join("  " + json.dumps(row) for row in models) + "\n ]\n}\n")
    print(f"{len(models)} rows of {len(options.versions)} releases in {PATH}")


if __name__ == "__main__":
    main()
