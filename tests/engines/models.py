#!/usr/bin/env python3
"""What each model class of a release passes to its experts: activation, routing, biases, sizes. Read from the wheel's files, nothing is executed.

usage: models.py [--cache DIR] [--table] VERSION...

Starts at the registry's architectures, follows the classes that a model's class names, through packages and platform branches, and keeps the
arguments of every call that makes a layer of fused experts. Writes testdata/engines/models.json: {"wheels": {VERSION: file, digest, pins},
"models": [row...]}; a row names the architectures, the file and class that make the call, the arguments as they are written there, and the releases in
which it came out so. With --table, writes the releases' rows of lib/revisions/class_table.hpp instead, behind those of older ones: what classes cannot do, and which
quantizations platforms refuse, by platform and release. Needs Python alone.
"""
import argparse
import ast
import functools
import json
import os
import re
import textwrap

import store
import wheels

PATH = os.path.join(store.FOLDER, "models.json")
TABLE_PATH = os.path.join(store.FOLDER, "..", "..", "lib", "revisions", "class_table.hpp")
MAKERS = {"FusedMoE", "FusedMoEFactory", "SharedFusedMoE"}
# Arguments that a decision or the bytes depend on.
KEPT = ("activation", "scoring_func", "renormalize", "use_grouped_topk", "num_expert_group", "e_score_correction_bias", "custom_routing_function",
        "routing_method_type", "routed_scaling_factor", "has_bias", "swiglu_limit", "hidden_size", "intermediate_size", "ckpt_names")


def name_of(node):
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else None


@functools.cache
def parsed(path):
    return ast.parse(open(path, encoding="utf-8").read())


def known(test, platform):
    """Whether a condition holds on a platform; None: it does not depend on the platform alone, or all platforms are followed."""
    if platform is None:
        return None
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        value = known(test.operand, platform)
        return None if value is None else not value
    if isinstance(test, ast.BoolOp):
        values, decides = [known(value, platform) for value in test.values], isinstance(test.op, ast.Or)
        return decides if decides in values else None if None in values else not decides
    words = ast.unparse(test)
    if words in ("TYPE_CHECKING", "current_platform.device_type == 'tpu'"):
        return False
    asked = re.fullmatch(r"current_platform\.is_(\w+)\(\)", words)
    if not asked:
        return None
    return platform in ("cuda", "rocm") if asked[1] == "cuda_alike" else platform == asked[1]


def walk(tree, platform):
    """As ast.walk, without the branches that a platform does not take."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        takes = known(node.test, platform) if isinstance(node, (ast.If, ast.IfExp)) else None
        if takes is None:
            waiting += ast.iter_child_nodes(node)
        else:
            branch = node.body if takes else node.orelse
            waiting += branch if isinstance(branch, list) else [branch]


def raises(body, platform):
    """Whether statements raise, whatever else is asked."""
    for node in body:
        takes = known(node.test, platform) if isinstance(node, ast.If) else None
        if isinstance(node, ast.Raise) or takes is not None and raises(node.body if takes else node.orelse, platform):
            return True
    return False


class Module:
    """One file: its classes, its functions and values at the top, and what it imports from other models."""

    def __init__(self, name, path, site, platform=None):
        self.file, self.classes, self.imports, self.others, self.aliases = os.path.relpath(path, site), {}, {}, {}, {}
        tree = parsed(path)
        # A package that imports when it is asked raises there.
        asked = [found for node in tree.body if getattr(node, "name", "") == "__getattr__" for found in node.body if isinstance(found, ast.If)]
        self.raises = raises([*tree.body, *(inner for found in asked for inner in found.body if isinstance(inner, ast.If))], platform)
        parts = name.split(".") if path.endswith("__init__.py") else name.split(".")[:-1]
        for node in tree.body:
            if isinstance(node, ast.FunctionDef):
                self.others[node.name] = node
            elif isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
                for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                    if isinstance(target, ast.Name):
                        self.others[target.id] = node.value
            elif isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":  # a base that type checkers see otherwise
                self.aliases |= {found.targets[0].id: found.value for found in node.orelse if isinstance(found, ast.Assign)}
        typed = {}
        for node in walk(tree, platform):
            if isinstance(node, ast.ClassDef):
                self.classes[node.name] = node
            elif isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
                typed = {alias.name: f"{'.'.join(parts)}.{found.module}" for found in walk(ast.Module(node.body, []), platform)
                         if isinstance(found, ast.ImportFrom) and found.level == 1 for alias in found.names}
            elif isinstance(node, ast.ImportFrom):
                base = parts[:len(parts) - node.level + 1] if node.level else []
                origin = ".".join([*base, *([node.module] if node.module else [])])
                for alias in node.names if ".models" in origin else ():
                    self.imports.setdefault(alias.asname or alias.name, []).append((origin, alias.name))
        # A package whose __getattr__ imports when it is asked says so to type checkers.
        for word, origin in typed.items() if platform and "__getattr__" in self.others else ():
            self.imports.setdefault(word, [(origin, word)])


class Modules:
    """The wheel's modules, read when they are first asked for. Without a platform, all branches are followed."""

    def __init__(self, site, platform=None):
        self.site, self.platform, self.read, self.named, self.called = site, platform, {}, {}, {}
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
            self.read[name] = Module(name, path, self.site, self.platform) if path else None
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
            for node in walk(waiting.pop(), self.platform):
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

    def reached(self, module, name):
        """The classes that a class names, at any distance, and itself."""
        waiting, seen = self.find(module, name), {}
        while waiting:
            key = waiting.pop()
            if key not in seen:
                seen[key] = None
                waiting += self.look(key)[0]
        return list(seen)

    def calls(self, module, name):
        """The calls of all classes that a class names, at any distance."""
        for key in self.reached(module, name):
            for arguments in self.look(key)[1]:
                yield {"file": self.get(key[0]).file, "class": key[1], "arguments": arguments}

    def bases(self, key):
        """A class and those that it is made of, itself first."""
        yield key
        module = self.get(key[0])
        for base in module.classes[key[1]].bases:
            name = name_of(base)
            name = name_of(module.aliases.get(name)) or name
            for found in self.find(key[0], name) if name else ():
                yield from self.bases(found)

    def starts(self, module, key):
        """Whether a class can be imported and made."""
        parts = module.split(".")
        if any(here and here.raises for here in [key and self.get(key[0]), *(self.get(".".join(parts[:i])) for i in range(2, len(parts) + 1))]):
            return False
        if key is None:  # not found on this platform
            return True
        made = (node for base in self.bases(key) for node in self.get(base[0]).classes[base[1]].body if getattr(node, "name", "") == "__init__")
        return not raises(next(made, ast.Module([], [])).body, self.platform)

    def hands_on(self, key, *names):
        """Whether a class that makes experts names all of these arguments in one call."""
        return any(isinstance(node, ast.Call) and set(names) <= {k.arg for k in node.keywords} for node in self.nodes(key))

    def splits(self, key):
        """Whether such a class hands split inputs on to its experts where adapters are on: only then it matters."""
        return self.hands_on(key, "is_sequence_parallel") and not any(
            isinstance(node, ast.Compare) and ast.unparse(node).endswith("lora_config is None")
            or isinstance(node, ast.keyword) and node.arg == "is_sequence_parallel" and ast.unparse(node.value) == "False" for node in self.nodes(key))

    def limits(self, key):
        """Whether such a class stops with more ranks of tensor parallelism than experts."""
        return any(isinstance(node, ast.If) and re.match(r"(self\.)?tp_size > .*experts$", ast.unparse(node.test)) and raises(node.body, self.platform)
                   for node in self.nodes(key))

    def abilities(self, architecture):
        """What a class cannot do, by the letters of TABLE; None: it makes no experts."""
        found = self.find(*self.registry[architecture])
        makers = [key for key in self.reached(*self.registry[architecture]) if self.look(key)[1]]
        if not all(self.starts(self.registry[architecture][0], key) for key in found or [None]):
            return "p"
        if not makers:
            return None
        lora = all(any(name_of(base) == "SupportsLoRA" for of in self.bases(key) for base in self.get(of[0]).classes[of[1]].bases) for key in found)
        redundant = all(self.hands_on(key, "enable_eplb", "num_redundant_experts") for key in makers)
        split = any(self.splits(key) for key in makers)
        return ("" if lora else "l") + ("" if redundant else "e") + ("" if split else "s") + ("t" if any(map(self.limits, makers)) else "")


def rows_of(version, cache):
    """[{architectures, file, class, arguments}] of a release."""
    modules, rows = Modules(wheels.site(version, cache)), {}
    for architecture, (module, name) in sorted(modules.registry.items()):
        for row in modules.calls(module, name):
            rows.setdefault(json.dumps(row), {"architectures": [], **row})["architectures"].append(architecture)
    for row in rows.values():
        row["architectures"] = sorted(set(row["architectures"]))
    return list(rows.values())


TABLE = """// What the engine's own class of a model cannot do, or a platform; made by tests/engines/models.py --table from the wheels. \"@\", the first release in
// which it is so, the platforms, what is missing, and the names until the next \"@\"; a later row of a name replaces an earlier one. l: adapters (LoRA);
// e: redundant experts of EPLB; s: experts' inputs split by tensor parallelism; t: more tensor-parallel ranks than experts; p: the class cannot be made there; q: the quantization; -: nothing.
#pragma once

#include <string_view>

namespace mxfp4 {

inline constexpr std::string_view kClassTable = R"(
%s)";

}  // namespace mxfp4
"""
PLATFORMS = ("cuda", "rocm", "xpu", "cpu")
# By one of the engine's names for each.
METHODS = {"mxfp4": ("mxfp4", "gpt_oss_mxfp4"), "fp8": ("fp8", "deepseek_v4_fp8"), "quark": ("quark",), "compressed-tensors": ("compressed-tensors",),
           "auto-round": ("inc", "auto-round")}


def missing_methods(site, platform):
    """Those of METHODS that a platform refuses."""
    for node in ast.walk(parsed(os.path.join(site, "vllm", "platforms", platform + ".py"))):
        if isinstance(node, ast.AnnAssign) and name_of(node.target) == "supported_quantization":
            taken = {word.value for word in node.value.elts}
            return [name for name, words in METHODS.items() if not taken & set(words)]
    return []


def table_rows(versions, cache):
    """{(release, platforms, missing): [name...]}, in order of time: those of older releases as they are, then the versions'."""
    rows, before = {}, {}
    for text in open(TABLE_PATH).read().partition('R"(')[2].partition(')"')[0].split("@")[1:]:
        release, platforms, letters, *names = text.split()
        if store.by_version(release) < store.by_version(versions[0]):
            rows[release, platforms, letters] = names
            before.update({(name, platform): letters.strip("-") for name in names for platform in platforms.split(",")})
    for version in versions:
        lacks = {}
        for platform in PLATFORMS:
            site = wheels.site(version, cache)
            modules, refused = Modules(site, platform), missing_methods(site, platform)
            for name in METHODS:
                lacks.setdefault(name, {})[platform] = "q" if name in refused else ""
            for name in sorted(modules.registry):
                letters = modules.abilities(name)
                if letters is not None:
                    lacks.setdefault(name, {})[platform] = letters
        for name, now in lacks.items():
            changed = {}
            for platform, letters in now.items():
                if before.get((name, platform), "") != letters:
                    changed.setdefault(letters or "-", []).append(platform)
                before[name, platform] = letters
            for letters, platforms in changed.items():
                rows.setdefault((version, ",".join(platforms), letters), []).append(name)
        print(version, sum(map(len, rows.values())), flush=True)
    return rows


def write_table(versions, cache):
    text = ""
    for (version, platforms, letters), names in table_rows(versions, cache).items():
        text += textwrap.fill(f"@{version} {platforms} {letters} {' '.join(names)}", 150, subsequent_indent="  ", break_on_hyphens=False) + "\n"
    with open(TABLE_PATH, "w") as out:
        out.write(TABLE % text)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cache", default=wheels.default_cache())
    parser.add_argument("--table", action="store_true")
    parser.add_argument("versions", nargs="+")
    options = parser.parse_args()
    if options.table:
        return write_table(options.versions, options.cache)
    stored, kept = json.load(open(PATH, encoding="utf-8")), {}
    for row in stored["models"]:
        releases = [version for version in row.pop("releases") if version not in options.versions]
        if releases:
            kept[json.dumps(row, sort_keys=True)] = {**row, "releases": releases}
    for version in options.versions:
        for row in rows_of(version, options.cache):
            releases = kept.setdefault(json.dumps(row, sort_keys=True), {**row, "releases": []})["releases"]
            releases[:] = sorted([*releases, version], key=store.by_version)
    models = sorted(kept.values(), key=lambda row: (row["file"], row["class"], row["releases"]))
    document = {"wheels": stored["wheels"] | {version: wheels.provenance(version, options.cache) for version in options.versions}}
    with open(PATH, "w") as out:
        head = json.dumps(document, indent=1)
        out.write(head[:-2] + ',\n "models": [\n' + ",\n".join("  " + json.dumps(row) for row in models) + "\n ]\n}\n")
    print(f"{len(models)} rows of {len(document['wheels'])} releases")


if __name__ == "__main__":
    main()
