"""Compares what --help, the man page and the three completions say: the same commands, and for each
command the same flags; and that the completions propose the values that the program knows. Prints
each difference in both directions; exit 1 if there is one. Arguments: program, source directory."""
import json
import os
import re
import subprocess
import sys

BIN, SOURCE = sys.argv[1], sys.argv[2]
NONE = "none"  # stands for "without a command", as in the man page


def output(*command, **more):
    return subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True, **more).stdout


def read(*path):
    with open(os.path.join(SOURCE, *path)) as file:
        return file.read()


def help_flags(text):
    return {flag for line in text.splitlines() if re.match(r" {1,4}-", line)
            for flag in re.findall(r"(?<![\w-])--?[A-Za-z0-9][\w-]*", line.split("  ")[1])}


def from_help():
    top = output(BIN, "--help")
    section = re.split(r"^\S.*:\s*$", top[re.search(r"(?mi)^(sub)?commands:\s*$", top).end():],
                       maxsplit=1, flags=re.M)[0]
    commands = re.findall(r"(?m)^  (\w+) ", section)
    found = {name: help_flags(output(BIN, name, "--help")) for name in commands}
    found[NONE] = help_flags(top)
    return found


def from_man():
    text = re.search(r"(?ms)^\.SH OPTIONS$(.*?)^\.SH ", read("man", "mxfp4-repack.1")).group(1)
    found = {}
    for group in re.split(r"(?m)^\.SS ", text)[1:]:
        title, body = group.split("\n", 1)
        commands = re.search(r"\(([\w, ]+)\)$", title).group(1).split(", ")
        flags = set()
        for line in re.findall(r"(?m)^\.TP\n(.*)$", body):
            line = re.sub(r"\\f.", " ", line).replace("\\-", "-")
            flags |= set(re.findall(r"(?<![\w/|-])--?[A-Za-z0-9][\w-]*", line))
        for command in commands:
            found.setdefault(command, set()).update(flags)
    return found


BASH = r"""
source "$1/scripts/completions/mxfp4-repack.bash"
COMP_WORDS=("${@:2}")
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
_mxfp4_repack
printf '%s\n' "${COMPREPLY[@]}"
"""


def bash(*words):
    path = os.path.dirname(os.path.abspath(BIN)) + ":" + os.environ["PATH"]  # the completion asks the program
    return set(output("bash", "-c", BASH, "bash", SOURCE, "mxfp4-repack", *words, env={**os.environ, "PATH": path}).split())


def from_bash():
    found = {command: bash(command, "-") for command in bash("")}
    found[NONE] = bash("-")
    return found


def from_fish():
    text = read("scripts", "completions", "mxfp4-repack.fish")
    every = re.search(r"(?m)^set -l commands (.*)$", text).group(1).split()
    found = {name: set() for name in every + [NONE]}
    for condition, rest in re.findall(r'(?m)^complete -c mxfp4-repack -n "(.*?)" (.*)$', text):
        commands = ([NONE] if condition.startswith("not ")
                    else condition.replace("__fish_seen_subcommand_from ", "").split())
        options = re.sub(r"'[^']*'|\"[^\"]*\"", "", rest)
        flags = {"--" + name for name in re.findall(r"-l ([\w-]+)", options)}
        flags |= {"-" + name for name in re.findall(r"-s (\w)", options)}
        for command in (each for each in commands if each in found):  # or a word behind it
            found[command] |= flags
    return found


def from_zsh():
    text = read("scripts", "completions", "mxfp4-repack.zsh")
    arrays = {name: body for name, body in re.findall(r"(?ms)^  (\w+)=\($(.*?)^  \)$", text)}

    def flags(body):
        body = re.sub(r"\([^)]*\)", "", body)  # exclusions
        found = set(re.findall(r"'\*?(--?[\w-]+)=?\[", body))
        for several in re.findall(r"\{([^}]*)\}", body):
            found |= {flag.rstrip("=") for flag in several.split(",")}
        for name in re.findall(r"\$(every|deployment|machine|resources)\b", body):
            found |= flags(arrays[name])
        return found

    found = {name: set() for name in re.findall(r"'(\w+):", arrays["commands"])}
    for name, body in re.findall(r"(?ms)^        (\w+)\)(.*?);;", text):
        found[name] = flags(body)
    found[NONE] = flags(re.search(r"(?ms)_arguments -C(.*?)case", text).group(1))
    return found


def canonical(found):
    """Without the short names of flags that have a long one."""
    short = {"-h", "-V", "-q", "-o", "-f", "-j", "-n"}
    return {command: flags - short for command, flags in found.items()}


def compare(what, expected, found):
    differences = []
    for left, right, text in ((expected, found, "--help has"), (found, expected, what + " has")):
        for command in sorted(left):
            if command not in right:
                differences.append("%s the command %s, %s not" %
                                   (text, command, what if left is expected else "--help"))
                continue
            for flag in sorted(left[command] - right[command]):
                differences.append("%s %s %s, %s not" % (text, command, flag,
                                                         what if left is expected else "--help"))
    return differences


def rows(what, key):
    names = [row[key].split()[0] for row in json.loads(output(BIN, "list", what, "--json"))[what]]
    return set(names)


def names_in_hint(flag):
    """The names that a flag takes, from the hint of the error for a name like none of them."""
    result = subprocess.run([BIN, "explain", "--arch", "sm90", flag, "-", "--json"],
                            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    return set(json.loads(result.stdout)["error"]["hint"].removeprefix("one of ").split(", "))


def compare_values():
    """The closed lists that completions carry, against the program's tables."""
    known = {"--backend": rows("backends", "backend"), "--style": rows("styles", "style"),
             "--moe-backend": names_in_hint("--moe-backend"), "--no-lib": names_in_hint("--no-lib"),
             **{flag: names_in_hint(flag) for flag in ("--all2all-backend", "--routing-method", "--activation")},
             "--env": {name + "=" for name in rows("variables", "variable")},
             "--knob": {name + "=" for name in rows("knobs", "knob")}}
    texts = {name: read("scripts", "completions", "mxfp4-repack." + name) for name in
             ("bash", "fish", "zsh")}
    differences = []
    for flag, values in known.items():
        offered = {
            "bash": bash("convert", flag, ""),
            "fish": set(re.search(r"-l %s -x -a '([^']*)'" % flag[2:], texts["fish"]).group(1).split()),
            "zsh": set(re.search(r"'\*?%s=\[[^]]*\]:\w+:\(([^)]*)\)" % flag, texts["zsh"]).group(1).split()),
        }
        for shell, found in offered.items():
            for value in sorted(values ^ found):
                differences.append("%s %s: only %s has %s" %
                                   (shell, flag, "the program" if value in values else shell, value))
    # A row's first member is its name.
    for table in bash("list", ""):
        names = {next(iter(row.values())) for row in json.loads(output(BIN, "list", table, "--json"))[table]}
        if bash("list", table, "") != names:
            differences.append("bash: list %s has other names" % table)
    for shell, variable in (("fish", "$table"), ("zsh", "$line[1]")):
        if "list %s --json" % variable not in texts[shell]:
            differences.append(shell + ": list has no names of rows")
    return differences


def main():
    expected = from_help()
    differences = compare("the man page", expected, from_man())
    differences += compare("fish", expected, from_fish())
    differences += compare("zsh", expected, from_zsh())
    differences += compare("bash", canonical(expected), canonical(from_bash()))
    differences += compare_values()
    print("\n".join(differences) or "the same flags everywhere")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
