"""Published configs: the answer from the config alone is what the releases' own code makes of the experts of each layer
(tests/engines/published_configs.py); and the names by which releases ask for projections. published_layers.py PROGRAM TESTDATA, in an empty
directory."""
import json
import os
import sys

from drawn_models import compressed_tensors, draw, explained, group, qwen3
from layer_methods import layers_named

sys.path.insert(0, os.path.join(os.environ["SOURCE_DIR"], "tests", "engines"))
from published_configs import written_out


def numbers(ranges):
    """Of layers, as "3-5" and "7"."""
    return {number for first, _, last in (text.partition("-") for text in ranges) for number in range(int(first), int(last or first) + 1)}


def as_the_engine(rows):
    """Method and layers that stay, or a refusal where the release stops."""
    wrong = []
    for row in rows:
        for release, answers in row["answers"].items():
            done, said = explained(written_out(row["config"]), release, "--arch", row["arch"], *row["flags"])
            methods = set(answers) - {"other", "stop"}
            stops = [warning for warning in said.get("warnings", []) + said.get("notes", []) if " stops when " in warning]
            if not methods:
                right = done.returncode in (3, 4) and "method" not in said or bool(stops)
            else:
                right = {said.get("method")} == methods and layers_named(said["warnings"]) == numbers(answers.get("other", ())) and not stops
            if not right:
                wrong.append((row["model"], release, answers, said.get("method"), said.get("warnings"), done.stderr))
    assert not wrong, "\n".join(map(str, wrong))


CLASSES = {"minimax_m2": "MiniMaxM2ForCausalLM", "mixtral": "MixtralForCausalLM", "lfm2_moe": "Lfm2MoeForCausalLM", "phimoe": "PhiMoEForCausalLM",
           "qwen3_moe": "Qwen3MoeForCausalLM", "minimax_m3": "MiniMaxM3SparseForCausalLM", "glm4_moe": "Glm4MoeForCausalLM",
           "deepseek_v4": "DeepseekV4ForCausalLM"}
# The folder of a platform's classes, where a model has one for each.
FOLDERS = {"sm90": "nvidia", "sm100": "nvidia", "gfx950": "amd"}


def told(models, model_type, arch):
    """What the class tells its experts of its checkpoint's words: ckpt_names of its call of FusedMoE, in 0.33.0. Others tell nothing: gate_proj."""
    def serves(row):
        folders = set(row["file"].split("/")) & {"nvidia", "amd", "xpu", "cpu"}
        return CLASSES[model_type] in row["architectures"] and "0.33.0" in row["releases"] and folders <= {FOLDERS[arch]}
    names = {row["arguments"].get("ckpt_names", "('gate_proj'") for row in models if serves(row)}
    assert len(names) == 1, (model_type, arch, names)
    return names.pop().split("'")[1]


def names_of_projections(models):
    """compressed-tensors: targets that name projections hold for a release that asks for them by these names."""
    for model_type in CLASSES:
        for words, form in ((("w1",), r"re:.*\.experts\.\d+\.w\d+$"), (("gate_proj",), r"re:.*experts\.\d+\.(gate|up|down)_proj$"),
                            (("w1", "gate_proj"), r"re:.*\.experts\.\d+\..*")):
            release = draw("0.25.1", "0.29.0", "0.31.0") if draw(True, False) else draw("0.32.0", "0.33.0")
            arch = draw(*FOLDERS)
            asked = told(models, model_type, arch) if release >= "0.32.0" else "gate_proj"
            config = {**qwen3(compressed_tensors(group([form])), 2, 4, 256, 256), "model_type": model_type, "num_local_experts": 4,
                      "intermediate_size": 256}
            del config["architectures"]
            done, said = explained(config, release, "--arch", arch)
            where = (model_type, form, release, arch, done.stdout[:300], done.stderr)
            assert "notes" in said, where
            stops = [note for note in said["notes"] if " stops when " in note]
            assert any(f"no targets that name {asked}:" in note for note in stops) == (asked not in words), where
            if asked in words:
                assert not stops and (done.returncode == 0 or arch == "gfx950"), where


def main():
    with open(os.path.join(sys.argv[2], "engines", "published_configs.json")) as file:
        as_the_engine(json.load(file)["rows"])
    with open(os.path.join(sys.argv[2], "engines", "models.json")) as file:
        names_of_projections(json.load(file)["models"])


if __name__ == "__main__":
    main()
