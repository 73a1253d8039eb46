"""What the harnesses share that ask releases the same rows: a process for each release and platform, answers beside those of the other releases."""
import argparse
import json
import lzma
import os
import subprocess
import sys

import store
import wheels


def load(path):
    with lzma.open(path, "rt") if path.endswith(".xz") else open(path) as file:
        return json.load(file)


def save(path, document):
    """Rows last, one a line where the file is text."""
    rows = document.pop("rows")
    with lzma.open(path, "wt") if path.endswith(".xz") else open(path, "w") as file:
        lines = ",\n".join("  " + json.dumps(row) for row in rows)
        file.write(json.dumps(document, indent=None if path.endswith(".xz") else 1).removesuffix("}").rstrip() + f',\n "rows": [\n{lines}\n ]\n}}\n')


def asked(script, version, platform, cache, draw):
    command = [sys.executable, script, version, "--cache", cache, "--platform", platform, *(["--draw", *draw] if draw else [])]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()[-1])


def main(script, doc, name, rows, answers, platform_of, draw=None, head=None, keep=None):
    """Asks the releases of the command line, and writes testdata/engines/NAME: {"wheels", "rows": [row + {"answers": {RELEASE: ANSWER}}]}, and `head`.

    rows(SEED, COUNT), or rows(), makes them; answers(version, platform, cache, {number: row}) gives {number: answer}, None for no answer.
    keep(rows, version) takes answers away.
    """
    parser = argparse.ArgumentParser(description=doc.splitlines()[0])
    parser.add_argument("versions", nargs="+")
    parser.add_argument("--cache", default=wheels.default_cache())
    parser.add_argument("--out", default=os.path.join(store.FOLDER, name))
    parser.add_argument("--platform", help="one release in this process, answers to the standard output")
    if draw:
        parser.add_argument("--draw", nargs=2, metavar=("SEED", "COUNT"), default=draw)
    arguments = parser.parse_args()
    drawn = arguments.draw if draw else ()
    made, cache = rows(*drawn), os.path.abspath(arguments.cache)
    if arguments.platform:
        os.environ["VLLM_LOGGING_LEVEL"] = "CRITICAL"
        chosen = {number: row for number, row in enumerate(made) if platform_of(row) == arguments.platform}
        print("\n" + json.dumps(answers(arguments.versions[0], arguments.platform, cache, chosen)), flush=True)
        os._exit(0)  # what vLLM started of its own
    document = load(arguments.out) if os.path.exists(arguments.out) else {"wheels": {}, "rows": []}
    if [{key: value for key, value in row.items() if key != "answers"} for row in document["rows"]] != made:
        if not set(document["wheels"]) <= set(arguments.versions):
            sys.exit(f"the rows are others than in {arguments.out}: name all of {' '.join(document['wheels'])}")
        document = {"wheels": {}, "rows": made}
    document |= head or {}
    for version in arguments.versions:
        for row in document["rows"]:
            row.setdefault("answers", {}).pop(version, None)
        for platform in sorted(set(map(platform_of, made))):
            said = asked(script, version, platform, cache, drawn)
            for number, answer in said.items():
                document["rows"][int(number)]["answers"] |= {version: answer} if answer is not None else {}
        if keep:
            keep(document["rows"], version)
        document["wheels"][version] = wheels.provenance(version, cache)
        print(version, flush=True)
    for row in document["rows"]:
        row["answers"] = dict(sorted(row["answers"].items(), key=lambda item: store.by_version(item[0])))
    print(f"{len(document['rows'])} rows, {sum(len(row['answers']) for row in document['rows'])} answers")
    save(arguments.out, document)
