"""Compares what --help-all and the man page say: the same commands, and for each command the same flags; and
that bash's completion, which the others ask, proposes them, and names of tables. Prints each difference in
both directions; exit 1 if there is one. Arguments: program, source directory."""
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
    top = output(BIN, "--help-all")
    section = re.split(r"^\S.*:\s*$", top[re.search(r"(?mi)^(sub)?commands:\s*$", top).end():],
                       maxsplit=1, flags=re.M)[0]
    commands = re.findall(r"(?m)^  (\w+) ", section)
    found = {name: help_flags(output(BIN, name, "--help-all")) for name in commands}
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


def compare_values():
    """A row's first member is its name."""
    differences = []
    for words, table in ((["list", "backends"], "backends"), (["convert", "--revision"], "revisions"),
                         (["explain", "--arch"], "machines"), (["list", "layouts"], "layouts")):
        names = {next(iter(row.values())) for row in json.loads(output(BIN, "list", table, "--json"))[table]}
        if bash(*words, "") != names:
            differences.append("bash: %s has other names" % " ".join(words))
    for words, values in ((["convert", "--compress"], {"zstd", "none"}), (["completion"], {"bash", "fish", "zsh"})):
        if bash(*words, "") != values:
            differences.append("bash: %s has other values" % " ".join(words))
    return differences


def main():
    expected = from_help()
    differences = compare("the man page", expected, from_man())
    differences += compare("bash", expected, from_bash())
    differences += compare_values()
    print("\n".join(differences) or "the same flags everywhere")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
