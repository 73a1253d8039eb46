"""What the checks of a real vLLM on GPUs share: its arguments, checkpoints and blobs, tokens, comparisons."""
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "python" / "engine")]

BLOBS = {"default blob": "zstd", "plain blob": "none"}
NO_BLOB = "no blob"
ENGINE = {"skip_tokenizer_init": True, "max_model_len": 256, "max_num_seqs": 8, "dtype": "bfloat16",
          "disable_log_stats": True, "enable_prefix_caching": False, "kv_cache_memory_bytes": 256 << 20,
          "async_scheduling": False, "attention_backend": "TRITON_ATTN", "generation_config": "vllm",
          "gpu_memory_utilization": 0.1}
failures = 0


def report(what, good, text=""):
    global failures
    failures += not good
    print(f"{'ok  ' if good else 'FAIL'} {what}{'' if good else ': ' + str(text)[:800]}", flush=True)


def run(*command):
    subprocess.run([str(part) for part in command], check=True, stdout=subprocess.DEVNULL)


def finish(results, file):
    """Writes the results to `file`, if there is one, and prints the last line; the exit status."""
    import json

    if file:
        file.write_text(json.dumps(results, indent=1) + "\n")
    print(f"{len(results)} starts, {failures} failures")
    return 1 if failures or not results else 0


def make_checkpoint(directory, arguments, seed=1, more=()):
    """A gpt-oss of random weights, unless it is there. more: further flags of scripts/make-checkpoint."""
    if not directory.exists():
        run(sys.executable, ROOT / "scripts" / "make-checkpoint", directory, "--seed", seed, "--layers", arguments.layers, "--experts",
            arguments.experts, "--hidden", arguments.hidden, "--intermediate", arguments.inter, *more)
    return directory


def zero(model, ending):
    """Writes zeros into a checkpoint's tensors whose names end so, unless they are there."""
    import json

    for path in sorted(model.glob("*.safetensors")):
        with open(path, "r+b") as file:
            length = int.from_bytes(file.read(8), "little")
            for name, tensor in json.loads(file.read(length)).items():
                if name.endswith(ending):
                    begin, end = (8 + length + offset for offset in tensor["data_offsets"])
                    file.seek(begin)
                    if any(file.read(end - begin)):
                        file.seek(begin)
                        file.write(bytes(end - begin))


def make_blob(directory, source, arguments, *flags):
    """The program's, unless it is there."""
    if not directory.exists():
        run(arguments.program, "convert", source, "-o", directory, "-q", "--revision", arguments.revision, *flags)
    return directory


def environment(work, *paths):
    """Of a process that starts vLLM. Nothing of the network, of the user's caches, or of multicast between GPUs."""
    found = [*map(str, paths), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": ":".join(filter(None, found)), "HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1",
            "XDG_CACHE_HOME": str(work / "cache"), "NCCL_NVLS_ENABLE": "0", "TORCH_SYMM_MEM_DISABLE_MULTICAST": "1",
            "NVSHMEM_DISABLE_NVLS": "1", "VLLM_ALLREDUCE_USE_SYMM_MEM": "0", "VLLM_ALLREDUCE_USE_FLASHINFER": "0"}


def add_arguments(parser, layers, experts):
    """Those of every check."""
    import json

    parser.add_argument("--program", type=lambda text: pathlib.Path(text).resolve())
    parser.add_argument("--revision", help="vLLM's release, as the program names it")
    parser.add_argument("--layers", type=int, default=layers)
    parser.add_argument("--experts", type=int, default=experts)
    parser.add_argument("--hidden", type=int, default=2880)
    parser.add_argument("--inter", type=int, default=2880)
    parser.add_argument("--arguments", type=json.loads, default={}, metavar="JSON", help="more arguments of vLLM's engine; null takes one away")
    parser.add_argument("--without-kernels", action="store_true", help="vLLM's compiled parts are not there: enough on a CPU, not for 0.28.0 on a GPU")
    parser.add_argument("--report", type=pathlib.Path)


def engine_arguments(base, arguments):
    """Those of vLLM's engine: `base`, what it needs without kernels, what the command line says."""
    import settings

    found = {**base, **(settings.WITHOUT_KERNELS if arguments["without_kernels"] else {}), **arguments["arguments"]}
    return settings.known({key: value for key, value in found.items() if value is not None})


def load_format(blob):
    """Arguments with which vLLM takes the blob in a directory, or for NO_BLOB makes the weights from the checkpoint."""
    return {"load_format": "mxfp4_repack", "model_loader_extra_config": {"source": "checkpoint"} if blob == NO_BLOB else {"blob": str(blob)}}


# Tokens -----------------------------------------------------------------------------------------------

def generated(llm):
    """[(tokens, log-probabilities)] of each of 6 prompts."""
    from vllm import SamplingParams

    prompts = [{"prompt_token_ids": [(17 * i + 5 * j + 3) % 509 + 3 for j in range(5 + 11 * i)]} for i in range(6)]
    wanted = SamplingParams(temperature=0.0, max_tokens=48, ignore_eos=True, detokenize=False, logprobs=1)
    answers = [answer.outputs[0] for answer in llm.generate(prompts, wanted, use_tqdm=False)]
    return [(list(a.token_ids), [p[token].logprob for token, p in zip(a.token_ids, a.logprobs)]) for a in answers]


def finite(generated):
    """Whether the log-probabilities are numbers."""
    return all(p == p and abs(p) < 1e4 for _, found in generated for p in found)


def tokens_differ(own, found):
    """(number of prompts with other tokens, largest difference of a log-probability)"""
    wrong = sum(a[0] != b[0] for a, b in zip(own, found))
    return wrong, max(abs(x - y) for a, b in zip(own, found) for x, y in zip(a[1], b[1]))


def states_differ(own, found):
    return [name for name in {**own, **found} if own.get(name) != found.get(name)]
