"""The deployments of tests/engines/cells.json, byte by byte: cell_row.py SITE [CHECK...], as row.py; the check is `cells`, MXFP4_CELLS the words of those wanted.

Each cell's model in small (cell_models.py) is loaded by the release's own classes as the first and as the last rank of the deployment, converted by the
program with the cell's flags, and loaded again from the blob and without one. Every entry of the experts' state is compared, and every tensor of the
blob with the engine's. Prints a line for each cell; MXFP4_CELLS_OUT names a file that gets them as JSON, for tests/engines/cells.py --store.
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys

import cell_models
import cell_world
import engine
import row
from processes import forked
from row import MADE, is_error, packed, program, proven, report, taken

ROOT = pathlib.Path(os.environ["MXFP4_SOURCE"])
ARGUMENTS = {"--tp-size": ("tensor_parallel_size", int), "--dp-size": ("data_parallel_size", int), "--moe-backend": ("moe_backend", str)}
# Compilation of kernels that are not there; a cache that vLLM's CPU platform does not know for every model.
PLAIN = {"enable_prefix_caching": False, "compilation_config": {"custom_ops": ["none"], "pass_config": {"fuse_allreduce_rms": False}}}


class Cell:
    """One entry of cells.json in the words of the engine."""

    def __init__(self, entry, config):
        self.entry, self.whole, self.arguments, self.environment = entry, config, {}, {}
        for flag in entry["flags"]:
            name, _, value = flag.partition("=")
            if name == "--env":
                self.environment.update([value.split("=", 1)])
            elif name in ARGUMENTS:
                key, kind = ARGUMENTS[name]
                self.arguments[key] = kind(value)
            else:
                self.arguments[name[2:].replace("-", "_")] = True
        self.tp = self.arguments.get("tensor_parallel_size", 1)
        self.ranks = self.tp * self.arguments.get("data_parallel_size", 1)
        # Every rank of expert parallelism holds two experts, of many ranks one each.
        split = self.ranks if self.arguments.get("enable_expert_parallel") else 1
        self.config = cell_models.reduced(config, max(4, self.tp, 2 * split if split <= 4 else split))
        self.name = f"{entry['model']} on {entry['gpu']} {' '.join(entry['flags'])}".strip()

    @property
    def seen(self):
        """The ranks that are loaded: the first one and the last, whose share may be smaller."""
        return sorted({0, self.ranks - 1})

    @property
    def question(self):
        """Cells of one question get one answer."""
        return json.dumps([self.config, cell_world.ARCHES[self.entry["gpu"]], sorted(self.entry["flags"])], sort_keys=True)

    def flags(self):
        return ["--arch", self.entry["gpu"], "--revision", row.REVISION, *self.entry["flags"]]

    def answer(self, config):
        """Backend and layout by the program, or why not, for a config without weights."""
        with open("asked.json", "w") as file:
            json.dump(config, file)
        done = subprocess.run([row.BIN, "explain", "--model-config", "asked.json", *self.flags(), "--json", "-q"], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True)
        made = json.loads(done.stdout)
        return {"backend": made.get("backend"), "layout": made.get("layout"), "refusal": (made.get("error") or {}).get("message")}


def loaded(cell, model, rank, extra):
    """What one rank holds of its experts after a load, by vLLM alone or with `extra` arguments."""
    lines = engine.messages()
    cell_world.alone(rank, cell.ranks)
    dp_rank, tp_rank = divmod(rank, cell.tp)
    config = engine.config_of(**{"model": model, "distributed_executor_backend": "mp", **PLAIN, **cell.arguments, **extra})
    config.parallel_config.data_parallel_rank = dp_rank
    module = engine.load(config, tp_rank, cell.tp, 0)
    return {"state": cell_world.state_of_experts(module), "bytes": cell_world.bytes_of_experts(module), "lines": lines.clear()}


def compared(cell, model, blob, rank):
    """One rank: entries of the state, those that differ, tensors of the blob, those that the engine does not hold, layers of each way."""
    own = forked(loaded, cell, model, rank, {})
    if is_error(own):
        return {"engine": f"{own[1]}: {own[2].strip()}"[:300]}
    number, missing = cell_world.tensors_of_blob(blob, rank, own["bytes"]) if blob else (0, [])
    found = {"entries": len(own["state"]), "differ": [], "tensors": number, "missing": missing, "layers": {}, "lines": {},
             "backend": sorted({value for key, value in own["state"].items() if key.endswith(": backend")})}
    for way, extra in {**({"blob": packed(blob, source="blob")} if blob else {}), "made": MADE}.items():
        result = forked(loaded, cell, model, rank, extra)
        if not is_error(result) and proven(result):
            result = forked(loaded, cell, model, rank, extra)
        if is_error(result):
            found["layers"][way], found["lines"][way] = 0, [f"{result[1]}: {result[2]}"]
            found["differ"].append(f"{way}: everything")
            continue
        found["layers"][way], found["lines"][way] = taken(result), result["lines"]
        found["differ"] += [f"{way}: {name}" for name in engine.differing(own["state"], result["state"])]
    return found


def check(cell):
    said = cell.answer(cell.whole)
    shared = cell.environment.get("VLLM_ROCM_USE_AITER_FUSION_SHARED_EXPERTS") == "1" and cell_models.has_mxfp4_shared_experts(cell.config)
    model = cell_models.make(f"{cell.entry['model'].replace('/', '-')}-{cell_models.experts_of(cell.config)}{'-shared' * shared}", cell.config, shared)
    blob = os.path.abspath("blob")
    shutil.rmtree(blob, ignore_errors=True)
    try:
        program("convert", model, "-o", blob, "-q", "--compress", "none", *cell.flags())
    except AssertionError as error:
        blob, said["refused"] = None, str(error).strip().splitlines()[-1]
    else:
        cell_world.play_library(blob)
    return {"said": said, "small": cell.answer(cell.config), "ranks": {rank: compared(cell, model, blob, rank) for rank in cell.seen}}


def summed(entry, found):
    """A cell's result for the table."""
    ranks, said = found["ranks"], found["said"]
    result = {**{key: entry[key] for key in ("model", "gpu", "flags")}, "backend": said["backend"], "ranks": sorted(ranks)}
    stopped = [one["engine"] for one in ranks.values() if "engine" in one]
    if stopped:
        return {**result, "engine": stopped[0]}
    for key in ("entries", "tensors"):
        result[key] = sum(one[key] for one in ranks.values())
    for key in ("differ", "missing"):
        result[key] = sum(len(one[key]) for one in ranks.values())
    result |= {"layers": cell_models.LAYERS * len(ranks), **{way: sum(one["layers"].get(way, 0) for one in ranks.values()) for way in ("blob", "made")}}
    return result | ({"refusal": said["refusal"]} if said["refusal"] else {})


def judge(cell, found, result):
    """Right: no difference, and all layers by both ways; or the program refuses, and vLLM converts with a line that says why, or stops too."""
    said, refused = found["said"], found["said"]["refusal"] or found["said"].get("refused")
    same = all(said[key] == found["small"][key] for key in ("backend", "layout"))
    if "engine" in result:
        return report(f"{cell.name}: vLLM: {result['engine']}", refused and same, found)
    way = "blob" if not refused else "made"
    why = [line for one in found["ranks"].values() for line in one["lines"][way] if "vLLM converts it" in line]
    right = not result["differ"] and not result["missing"] and same and (
        bool(why) and not result["blob"] + result["made"] if refused else result["blob"] == result["made"] == result["layers"])
    report(f"{cell.name}: {said['backend']}, {said['layout']}: {result['entries']} entries, {result['differ']} differ; {result['tensors']} tensors of the blob, "
           f"{result['missing']} not the engine's; of {result['layers']} layers {result['blob']} from the blob, {result['made']} made"
           f"{'; refused: ' + refused + '; ' + why[0] if refused and why else ''}", right, json.dumps(found))


def preload(config):
    """Imports what every child needs, and lets vLLM set its loggers."""
    cell_models.write("preload", config)
    engine.config_of(model="preload", **PLAIN)
    import vllm.model_executor.model_loader  # noqa: F401


def wanted():
    """{machine: its cells}"""
    with open(ROOT / "tests/engines/cells.json", encoding="utf-8") as file:
        data = json.load(file)
    words, found = os.environ.get("MXFP4_CELLS", "").split(), {}
    for cell in (Cell(entry, data["models"][entry["model"]]) for entry in data["cells"]):
        if all(word in cell.name for word in words):
            found.setdefault(cell_world.start_of(cell.entry["gpu"]), []).append(cell)
    return found


def on(machine, site):
    """The cells of one machine, in a process that has started as it."""
    cell_world.start(str(site), machine)
    cells = wanted()[machine]
    preload(cells[0].config)
    results, known, out = [], {}, os.environ.get("MXFP4_CELLS_OUT")
    for cell in cells:
        cell_world.play(cell.entry["gpu"], cell.environment)
        found = known.get(cell.question) or known.setdefault(cell.question, check(cell))
        found = {**found, "said": {**found["said"], **cell.answer(cell.whole)}}
        results.append(summed(cell.entry, found))
        judge(cell, found, results[-1])
        if out:
            pathlib.Path(f"{out}.{machine}").write_text(json.dumps(results))
    return 1 if row.failures else 0


def main():
    site, checks = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2:]
    if not set(checks) & {"cells"}:
        return 0
    row.REVISION = row.revision_of(site)
    if "MXFP4_CELLS_MACHINE" in os.environ:
        return on(os.environ["MXFP4_CELLS_MACHINE"], site)
    print(f"== {row.REVISION}, cells", flush=True)
    codes = [subprocess.run([sys.executable, __file__, *sys.argv[1:]], env={**os.environ, "MXFP4_CELLS_MACHINE": machine}).returncode for machine in wanted()]
    return int(any(codes))


if __name__ == "__main__":
    import cell_row
    sys.exit(cell_row.main())
