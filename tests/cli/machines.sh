# --arch takes what people call their machines, says what it took, and names the nearest otherwise.
expect_exit 0 "$BIN" list machines --json
"$python" - "$BIN" <<'PY'
import json, subprocess, sys
BIN = sys.argv[1]
table = {row["arch"]: row["names"] for row in json.load(open("stdout"))["machines"]}
def run(name, *more):
    return subprocess.run([BIN, "explain", "--arch", name, "--revision", "vllm-2026-05-18", "--json", *more], capture_output=True, text=True)
takes = {name: arch for arch, names in table.items() for name in names[:2]}
assert len(takes) > 30, takes
# As drivers, vendors and people write them.
takes.update({"h200": "sm90", "NVIDIA H100 80GB HBM3 MIG 3g.40gb": "sm90", "9.0": "sm90", "sm_90a": "sm90", "8x H100": "sm90",
              "GB200 NVL72": "sm100", "NVIDIA B300 SXM6 AC": "sm103", "DGX Spark": "sm121", "RTX PRO 6000 Blackwell Server Edition": "sm120",
              "NVIDIA A100-SXM4-80GB": "sm80", "AMD Instinct MI300X": "gfx942", "gfx942:sramecc+:xnack-": "gfx942", "sapphire-rapids": "x86_64-amx"})
for name, arch in takes.items():
    got = run(name)
    assert json.loads(got.stdout)["deployment"]["arch"].startswith(arch), (name, got)  # x86_64: with AVX-512
    assert name == arch or got.stderr.startswith(f"mxfp4-repack: --arch {name}: taken as {arch}"), (name, got.stderr)
for name in "sm999", "H1000000", "foo", "8x", "gfx9", "RTX", "A", "11.7", "sm", "EPYC 9654":
    got = run(name)
    assert got.returncode == 2, (name, got)
    assert got.stderr.startswith(f"mxfp4-repack: error: --arch: unknown machine '{name}'\nhint: "), got.stderr
PY
expect_exit 0 "$BIN" convert "$TESTDATA/ingest/gptoss_hf" -o out --arch H100
grep -q '"arch": "sm90"' out/mxfp4_repack.json || fail 'the manifest has another arch'
printf '{"arch": "MI300X"}' >target.json
expect_exit 0 "$BIN" explain --target target.json --revision vllm-2026-05-18 -q --json
grep -q '"arch": "gfx942"' stdout || fail 'not in a target file'
# Where nothing depends on it, any name will do.
expect_exit 0 "$BIN" explain --platform xpu --arch pvc
