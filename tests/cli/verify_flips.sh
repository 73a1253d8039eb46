# verify finds any flipped bit anywhere in a blob, and missing, extra, shortened and lengthened
# files; it never crashes. $FLIPS: how many bits (48).
need_numpy
"$python" -c 'import layer_files; layer_files.make_gpt_oss("model", 2, 4, 64, 64)'
convert_quietly model -o zstd --backend MARLIN --arch sm80
convert_quietly model -o plain --backend MARLIN --arch sm80 --compress none
convert_quietly model -o ranks --backend MARLIN --arch sm80 --tp-size 2
cat >flips.py <<'PY'
import os, random, subprocess, sys
count, program = int(sys.argv[1]), sys.argv[2]

def check(blob, what):
    run = subprocess.run([program, "verify", blob], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                         text=True)
    if run.returncode != 1 or not run.stdout.strip():
        sys.exit(f"{blob}: {what}: exit {run.returncode}\n{run.stdout}{run.stderr}")

for blob in ("zstd", "plain", "ranks"):
    files = [os.path.join(path, name) for path, _, names in os.walk(blob) for name in sorted(names)]
    places = random.Random(2026)
    for i in range(count):
        path = files[i % len(files)]
        size = os.path.getsize(path)
        # Headers and tables are small beside the data: every other flip goes to an end.
        at = places.randrange(size) if i % 2 else places.choice(
            [places.randrange(min(size, 512)), size - 1 - places.randrange(min(size, 200))])
        bit = 1 << places.randrange(8)
        with open(path, "r+b") as file:
            def flip():
                file.seek(at)
                byte = file.read(1)[0]
                file.seek(at)
                file.write(bytes([byte ^ bit]))
                file.flush()
            flip()
            check(blob, f"bit {bit:#x} of byte {at} of {path}")
            flip()
    for path in files:
        data = open(path, "rb").read()
        for name, changed in (("empty", b""), ("cut by two bytes", data[:-2]), ("half", data[:len(data) // 2]),
                              ("a byte too long", data + b"\0")):
            open(path, "wb").write(changed)
            check(blob, f"{path} {name}")
        os.remove(path)
        if blob == "ranks" or not path.endswith("mxfp4_repack.json"):
            check(blob, f"{path} missing")
        open(path, "wb").write(data)
    extra = os.path.join(os.path.dirname(files[0]), "layer-00099.safetensors")
    open(extra, "wb").write(b"x")
    check(blob, "an extra layer file")
    os.remove(extra)
    subprocess.run([program, "verify", blob, "-q"], check=True)
PY
"$python" flips.py "${FLIPS:-48}" "$BIN"
rm zstd/mxfp4_repack.json
expect_exit 3 "$BIN" verify zstd
expect_one_error 'zstd: layer files of a blob, but no mxfp4_repack.json$'
