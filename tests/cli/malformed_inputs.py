"""Malformed inputs by the hundred: mutations of small real inputs of every container, each with the
exit codes that are right for it. malformed_inputs.py PROGRAM TESTDATA SEAL, in an empty directory.
Every run must end with such a code, exactly one error line that names the file, no output and little
memory; exit status 1 if one does not. SEAL puts the checksum of a manifest right."""
import copy
import glob
import json
import os
import shutil
import struct
import sys

from malformed_cases import (BIAS, BLOCKS, CONFIG, Case, DATA, HEADER, HEADER_BYTES, HUGE, MODEL, PREFIX,
                             PROGRAM, TESTDATA, cases, convert, fresh, put)
from malformed_blobs import blob_cases

UNMEASURED = os.environ.get("UNMEASURED") == "1"


# Safetensors

def safetensors(name, content):
    directory = fresh("st_" + name)
    put(directory + "/config.json", CONFIG)
    put(directory + "/model.safetensors", content)
    convert("st_" + name, directory, "" if name == "many_empty" else "model.safetensors")


def header_text(name, text, data=DATA):
    raw = text if isinstance(text, bytes) else text.encode()
    safetensors(name, struct.pack("<Q", len(raw)) + raw + data)


def header(name, change, data=DATA):
    value = copy.deepcopy(HEADER)
    value = change(value) or value
    header_text(name, json.dumps(value), data)


def entry(name, **fields):
    """Members of one tensor's entry set, or removed when None."""
    def change(value):
        for key, member in fields.items():
            if member is None:
                del value[BLOCKS][key]
            else:
                value[BLOCKS][key] = member
    header(name, change)


def safetensors_cases():
    for length in (0, 1, 7, HEADER_BYTES - 1, HEADER_BYTES + 1, len(MODEL) - 8, len(MODEL) - 7, len(MODEL),
                   1 << 32, 100_000_001, 1 << 62, HUGE, 2 ** 64 - 1):
        safetensors("length_%x" % length, struct.pack("<Q", length) + MODEL[8:])
    for size in (9, 64, 8 + HEADER_BYTES - 1, 8 + HEADER_BYTES, len(MODEL) // 2, len(MODEL) - 1):
        safetensors("cut_%d" % size, MODEL[:size])
    safetensors("trailing_byte", MODEL + b"\0")
    safetensors("trailing_file", MODEL + MODEL)
    good = json.dumps(HEADER)
    for name, text in (("list", "[]"), ("string", '"x"'), ("number", "{} 3"), ("garbage", good + "x"),
                       ("comma", good[:-1] + ",}"), ("quotes", good.replace('"', "'")),
                       ("comment", good[:-1] + "/**/}"), ("nan", good.replace("64", "NaN", 1)),
                       ("nul", good[:60].encode() + b"\0" + good[60:].encode()),
                       ("unclosed", good[:-1]), ("only_open", "{" * 1000),
                       ("surrogate", good.replace("gate_up_proj_bias", r"\ud800", 1)),
                       ("deep_lists", '{"a":' + "[" * 100_000 + "]" * 100_000 + "}"),
                       ("deep_objects", '{"a":' * 50_000 + "1" + "}" * 50_000),
                       ("deep_shape", good.replace('"shape": [', '"shape": [' + "[" * 500, 1)),
                       ("duplicate_tensor", good[:-1] + ', "%s": %s}' % (BIAS, json.dumps(HEADER[BIAS]))),
                       ("duplicate_field", good.replace('"dtype": "U8"', '"dtype": "U8", "dtype": "U8"', 1)),
                       ("duplicate_escaped", good[:-1] + r', "\u006d%s": %s}' % (BIAS[1:], json.dumps(HEADER[BIAS]))),
                       ("two_metadata", good[:-1] + ', "__metadata__": {}, "__metadata__": {}}'),
                       ("long_number", good.replace("64", "6" * 5000, 1)),
                       ("long_string", good.replace('"U8"', '"%s"' % ("U" * 100_000), 1)),
                       ("bad_utf8_key", good.encode().replace(b"gate_up", b"g\xff\xfe_up", 1)),
                       ("bad_utf8_value", good.encode().replace(b'"U8"', b'"\xc0\xaf"', 1)),
                       ("overlong_utf8", good.encode().replace(b"model.", b"\xe0\x80\xaf.", 1))):
        header_text(name, text)
    header_text("nothing", b"")
    header_text("many_empty", json.dumps({"t%d" % i: {"dtype": "U8", "shape": [0], "data_offsets": [0, 0]}
                                          for i in range(20_000)}), b"")
    shape, offsets = HEADER[BLOCKS]["shape"], HEADER[BLOCKS]["data_offsets"]
    for field in ("dtype", "shape", "data_offsets"):
        entry("no_" + field, **{field: None})
        entry("null_" + field, **{field: {}})
    for name, value in (("unknown", "U7"), ("lower", "u8"), ("number", 8), ("wider", "F64"), ("nul", "U8\0")):
        entry("dtype_" + name, dtype=value)
    for name, value in (("text", "2"), ("negative", [-1] + shape[1:]), ("float", [2.0] + shape[1:]),
                        ("string", ["2"] + shape[1:]), ("true", [True] + shape[1:]), ("larger", [3] + shape[1:]),
                        ("empty", []), ("zero", [0] + shape[1:]), ("max", [HUGE] + shape[1:]),
                        ("above_max", [2 ** 63] + shape[1:]), ("above_64_bits", [2 ** 64 + 2] + shape[1:]),
                        ("wraps_to_right", [2 ** 32, 2 ** 32 + shape[1]] + shape[2:]),
                        ("wraps_to_zero", [2 ** 32, 2 ** 32]), ("exponent", [1e300] + shape[1:]),
                        ("rank_9", [1] * 5 + shape), ("rank_1000", [1] * 996 + shape),
                        ("swapped", shape[::-1]), ("flat", [offsets[1] - offsets[0]])):
        entry("shape_" + name, shape=value)
    begin, end = offsets
    for name, value in (("one", [begin]), ("three", [begin, end, end]), ("text", [str(begin), str(end)]),
                        ("negative", [-1, end]), ("reversed", [end, begin]), ("float", [begin + 0.5, end]),
                        ("past_end", [begin, len(DATA) + 1]), ("far", [HUGE - (end - begin), HUGE]),
                        ("above_63_bits", [2 ** 63, 2 ** 63 + end - begin]), ("hole", [begin + 1, end]),
                        ("overlap", [begin - 1, end - 1]), ("short", [begin, end - 1]), ("empty", [begin, begin]),
                        ("moved", [begin + len(DATA), end + len(DATA)]), ("object", {"begin": begin, "end": end})):
        entry("offsets_" + name, data_offsets=value)
    header("same_place", lambda h: h[PREFIX + "gate_up_proj_scales"].update(
        data_offsets=h[PREFIX + "down_proj_scales"]["data_offsets"]))
    for name, value in (("list", []), ("number", {"format": 1}), ("nested", {"a": {"b": "c"}}), ("null", {"a": None}),
                        ("text", "pt")):
        header("metadata_" + name, lambda h, v=value: h.update(__metadata__=v))
    for name, value in (("empty", ""), ("control", "a\nb"), ("nul", "a\0b")):
        header("name_" + name, lambda h, v=value: {v if k == BIAS else k: e for k, e in h.items()})


def index_cases():
    """An index beside the model: what it says must be there, and nothing outside."""
    names = {name: "model.safetensors" for name in HEADER}

    def index(name, text, named="model.safetensors"):
        directory = fresh("ix_" + name)
        put(directory + "/config.json", CONFIG)
        put(directory + "/model.safetensors", MODEL)
        put(directory + "/model.safetensors.index.json",
            text if isinstance(text, (str, bytes)) else json.dumps(text))
        convert("ix_" + name, directory, named)

    for name, place in (("parent", "../model.safetensors"), ("root", "/etc/passwd"), ("dots", ".."), ("dot", "."),
                        ("nothing", ""), ("below", "a/model.safetensors"), ("nul", "model.safetensors\0"),
                        ("long", "m" * 300), ("itself", "model.safetensors.index.json"), ("config", "config.json"),
                        ("number", 1), ("null", None), ("list", ["model.safetensors"])):
        index("place_" + name, {"weight_map": dict(names, **{BIAS: place})}, "")
    # A tensor of no expert that only the index lists is a warning.
    index("unknown_tensor", {"weight_map": dict(names, **{PREFIX + "more": "model.safetensors"})})
    index("not_object", [])
    index("no_map", {"metadata": {}})
    index("map_list", {"weight_map": []})
    index("map_empty", {"weight_map": {}})
    index("bad_utf8", b'{"weight_map": {"\xff": "model.safetensors"}}')
    index("duplicate", '{"weight_map": {"a": "model.safetensors", "a": "model.safetensors"}}')
    index("deep", '{"weight_map": ' + '{"a":' * 5000 + "}" * 5001)
    index("cut", json.dumps({"weight_map": names})[:-5])
    directory = fresh("ix_directory")
    os.makedirs(directory + "/model.safetensors")
    convert("ix_directory", directory, "model.safetensors")
    directory = fresh("ix_fifo")
    os.mkfifo(directory + "/model.safetensors")
    convert("ix_fifo", directory, "model.safetensors")
    directory = fresh("ix_dangling")
    os.symlink("nowhere", directory + "/model.safetensors")
    convert("ix_dangling", directory, "model.safetensors")


# JSON beside a checkpoint


def config_cases():
    good = json.loads(CONFIG)

    def config(name, text):
        directory = fresh("cf_" + name)
        put(directory + "/model.safetensors", MODEL)
        put(directory + "/config.json", text if isinstance(text, (str, bytes)) else json.dumps(text))
        convert("cf_" + name, directory, "config.json", codes=(3, 4))

    for key, values in {"hidden_size": (-64, 64.5, "64", True, {}, 2 ** 63, 2 ** 70, 0, 128, 32),
                        "intermediate_size": (-1, HUGE, 128, 0), "num_local_experts": (3, 1, 0, HUGE, "2"),
                        "num_hidden_layers": (0, "1", 2 ** 64), "model_type": (1, [], {}),
                        "quantization_config": ([], "mxfp4", 4, {}, {"quant_method": 3}, {"quant_method": "awq"},
                                                {"quant_method": "mxfp4\0"})}.items():
        for i, value in enumerate(values):
            config("%s_%d" % (key, i), dict(good, **{key: value}))
    for name, text in (("empty", ""), ("list", "[]"), ("text", '"gpt_oss"'), ("cut", CONFIG[:-9]),
                       ("bad_utf8", CONFIG.encode().replace(b"gpt_oss", b"gpt\xff\xff\xffs", 1)),
                       ("duplicate", CONFIG[:-1] + ', "hidden_size": 65}'), ("nul", CONFIG.encode() + b"\0{}"),
                       ("deep", '{"a":' * 3000 + "1" + "}" * 3000)):
        config(name, text)


def layer_number_cases():
    """So many layers that the prediction module after them has no number in 64 bits."""
    source = TESTDATA + "/ingest/dsv4"
    config = dict(json.load(open(source + "/config.json")), num_hidden_layers=HUGE)
    directory = fresh("layer_number")
    for path in glob.glob(source + "/*.safetensors*"):
        content = open(path, "rb").read().replace(b'"mtp.0.', b'"mtp.1.')
        put(os.path.join(directory, os.path.basename(path)), content)
    put(directory + "/config.json", json.dumps(config))
    for flags in ((), ("--model-config", directory + "/config.json")):
        convert("layer_number%d" % len(flags), directory,
                "config.json: num_hidden_layers: a sum of sizes overflows 64 bits", *flags)


def flag_file_cases():
    """--target and --quantization-config name files too."""
    def target(name, text):
        directory = fresh("tg_" + name)
        put(directory + "/target.json", text)
        cases.append(Case("tg_" + name, ["convert", "model", "-o", "out", "--target", directory + "/target.json"],
                          "target.json", (2, 3)))
        return directory

    for name, text in (("empty", ""), ("list", "[]"), ("cut", '{"platform": "cuda"'), ("platform", '{"platform": 1}'),
                       ("platform_unknown", '{"platform": "abacus", "arch": "sm90"}'), ("nul", '{"arch": "sm90"}\0'),
                       ("arch", '{"platform": "cuda", "arch": 90}'), ("bad_utf8", b'{"arch": "\xff"}'),
                       ("duplicate", '{"arch": "sm90", "arch": "sm100"}'), ("deep", "[" * 4000 + "]" * 4000)):
        target(name, text)
    for name, text in (("list", "[]"), ("cut", "{"), ("moe", '{"moe": 3}'), ("key", '{"moes": {}}'),
                       ("nested", '{"moe": {"activation": ["mxfp8"]}}'), ("nul", "{}\0")):
        directory = fresh("qc_" + name)
        put(directory + "/override.json", text)
        convert("qc_" + name, "model", "", "--quantization-config", directory + "/override.json", codes=(2, 3))


# Raw dumps


def raw_cases():
    source = TESTDATA + "/containers/raw_checkpoint"
    good = json.load(open(source + "/manifest.json"))

    def raw(name, change, named="manifest.json", text=None):
        directory = fresh("rw_" + name)
        for file in ("config.json", "layer000.bin", "layer001.bin"):
            shutil.copy(os.path.join(source, file), directory)
        manifest = copy.deepcopy(good)
        manifest = change(manifest) or manifest if change else manifest
        put(directory + "/manifest.json", text if text is not None else json.dumps(manifest))
        convert("rw_" + name, directory, named)

    def tensor(name, fields):
        raw(name, lambda m: m["tensors"][0].update(fields), "")

    for key, values in {"file": ("../model.safetensors", "/etc/passwd", "", ".", "a/b", "absent.bin", 3, "layer000.bin\0"),
                        "dtype": ("U7", 8, "bf16"), "shape": ([2, 64, 2], [-2, 64, 2, 16], [2 ** 32, 2 ** 32], "2", [HUGE]),
                        "offset": (-1, 2 ** 63, HUGE, 10 ** 9, "0", 0.5), "nbytes": (4095, 4097, -1, HUGE, 0, "4096"),
                        "sha256": ("00", "0" * 64, 5, "z" * 64), "name": ("", "a\nb", 3)}.items():
        for i, value in enumerate(values):
            tensor("%s_%d" % (key, i), {key: value})
    for key, values in {"format": ("mxfp4", 1), "version": (2, "1", -1), "layout": ("packed", 1),
                        "byte_order": ("big", 3), "order": ("F", []), "config": ("../config.json", 4),
                        "tensors": ({}, "x", [1])}.items():
        for i, value in enumerate(values):
            raw("%s_top_%d" % (key, i), lambda m, k=key, v=value: m.update({k: v}), "")
    raw("twice", lambda m: m["tensors"].append(m["tensors"][0]), "")
    raw("overlap", lambda m: m["tensors"][1].update(offset=1) or m["tensors"][1].pop("sha256") and None, "")
    raw("cut", None, text=json.dumps(good)[:-3])
    raw("deep", None, text='{"format":"mxfp4-raw","a":' + "[" * 9999 + "]" * 9999 + "}")


# HDF5


def hdf5_cases():
    folder = TESTDATA + "/containers/hdf5/"

    def hdf5(name, content):
        directory = fresh("h5_" + name)
        put(directory + "/model.h5", content)
        put(directory + "/config.json", CONFIG)
        config = TESTDATA + "/containers/safetensors/config.json"
        convert("h5_" + name, directory + "/model.h5", "model.h5", "--model-config", config)

    plain = open(folder + "checkpoint_flat_contiguous.h5", "rb").read()
    packed = open(folder + "checkpoint_nested_gzip.h5", "rb").read()
    for name, data in (("plain", plain), ("gzip", packed)):
        for part in (1, 2, 4, 9, 12, 14):
            hdf5("%s_cut_%d" % (name, part), data[:len(data) * part // 15])
        hdf5(name + "_cut_last", data[:-1])
        hdf5(name + "_zeros", data[:600] + bytes(len(data) - 600))
    # A dataspace: rank and dimensions as the file has them.
    for name, dims, changed in (("huge", (2, 64, 2, 16), (HUGE, 64, 2, 16)), ("wraps", (2, 64, 2, 16), (2 ** 32, 2 ** 32, 2, 16)),
                                ("larger", (2, 64, 2, 16), (3, 64, 2, 16)), ("zero", (2, 64, 2, 16), (0, 64, 2, 16)),
                                ("other", (2, 64, 2, 16), (2, 32, 4, 16))):
        for file, data in (("plain", plain), ("gzip", packed)):
            old, new = struct.pack("<4Q", *dims), struct.pack("<4Q", *changed)
            assert old in data, (file, dims)
            hdf5("%s_dims_%s" % (file, name), data.replace(old, new))
    at = packed.index(b"deflate\0") - 8  # of a filter message: id, length of the name, flags, parameters
    for number in (4, 305, 307, 32000, 32001, 65535):
        old = packed[at:at + 16]
        hdf5("filter_%d" % number, packed.replace(old, struct.pack("<H", number) + old[2:]))
    for name, old, new in (("version", b"mxfp4-hdf5", b"mxfp4-hdf9"), ("layout", b"checkpoint", b"checkpaint")):
        if old in plain:
            hdf5("attribute_" + name, plain.replace(old, new))


def run(case):
    """What is wrong, or an empty text."""
    command = [PROGRAM, *case.arguments]
    with open("stdout", "w+", errors="replace") as stdout, open("stderr", "w+", errors="replace") as stderr:
        pid = os.posix_spawn(PROGRAM, command, os.environ, file_actions=[
            (os.POSIX_SPAWN_DUP2, stdout.fileno(), 1), (os.POSIX_SPAWN_DUP2, stderr.fileno(), 2)])
        _, status, usage = os.wait4(pid, 0)
        stdout.seek(0)
        stderr.seek(0)
        said, lines = stdout.read(), stderr.read().splitlines()
    code = os.waitstatus_to_exitcode(status)
    errors = [line for line in lines if line.startswith("mxfp4-repack: error: ")]
    others = [line for line in lines if not line.startswith(("mxfp4-repack: error: ", "mxfp4-repack: warning: ", "hint: "))]
    left = os.path.lexists("out")
    if left:
        shutil.rmtree("out")
    text = "\n".join(lines) + said
    if code not in case.codes:
        return "exit %d\n%s" % (code, text[:2000])
    if others or len(errors) != (0 if code in (0, 1) else 1) or sum(line.startswith("hint: ") for line in lines) > 1:
        return "not one line\n" + text[:2000]
    if code == 1 and not said:
        return "no finding"
    told = [errors[0].removeprefix("mxfp4-repack: error: ")] if errors else [line for line in said.splitlines() if not line.startswith("next: ")][:-1] if code else []
    if not all(line.startswith(case.begins) and ": " in line for line in told):
        return "not every message names its file\n" + text[:2000]
    if case.named not in (errors[0] if errors else said):
        return "%s is not named\n%s" % (case.named, text[:500])
    if case.name.startswith("stored_") and errors[0].count(": ") < 3:
        return "no file and key\n%s" % text[:500]
    if max(len(line) for line in lines + [""]) > 1000:
        return "a line of %d characters" % max(map(len, lines))
    if left:
        return "an output is left"
    if not UNMEASURED and usage.ru_maxrss > case.memory:
        return "%d KiB" % usage.ru_maxrss
    return ""


def stored_cases():
    """Checkpoints of the test data with one fault each: the error names a file and a tensor or key."""
    folders = sorted(glob.glob(TESTDATA + "/containers/bad/*/") + glob.glob(TESTDATA + "/ingest/bad/*/"))
    files = sorted(glob.glob(TESTDATA + "/containers/hdf5/bad_[!b]*.h5") + glob.glob(TESTDATA + "/containers/hdf5/loaded_[ls][zi]*.h5"))
    assert (len(folders), len(files)) == (48, 5)
    for path in folders + files:
        convert("stored_" + os.path.basename(path.rstrip("/")), path, "", codes=(3, 4))


def main():
    for make in (stored_cases, safetensors_cases, index_cases, config_cases, layer_number_cases, flag_file_cases, raw_cases, hdf5_cases, blob_cases):
        make()
    wrong = 0
    for case in cases:
        problem = run(case)
        if problem:
            wrong += 1
            print("%s: %s\n  %s" % (case.name, problem, " ".join(case.arguments)))
    print("%d malformed inputs, %d not refused as they should be" % (len(cases), wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
