"""The bytes of layouts: what releases' converters returned, stored, and compared with the program's.

usage: layouts.py RESULT...    stores results of run.py --converters beside those of other releases

testdata/engines/layouts.json: {"executed": [row...], "stopped": [row...]}. A row says what was converted (converters.py) and in which releases it came
out so; "out" is [type, shape, SHA-256] by tensor, "error" what stopped the converter, without the sizes.
"""
import json
import os
import sys
import tempfile

import decisions  # finds the package
import store
import sample

PATH = os.path.join(store.FOLDER, "layouts.json")


def merge(results, before=None):
    """The stored form of run.py's results (one a release), added to what is there of other releases."""
    merged = {}
    fresh = {result["release"] for result in results}
    rows = [(row, set(row["releases"]) - fresh) for kind in (before or {}).values() for row in kind]
    rows += [(row, {result["release"]}) for result in results for row in result["rows"]]
    for row, releases in rows:
        left_out = ("releases",) if "out" in row else ("releases", "seed", "E", "H", "I", "bias")
        row = {key: value for key, value in row.items() if key not in left_out}
        merged.setdefault(json.dumps(row, sort_keys=True), (row, set()))[1].update(releases)
    kept = [row | {"releases": sorted(releases, key=store.by_version)} for row, releases in merged.values() if releases]
    return {"executed": [row for row in kept if "out" in row], "stopped": [row for row in kept if "out" not in row]}


def save(stored):
    with open(PATH, "w", encoding="utf-8") as file:
        lines = {kind: ",\n".join(json.dumps(row, separators=(",", ":")) for row in rows) for kind, rows in stored.items()}
        file.write("{" + ",\n".join(f'"{kind}": [\n{text}\n]' for kind, text in lines.items()) + "}\n")


def stored_rows(release):
    """The rows of one release as run.py made them; what stopped has lost its sizes."""
    return [{key: value for key, value in row.items() if key != "releases"} for rows in load().values() for row in rows if release in row["releases"]]


def load():
    return json.load(open(PATH, encoding="utf-8")) if os.path.exists(PATH) else {}


def changes(stored, old, new):
    """Lines that name the converters whose results differ between two releases."""
    def results(release):
        return {json.dumps({k: v for k, v in row.items() if k not in ("out", "releases")}, sort_keys=True): row["out"]
                for row in stored["executed"] if release in row["releases"]}
    was, now = results(old), results(new)
    yield f"bytes of converters: {len(now)} results"
    for kind, keys in (("changed", [key for key in now if key in was and was[key] != now[key]]), ("new", now.keys() - was.keys()), ("gone", was.keys() - now.keys())):
        names = sorted({" ".join(json.loads(key)[part] for part in ("backend", "family", "arch")) for key in keys})
        yield f"  {kind}: {', '.join(names) or 'none'}"


def without_sizes(row):
    return json.dumps({key: value for key, value in row.items() if key not in ("seed", "E", "H", "I", "bias", "out", "error", "aiter", "triton_kernels")}, sort_keys=True)


def compare(program, release, rows, first):
    """Prints what differs; returns how many rows do. What only one of the two refuses is printed, but is no difference: a release's converter may stop at
    sizes that its rounding never gives it."""
    equal, differ, refused, alone = 0, [], [], []
    executed, stopped = ([row for row in rows if key in row] for key in ("out", "error"))
    ran = {without_sizes(row) for row in executed}
    with tempfile.TemporaryDirectory() as folder:
        for row in executed:
            got = sample.packed(program, folder, row, "vllm-" + release)
            # A tensor that the converter passed through unseen is not in a blob.
            want = row["out"]
            if isinstance(got, str):
                refused.append((row, got))
            elif {name: got.get(name) for name in want} == want:
                equal += 1
            else:
                differ.append((row, [name for name in want if got.get(name) != want[name]], got))
        for row in stopped:
            if "E" in row and without_sizes(row) in ran and not isinstance(sample.packed(program, folder, row, "vllm-" + release), str):
                alone.append(row)
    for row, names, got in differ[:first]:
        print("  differs:", ", ".join(names), json.dumps({key: value for key, value in row.items() if key != "out"}))
        print("      release:", [row["out"][name][:2] for name in names], "program:", [got.get(name, [None])[:2] for name in names])
    for text in sorted({f'{row["backend"]} {row["family"]} {row["arch"]}: {error[:150]}' for row, error in refused}):
        print("  refused:", text)
    for row in alone:
        print(f'  packed by the program alone: {row["backend"]} {row["family"]} {row["arch"]} E {row["E"]}, H {row["H"]}, I {row["I"]}: {row["error"][:150]}')
    print(f"{release}: {equal} layouts' bytes equal, {len(differ)} differ, {len(refused)} refused by the program, {len(stopped)} did not run,"
          f" of which the program packs {len(alone)}")
    return len(differ)


if __name__ == "__main__":
    save(merge([json.load(open(path)) for path in sys.argv[1:]], load()))
