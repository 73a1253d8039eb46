# A file that another process cuts off while it is read: one line and exit 3, no crash, no blob.
need_numpy
"$python" -c 'import layer_files; layer_files.make_gpt_oss("model", 6, 16, 1024, 1024)'
cat >race.py <<'PY'
import os, shutil, subprocess, sys, time
path = "model/model.safetensors"
BESIDE = ".out.mxfp4_repack-new"
size = os.path.getsize(path)


def cut_while_it_runs():
    """Exit code and words of a run during which the file is cut off; None if the run was over before."""
    for name in ("out", BESIDE):
        shutil.rmtree(name, ignore_errors=True)
    run = subprocess.Popen([sys.argv[1], "convert", "model", "-o", "out", "--arch", "sm90", "--threads", "1",
                            "--compress", "none"], stderr=subprocess.PIPE, text=True)
    while run.poll() is None and not os.path.isdir(BESIDE):
        time.sleep(0.001)
    os.truncate(path, 65536)
    text = run.communicate()[1]
    os.truncate(path, size)
    return None if run.returncode == 0 else (run.returncode, text)


# On a busy machine this process may wake too late.
code, text = next(filter(None, (cut_while_it_runs() for _ in range(20))))
lines = [line for line in text.splitlines() if line.startswith("mxfp4-repack: error: ")]
assert code == 3 and len(lines) == 1, (code, text)
assert not os.path.exists("out"), "a result is left"
assert lines[0] == f"mxfp4-repack: error: {path}: became shorter while it was read", lines[0]
left = [name for _, _, names in os.walk(BESIDE) for name in names]
assert not [name for name in left if ".tmp-" in name], left
PY
"$python" race.py "$BIN"
