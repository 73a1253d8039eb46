"""Every command with --json, in success and failure. Arguments: program, checkpoint, man page.
The directory has a blob `out`."""
import json
import os
import re
import subprocess
import sys

BIN, MODEL, PAGE = sys.argv[1:]
TEXT = re.sub(r"\\f.", "", open(PAGE).read().replace("\\-", "-"))
KINDS = {2: "usage", 3: "input", 4: "unsupported", 5: "output", 130: "interrupted"}
FREE = {"env"}  # objects whose keys are the user's own
UNITS = re.compile(r"(_bytes|_seconds|_percent|_size|_code|_version)$|^num_|^num$")
# Numbers that count nothing measurable: documented with their objects.
BARE = {"rank", "num_experts", "tp", "pcp", "dp", "layer", "mx_alignment", "gemm1_alpha", "gemm1_beta",
        "gemm1_clamp_limit", "index"}


def walk(value, name, seen, where):
    """Names are snake_case, numbers say their unit, and lists are plural."""
    if isinstance(value, dict):
        for key, item in value.items():
            if name in FREE:
                continue
            assert re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", key), (where, key)
            seen.add(key)
            walk(item, key, seen, where)
    elif isinstance(value, list):
        for item in value:
            if not isinstance(item, (int, float)):
                walk(item, name, seen, where)
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        assert UNITS.search(name) or name in BARE, (where, name, value)


def document(arguments, code):
    done = subprocess.run([BIN, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    where = " ".join(arguments)
    assert done.returncode == code, (where, done.returncode, done.stderr)
    answer = json.loads(done.stdout.decode())
    keys = list(answer)
    assert keys[0] == "schema_version" and answer["schema_version"] == 1, where
    assert keys[1] == "command", (where, keys)
    said = done.stderr.decode(errors="replace")
    assert len(answer["warnings"]) == said.count("mxfp4-repack: warning: "), (where, said)
    if code < 2:
        assert "error" not in answer, where
        assert "error: " not in said, where
    else:
        error = answer["error"]
        assert list(error) == ["kind", "message", "file", "key", "hint", "engine_error", "exit_code"], where
        assert error["kind"] == KINDS[code] and error["exit_code"] == code, (where, error)
        assert "mxfp4-repack: error: " + error["message"] in said, (where, error, said)
        assert ("hint: " in said) == (error["hint"] is not None), (where, error, said)
        # A message that begins with a file or a flag has it as a member, too.
        place = error["message"].split(": ")[0]
        assert error["file"] or not os.path.exists(place), (where, error)
        assert error["key"] or not place.startswith("--") or " " in place, (where, error)
    walk(answer, "", SEEN, where)
    return answer


def fails(code, *arguments, command=None, **members):
    answer = document([*arguments, "--json"], code)
    assert answer["command"] == command, (arguments, answer)
    for name, value in members.items():
        found = answer["error"][name]
        assert value in found if isinstance(value, str) else found == value, (arguments, name, found)


def succeeds(*arguments, code=0):
    answer = document([*arguments, "--json"], code)
    assert answer["command"] == arguments[0], arguments
    return answer


SEEN = set()
assert succeeds("convert", MODEL, "-o", "made", "--arch", "sm90")["complete"] is True
assert succeeds("convert", MODEL, "-o", "made", "--arch", "sm90", "--resume")["already_complete"] is True
plan = succeeds("convert", MODEL, "-o", "plan", "--arch", "sm90", "--dry-run", "--include-rest")
assert plan["dry_run"] is True and plan["free_bytes"] > 0, plan
assert succeeds("convert", MODEL, "-o", "parts", "--arch", "sm90", "--shard", "0/1")["complete"] is False
assert succeeds("finalize", "parts")["complete"] is True
assert succeeds("verify", "out", "--against", MODEL)["holds"] is True
assert succeeds("diff", "out", "made")["same"] is True
assert succeeds("unpack", "out", "-o", "loaded")["num_layer_files"] == 2
succeeds("inspect", MODEL, "--tensors")
succeeds("inspect", MODEL, "--arch", "sm90", "--tp-size", "2")
succeeds("inspect", "out", "--revision", "vllm-2026-08-17")
for what in "backends", "layouts", "revisions", "styles":
    assert succeeds("list", what)[what], what
assert sum(row["default"] for row in succeeds("list", "revisions")["revisions"]) == 1
layer = "out/layer-00000.safetensors.zst"
with open(layer, "r+b") as file:
    file.seek(os.path.getsize(layer) // 2)
    byte = file.read(1)
    file.seek(-1, 1)
    file.write(bytes([byte[0] ^ 1]))
assert succeeds("verify", "out", code=1)["findings"], "no finding"
DOCUMENTED = set(SEEN)
# The man page has a section of its own for explain's members; the conventions are the same.
succeeds("explain", "--arch", "sm90")
succeeds("explain", MODEL, "--arch", "sm100", "--tp-size", "2")
succeeds("explain", MODEL, "--arch", "sm90", "--against", "vllm-2026-05-18")

fails(2, message="no command")
fails(2, "cnvert", hint="convert")
fails(2, "convert", command="convert")
fails(2, "convert", MODEL, "-o", "no", "--aarch", "sm90", hint="--arch", key="--aarch", command="convert")
fails(2, "convert", MODEL, "-o", "no", "--arch=", message="--arch", command="convert")
fails(2, "convert", MODEL, "-o", "no", "--level", "77", command="convert")
fails(2, "convert", MODEL, "-o", "made", "--arch", "sm90", "--resume", "--force", command="convert")
fails(2, "explain", "--arch", "nonsense", command="explain")
fails(2, "list", "layout", command="list")
fails(3, "inspect", "nowhere", file="nowhere", message="nowhere", command="inspect")
fails(3, "verify", MODEL, file=MODEL, command="verify")
os.mkdir("hollow")
open("hollow/bytes.bin", "wb").close()
open("noise", "w").write("noise")
for name in "hollow", "noise", "hollow/bytes.bin":
    fails(3, "explain", name, "--arch", "sm90", file=name, command="explain")
    fails(3, "convert", name, "-o", "no", "--arch", "sm90", file=name, command="convert")
fails(3, "convert", layer, "-o", "no", "--arch", "sm90", file=layer, command="convert")
fails(5, "convert", MODEL, "-o", "noise", "--arch", "sm90", file="noise", command="convert")
fails(5, "convert", MODEL, "-o", "hollow", "--arch", "sm90", "--force", file="hollow", command="convert")
fails(5, "unpack", "made", "-o", "hollow", file="hollow", command="unpack")
fails(5, "convert", "made", "-o", "made/again", "--arch", "sm90", file="made", command="convert")
fails(3, "diff", "out", "nowhere", file="nowhere", command="diff")
fails(3, "unpack", MODEL, "-o", "no", file=MODEL, command="unpack")
fails(3, "finalize", "nowhere", file="nowhere", command="finalize")
fails(3, "explain", "--batch", "nowhere", file="nowhere", command="explain")
# `out` has a damaged layer.
for command in ("convert", "out", "-o", "no", "--arch", "sm100"), ("unpack", "out", "-o", "no"), ("unpack", "out", "-o", "no", "--as-published"):
    fails(3, *command, file=layer, command=command[0])
os.mkdir("torn")
for name, text in (("torn/mxfp4_repack.json", "{"), ("torn.h5", "\x89HDF\r\n\x1a\nxxxx"), ("torn.json", "{torn")):
    with open(name, "w", encoding="latin-1") as file:
        file.write(text)
os.mkdir("dump")
with open("dump/manifest.json", "w") as file:
    file.write('{"format": "mxfp4-raw"}')
fails(3, "inspect", "torn", file="torn/mxfp4_repack.json", command="inspect")
fails(3, "inspect", "torn.h5", file="torn.h5", command="inspect")
fails(3, "inspect", "dump", file="dump/manifest.json", command="inspect")
fails(3, "explain", MODEL, "--arch", "sm90", "--model-config", "torn.json", file="torn.json", command="explain")
fails(3, "explain", "--target", "torn.json", file="torn.json", command="explain")
fails(3, "explain", "--arch", "sm90", "--quantization-config", "torn.json", file="torn.json", key="--quantization-config",
      command="explain")
fails(3, "explain", "--target", "nowhere.json", file="nowhere.json", command="explain")
fails(4, "convert", MODEL, "-o", "no", "--arch", "sm90", "--moe-backend", "xpu", engine_error="ValueError",
      command="convert")
fails(4, "explain", "--arch", "sm90", "--moe-backend", "xpu", engine_error="ValueError", command="explain")
fails(5, "convert", MODEL, "-o", "made", "--arch", "sm90", file="made", command="convert")
assert not os.path.exists("no")
# "--json" behind "--" is not a flag, and without the flag no error is a document.
for arguments in (["inspect", "nowhere"], ["inspect", "--", "--json"]):
    done = subprocess.run([BIN, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert done.returncode in (2, 3) and not done.stdout, (arguments, done)

missing = sorted(key for key in DOCUMENTED if not re.search(r"\b%s\b" % key, TEXT))
assert not missing, "not in the man page: " + ", ".join(missing)
