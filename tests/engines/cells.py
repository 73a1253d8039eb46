#!/usr/bin/env python3
"""The deployments that public recipes use (cells.json), as the table of tests/bench/README.md that says what serves each.

    cells.py PROGRAM            prints the table
    cells.py PROGRAM --write    puts it into that page; --check: exits 1 unless it is there
    cells.py --store DATE FILE...    keeps what tests/python/engine/cell_row.py found in testdata/engines/cells.json

cells.json: a cell is a model, a GPU, the flags of the recipe in this program's words, and a source with its own date, or the one on which it
was read. A model is what of its config.json a decision depends on. The program answers each cell by `explain`, without weights; whether the
plug-in reaches what it answers is asked of the plug-in's own tables. What the release's own code made of the cell, in small, is
testdata/engines/cells.json: {"release", "date", "cells": [{model, gpu, flags, ranks, entries, differ, tensors, missing, layers, blob, made}]}, where
layers of all ranks are counted, "refusal" is the program's and "engine" what stopped vLLM. Needs only Python.
"""
import json
import os
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PAGE = os.path.join(ROOT, "tests", "bench", "README.md")
EXECUTED = os.path.join(ROOT, "testdata", "engines", "cells.json")
BEGIN, END = "<!-- cells: `tests/engines/cells.py` makes this table -->\n", "<!-- end of cells -->\n"
sys.path.insert(0, os.path.join(ROOT, "scripts", "python"))

from mxfp4_repack.vllm.build import BUILDERS
from mxfp4_repack.vllm.names import FAMILIES


def explained(program, folder, cell, release):
    """The program's answer as JSON."""
    config = os.path.join(folder, cell["model"].replace("/", "-") + ".json")
    done = subprocess.run([program, "explain", "--model-config", config, "--arch", cell["gpu"], "--revision", release, *cell["flags"], "--json", "-q"],
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    return json.loads(done.stdout)


def reached(answer):
    """What the plug-in does with the answer."""
    if answer.get("error"):
        who = "vLLM converts" if answer.get("backend") else "the engine's own reason"
        return f"{who}: {answer['error']['message']}"
    method = answer.get("method") or answer["assumed_method"]
    if answer["backend"] not in BUILDERS:
        return "vLLM loads it itself"
    return "made or from a blob" if method in FAMILIES else f"vLLM converts ({method})"


def key_of(cell):
    return cell["model"], cell["gpu"], *cell["flags"]


def executed(number):
    """{key of a cell: what was found}, and the line about it; `number`: of all cells."""
    with open(EXECUTED, encoding="utf-8") as file:
        stored = json.load(file)
    found = {key_of(cell): cell for cell in stored["cells"]}
    right = sum(outcome(cell)[1] for cell in found.values())
    wrong = f", {len(found) - right} not" if len(found) > right else ""
    return found, (f"Executed on {stored['date']} by the code of {stored['release']} on a CPU, each model in its own sizes with two layers of few experts, as the "
                   f"deployment's first and last rank: {right} of {number} cells right{wrong}.")


def outcome(cell):
    """(what became of it, whether all is right)"""
    if "engine" in cell:
        return f"vLLM stops: {cell['engine']}", "refusal" in cell
    differ = cell["differ"] + cell["missing"]
    if differ:
        return f"{differ} entries differ", False
    if "refusal" in cell:
        others = cell["blob"] + cell["made"]
        return f"equal; vLLM converts {cell['layers'] - others} of {cell['layers']} layers", not others
    right = cell["blob"] == cell["made"] == cell["layers"]
    return ("equal" if right else f"layers from the blob {cell['blob']} of {cell['layers']}, made {cell['made']} of {cell['layers']}"), right


def store(date, paths):
    with open(os.path.join(ROOT, "tests", "engines", "cells.json"), encoding="utf-8") as file:
        data = json.load(file)
    found = {}
    for path in paths:
        with open(path, encoding="utf-8") as file:
            found |= {key_of(cell): cell for cell in json.load(file)}
    lines = ",\n".join(json.dumps(found[key_of(cell)]) for cell in data["cells"] if key_of(cell) in found)
    with open(EXECUTED, "w", encoding="utf-8") as file:
        file.write(f'{{"release": "{data["release"]}", "date": "{date}", "cells": [\n{lines}\n]}}\n')
    return 0


def rows(program):
    with open(os.path.join(ROOT, "tests", "engines", "cells.json"), encoding="utf-8") as file:
        data = json.load(file)
    with tempfile.TemporaryDirectory() as folder:
        for name, config in data["models"].items():
            with open(os.path.join(folder, name.replace("/", "-") + ".json"), "w", encoding="utf-8") as file:
                json.dump(config, file)
        found, _ = executed(len(data["cells"]))
        for cell in data["cells"]:
            answer = explained(program, folder, cell, data["release"])
            source = data["sources"][cell["source"]]
            words = " ".join(cell["flags"]).replace("--env=", "").replace("--", "") or "-"
            yield ((cell["model"], answer.get("backend") or "-", answer.get("layout") or "-", reached(answer),
                    outcome(found[key_of(cell)])[0] if key_of(cell) in found else "not executed", f"{cell['source']}, {source['date']}"),
                   words, cell["gpu"], source["where"])


def table(program):
    """A row for cells that differ in GPU and flags only."""
    made, groups = list(rows(program)), {}
    for row, words, gpu, _ in made:
        groups.setdefault(row, {}).setdefault(words, []).append(gpu)
    lines = ["| model | recipes | backend | layout | plug-in | executed | source |", "| --- | --- | --- | --- | --- | --- | --- |"]
    for (model, *rest), recipes in groups.items():
        lines.append(f"| {' | '.join((model, '; '.join(', '.join(gpus) + ': ' + words for words, gpus in recipes.items()), *rest))} |")
    places = dict.fromkeys((row[-1].split(", ")[0], where) for row, _, _, where in made)
    lines += ["", executed(len(made))[1], "", "Sources: " + "; ".join(f"{name}: {where}" for name, where in places) + "."]
    return "\n".join(lines) + "\n"


def main():
    if sys.argv[1] == "--store":
        return store(sys.argv[2], sys.argv[3:])
    made = table(sys.argv[1])
    if sys.argv[2:] not in (["--write"], ["--check"]):
        return sys.stdout.write(made) and 0
    with open(PAGE, encoding="utf-8") as file:
        text = file.read()
    before, rest = text.split(BEGIN)
    stored, after = rest.split(END)
    if sys.argv[2] == "--check":
        if stored != made:
            print("tests/bench/README.md: the table of recipes is another; tests/engines/cells.py PROGRAM --write makes it", file=sys.stderr)
        return int(stored != made)
    with open(PAGE, "w", encoding="utf-8") as file:
        file.write(before + BEGIN + made + END + after)
    return 0


if __name__ == "__main__":
    sys.exit(main())
