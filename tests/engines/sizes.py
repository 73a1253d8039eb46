"""The sizes that a release rounds up to, by its own function (tables.py, round_up), compared with the program's."""
import collections
import json
import subprocess

# The activation that the function gets: none from the method of gpt-oss, the model's from the generic method.
FAMILY = {None: ["--selector", "gpt_oss"]}


def rounded(size, multiple):
    return -(-size // multiple) * multiple


def asked(program, release, platform, arch, backend, activation):
    """The multiples that the program rounds H and I up to; none where it refuses the question."""
    machine = ["--platform", platform, *(["--arch", arch] if arch else [])]
    model = FAMILY.get(activation) or ["--selector", "deepseek_v4", "--activation", activation]
    ran = subprocess.run([program, "explain", *machine, *model, "--backend", backend, "--revision", release, "--json"], capture_output=True, text=True)
    if not ran.stdout:
        raise RuntimeError(ran.stderr.strip())
    multiples = json.loads(ran.stdout).get("round_up_to")
    return (multiples["hidden_size"], multiples["intermediate_size"]) if multiples else None


def compare(program, release, tables, first):
    """Prints what differs; returns how many rows do."""
    equal, refused, differ = 0, 0, []
    for platform, machines in tables["machines"].items():
        for arch, made in machines.items():
            groups = collections.defaultdict(list)
            for backend, activation, *sizes in made["round_up"]:
                groups[backend, activation].append(sizes)
            for (backend, activation), rows in groups.items():
                got = asked(program, release, platform, arch, backend, activation)
                if got is None:
                    refused += len(rows)
                    continue
                wrong = [row for row in rows if row[2:] != [rounded(size, by) for size, by in zip(row, got)]]
                equal += len(rows) - len(wrong)
                differ += [(platform, arch, backend, activation, *row, got) for row in wrong]
    for row in differ[:first]:
        print("  differs: %s %s, %s, activation %s: H %d, I %d become %d, %d; program: multiples of %s" % row)
    print(f"{release}: {equal} rounded sizes equal, {len(differ)} differ, {refused} refused by the program")
    return len(differ)
