"""Blobs whose manifest says something else than the program wrote."""
import glob
import json
import os


def edit_manifest(blob, change):
    """Changes a manifest in place and seals it again, as another program would have written it."""
    import blob_maker
    path = os.path.join(blob, "mxfp4_repack.json")
    with open(path, encoding="utf-8") as file:
        manifest = json.load(file)
    change(manifest)
    manifest.pop("manifest_xxh3_128", None)
    with open(path, "w", encoding="utf-8") as file:
        file.write(blob_maker.sealed(manifest))


def edit_both(blob, change):
    """The same change in a manifest and in what the layer's file repeats of it."""
    (path,) = glob.glob(os.path.join(blob, "layer-*.safetensors"))
    with open(path, "rb") as file:
        data = file.read()
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8:8 + length])
    notes = header["__metadata__"]

    def changed(manifest):
        change(manifest)
        (entry,) = manifest["layers"]
        for recipe in manifest["recipes"]:
            recipe["layout"] = manifest["layout"]
        notes["family"] = manifest["target"]["family"]
        notes["mxfp4_repack.revision"] = manifest["revision"]
        notes["mxfp4_repack.layout"] = manifest["layout"]
        notes["mxfp4_repack.recipe"] = json.dumps(manifest["recipes"][entry["recipe"]], separators=(",", ":"))
        text = json.dumps(header, separators=(",", ":")).encode()
        text += b" " * (length - len(text) if len(text) <= length else -(len(text) + 8) % 4096)
        with open(path, "wb") as file:
            file.write(len(text).to_bytes(8, "little") + text + data[8 + length:])
        entry["size"] = os.path.getsize(path)

    edit_manifest(blob, changed)
