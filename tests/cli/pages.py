"""Runs every command that a page shows, as the page has it, with the program and small checkpoints of the page's names.
pages.py PROGRAM SOURCE PAGE..., in an empty directory. A page is Markdown, a man page, or what --help prints.

Programs that are not here (vllm, sglang, hf, ssh) are stand-ins: they check the words that this project gives a
meaning. What installs is not run here but by install_commands.sh, in an environment of its own."""
import json
import os
import re
import shlex
import shutil
import subprocess
import sys

import layer_files
import numpy

PROGRAM, SOURCE, PAGES = sys.argv[1], sys.argv[2], sys.argv[3:]
FACTS = '{"platform": "cuda", "arch": "sm90", "vllm": "0.33.0"}'
# The first words of a command, after assignments.
STARTS = ("mxfp4-repack ", "mxfp4-repack-probe", "vllm ", "python -m ", "hf ", "ssh ", "for ")
# What answers with another exit code than 0: the answer of the command, not a fault.
ANSWERS = {"mxfp4-repack fits packed/ --engine vllm": (0, 1),
           "mxfp4-repack inspect packed/ --revision vllm-2026-08-17": (0, 1)}


def commands_of(text, is_man):
    """The commands of a page, each one string for a shell."""
    if is_man:
        blocks = [re.sub(r"\\(.)", r"\1", block) for block in re.findall(r"^\.EX\n(.*?)^\.EE", text, re.M | re.S)]
    elif "```" in text:
        blocks = re.findall(r"^```\n(.*?)^```", text, re.M | re.S)
    else:
        blocks = [re.sub(r"^ {2,4}", "", block, flags=re.M)
                  for block in re.findall(r"(?:^ {4}\S.*\n(?: {4,}.*\n)*|^Examples:\n(?:  .*\n)+)", text, re.M)]
        blocks = [block.replace("Examples:\n", "") for block in blocks]
    out = []
    for block in blocks:
        lines = re.sub(r"\\\n\s*", "", block).split("\n")
        while lines:
            line = re.sub(r"\s+#.*", "", lines.pop(0)).rstrip()
            while re.match(r"for ", line) and "done" not in line:
                line += "\n" + lines.pop(0)
            if re.sub(r"^([A-Z_0-9]+=\S+ +)*", "", line).startswith(STARTS):
                out.append(line)
    return out


def make_checkpoints():
    for name in ("gpt-oss-120b", "gpt-oss-20b", "model", "MODEL"):
        if name == "gpt-oss-120b":
            subprocess.run([os.path.join(SOURCE, "scripts", "make-checkpoint"), name, "--hidden", "512", "--intermediate", "2048"],
                           check=True, stdout=subprocess.DEVNULL)
            # Heads that eight ranks share.
            with open(name + "/config.json") as file:
                config = json.load(file)
            config.update(num_attention_heads=64, num_key_value_heads=8)
            with open(name + "/config.json", "w") as file:
                json.dump(config, file)
        else:
            os.symlink("gpt-oss-120b", name)
    random = numpy.random.default_rng(5)
    count, hidden, inter, tensors = 8, 256, 2048, {}
    for expert in range(count):
        for word, rows, columns in (("w1", inter, hidden), ("w3", inter, hidden), ("w2", hidden, inter)):
            at = f"layers.0.ffn.experts.{expert}.{word}"
            tensors[at + ".weight"] = "I8", random.integers(0, 256, (rows, columns // 2)).astype("u1").view("i1")
            tensors[at + ".scale"] = "F8_E8M0", random.integers(112, 128, (rows, columns // 32)).astype("u1")
    os.mkdir("DeepSeek-V4-Flash")
    layer_files.write("DeepSeek-V4-Flash/model.safetensors", tensors)
    with open("DeepSeek-V4-Flash/config.json", "w") as file:
        json.dump({"architectures": ["DeepseekV4ForCausalLM"], "model_type": "deepseek_v4", "hidden_size": hidden,
                   "moe_intermediate_size": inter, "num_hidden_layers": 1, "n_routed_experts": count, "num_experts_per_tok": 2,
                   "norm_topk_prob": True, "scoring_func": "sqrtsoftplus", "topk_method": "noaux_tc", "num_attention_heads": 64,
                   "expert_dtype": "fp4", "quantization_config": {"quant_method": "fp8", "activation_scheme": "dynamic", "weight_block_size": [128, 128]}}, file)


def stand_in(name, text):
    with open(os.path.join("programs", name), "w") as file:
        file.write(text)
    os.chmod(os.path.join("programs", name), 0o755)


def make_programs():
    os.mkdir("programs")
    os.symlink(PROGRAM, "programs/mxfp4-repack")
    stand_in("mxfp4-repack-probe", f"#!/bin/sh\necho '{FACTS}'\n")
    # The serving machine: runs what comes, and has other facts than this one.
    stand_in("ssh", f"#!/bin/sh\nshift\n\"$@\" >said 2>/dev/null && grep -q '\"platform\"' said && echo '{FACTS}'\n")
    stand_in("hf", "#!/bin/sh\n[ \"$1\" = upload ] && [ -d \"$3\" ]\n")
    for name in ("vllm", "python"):
        stand_in(name, f"#!/bin/sh\nexec /usr/bin/python3 {shlex.quote(os.path.abspath(__file__))} --engine {name} \"$@\"\n")


def engine(name, words):
    """A stand-in of vllm and of sglang: what a page says to the plug-in is what the plug-in knows."""
    texts = {}
    for folder, _, files in os.walk(os.path.join(SOURCE, "scripts", "python", "mxfp4_repack")):
        for each in files:
            if each.endswith(".py"):
                with open(os.path.join(folder, each), encoding="utf-8") as file:
                    texts[os.path.join(os.path.basename(folder), each)] = file.read()
    for variable in (each for each in os.environ if each.startswith("MXFP4_REPACK_")):
        assert any(re.search(rf"\b{variable}\b", text) for text in texts.values()), f"no plug-in reads {variable}"
    if name == "vllm":
        known = set(re.findall(r'"(\w+)"', re.search(r"^OWN_KEYS = \((.*?)\)", texts["vllm/load_format.py"], re.M | re.S).group(1)))
        assert known, "no keys"
        assert words[0] == "serve" and os.path.isdir(words[1]), words
        at = words.index("--load-format")
        assert words[at + 1] == "mxfp4_repack", words
        if "--model-loader-extra-config" in words:
            assert set(json.loads(words[words.index("--model-loader-extra-config") + 1])) <= known, words
    else:
        assert words[:2] == ["-m", "sglang.launch_server"], words
        assert words[2:] == ["..."] or os.path.isdir(words[words.index("--model-path") + 1]), words
        blob = os.environ["MXFP4_REPACK_BLOB"]
        assert os.environ.get("MXFP4_REPACK_SOURCE") == "checkpoint" or os.path.isdir(blob), f"no {blob}"


def remove(out):
    """With what an unfinished run left beside it."""
    for path in (out, os.path.join(os.path.dirname(out.rstrip("/")), f".{os.path.basename(out.rstrip('/'))}.mxfp4_repack-new")):
        shutil.rmtree(path, ignore_errors=True)


def prepare(command):
    """What a page takes for granted: a machine's facts, blobs, unfinished shards; and a new OUT."""
    def run(*words):
        subprocess.run(["programs/mxfp4-repack", *words, "-q"], check=True, stdout=subprocess.DEVNULL)

    out = re.search(r"(?:-o|--output) (\S+)", command)
    if out and "--shard" not in command:
        remove(out.group(1))
    for name, text in (("facts.json", FACTS),):
        if name in command and ">" not in command and not os.path.exists(name):
            with open(name, "w") as file:
                file.write(text)
    if command.startswith("mxfp4-repack finalize"):
        if not os.path.exists(".packed.mxfp4_repack-new"):
            remove("packed")
            for shard in range(2):
                run("convert", "model", "-o", "packed", "--arch", "sm90", "--shard", f"{shard}/2")
        return
    for name in ("packed", "packed-again", "THIS_DIRECTORY"):
        used = re.search(rf"(?<!-o )\b{name}(?=/| |$)(?!\S*>)", command)
        if used and not os.path.exists(f"{name}/mxfp4_repack.json") and not os.path.exists(f"{name}/rank-00-of-08"):
            remove(name)
            run("convert", "model", "-o", name, "--arch", "sm90")


def main():
    make_checkpoints()
    make_programs()
    environment = {**{name: value for name, value in os.environ.items() if not name.startswith("MXFP4_REPACK")},
                   "PATH": os.path.abspath("programs") + ":" + os.environ["PATH"], "PAGES_SOURCE": SOURCE, "PAGES_PROGRAM": PROGRAM}
    for page in PAGES:
        with open(page, encoding="utf-8") as file:
            commands = commands_of(file.read(), page.endswith(".1"))
        if not commands:
            sys.exit(f"{page}: no commands")
        for name in ("packed", "packed-again"):
            remove(name)
        for command in commands:
            prepare(command)
            # The files that packages install, and names that a reader puts in.
            typed = command.replace("/usr/share/mxfp4-repack/", SOURCE + "/scripts/").replace("MODEL_DIRECTORY", "gpt-oss-120b")
            done = subprocess.run(["bash", "-euo", "pipefail", "-c", typed], stdin=subprocess.DEVNULL, env=environment,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8")
            if done.returncode not in ANSWERS.get(command, (0,)):
                sys.exit(f"{page}: $ {command}\nexit code {done.returncode}\n{done.stdout}")
        print(f"{os.path.basename(page)}: {len(commands)} commands")


if sys.argv[1] == "--engine":
    SOURCE = os.environ["PAGES_SOURCE"]
    engine(sys.argv[2], sys.argv[3:])
else:
    main()
