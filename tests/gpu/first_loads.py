#!/usr/bin/env python3
"""The first whole load of a process and later ones, of vLLM's own ways beside this program's: whole_load.py's, each way alone.

    first_loads.py --program MXFP4_REPACK --revision REVISION [--ways "no blob" "default blob" instanttensor ...]
                   [--rounds 2] [--loads 3] [more flags of whole_load.py] [--report FILE]

Each way runs in processes of its own, one at a time, in another order each round. A process imports vLLM, makes its CUDA
context, and calls get_model() --loads times; a start that serves is a first load. Printed are, for first and for later loads,
the seconds, the share of vLLM's own in the same round, and the parts of the time; the peak of GPU memory as torch counts,
and as the driver does, which counts what a way allocates by itself, as shares of what is held in the end.
"""
import argparse
import collections
import json
import os
import random
import statistics
import sys
import time

import starts
import whole_load
from whole_load import OWN, spread


def kinds_of(records):
    """{way: {round: (first record, later records)}}; a way that fails is named and left out."""
    found = collections.defaultdict(lambda: collections.defaultdict(list))
    for record in records:
        if "error" in record:
            print(f"     {record['way']}: {record['error']}", flush=True)
        else:
            found[record["way"]][record["process"]].append(record)
    return found


def printed(way, kind, loads, own):
    """loads, own: {round: [record of a load]}"""
    rounds = [number for number in loads if loads[number] and own.get(number)]
    if not rounds:
        return {}
    seconds = [one["seconds"] for number in rounds for one in loads[number]]
    shares = [one["seconds"] / statistics.median(other["seconds"] for other in own[number]) for number in rounds for one in loads[number]]
    every = [one for number in rounds for one in loads[number]]
    parts = {part: statistics.median(one["parts"][part] for one in every) for part in every[0]["parts"]}
    peak = max(one["peak"] / one["kept"] for one in every if one["kept"]) if every[0]["kept"] else 0
    used = max(one["host"]["gpu"] / one["kept"] for one in every if one["kept"]) if every[0]["kept"] else 0
    print(f"     {kind}, {way}: {spread(seconds)} s, share {spread(shares)}; GPU peak of its weights {peak:.3f}, by the driver {used:.3f}; host grew "
          f"{max(one['host']['anonymous'] for one in every) >> 20} MiB anonymous; {', '.join(f'{part} {value:.2f}' for part, value in parts.items())}", flush=True)
    return {"seconds": seconds, "shares": shares, "peak": peak, "used": used, "parts": parts}


def words(load):
    return f"{load['seconds']:.2f}" if "seconds" in load else load["error"]


def measured(arguments, model, blobs):
    records = []
    for number in range(arguments.rounds):
        ways = [OWN, *arguments.ways]
        for way in random.sample(ways, len(ways)):
            begin = time.perf_counter()
            spec = argparse.Namespace(**{**vars(arguments), "rounds": arguments.loads - 1, "cold": 0})
            found = whole_load.run_ranks(spec, model, blobs, [way])
            records += [{**record, "process": number} for record in found]
            if arguments.report:  # what was measured stays, if this is stopped
                arguments.report.write_text(json.dumps({"loads": records}, indent=1) + "\n")
            print(f"     {number}, {way}: {', '.join(words(one) for one in found)} s, "
                  f"{time.perf_counter() - begin:.0f} s in all", flush=True)
    return records


def main():
    parser = whole_load.parser_of(__doc__)
    parser.add_argument("--loads", type=int, default=3)
    arguments = parser.parse_args()
    if arguments.ranks != 1:
        parser.error("--ranks is 1 here")
    model, blobs = whole_load.prepare(arguments)
    os.sync()  # what was just written would be written during the loads
    records = measured(arguments, model, blobs)
    found, figures = kinds_of(records), {}
    for kind, part in (("first", slice(0, 1)), ("later", slice(1, None))):
        loads = {way: {number: found[way][number][part] for number in found[way]} for way in found}
        figures[kind] = {way: printed(way, kind, loads.get(way, {}), loads.get(OWN, {})) for way in [OWN, *arguments.ways]}
    if arguments.report:
        arguments.report.write_text(json.dumps({"figures": figures, "loads": records}, indent=1) + "\n")
    for way in arguments.ways:
        if way in whole_load.OURS:
            starts.report(f"{way}: every layer came from the source", bool(found[way]) and
                          all(one["taken"] + one["proven"] == arguments.layers for loads in found[way].values() for one in loads))
    return 1 if starts.failures else 0


if __name__ == "__main__":
    sys.exit(main())
