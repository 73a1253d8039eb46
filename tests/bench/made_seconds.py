"""Prints the processor seconds in which one thread makes a gigabyte of a checkpoint's experts, for scripts/bench.

    made_seconds.py CHECKPOINT FLAG=VALUE...    a backend with a layout, or EMULATION, which only reads

The library and the program are those of MXFP4_REPACK_LIBRARY and MXFP4_REPACK. Pieces are whole experts' matrices, which
go to the same memory again and again, as in the loader's ring; of three rounds the fastest counts.
"""
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts" / "python"))

import mxfp4_repack  # noqa: E402



def main():
    flags = dict(word.split("=", 1) for word in sys.argv[2:])
    with mxfp4_repack.open_checkpoint(sys.argv[1], **flags) as made, made[0] as layer:
        pieces = []  # an expert each
        for name in layer:
            size = layer.info(name).nbytes // layer.num_experts
            pieces += [(name, expert * size, size) for expert in range(layer.num_experts)]
        memory = np.zeros(max(size for _, _, size in pieces), np.uint8)
        rounds = []
        for _ in range(3):
            start = time.process_time()
            for name, begin, size in pieces:
                layer.read_into(name, begin, memory[:size])
            rounds.append(time.process_time() - start)
    print(min(rounds) * 1e9 / sum(size for _, _, size in pieces))


main()
