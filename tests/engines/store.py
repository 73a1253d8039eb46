"""The answers of releases as test data: one file a release, holding what differs from a neighbouring release."""
import json
import lzma
import os

import grid

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "testdata", "engines")
HARNESS = 1  # raised when the fakes change what a release sees


def path(version, folder=FOLDER):
    return os.path.join(folder, f"{version}.json.xz")


def by_version(version):
    return tuple(map(int, version.split(".")))


def releases(folder=FOLDER):
    """Versions with data, oldest first."""
    names = [n[:-len(".json.xz")] for n in os.listdir(folder) if n.endswith(".json.xz") and n[0].isdigit()]
    return sorted(names, key=by_version)


def flat(value, prefix=""):
    """path -> leaf of nested objects; lists are leaves."""
    if not isinstance(value, dict) or not value:
        return {prefix: value}
    found = {}
    for key, inner in value.items():
        found.update(flat(inner, f"{prefix}\t{key}" if prefix else key))
    return found


def nested(leaves):
    made = {}
    for name, value in leaves.items():
        at = made
        *parents, last = name.split("\t")
        for part in parents:
            at = at.setdefault(part, {})
        at[last] = value
    return made


def save(made, base, folder=FOLDER, date=None):
    """Writes `made` (a result of run.py) as its differences from `base` (the release before it, or None). Returns the bytes written."""
    assert made["grid"] == (base["grid"] if base else made["grid"]), "the two were asked different inputs"
    tables, answers = flat(made["tables"]), made["answers"]
    before = flat(base["tables"]) if base else {}
    old = base["answers"] if base else [None] * len(answers)
    record = {
        "release": made["release"], "wheel": made["wheel"], "harness": HARNESS, "executed": date, "grid": made["grid"],
        "base": base["release"] if base else None,
        "tables": {k: v for k, v in tables.items() if k not in before or before[k] != v},
        "tables_gone": [k for k in before if k not in tables],
        "answers": {str(i): a for i, (a, b) in enumerate(zip(answers, old)) if a != b},
    }
    text = json.dumps(record, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    with open(path(made["release"], folder), "wb") as out:
        return out.write(lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME))


def load(version, folder=FOLDER):
    """A release's tables and answers, in full."""
    with lzma.open(path(version, folder), "rt", encoding="utf-8") as file:
        record = json.load(file)
    base = load(record["base"], folder) if record["base"] else None
    leaves = flat(base["tables"]) if base else {}
    for name in record["tables_gone"]:
        del leaves[name]
    leaves.update(record["tables"])
    count = len(base["answers"]) if base else len(record["answers"])
    answers = list(base["answers"]) if base else [None] * count
    for index, answer in record["answers"].items():
        answers[int(index)] = answer
    return record | {"tables": nested(leaves), "answers": answers}


def rows_of(made):
    """The inputs that the answers belong to. ValueError: the grid has changed since."""
    rows = grid.inputs()
    if grid.digest(rows) != made["grid"]:
        raise ValueError(f"the answers of {made['release']} belong to grid {made['grid']}, this is {grid.digest(rows)}: execute the releases again")
    return rows
