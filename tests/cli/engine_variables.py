"""Every environment variable that a release of vLLM defines has an answer: a rule reads it, or it has no influence, or the word to use
(testdata/engines/variables.json). Another name is said to be none of them. engine_variables.py PROGRAM TESTDATA."""
import json
import os
import random
import subprocess
import sys

BIN, TESTDATA = sys.argv[1:3]
SHOWN = int(os.environ.get("MXFP4_TEST_VARIABLES", "80"))  # of the stored names, other ones on each run


def asked(name):
    done = subprocess.run([BIN, "explain", "--arch", "sm100", "--env", f"{name}=1"], capture_output=True, text=True)
    return done.returncode, done.stderr


def main():
    with open(os.path.join(TESTDATA, "engines", "variables.json")) as file:
        names = sorted(json.load(file)["variables"])
    seed = random.randrange(1 << 30)
    print("seed", seed)
    draw = random.Random(seed)
    drawn = draw.sample(names, min(SHOWN, len(names)))
    wrong = []
    for name in drawn:
        code, words = asked(name)
        hints = [line for line in words.splitlines() if line.startswith("hint: ")]
        if code == 2 and (not hints or "did you mean" in hints[0] or "leave it out" in hints[0]):
            wrong.append((name, words))
        elif code not in (0, 2, 4):
            wrong.append((name, words))
    assert not wrong, wrong
    for _ in range(5):
        name = "VLLM_" + "".join(draw.choices("QXZJK", k=16))
        code, words = asked(name)
        assert code == 2 and "no release of vLLM from 0.21.0 on reads it" in words, (name, words)


main()
