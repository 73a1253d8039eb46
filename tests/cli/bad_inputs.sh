# Malformed checkpoints, one fault each: exit 3 or 4, one error line that names a file and a tensor
# or key, no output, and little memory.
cat >refuse.py <<'PY'
import glob, json, os, subprocess, sys
program, testdata = sys.argv[1:]
LIMIT = 64 << 10  # KiB of resident memory

def refuse(path, flags=()):
    command = [program, "convert", path, "-o", "out", "--arch", "sm90", *flags]
    with open("stderr", "w+") as stderr:
        pid = os.posix_spawn(program, command, os.environ, file_actions=[
            (os.POSIX_SPAWN_DUP2, os.open(os.devnull, os.O_WRONLY), 1),
            (os.POSIX_SPAWN_DUP2, stderr.fileno(), 2)])
        _, status, usage = os.wait4(pid, 0)
        stderr.seek(0)
        lines = stderr.read().splitlines()
    errors = [line for line in lines if line.startswith("mxfp4-repack: error: ")]
    others = [line for line in lines if not line.startswith(("mxfp4-repack: ", "hint: "))]
    code = os.waitstatus_to_exitcode(status)
    problem = (f"exit {code}" if code not in (3, 4) else
               "not one error line" if len(errors) != 1 or others else
               "an output is left" if os.path.lexists("out") else
               f"{usage.ru_maxrss} KiB" if not UNMEASURED and usage.ru_maxrss > LIMIT else
               "no file and key" if errors[0].count(": ") < 3 else "")
    if problem:
        print(f"{path}: {problem}\n" + "\n".join(lines))
    return not problem

UNMEASURED = os.environ.get("UNMEASURED") == "1"
folders = sorted(glob.glob(testdata + "/containers/bad/*/") + glob.glob(testdata + "/ingest/bad/*/"))
assert len(folders) == 48, len(folders)
files = sorted(glob.glob(testdata + "/containers/hdf5/bad_[!b]*.h5") +
               glob.glob(testdata + "/containers/hdf5/loaded_[ls][zi]*.h5"))
assert len(files) == 5, files
results = [refuse(path) for path in folders + files]
sys.exit(0 if all(results) else 1)
PY
slow && export UNMEASURED=1
"$python" refuse.py "$BIN" "$TESTDATA"
