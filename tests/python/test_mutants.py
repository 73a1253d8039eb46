"""testdata/mutants/table.json: the program, the library under the Python package, and the witness judge every
mutant, and give one verdict. So they do of mutants that MXFP4_SEED (1) draws, MXFP4_MUTANTS (40) of them."""
import json
import math
import os
import random
import shutil
import subprocess
import unittest

import xxhash

import blob_maker
import mxfp4_repack as reader
import witness

MUTANTS = blob_maker.TESTDATA / "mutants"
LAYER, INDEX = "layer-00000.safetensors", "model.safetensors.index.json"
BYTES = {"BF16": 2, "F16": 2, "I16": 2, "U16": 2, "F32": 4, "I32": 4, "U32": 4, "F64": 8, "I64": 8, "U64": 8, "C64": 8}
# Keys of __metadata__, and the manifest's member that each repeats.
REPEATED = {"family": ("target", "family"), "w13_order": ("recipes", 0, "w13_order"),
            "mxfp4_repack.revision": ("revision",), "mxfp4_repack.layout": ("layout",),
            "mxfp4_repack.kernel_library": ("kernel_library",), "mxfp4_repack.recipe": ("recipes", 0)}


def compact(value):
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def change(document, row):
    """Puts row["value"] at the JSON pointer, or takes away what is there."""
    *path, last = row["at"].split("/")[1:]
    for step in path:
        document = document[int(step) if isinstance(document, list) else step]
    if isinstance(document, list):
        last = int(last)
    if "removed" in row:
        del document[last]
    else:
        document[last] = row["value"]


def follow(header, manifest):
    """Writes to the header what it repeats of the manifest, where the manifest still has that."""
    metadata = header["__metadata__"]
    for key, path in REPEATED.items():
        value = manifest
        try:
            for step in path:
                value = value[step]
        except (IndexError, KeyError, TypeError):
            metadata.pop(key)
            continue
        metadata[key] = value if isinstance(value, str) else compact(value)
    try:
        tensors = manifest["layers"][0]["tensors"]
        metadata["mxfp4_repack.storage"] = compact({t["name"]: t["storage"] for t in tensors})
        old = [header.pop(name) for name in list(header) if name != "__metadata__"]
        for tensor, entry in zip(tensors, old):
            header[tensor["name"]] = {**entry, "dtype": tensor["dtype"], "shape": tensor["shape"]}
    except (IndexError, KeyError, TypeError):
        pass


def index_of(manifest):
    """The index that follows from the manifest, where that still says what it needs."""
    try:
        tensors = [(t, layer["file"]) for layer in manifest["layers"] for t in layer["tensors"]]
        total = sum(math.prod(t["shape"]) * BYTES.get(t["dtype"], 1) for t, _ in tensors)
        names = {t["name"]: file for t, file in tensors}
        index = {"metadata": {"total_size": total}, "weight_map": dict(sorted(names.items()))}
        return json.dumps(index, indent=2, ensure_ascii=False) + "\n"
    except (IndexError, KeyError, TypeError):
        return (MUTANTS / "blob" / INDEX).read_text()


def verdicts(directory):
    """{who: whether the blob is refused}"""
    done = subprocess.run([blob_maker.BIN, "verify", directory, "-q"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode not in (0, 1, 3):
        raise AssertionError(f"exit {done.returncode}: {done.stderr}")
    found = {"program": done.returncode != 0, "package": False, "witness": False}
    try:
        with reader.open_blob(directory, check="checksums") as blob:
            blob.verify()
    except reader.BlobError:
        found["package"] = True
    try:
        witness.judge(directory)
    except witness.Refused:
        found["witness"] = True
    return found


def make(row, directory):
    """The blob with one changed fact."""
    manifest = json.loads((MUTANTS / "blob" / reader.MANIFEST_NAME).read_text())
    manifest.pop("manifest_xxh3_128")
    layer = (MUTANTS / "blob" / LAYER).read_bytes()
    length = int.from_bytes(layer[:8], "little")
    header, data = json.loads(layer[8:8 + length]), layer[8 + length:]
    if row["in"] == "manifest":
        change(manifest, row)
        follow(header, manifest)
    elif row["in"] == "header":
        change(header, row)
    text = compact(header)
    if row["in"] == "header text":
        assert row["found"] in text
        text = text.replace(row["found"], row["put"], 1)
    text = text.encode("utf-8")
    text += b" " * (-(8 + len(text)) % 4096)
    layer = len(text).to_bytes(8, "little") + text + data
    for key, value in (("size", len(layer)), ("xxh3_128", xxhash.xxh3_128(layer).hexdigest())):
        layers = manifest.get("layers")
        if isinstance(layers, list) and layers and isinstance(layers[0], dict) and row.get("at") != f"/layers/0/{key}":
            layers[0][key] = value
    text = blob_maker.sealed(manifest)
    if row["in"] == "manifest text":
        assert row["found"] in text
        text = text.replace(row["found"], row["put"], 1)
        try:
            said = json.loads(text)
            seal = said.pop("manifest_xxh3_128")
            text = text.replace(seal, json.loads(blob_maker.sealed(said))["manifest_xxh3_128"])
        except ValueError:
            pass
    os.makedirs(directory, exist_ok=True)
    with open(os.path.join(directory, INDEX), "w", encoding="utf-8") as file:
        file.write(index_of(manifest))
    with open(os.path.join(directory, LAYER), "wb") as file:
        file.write(layer)
    with open(os.path.join(directory, reader.MANIFEST_NAME), "w", encoding="utf-8") as file:
        file.write(text)


# Who refuses a mutant of each outcome. "program": facts that follow from the layout, which only the program
# compares. The library serves blobs of newer programs, whose layouts it does not know, and the witness knows none.
REFUSED_BY = {"accepted": set(), "refused": {"program", "package", "witness"}, "program": {"program"}}


NESTED = []
for _ in range(300):
    NESTED = [NESTED]
VALUES = [None, True, False, 0, -1, 1, 2, 3, 7, 1 << 31, (1 << 53) + 1, 1 << 60, 1 << 62, (1 << 63) - 1, 1 << 63, 1 << 64,
          -(1 << 63), 0.5, 1e308, -0.0, "", "x", "../x", "/etc/passwd", "\x1b[2J", "\0", "\u2028", "a" * 70000, "loaded", "real",
          "requires_grad", "__class__", [], {}, [0], [1 << 62], [-1], [0, 1 << 61, 1 << 61], [None], [[]], NESTED,
          {"": 0}, {"x": {"x": {}}}, ["w13_weight"] * 3]


def places(document, at=""):
    """JSON pointers to everything in it."""
    items = document.items() if isinstance(document, dict) else enumerate(document) if isinstance(document, list) else ()
    for key, value in items:
        if "/" not in str(key):
            yield f"{at}/{key}"
            yield from places(value, f"{at}/{key}")


def draw(drawn):
    """A row like those of the table, without an outcome."""
    manifest = json.loads((MUTANTS / "blob" / reader.MANIFEST_NAME).read_text())
    manifest.pop("manifest_xxh3_128")
    layer = (MUTANTS / "blob" / LAYER).read_bytes()
    header = json.loads(layer[8:8 + int.from_bytes(layer[:8], "little")])
    part, document = drawn.choice([("manifest", manifest), ("manifest", manifest), ("manifest", manifest), ("header", header)])
    row = {"in": part, "at": drawn.choice(list(places(document)))}
    if drawn.random() < 0.15:
        return {**row, "removed": True}
    return {**row, "value": drawn.choice(VALUES)}


class Mutants(unittest.TestCase):
    # Package and witness know no layout, so the program may refuse more; nobody accepts what one of them refuses.
    def test_drawn(self):
        seed = int(os.environ.get("MXFP4_SEED", "1"))
        for at in range(int(os.environ.get("MXFP4_MUTANTS", "40"))):
            row = draw(random.Random(f"{seed} {at}"))
            with self.subTest(seed=seed, at=at, row=str(row)[:300]):
                make(row, f"drawn-{at}")
                found = verdicts(f"drawn-{at}")
                self.assertEqual(found["package"], found["witness"], found)
                self.assertLessEqual(found["package"], found["program"], found)
                shutil.rmtree(f"drawn-{at}")

    def test_table(self):
        rows = json.loads((MUTANTS / "table.json").read_text())
        self.assertGreater(len(rows), 200)
        for row in rows:
            with self.subTest(**row):
                make(row, "mutant")
                refused = {who for who, answer in verdicts("mutant").items() if answer}
                self.assertEqual(refused, REFUSED_BY[row["outcome"]])

    def test_the_blob_itself(self):
        make({"in": "nothing"}, "same")
        for name in (LAYER, INDEX, reader.MANIFEST_NAME):
            with open(os.path.join("same", name), "rb") as file:
                self.assertEqual(file.read(), (MUTANTS / "blob" / name).read_bytes())


if __name__ == "__main__":
    unittest.main()
