"""Cases of malformed_inputs.py: blobs whose manifest, table or frame contradicts their data."""
import copy
import json
import os
import shutil
import struct
import subprocess

from malformed_cases import Case, HUGE, MEMORY, PROGRAM, SEAL, cases, fresh, put


def blob_cases():
    for kind in ("zstd", "none"):
        subprocess.run([PROGRAM, "convert", "model", "-o", "blob_" + kind, "--arch", "sm80", "--backend", "MARLIN",
                        "--compress", kind, "-q"], check=True)
    files = {"zstd": "layer-00000.safetensors.zst", "none": "layer-00000.safetensors"}

    def blob(name, kind, file, content, commands=("verify", "unpack", "against", "inspect"), memory=MEMORY):
        for command in commands:
            path = fresh("bl_%s_%s" % (name, command))
            shutil.copytree("blob_" + kind, path, dirs_exist_ok=True)
            put(os.path.join(path, file), content)
            arguments = {"verify": ["verify", path], "against": ["verify", path, "--against", "model"],
                         "unpack": ["unpack", path, "-o", "out"], "inspect": ["inspect", path]}[command]
            # inspect tells what the manifest says, and reads no data.
            codes = {"unpack": (3,), "inspect": (0, 3)}.get(command, (1, 3))
            cases.append(Case("bl_%s_%s" % (name, command), arguments, "", codes, path + "/", memory))

    stored = open("blob_zstd/" + files["zstd"], "rb").read()
    frames = (struct.unpack_from("<I", stored, len(stored) - 9)[0])
    table = len(stored) - 9 - 12 * frames - 8

    def patched(data, at, form, value):
        raw = bytearray(data)
        struct.pack_into(form, raw, at, value)
        return bytes(raw)

    first = table + 8
    last = first + 12 * (frames - 1)

    def moved(one, other):
        """One frame's decoded size 64 larger, another's 64 smaller: the sum holds."""
        raw = stored
        for frame, more in ((one, -64), (other, 64)):
            at = first + 12 * frame + 4
            raw = patched(raw, at, "<I", struct.unpack_from("<I", raw, at)[0] + more)
        return raw

    # 64 MiB of spaces in 2 KB: the frame of the header, as run-length blocks.
    bomb = struct.pack("<IBI", 0xFD2FB528, 0xA0, 64 << 20)
    bomb += b"".join(struct.pack("<I", (128 << 10) << 3 | 1 << 1 | (block == 511))[:3] + b" " for block in range(512))
    end = struct.unpack_from("<I", stored, first)[0]
    raw = patched(patched(stored, first, "<I", len(bomb)), first + 4, "<I", 64 << 20)
    blob("zst_header_bomb", "zstd", files["zstd"], bomb + raw[end:], memory=160 << 10)
    for name, data in (("magic", patched(stored, len(stored) - 4, "<I", 0)),
                       ("descriptor", patched(stored, len(stored) - 5, "<B", 0)),
                       ("count_more", patched(stored, len(stored) - 9, "<I", frames + 1)),
                       ("count_huge", patched(stored, len(stored) - 9, "<I", 2 ** 32 - 1)),
                       ("count_none", patched(stored, len(stored) - 9, "<I", 0)),
                       ("skippable", patched(stored, table, "<I", 7)),
                       ("content", patched(stored, table + 4, "<I", 2 ** 32 - 1)),
                       ("encoded", patched(stored, first, "<I", 2 ** 32 - 1)),
                       ("encoded_none", patched(stored, first, "<I", 0)),
                       ("decoded", patched(stored, first + 4, "<I", 2 ** 32 - 1)),
                       ("decoded_64m", patched(stored, first + 4, "<I", 64 << 20)),
                       ("decoded_last", patched(stored, last + 4, "<I", 64 << 20)),
                       ("decoded_moved", moved(frames - 1, frames - 2)), ("decoded_moved_header", moved(0, 1)),
                       ("checksum", patched(stored, first + 8, "<I", 1)),
                       ("checksum_last", patched(stored, last + 8, "<I", 1)),
                       ("no_table", stored[:table]), ("cut", stored[:-1]), ("only_table", stored[table:]),
                       ("frame_header", patched(stored, 4, "<B", 0xFF)),
                       ("frame_size", patched(stored, 5, "<I", 64 << 20))):
        blob("zst_" + name, "zstd", files["zstd"], data)
    plain = open("blob_none/" + files["none"], "rb").read()
    for name, data in (("cut", plain[:-1]), ("longer", plain + b"\0"), ("length", patched(plain, 0, "<Q", HUGE)),
                       ("empty", b""), ("text", b"{}")):
        blob("plain_" + name, "none", files["none"], data)

    manifest = json.load(open("blob_none/mxfp4_repack.json"))

    def resealed(value):
        value = {k: v for k, v in value.items() if k != "manifest_xxh3_128"}
        return subprocess.run([SEAL], input=json.dumps(value, indent=2).encode(), stdout=subprocess.PIPE, check=True).stdout

    assert json.loads(resealed(manifest)) == manifest
    for path, values in {("layout",): ("identity", "nowhere", 3), ("revision",): (3, "tomorrow"), ("rank",): ({}, 5), ("rank", "rank"): (7, -1), ("recipes",): ([], 3), ("recipes", 0, "experts"): ([0], [1, 0], [], [HUGE]), ("rank", "tp_size"): (0,),
                         ("recipes", 0, "intermediate_end"): (32, HUGE), ("recipes", 0, "intermediate_begin"): (HUGE,),
                         ("format_version",): (1, 3, "2", -1), ("format",): ("zip",), ("layers",): ({}, [1], [{}]),
                         ("target", "arch"): (3, "sm90"), ("target", "backend"): ("NOBODY", 1), ("target", "family"): ("x",),
                         ("layers", 0, "file"): ("../model/model.safetensors", "/etc/passwd", "", "absent", "."),
                         ("layers", 0, "size"): (0, HUGE, -1), ("layers", 0, "index"): (HUGE, -1, "0"),
                         ("layers", 0, "tensors", 0, "dtype"): ("I32x", 1), ("layers", 0, "tensors", 0, "name"): ("x", ""),
                         ("layers", 0, "tensors", 0, "shape"): ([HUGE, HUGE], [-1], "1"),
                         ("layers", 0, "recipe"): (1, HUGE, -1), ("recipes", 0, "hidden_size"): (32, 65, HUGE), ("recipes", 0, "layout"): ("loaded",),
                         ("recipes", 0, "padded_intermediate_size"): (64, HUGE), ("recipes", 0, "bias"): ("F32", "U8"), ("layers", 0, "prefix"): ("x",),
                         ("recipes", 0, "w13_order"): ("halves",), ("recipes", 0, "weights"): ("nvfp4",)}.items():
        for i, value in enumerate(values):
            changed = copy.deepcopy(manifest)
            at = changed
            for key in path[:-1]:
                at = at[key]
            if path[-1] not in (at if isinstance(at, dict) else range(len(at))):
                continue
            at[path[-1]] = value
            blob("manifest_%s_%d" % ("_".join(map(str, path)), i), "none", "mxfp4_repack.json", resealed(changed))
    changed = copy.deepcopy(manifest)
    changed["recipes"][0]["intermediate_fill"] = 9
    blob("fill", "none", "mxfp4_repack.json", resealed(changed), ("against",))
