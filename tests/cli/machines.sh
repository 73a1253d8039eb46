# --arch takes what people call their machines, says what it took, and names the nearest otherwise.
model=$TESTDATA/ingest/gptoss_hf

expect_exit 0 "$BIN" list machines --json
"$python" - "$BIN" <<'PY'
import json, subprocess, sys
BIN = sys.argv[1]
table = {row["arch"]: row["names"] for row in json.load(open("stdout"))["machines"]}
for arch, name in {"sm90": "H100", "sm100": "GB200", "sm103": "B300", "sm120": "RTX PRO 6000", "gfx942": "MI325X",
                   "gfx950": "MI355X"}.items():
    assert name in table[arch], (arch, table[arch])
def run(name, *more):
    return subprocess.run([BIN, "explain", "--arch", name, "--revision", "vllm-2026-05-18", "--json", *more], capture_output=True, text=True)
takes = {
    "sm90": ["H100", "h200", "NVIDIA H100 80GB HBM3", "NVIDIA H100 80GB HBM3 MIG 3g.40gb", "GH200", "NVIDIA H20-3e", "hopper", "9.0", "sm_90a", "SM90",
             "NVIDIA GH200 480GB", "GH200 Grace Hopper Superchip", "8x H100"],
    "sm100": ["GB200", "B200", "Blackwell", "sm_100a", "DGX GB200", "GB200 NVL72", "NVIDIA GB200 Grace Blackwell Superchip"],
    "sm75": ["Quadro RTX 6000", "GTX 1660 Ti"], "sm70": ["Tesla V100S"], "sm87": ["Jetson Orin Nano Super"],
    "gfx1151": ["AMD Ryzen AI Max+ PRO 395", "Radeon 8050S"], "gfx906": ["Radeon VII", "AMD Instinct MI50"],
    "sm103": ["B300", "NVIDIA B300 SXM6 AC", "GB300 NVL72", "GB300 Grace Blackwell Ultra Superchip"],
    "sm110": ["NVIDIA Thor", "Jetson AGX Thor Developer Kit"], "sm121": ["NVIDIA GB10", "DGX Spark"],
    "sm120": ["NVIDIA GeForce RTX 5090", "RTX5090", "RTX PRO 6000 Blackwell Server Edition", "RTX 6000 Pro"],
    "sm89": ["L40S", "RTX 4090"], "sm80": ["NVIDIA A100-SXM4-80GB", "8.0", "A100 Ampere"],
    "gfx942": ["AMD Instinct MI300X", "MI325X", "gfx942:sramecc+:xnack-"], "gfx950": ["MI355X", "GFX950"],
    "x86_64-avx512": ["AVX-512 BF16", "Genoa", "Zen 5"], "x86_64-amx": ["AMX", "Sapphire Rapids", "sapphire-rapids", "GNR"],
    "x86_noamx": ["Ice Lake", "Sierra Forest", "Milan"], "aarch64": ["Grace CPU", "Graviton4", "Ampere Altra Max", "Neoverse V2"],
}
for arch, names in takes.items():
    for name in names:
        got = run(name)
        deployment = json.loads(got.stdout)["deployment"]
        assert deployment["arch"] == arch, (name, deployment)
        assert got.stderr.startswith(f"mxfp4-repack: --arch {name}: taken as {arch}\n"), (name, got.stderr)
# A name that does not say whether the CPU has AMX does not claim it.
for name in "x86_64", "amd64", "EPYC", "Intel Xeon":
    got = run(name)
    assert json.loads(got.stdout)["deployment"]["arch"] == "x86_64-avx512", (name, got)
    note = f"mxfp4-repack: --arch {name}: taken as x86_64-avx512; --arch x86_64-amx if it has AMX\n"
    assert got.stderr.startswith(note), (name, got.stderr)
for name in "EPYC 9654", "Xeon 8480":
    assert run(name).returncode == 2, name  # a model of a family
for name, code in ("EPYC", 4), ("x86_64-amx", 0):
    got = subprocess.run([BIN, "explain", "--arch", name, "--revision", "0.33.0"], capture_output=True, text=True)
    assert got.returncode == code, (name, got)
    assert "--arch x86_64 " not in got.stdout and "amx" in got.stdout or code == 0, got.stdout
got = subprocess.run([BIN, "explain", "--arch", "x86_64", "--backend", "CPU", "--json"], capture_output=True, text=True)
assert json.loads(got.stdout)["deployment"]["arch"] == "x86_64", got
for name in "sm999", "H1000000", "foo", "sm9", "8x", "gfx9", "RTX", "A", "11.7", "sm":
    got = run(name)
    assert got.returncode == 2, (name, got)
    assert got.stderr.startswith(f"mxfp4-repack: error: --arch: unknown machine '{name}'\nhint: "), got.stderr
PY
expect_exit 2 "$BIN" convert "$model" -o out --arch sm999
expect_one_error "--arch: unknown machine 'sm999'$"
grep -qx 'hint: did you mean sm89?' stderr || { cat stderr >&2; fail hint; }
expect_exit 0 "$BIN" convert "$model" -o out --arch H100
grep -qx 'mxfp4-repack: --arch H100: taken as sm90' stderr || fail 'nothing says what was taken'
grep -q '"arch": "sm90"' out/mxfp4_repack.json || fail 'the manifest has another arch'
expect_exit 0 "$BIN" explain "$model" --arch H100
grep -q '^  machine  *cuda sm90 (H100)$' stdout || fail 'no machine in the report'
printf '{"arch": "MI300X"}' >target.json
expect_exit 0 "$BIN" explain --target target.json --revision vllm-2026-05-18 -q --json
grep -q '"arch": "gfx942"' stdout || fail 'not in a target file'
printf '{"arch": "MI900"}' >target.json
expect_exit 3 "$BIN" explain --target target.json
expect_one_error "target.json: arch: unknown machine 'MI900'$"
# Where nothing depends on it, any name will do.
expect_exit 0 "$BIN" explain --platform xpu --arch pvc
