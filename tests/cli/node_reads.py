"""Bytes that a node reads: explain --nodes, against a mask of the checkpoint's bytes and a blob's files."""
import glob
import json
import os
import re
import shutil

import layer_files
import numpy
from drawn_models import RELEASE, check_all, compressed_tensors, draw, experts, explain, group, qwen3, run, save

PAGE = 4096
CASES = ((1, 1, False), (4, 1, False), (4, 2, False), (4, 4, False), (4, 2, True), (4, 4, True))  # ranks, nodes, by experts


class Marks:
    """The bytes of a checkpoint's one file, of which some are taken."""
    def __init__(self, directory):
        data = layer_files.file_bytes(directory + "/model.safetensors")
        self.tensors, _ = layer_files.parse(data)
        self.taken = numpy.zeros(-(-len(data) // PAGE) * PAGE, bool)
        self.at, place = {}, len(data) - self.bytes_of("")
        for name, array in self.tensors.items():
            self.at[name], place = place, place + array.nbytes

    def bytes_of(self, word):
        return sum(array.nbytes for name, array in self.tensors.items() if word in name)

    def take(self, name, *where):
        """`where`: an index of the tensor, of which blocks of 16 bytes are one row."""
        array = self.tensors[name]
        shape = array.shape if array.ndim < 4 else (*array.shape[:2], -1)
        self.taken[self.at[name]:self.at[name] + array.nbytes].reshape(*shape, array.itemsize)[where] = True


def part(size, number, of):
    return slice(size * number // of, size * (number + 1) // of)


def take_stacked(marks, rank, ranks, by_experts):
    """gpt-oss: gate and up rows alternate; w2's bias is rank 0's."""
    for name in (name for name in marks.tensors if ".experts." in name):
        array = marks.tensors[name]
        if by_experts:
            marks.take(name, part(array.shape[0], rank, ranks))
        elif "gate_up" in name:
            marks.take(name, slice(None), part(array.shape[1], rank, ranks))
        elif not name.endswith("bias"):
            marks.take(name, slice(None), slice(None), part(array[0, 0].size, rank, ranks))
        elif rank == 0:
            marks.take(name)


def take_each(marks, rank, ranks, by_experts):
    """Experts one by one, four a layer: gate and up by rows, down by columns."""
    for name in (name for name in marks.tensors if ".experts." in name):
        expert, word = re.search(r"experts\.(\d+)\.(\w+)\.", name).groups()
        rows, columns = marks.tensors[name].shape
        if by_experts:
            marks.take(name, *(() if int(expert) in range(4)[part(4, rank, ranks)] else (slice(0),)))
        elif word == "down_proj":
            marks.take(name, slice(None), part(columns, rank, ranks))
        else:
            marks.take(name, part(rows, rank, ranks))


def blob_bytes(source, flags):
    """By rank, what the tensors of a real blob have."""
    shutil.rmtree("out", ignore_errors=True)
    done = run("convert", source, "-o", "out", "--compress", "none", *flags, *RELEASE)
    assert done.returncode == 0, done.stderr
    folders = sorted(glob.glob("out/rank-*")) or ["out"]
    return [sum(array.nbytes for path in glob.glob(folder + "/layer-*") for array in layer_files.read(path)[0].values()) for folder in folders]


def check(source, take, ranks, nodes, by_experts):
    flags = ("--arch", "sm80", "--tp-size", ranks, *(("--enable-expert-parallel",) if by_experts else ()))
    blob, slices, blobs = blob_bytes(source, flags), [], []
    for node in range(nodes):
        marks, own = Marks(source), range(ranks)[part(ranks, node, nodes)]
        whole, rest = marks.bytes_of(""), marks.bytes_of("") - marks.bytes_of(".experts.")
        for rank in own:
            take(marks, rank, ranks, by_experts)
        slices.append(min(whole, rest + PAGE * int(marks.taken.reshape(-1, PAGE).any(1).sum())))
        blobs.append(rest + sum(blob[rank] for rank in own))
    want = [{"reads": way, "node_bytes": max(each), "share": round(max(each) / whole, 3), "all_nodes_bytes": sum(each)}
            for way, each in (("whole checkpoint", [whole] * nodes), ("slices in place", slices), ("blob", blobs))]
    got = explain(source, "--nodes", nodes, *flags)["node_reads"]
    assert got == want, (source, ranks, nodes, by_experts, got, want)
    # Before the download: of the experts, and with the head of an index of all. Where in a page a tensor begins is not known.
    shutil.rmtree("config", ignore_errors=True)
    os.mkdir("config")
    shutil.copy(source + "/config.json", "config")
    alone = explain("config", "--nodes", nodes, *flags)["node_reads"][0]
    assert alone["reads"] == "all experts" and abs(alone["node_bytes"] - (whole - rest)) < 4000, (alone, want)  # norms
    with open("config/model.safetensors.index.json", "w") as file:
        json.dump({"metadata": {"total_size": whole}, "weight_map": {}}, file)
    got = explain("config", "--nodes", nodes, *flags)["node_reads"]
    near = abs(got[1]["node_bytes"] - max(slices)) < max(slices) // 50 + PAGE * len(marks.tensors)
    assert near and [got[0], got[2]] == [want[0], want[2]], (source, flags, got, want)


def every_byte():
    """w2's rows are less than a page, and several."""
    for inter in (draw(1024, 2048), 16384):
        layer_files.make_gpt_oss("stacked", 2, 4, 64, 2 * inter)
        tensors = {"model.norm.weight": ("BF16", numpy.zeros(draw(1000, 3000), "u2"))}
        for layer in range(2):
            tensors.update(experts(f"model.layers.{layer}.mlp.experts", 4, 256, inter, codes=".weight_packed"))
        save("each", qwen3(compressed_tensors(group(["Linear"])), 2, 4, 256, inter), tensors)
        for case in CASES:
            check("stacked", take_stacked, *case)
            check("each", take_each, *case)


if __name__ == "__main__":
    check_all(every_byte)
