"""What malformed_inputs.py and its parts share: a case, the list of them, and the small model that they
mutate. Runs in an empty directory; arguments: PROGRAM TESTDATA SEAL."""
import json
import os
import struct
import sys

import layer_files

PROGRAM, TESTDATA, SEAL = sys.argv[1:4]
MEMORY = 64 << 10  # KiB of resident memory
HUGE = 2 ** 63 - 1


class Case:
    """One input: the command, the right exit codes, the text that the error line must contain; for a blob,
    the text with which the error and every finding must begin."""

    def __init__(self, name, arguments, named, codes=(3,), begins="", memory=MEMORY):
        self.name, self.arguments, self.named, self.codes = name, arguments, named, codes
        self.begins, self.memory = begins, memory


cases = []


def fresh(name):
    path = os.path.join("in", "%03d_%s" % (len(cases), name))
    os.makedirs(path)
    return path


def put(path, content):
    with open(path, "wb") as file:
        file.write(content if isinstance(content, bytes) else content.encode())


def convert(name, path, named, *flags, codes=(3,)):
    cases.append(Case(name, ["convert", path, "-o", "out", "--arch", "sm90", "--revision", "vllm-2026-08-17", *flags], named, codes))


layer_files.make_gpt_oss("model", 1, 2, 64, 64)
CONFIG = open("model/config.json").read()
MODEL = open("model/model.safetensors", "rb").read()
HEADER_BYTES = struct.unpack_from("<Q", MODEL)[0]
HEADER = json.loads(MODEL[8:8 + HEADER_BYTES])
DATA = MODEL[8 + HEADER_BYTES:]
PREFIX = "model.layers.0.mlp.experts."
BLOCKS, BIAS = PREFIX + "gate_up_proj_blocks", PREFIX + "down_proj_bias"
