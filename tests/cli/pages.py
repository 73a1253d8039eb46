"""Runs every block of pages, as they have it, with the program and small checkpoints of the pages' names.
pages.py PAGE..., in an empty directory, with PAGES_PROGRAM and PAGES_SOURCE set. A page is Markdown, a man page, or what --help prints.

Of Markdown: commands, with the lines that a page shows as their output (times and rates aside); Python; Dockerfiles, stage by
stage; a pipeline's steps in turn; a cluster's objects, by tests/batch/kubernetes_api.py. A fenced block of another kind
is an error. page_programs.py stands in for programs that are not here. What installs is run by tests/package."""
import glob
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

import layer_files
import numpy
import yaml

import page_programs
from page_programs import FACTS, PROGRAM, SOURCE, WHEELS, plugin_knows

# The first words of a command in a block without a kind, after assignments.
STARTS = ("mxfp4-repack ", "mxfp4-repack-probe", "mxfp4-repack-check ", "vllm ", "python -m ", "hf ", "ssh ", "for ", "podman ", "kubectl ", "mpirun ",
          "scripts/batch/")
# What answers with another exit code than 0: the answer of the command, not a fault.
ANSWERS = {"mxfp4-repack fits packed/ --engine vllm": (0, 1),
           "mxfp4-repack fits packed/ --revision vllm-2026-08-17": (0, 1),
           "mxfp4-repack inspect packed/ --revision vllm-2026-08-17": (0, 1)}


# What pages hold --------------------------------------------------------------------------------------

def shell_commands(block, marked):
    """[(command, output that the page shows)]. marked: each begins with `$ `, and what follows is its output."""
    out, lines = [], re.sub(r"\\\n\s*", "", block).split("\n")
    while lines:
        line = lines.pop(0)
        if marked:
            if line.startswith("$ "):
                out.append((line[2:], []))
            elif out and line.strip():
                out[-1][1].append(line)
            continue
        line = re.sub(r"\s+#.*", "", line).rstrip()
        if re.sub(r"^([A-Z_0-9]+=\S+ +)*", "", line).startswith(STARTS):
            while re.match(r"for ", line) and "done" not in line or line.count("'") % 2 or line.endswith("&&"):
                line += "\n" + lines.pop(0)
            out.append((line, []))
    return out


def indented(text):
    return [re.sub(r"^ {2,4}", "", block, flags=re.M) for block in re.findall(r"(?:^ {4}\S.*\n(?: {4,}.*\n)*)", text, re.M)]


def blocks_of(page):
    """[(kind, content)] of a page, in order: ("shell", [(command, output)]), ("python", text), ..."""
    with open(page, encoding="utf-8") as file:
        text = file.read()
    if page.endswith(".1"):
        blocks = [re.sub(r"\\(.)", r"\1", block) for block in re.findall(r"^\.EX\n(.*?)^\.EE", text, re.M | re.S)]
        return [("shell", shell_commands(block, False)) for block in blocks]
    if not page.endswith(".md"):
        blocks = indented(text) + re.findall(r"^Examples:\n((?:  .*\n)+)", text, re.M)
        return [("shell", shell_commands(re.sub(r"^ +", "", block, flags=re.M), False)) for block in blocks]
    out = []
    for kind, fenced, plain in re.findall(r"^```(\w*)\n((?:.*\n)*?)```$|((?:^ {4}\S.*\n(?: {4,}.*\n)*))", text, re.M):
        if plain:
            block = re.sub(r"^ {4}", "", plain, flags=re.M)
            out.append(("manifest", block) if block.startswith('"') else ("shell", shell_commands(block, block.startswith("$ "))))
        elif kind == "markdown":  # a card: its own commands
            out += [("shell", shell_commands(block, False)) for block in indented(fenced)]
        elif kind == "console":
            out.append(("shell", shell_commands(fenced, True)))
        elif kind in ("python", "dockerfile", "yaml"):
            out.append((kind, fenced))
        else:
            sys.exit(f"{page}: a block of kind {kind!r}: no test runs it")
    return out


# What is there ----------------------------------------------------------------------------------------

def make_models():
    """models/NAME, where the hub's stand-in and pages' directories take them from."""
    os.mkdir("models")
    make = os.path.join(SOURCE, "scripts", "make-checkpoint")
    subprocess.run([make, "models/small"], check=True, stdout=subprocess.DEVNULL)
    subprocess.run([make, "models/gpt-oss-20b", "--hidden", "512", "--intermediate", "2048"], check=True, stdout=subprocess.DEVNULL)
    # Heads that eight ranks share.
    with open("models/gpt-oss-20b/config.json") as file:
        config = json.load(file)
    config.update(num_attention_heads=64, num_key_value_heads=8)
    with open("models/gpt-oss-20b/config.json", "w") as file:
        json.dump(config, file)
    random = numpy.random.default_rng(5)
    count, hidden, inter, tensors = 8, 256, 2048, {}
    for expert in range(count):
        for word, rows, columns in (("w1", inter, hidden), ("w3", inter, hidden), ("w2", hidden, inter)):
            at = f"layers.0.ffn.experts.{expert}.{word}"
            tensors[at + ".weight"] = "I8", random.integers(0, 256, (rows, columns // 2)).astype("u1").view("i1")
            tensors[at + ".scale"] = "F8_E8M0", random.integers(112, 128, (rows, columns // 32)).astype("u1")
    os.mkdir("models/DeepSeek-V4-Flash")
    layer_files.write("models/DeepSeek-V4-Flash/model.safetensors", tensors)
    with open("models/DeepSeek-V4-Flash/config.json", "w") as file:
        json.dump({"architectures": ["DeepseekV4ForCausalLM"], "model_type": "deepseek_v4", "hidden_size": hidden,
                   "moe_intermediate_size": inter, "num_hidden_layers": 1, "n_routed_experts": count, "num_experts_per_tok": 2,
                   "norm_topk_prob": True, "scoring_func": "sqrtsoftplus", "topk_method": "noaux_tc", "num_attention_heads": 64,
                   "expert_dtype": "fp4", "quantization_config": {"quant_method": "fp8", "activation_scheme": "dynamic", "weight_block_size": [128, 128]}}, file)


def make_programs():
    os.mkdir("programs")
    os.symlink(PROGRAM, "programs/mxfp4-repack")
    names = ["mxfp4-repack-probe", "mxfp4-repack-check", "ssh", "hf", "gh", "pip", "pipx", "podman", "docker", "kubectl", "mpirun", "sbatch", "vllm", "python"]
    if not shutil.which("parallel"):
        names.append("parallel")
    for name in names:
        with open(os.path.join("programs", name), "w") as file:
            file.write(f"#!/bin/sh\nexec {sys.executable} {shlex.quote(page_programs.__file__)} {name} \"$@\"\n")
        os.chmod(os.path.join("programs", name), 0o755)


def make_directory(page):
    """A directory in which the page is run: a clone's scripts, models, and the wheel that a reader has fetched."""
    name = os.path.abspath(os.path.join("run", os.path.basename(page).replace(".", "-") + "-" + os.path.basename(os.path.dirname(os.path.abspath(page)))))
    os.makedirs(name)
    os.symlink(os.path.join(SOURCE, "scripts"), os.path.join(name, "scripts"))
    with open(page, encoding="utf-8") as file:
        fetches = "\n$ hf download" in file.read()
    for model in ("gpt-oss-20b", "gpt-oss-120b", "model", "MODEL", "models/a", "models/b", "DeepSeek-V4-Flash", "small"):
        source = model if model in ("DeepSeek-V4-Flash", "small") else "gpt-oss-20b"
        if not (fetches and model == "gpt-oss-20b"):
            shutil.copytree(os.path.join("models", source), os.path.join(name, model))
    with open(os.path.join(name, WHEELS[0]), "w"):
        pass
    return name


def remove(out):
    """With what an unfinished run left beside it."""
    for path in (out, os.path.join(os.path.dirname(out.rstrip("/")), f".{os.path.basename(out.rstrip('/'))}.mxfp4_repack-new")):
        shutil.rmtree(path, ignore_errors=True)


def prepare(command, directory):
    """What reference pages take for granted: a machine's facts, blobs, unfinished shards; and a new OUT."""
    def convert(out, *words):
        subprocess.run([PROGRAM, "convert", "model", "-o", out, "--arch", "sm90", *words, "-q"], check=True, stdout=subprocess.DEVNULL, cwd=directory)

    def there(path):
        return os.path.exists(os.path.join(directory, path))

    out = re.search(r"^mxfp4-repack .*?(?:-o|--output) (\S+)", command)
    if out and "--shard" not in command and "--force" not in command:
        remove(os.path.join(directory, out.group(1)))
    if "facts.json" in command and ">" not in command and not there("facts.json"):
        with open(os.path.join(directory, "facts.json"), "w") as file:
            file.write(FACTS)
    if re.match(r"mxfp4-repack finalize packed\b(?!-)", command):
        remove(os.path.join(directory, "packed"))
        for shard in range(2):
            convert("packed", "--shard", f"{shard}/2")
        return
    if command.startswith(("mpirun", "scripts/batch/")):
        remove(os.path.join(directory, "packed"))
        return
    for name in ("packed", "packed-again", "THIS_DIRECTORY"):
        used = re.search(rf"(?<!-o )\b{name}(?=/| |\"|$)(?!\S*>)", command)
        if used and not there(f"{name}/mxfp4_repack.json") and not there(f"{name}/rank-00-of-08"):
            convert(name)


# Running it -------------------------------------------------------------------------------------------

class Wrong(Exception):
    pass


def run(command, directory, environment, answers=(0,), words=("bash", "-euo", "pipefail", "-c")):
    # The files that packages install, and names that a reader puts in.
    typed = command.replace("/usr/share/mxfp4-repack/", SOURCE + "/scripts/").replace("MODEL_DIRECTORY", "gpt-oss-120b")
    # Far files: cli.far_hub and cli.far_s3 have their servers.
    typed = typed.replace("hf://openai/", environment["PAGES_MODELS"] + "/").replace("s3://models/", "bucket-")
    done = subprocess.run([*words, typed], stdin=subprocess.DEVNULL, env=environment, cwd=directory, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8")
    if done.returncode not in answers:
        raise Wrong(f"$ {command}\nexit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def masked(text):
    """Sizes are the program's; only times and rates differ from run to run."""
    return re.sub(r" in [0-9.]+ s", " in N s", re.sub(r"[0-9.]+ [KMG]?i?B/s", "N B/s", text)).strip()


def shell(commands, directory, environment):
    for command, shown in commands:
        prepare(command, directory)
        printed = run(command, directory, environment, ANSWERS.get(command, (0,)))
        if shown and masked("\n".join(shown)) != masked(printed):
            raise Wrong(f"$ {command}\nthe page shows\n{chr(10).join(shown)}\nin place of\n{printed}")


def build(text, directory, environment):
    """A Dockerfile, stage by stage: each is a directory, and what it names must be there."""
    images = {"mxfp4-repack:0.2.0": "data"}
    stages, stage, here, variables = {}, None, None, {}
    for line in re.sub(r"\\\n\s*", "", text).splitlines():
        word, _, rest = line.partition(" ")
        if word == "FROM":
            image, _, name = rest.partition(" AS ")
            if image != "scratch" and not re.search(r":v?\d+\.\d+\.\d+$", image):
                raise Wrong(f"{line}: the image is not pinned to a release")
            stage = stages[name] = tempfile.mkdtemp(dir=directory)
            here = os.path.join(stage, images.get(image, ""))
            for path in (here, os.path.join(stage, "tmp")):
                os.makedirs(path, exist_ok=True)
        elif word == "COPY":
            *sources, target = [part for part in rest.split() if not part.startswith("--")]
            base = re.search(r"--from=(\S+)", rest)
            for source in sources:
                if not base and not os.path.exists(os.path.join(directory, source)) and "*" not in source:
                    prepare(source, directory)
                found = glob.glob(os.path.join(stages[base[1]] if base else directory, source.lstrip("/")))
                if len(found) != 1:
                    raise Wrong(f"{line}: {len(found)} files match")
                os.makedirs(os.path.dirname(stage + target), exist_ok=True)
                subprocess.run(["cp", "-rT" if os.path.isdir(found[0]) else "-r", found[0], stage + target], check=True)
        elif word == "RUN":
            run(rest.replace(" /tmp/", f" {stage}/tmp/"), here, environment)
        elif word == "ENV":
            variables.update(part.split("=", 1) for part in rest.split())
        elif line and not line.startswith("#"):
            raise Wrong(f"{line}: not understood")
    if variables:
        plugin_knows(variables, stage)


def pipeline(document, directory, environment):
    """The steps of a workflow, in an empty runner."""
    for job in document["jobs"].values():
        runner = os.path.join(directory, "runner")
        os.mkdir(runner)
        environment = {**environment, **job.get("env", {})}
        for step in job["steps"]:
            if step.get("uses", "").startswith("actions/checkout@"):
                with open(os.path.join(runner, "facts.json"), "w") as file:
                    file.write(FACTS)
            elif set(step) == {"run"}:
                run(step["run"], runner, environment)
            else:
                raise Wrong(f"{step}: not understood")


def manifest(text, directory):
    """Members of a manifest: some blob of this model has them."""
    want = json.loads("{" + text + "}")
    for flags in (["--engine", "sglang"], ["--revision", "0.33.0"]):
        for arch in ("sm90", "sm100", "sm120", "gfx950"):
            out = os.path.join(directory, "members")
            remove(out)
            done = subprocess.run([PROGRAM, "convert", "DeepSeek-V4-Flash", "-o", out, "--arch", arch, *flags, "-q"], cwd=directory, capture_output=True)
            if done.returncode == 0:
                with open(os.path.join(out, "mxfp4_repack.json"), encoding="utf-8") as file:
                    has = json.load(file)
                if want.items() <= {**has, **has.get("rank", {})}.items():
                    return
    raise Wrong(f"no manifest has {want}")


def main():
    make_models()
    make_programs()
    environment = {**{name: value for name, value in os.environ.items() if not name.startswith("MXFP4_REPACK")},
                   "PATH": os.path.abspath("programs") + ":" + os.environ["PATH"], "PAGES_MODELS": os.path.abspath("models"), "PYTHONDONTWRITEBYTECODE": "1"}
    library = {**environment, "MXFP4_REPACK": PROGRAM, "MXFP4_REPACK_LIBRARY": os.environ.get("LOADER", ""),
               "PYTHONPATH": ":".join((SOURCE + "/scripts/python", SOURCE + "/tests/python/standin/faketorch"))}
    for page in sys.argv[1:]:
        blocks = [(kind, content) for kind, content in blocks_of(page) if content]
        directory = make_directory(page)
        try:
            for kind, content in blocks:
                if kind == "shell":
                    shell(content, directory, environment)
                elif kind == "python":
                    prepare(" ".join(re.findall(r'open_\w+\("(\S+?)"', content)), directory)
                    # There is no GPU.
                    run(content.replace('"cuda"', '"cpu"'), directory, library, words=(sys.executable, "-c"))
                elif kind == "dockerfile":
                    build(content, directory, environment)
                elif kind == "yaml" and "\njobs:" in content:
                    pipeline(yaml.safe_load(content), directory, environment)
                elif kind == "yaml":  # a cluster's object: tests/batch/kubernetes.sh
                    assert page.endswith("kubernetes.md"), page
                else:
                    manifest(content, directory)
        except Wrong as error:
            sys.exit(f"{page}: {error}")
        count = sum(len(content) if kind == "shell" else 1 for kind, content in blocks)
        if not count:
            sys.exit(f"{page}: no commands")
        print(f"{os.path.relpath(page, SOURCE)}: {count} blocks and commands", flush=True)
        shutil.rmtree(directory)


main()
