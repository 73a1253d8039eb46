"""Runs the commands of the pages in man/guide: each line of a ```console block that begins with `$ `, and
each ```python block as a whole.

guide.py PAGE..., in an empty directory with gpt-oss-20b/. PATH has the program and stand-ins for hf, pip,
podman and vllm."""
import re
import subprocess
import sys

for page in sys.argv[1:]:
    text = open(page, encoding="utf-8").read()
    commands = []
    for kind, block in re.findall(r"^```(console|python)\n(.*?)^```", text, re.M | re.S):
        if kind == "console":
            commands += [["bash", "-euo", "pipefail", "-c", line[2:]] for line in block.splitlines() if line.startswith("$ ")]
        else:
            commands.append([sys.executable, "-c", block])
    if not commands:
        sys.exit(f"{page}: no commands")
    for command in commands:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode != 0:
            sys.exit(f"{page}: $ {command[-1]}\nexit code {done.returncode}\n{done.stdout}")
    print(f"{page}: {len(commands)} commands")
