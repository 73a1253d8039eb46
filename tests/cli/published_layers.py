"""Published configs: the answer from the config alone is what the releases' own code makes of the experts of each layer
(tests/engines/published_configs.py). published_layers.py PROGRAM TESTDATA, in an empty directory."""
import json
import os
import sys

from drawn_models import explained, layers_named

sys.path.insert(0, os.path.join(os.environ["SOURCE_DIR"], "tests", "engines"))
from published_configs import written_out


def numbers(ranges):
    """Of layers, as "3-5" and "7"."""
    return {number for first, _, last in (text.partition("-") for text in ranges) for number in range(int(first), int(last or first) + 1)}


# Known limits: up to 0.31.0 the release asks for projections by other names, or for a config of the text model, and stops at these tensors.
LIMITS = ("DeepSeek-V4-Flash converted to compressed-tensors", "Ling-3.0-flash-VL, FP8 with MXFP4 experts")


def as_the_engine(rows):
    """Method and layers that stay, or a refusal where no experts are MXFP4. Where the release stops, it says so itself."""
    wrong = []
    for row in rows:
        for release, answers in row["answers"].items():
            done, said = explained(written_out(row["config"]), release, "--arch", row["arch"], *row["flags"])
            methods = set(answers) - {"other", "stop"}
            if not methods:
                right = done.returncode in (3, 4) and "method" not in said or "stop" in answers or row["model"] in LIMITS
            else:
                right = {said.get("method")} == methods and layers_named(said["warnings"]) == numbers(answers.get("other", ()))
            if not right:
                wrong.append((row["model"], release, answers, said.get("method"), said.get("warnings"), done.stderr))
    assert not wrong, "\n".join(map(str, wrong))


def main():
    with open(os.path.join(sys.argv[2], "engines", "published_configs.json")) as file:
        as_the_engine(json.load(file)["rows"])


if __name__ == "__main__":
    main()
