"""Feeds text that a terminal would obey to every command, by every way in which text comes in, and
looks for it in what the command says."""
import json
import os
import re
import shutil
import subprocess
import sys

BIN, TESTDATA, SEAL = os.environ["BIN"], os.environ["TESTDATA"], os.environ["SEAL"]
ESC, CSI, RLO, LRI, LS, BEL = "\x1b", "\u009b", "\u202e", "\u2066", "\u2028", "\x07"
HOSTILE = f"a{ESC}[35m{CSI}2J{RLO}b{LRI}c{LS}d{BEL}\rFORGED\nFORGED: \x7fz"
# The same text without the characters that no file name in a manifest may have.
RAW = re.compile(
    rb"\x1b|\x07|\x7f|\r|\xc2[\x80-\x9f]|\xe2\x80[\x8b-\x8f\xa8-\xae]|\xe2\x81[\xa0-\xaf]"
    rb"|(?m:^FORGED)")
OWN = re.compile(rb"\r\x1b\[K|\x1b\[(?:0|1|31|32)m")
MODEL = os.path.join(TESTDATA, "ingest/gptoss_hf")
ran = 0


def run(*arguments, codes=(0, 1, 2, 3, 4, 5), said=None, fresh=None):
    """Runs a command as text, as JSON, to a file and verbosely; its output must have no raw control byte. fresh: an
    OUT that each run makes anew."""
    global ran
    for extra in ([], ["--json"], ["-v", "--progress", "always", "--color", "always"]):
        if fresh:
            shutil.rmtree(fresh, ignore_errors=True)
        done = subprocess.run([BIN, *arguments, *extra], capture_output=True, timeout=300)
        ran += 1
        # The program's own bar and colours; the hostile text has another colour.
        err, out = (OWN.sub(b"", what) for what in (done.stderr, done.stdout))
        for what in (out, err):
            found = RAW.search(what)
            if found:
                sys.exit(f"{arguments[0]} {extra}: {found.group()!r} in {what[:2000]!r}")
        if done.returncode not in codes:
            sys.exit(f"{arguments[0]} {extra}: exit {done.returncode}: {err[:2000]!r}")
        if "--json" in extra and done.returncode == 0:
            json.loads(done.stdout)
        if said and said not in out + err:
            sys.exit(f"{arguments[0]} {extra}: {said!r} is not in {(out + err)[:2000]!r}")


def copy_model(name, **config):
    shutil.copytree(MODEL, name)
    path = os.path.join(name, "config.json")
    text = json.load(open(path))
    text.update(config)
    json.dump(text, open(path, "w"))
    return name


# Names of directories and files: those that exist, and those that do not.
deep = os.path.join("names", HOSTILE)
os.makedirs("names")
copy_model(deep)
blob, back = deep + "-blob", deep + "-back"
run("convert", deep, "-o", blob + "-dry", "--arch", "sm90", "--dry-run", codes=[0])
for command in (["convert", deep, "-o", blob, "--arch", "sm90", "--force"],
                ["inspect", deep], ["inspect", deep, "--arch", "sm90"], ["inspect", blob],
                ["explain", deep, "--arch", "sm90"], ["verify", blob],
                ["verify", blob, "--against", deep], ["finalize", blob]):
    run(*command, codes=[0])
run("unpack", blob, "-o", back, codes=[0], fresh=back)
run("unpack", blob, "-o", back, codes=[5])
for command in (["convert", HOSTILE, "-o", "no", "--arch", "sm90"], ["inspect", HOSTILE],
                ["explain", HOSTILE, "--arch", "sm90"], ["verify", HOSTILE],
                ["unpack", HOSTILE, "-o", "no"], ["finalize", HOSTILE]):
    run(*command, codes=[3], said=rb"\x1b[35m\u009b2J\u202eb\u2066c\u2028d\x07\x0dFORGED")
run("convert", deep, "-o", blob, "--arch", "sm90", codes=[5])
open(os.path.join(blob, HOSTILE), "w").close()
run("convert", deep, "-o", blob, "--arch", "sm90", "--force", codes=[5])
os.remove(os.path.join(blob, HOSTILE))
open(os.path.join(blob, HOSTILE + ".safetensors"), "w").close()
run("verify", blob, codes=[1])
os.remove(os.path.join(blob, HOSTILE + ".safetensors"))

# Values of flags.
for flag in ("--arch", "--revision", "--moe-backend", "--backend", "--knob", "--env", "--layers",
             "--libs", "--style", "--family", "--quantization-config", "--target", "--activation"):
    for command in (["convert", MODEL, "-o", "no"], ["explain"], ["inspect", MODEL]):
        run(*command, "--arch", "sm90", flag, HOSTILE)
        run(*command, "--arch", "sm90", flag, "A=" + HOSTILE)
run("list", HOSTILE, codes=[2])
run(HOSTILE, codes=[2])
run("list", "layouts", "--" + HOSTILE, codes=[2])

# Values of a checkpoint's configuration.
for i, config in enumerate(({"model_type": HOSTILE}, {"architectures": [HOSTILE]},
                            {"quantization_config": {"quant_method": HOSTILE}},
                            {"hidden_act": HOSTILE}, {HOSTILE: HOSTILE})):
    model = copy_model(f"config{i}", **config)
    run("inspect", model)
    run("explain", model, "--arch", "sm90")
    run("convert", model, "-o", f"out{i}", "--arch", "sm90", "--include-rest", "--force")

# Values of a manifest that is sealed, so that no reader refuses it for its checksum.
subprocess.run([BIN, "convert", MODEL, "-o", "plain", "--arch", "sm90", "-q"], check=True)


def changed(name, change):
    shutil.copytree("plain", name)
    path = os.path.join(name, "mxfp4_repack.json")
    manifest = json.load(open(path))
    del manifest["manifest_xxh3_128"]
    change(manifest)
    text = json.dumps(manifest, indent=2, ensure_ascii=False)
    sealed = subprocess.run([SEAL], input=text.encode(), capture_output=True, check=True).stdout
    open(path, "wb").write(sealed)
    return name


def set_at(*keys):
    def change(manifest):
        for key in keys[:-1]:
            manifest = manifest[key]
        manifest[keys[-1]] = HOSTILE
    return change


PLACES = [("tool_version",), ("revision",), ("layout",), ("decision", "notes"), ("target", "arch"),
          ("layers", 0, "prefix"), ("layers", 0, "file"), ("layers", 0, "tensors", 0, "name"),
          ("source", "files", 0, "name"), ("warnings",), ("model", "style")]
for i, place in enumerate(PLACES):
    def change(manifest, place=place):
        if place[-1] in ("notes", "warnings"):
            (manifest["decision"] if len(place) == 2 else manifest)[place[-1]] = [HOSTILE]
        else:
            set_at(*place)(manifest)
    blob = changed(f"manifest{i}", change)
    run("inspect", blob)
    run("inspect", blob, "--revision", HOSTILE)
    run("verify", blob)
    run("verify", blob, "--against", MODEL)
    run("unpack", blob, "-o", f"unpacked{i}", fresh=f"unpacked{i}")
    run("convert", blob, "-o", "no", "--arch", "sm90")
    run("finalize", blob)
print(f"{ran} runs")
