#!/usr/bin/env python3
"""Says what one release changed against another: tables, decisions, reasons, converter code.

usage: differences.py OLD.json NEW.json     (results of run.py)
       differences.py OLD NEW               (releases of testdata/engines)
"""
import collections
import json
import re
import sys

import store


def read(name):
    return json.load(open(name)) if name.endswith(".json") else store.load(name)


def short(value, width=220):
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= width else text[:width] + " ..."


def lists(old, new):
    """What two lists do not share; their orders when they hold the same."""
    gone, come = [x for x in old if x not in new], [x for x in new if x not in old]
    if not gone and not come:
        return f"now in the order {short(new)}"
    return " ".join(([f"lost {short(gone, 400)}"] if gone else []) + ([f"gained {short(come, 400)}"] if come else []))


def tables(old, new):
    """Lines on every table that changed; equal changes of several machines stand together."""
    before, after = store.flat(old), store.flat(new)
    said = collections.defaultdict(list)
    for name in sorted(set(before) | set(after)):
        if before.get(name, "?") == after.get(name, "?") and name in before and name in after:
            continue
        parts = name.split("\t")
        place, rest = ("/".join(parts[1:3]), "/".join(parts[3:])) if parts[0] == "machines" else ("", "/".join(parts[1:]))
        if name not in before:
            text = f"new: {short(after[name], 500)}"
        elif name not in after:
            text = f"gone: {short(before[name])}"
        elif isinstance(before[name], list) and isinstance(after[name], list):
            text = lists(before[name], after[name])
        else:
            text = f"{short(before[name], 500)}\n        -> {short(after[name], 500)}"
        said[(rest, text)].append(place)
    for (rest, text), places in sorted(said.items()):
        where = f" [{', '.join(p for p in places if p)}]" if any(places) else ""
        yield f"  {rest}{where}: {text}"


def result(answer):
    if "absent" in answer:
        return f"absent {answer['absent']}"
    expect = answer["expect"]
    return f"{expect['backend']} {expect['experts_class']}" if "backend" in expect else f"{expect['error']}: {generic(expect['message'])}"


def generic(text):
    """A message without what varies from input to input."""
    text = re.sub(r"FusedMoEParallelConfig\(.*?\)", "<parallel>", text or "")
    text = re.sub(r"QuantKey\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)", "<key>", text)
    text = re.sub(r"Unsupported reasons: .*", "Unsupported reasons: ...", text)
    return re.sub(r"Candidate backends were: \[.*?\]", "Candidate backends were: [...]", text)


def decisions(rows, old, new):
    changed, examples, groups = collections.Counter(), {}, collections.Counter()
    checks, check_examples = collections.Counter(), {}
    texts = 0
    for (group, case), was, now in zip(rows, old, new):
        if was == now:
            continue
        if result(was) != result(now):
            groups[group] += 1
            key = (result(was), result(now))
            changed[key] += 1
            examples.setdefault(key, case)
        else:
            texts += 1
        before = {(c, k): (s, generic(r)) for c, k, s, r in was.get("trace", [])}
        for c, k, s, r in now.get("trace", []):
            if (c, k) in before and before[(c, k)] != (s, generic(r)):
                key = (c, verdict(*before[(c, k)]), verdict(s, generic(r)))
                checks[key] += 1
                check_examples.setdefault(key, case)
    yield f"  {sum(changed.values())} of {len(rows)} results differ, {texts} more differ in trace or wording alone; by group {dict(groups)}"
    for (was, now), count in changed.most_common(40):
        yield f"  {count:5} {short(was, 160)}\n        -> {short(now, 160)}\n        e.g. {brief(examples[(was, now)])}"
    yield "  support checks of a class that answer otherwise:"
    for (cls, was, now), count in checks.most_common(60):
        yield f"  {count:5} {cls}: {was} -> {now}\n        e.g. {brief(check_examples[(cls, was, now)])}"


def verdict(supported, reason):
    return "supported" if supported else reason


def brief(case):
    """An input's fields that are not at their defaults."""
    parallel = {k: v for k, v in case["parallel"].items() if v not in (1, False, "allgather_reducescatter")}
    kept = {k: v for k, v in case.items() if k not in ("parallel", "is_act_and_mul") and v not in (None, False, {}, [])}
    return json.dumps(kept | ({"parallel": parallel} if parallel else {}), ensure_ascii=False)


def report(old, new, rows):
    yield f"{old['release']} -> {new['release']}"
    yield f"pins: {old['wheel']['pins']} -> {new['wheel']['pins']}"
    yield "tables:"
    yield from tables(old["tables"], new["tables"])
    yield "decisions:"
    yield from decisions(rows, old["answers"], new["answers"])


def main():
    old, new = (read(name) for name in sys.argv[1:3])
    for line in report(old, new, store.rows_of(new)):
        print(line)


if __name__ == "__main__":
    main()
