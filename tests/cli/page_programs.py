"""Programs that pages call and that are not here: vllm, sglang, hf, gh, pip, ssh, podman, kubectl, mpirun, sbatch.
page_programs.py NAME ARGUMENTS... is called in the program's name by pages.py's page, and checks the words that this
project gives a meaning, or does the work."""
import fnmatch
import glob
import json
import os
import re
import shutil
import subprocess
import sys

import yaml

SOURCE, PROGRAM = os.environ.get("PAGES_SOURCE", ""), os.environ.get("PAGES_PROGRAM", "")
FACTS = '{"platform": "cuda", "arch": "sm90", "vllm": "0.33.0"}'
WHEELS = ("mxfp4_repack-0.2.0-py3-none-manylinux_2_35_x86_64.whl", "mxfp4_repack-0.2.0-py3-none-manylinux_2_35_aarch64.whl")


def plugin_knows(variables, root=""):
    """Whether a variable is one of the plug-ins', and the blob that it names is there."""
    texts = ""
    for path in glob.glob(os.path.join(SOURCE, "scripts", "python", "mxfp4_repack", "**", "*.py"), recursive=True):
        with open(path, encoding="utf-8") as file:
            texts += file.read()
    for name, value in variables.items():
        if name.startswith("MXFP4_REPACK_"):
            assert re.search(rf"\b{name}\b", texts), f"no plug-in reads {name}"
        if name == "MXFP4_REPACK_BLOB" and "MXFP4_REPACK_SOURCE" not in variables:
            assert os.path.isdir(root + value), f"no {value}"


def container(words):
    """podman and docker: an image that is built, or the program on a directory that is mounted for its user."""
    if words[0] == "build":
        assert os.path.exists(words[words.index("-f") + 1]) and os.path.isdir(words[-1]) and re.search(r":\d+\.\d+\.\d+$", words[words.index("-t") + 1]), words
        return
    assert words[0] == "run", words
    options = {}
    rest = words[1:]
    while rest[0].startswith("-"):
        option, _, value = rest.pop(0).partition("=")
        options[option] = value or (rest.pop(0) if option in ("-v", "--user") else "")
    source, _, target = options["-v"].partition(":")
    assert os.path.samefile(source, ".") and target == "/data", options
    assert options.get("--userns") == "keep-id:uid=10001,gid=10001" or options.get("--user") == f"{os.getuid()}:{os.getgid()}", options
    assert re.search(r"^mxfp4-repack:\d", rest[0]), rest
    subprocess.run([PROGRAM, *rest[1:]], check=True)


def hub(words):
    if words[0] == "upload":
        assert os.path.isdir(words[2]), words
        return
    assert words[:2] == ["download", "openai/gpt-oss-20b"], words
    left_out = [words[i + 1] for i, word in enumerate(words) if word == "--exclude"]
    for extra in ("original/model.safetensors", "metal/model.bin"):
        assert any(fnmatch.fnmatch(extra, pattern) for pattern in left_out), f"{extra} is fetched, too"
    shutil.copytree(os.path.join(os.environ["PAGES_MODELS"], "gpt-oss-20b"), words[words.index("--local-dir") + 1])


def stand_in(name, words):
    if name == "mxfp4-repack-check":  # test_check.py runs it
        assert os.path.isdir(words[0]), words
    elif name == "mxfp4-repack-probe":
        print(FACTS)
    elif name == "ssh":  # the serving machine: runs what comes, and has other facts than this one
        said = subprocess.run(words[1:], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, encoding="utf-8", check=True).stdout
        assert '"platform"' in said, said
        print(FACTS)
    elif name == "hf":
        hub(words)
    elif name == "gh":  # one wheel, of the runner's processor
        assert words[:2] == ["release", "download"] and re.fullmatch(r"v\d+\.\d+\.\d+", words[2]) and os.environ.get("GH_TOKEN"), words
        found = fnmatch.filter(WHEELS, words[words.index("--pattern") + 1])
        assert found == [WHEELS[0]], found
        with open(found[0], "w"):
            pass
    elif name in ("pip", "pipx"):
        assert words[0] == "install" and all(os.path.exists(word) for word in words[1:] if "mxfp4" in word or "/" in word), words
        assert sum("mxfp4_repack-" in word for word in words) <= 1, words
    elif name in ("podman", "docker"):
        container(words)
    elif name == "kubectl":
        kubectl(words)
    elif name in ("mpirun", "sbatch"):
        tasks(name, words)
    elif name == "vllm":
        with open(os.path.join(SOURCE, "scripts/python/mxfp4_repack/vllm/load_format.py"), encoding="utf-8") as file:
            known = set(re.findall(r'"(\w+)"', re.search(r"^OWN_KEYS = \((.*?)\)", file.read(), re.M | re.S).group(1)))
        assert known and words[0] == "serve" and os.path.isdir(words[1]), words
        plugin_knows(os.environ)
        if len(words) > 2:
            assert words[words.index("--load-format") + 1] == "mxfp4_repack", words
        if "--model-loader-extra-config" in words:
            keys = json.loads(words[words.index("--model-loader-extra-config") + 1])
            assert set(keys) <= known and os.path.isdir(keys.get("blob", ".")), words
    else:
        assert name == "python" and words[:2] == ["-m", "sglang.launch_server"], words
        plugin_knows(os.environ)
        assert words[2:] == ["..."] or os.path.isdir(words[words.index("--model-path") + 1]), words


def kubectl(words):
    """The objects that are named are those of the file or of the page."""
    if words[0] == "apply":
        with open(words[words.index("-f") + 1], encoding="utf-8") as file:
            assert all(document["kind"] for document in yaml.safe_load_all(file)), words
        return
    kind, _, name = next(word for word in words if "/" in word).partition("/")
    texts = [os.path.join(SOURCE, "scripts/batch/kubernetes-indexed-job.yaml"), os.path.join(SOURCE, "man/guide/kubernetes.md")]
    texts = "".join(open(path, encoding="utf-8").read() for path in texts)
    assert re.search(rf"^kind: {kind.capitalize()}\nmetadata:\n  name: {name}$", texts, re.M), words
    if words[0] == "exec":
        stand_in(words[words.index("--") + 1], words[words.index("--") + 2:])
    if words[0] == "logs":
        print("mxfp4-repack: 24 layers made from /models/gpt-oss-20b, 0 converted by vLLM")


def tasks(name, words):
    """Open MPI's and Slurm's: each in turn."""
    if name == "mpirun":
        count, command = int(words[1]), words[2:]
        variables = [{"OMPI_COMM_WORLD_RANK": str(i), "OMPI_COMM_WORLD_SIZE": str(count)} for i in range(count)]
    else:
        options, command = [word for word in words if word.startswith("--")], []
        command = words[next(i for i, word in enumerate(words) if not word.startswith("--")):]
        array = next((word for word in options if word.startswith("--array=")), "--array=0-0")
        count = int(array.rpartition("-")[2]) + 1
        variables = [{"SLURM_ARRAY_TASK_ID": str(i), "SLURM_ARRAY_TASK_COUNT": str(count)} for i in range(count)]
    for each in variables:
        subprocess.run(command, check=True, env={**os.environ, **each}, stdout=subprocess.DEVNULL)
    print(1)


if __name__ == "__main__":
    stand_in(sys.argv[1], sys.argv[2:])
