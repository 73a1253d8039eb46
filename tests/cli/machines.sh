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
COUNTED = ["8xH100", "8x H100", "8 x H100", "8*H200", "8\u00d7H100", "8 H100", "H100 x8", "H100x8"]
takes = {
    "sm90": ["H100", "h200", "NVIDIA H100 80GB HBM3", "GH200", "NVIDIA H20-3e", "hopper", "9.0", "sm_90a", "SM90", "NVIDIA GH200 480GB", "NVIDIA GH200 144G HBM3e",
             "GH200 Grace Hopper Superchip", "H100 Hopper", *COUNTED],
    "sm100": ["GB200", "B200", "Blackwell", "sm_100a", "DGX GB200", "GB200 NVL72", "NVIDIA GB200 Grace Blackwell Superchip"],
    "sm75": ["Quadro RTX 6000", "GTX 1660 Ti"], "sm70": ["Tesla V100S"], "sm87": ["Jetson Orin Nano Super"],
    "gfx1151": ["AMD Ryzen AI Max+ PRO 395", "Radeon 8050S"], "gfx906": ["Radeon VII", "AMD Instinct MI50"], "gfx1103": ["Radeon 780M"],
    "gfx1152": ["Krackan Point"], "ppc64le": ["POWER10"], "s390x": ["z16"],
    "sm103": ["B300", "GB300 NVL72", "DGX Station GB300", "GB300 Grace Blackwell Ultra Superchip", "Grace Blackwell Ultra"],
    "sm110": ["NVIDIA Thor", "Jetson AGX Thor Developer Kit"],
    "sm121": ["NVIDIA GB10", "DGX Spark", "GB10 Grace Blackwell Superchip"],
    "sm120": ["NVIDIA GeForce RTX 5090", "RTX PRO 6000 Blackwell Server Edition", "RTX 6000 Pro", "RTX PRO 6000D"],
    "sm89": ["L40S", "RTX 4090"],
    "sm80": ["NVIDIA A100-SXM4-80GB", "8.0", "A100 Ampere"],
    "gfx942": ["AMD Instinct MI300X", "MI325X", "gfx942:sramecc+:xnack-"],
    "gfx950": ["MI355X", "GFX950"],
    "x86_64-avx512": ["AVX-512 BF16", "Genoa", "AMD EPYC 9654", "EPYC 9R14", "AMD EPYC 9965 192-Core Processor", "EPYC 9005", "EPYC Turin",
                      "AMD EPYC Turin 9755", "5th Gen EPYC", "Zen 5", "Intel Xeon Platinum 8380H"],
    "x86_64-amx": ["AMX", "Sapphire Rapids", "sapphire-rapids", "Intel Xeon Sapphire Rapids", "Emerald Rapids", "GNR", "Xeon 6980P",
                   "Intel Xeon 6 6767P", "Intel(R) Xeon(R) Platinum 8480C", "Xeon Gold 6430", "4th Gen Intel Xeon Scalable", "Xeon w9-3495X"],
    "x86_noamx": ["Ice Lake", "Sierra Forest", "Milan", "EPYC 7763", "AMD EPYC 7R13", "Xeon 6780E", "Intel Xeon Platinum 8275CL", "Zen 3"],
    "aarch64": ["Grace CPU", "Graviton4", "Altra Q80", "Ampere Altra Max", "Neoverse V2", "AmpereOne", "AWS Graviton3", "Cobalt 100"],
}
for arch, names in takes.items():
    for name in names:
        got = run(name)
        deployment = json.loads(got.stdout)["deployment"]
        assert deployment["arch"] == arch, (name, deployment)
        many = "; --tp-size says how many of them serve" if name in COUNTED else ""
        assert got.stderr.startswith(f"mxfp4-repack: --arch {name}: taken as {arch}{many}\n"), (name, got.stderr)
# A name that does not say whether the CPU has AMX does not claim it.
for name in "x86_64", "amd64", "EPYC", "Xeon", "Xeon 6", "Xeon E5-2690 v4", "Ryzen 9 7950X", "Intel Xeon Platinum":
    got = run(name)
    assert json.loads(got.stdout)["deployment"]["arch"] == "x86_64-avx512", (name, got)
    note = f"mxfp4-repack: --arch {name}: taken as x86_64-avx512; --arch x86_64-amx if it has AMX\n"
    assert got.stderr.startswith(note), (name, got.stderr)
for name in ("Graviton4", "Altra Q80", "Neoverse V2", "Arm", "Grace CPU Superchip", "Azure Cobalt 100", "Ampere Altra Max",
             "AmpereOne A192", "Cortex-X925"):
    assert json.loads(run(name).stdout)["deployment"]["arch"] == "aarch64", name
# Model numbers tell the generation by one digit, whatever the others are.
import random
draw = random.Random(8)
for _ in range(20):
    generation = draw.choice("1234567")
    epyc = f"EPYC {draw.choice('789')}{draw.choice('0123456789R')}{draw.randint(0, 9)}{generation}{draw.choice(['', 'P', 'F', 'X'])}"
    xeon = f"Xeon {draw.choice(['Platinum 8', 'Gold 6', 'Silver 4', 'Gold 5'])}{generation}{draw.randint(10, 99)}{draw.choice(['', 'Y', 'C', '+'])}"
    want = {epyc: "x86_64-avx512" if generation >= "4" else "x86_noamx"}
    want[xeon] = "x86_noamx" if generation <= "3" else "x86_64-amx" if generation <= "5" else "x86_64-avx512"  # 6 and 7: none is made
    for name, arch in want.items():
        assert json.loads(run(name).stdout)["deployment"]["arch"] == arch, (name, arch)
for name in "EPYC 9654 H100", "H100 Xeon", "Ryzen AI 9 HX 370", "Xeon Ampere", "H100 + Grace", "H100 Blackwell", "B200 Blackwell Ultra", "Turin B200", \
            "Sapphire Rapids MI300X":
    assert run(name).returncode == 2, name  # which of the two is not said
for name, code in ("EPYC", 4), ("x86_64-amx", 0):
    got = subprocess.run([BIN, "explain", "--arch", name, "--revision", "0.33.0"], capture_output=True, text=True)
    assert got.returncode == code, (name, got)
    assert "--arch x86_64 " not in got.stdout and "amx" in got.stdout or code == 0, got.stdout
got = subprocess.run([BIN, "explain", "--arch", "x86_64", "--backend", "CPU", "--json"], capture_output=True, text=True)
assert json.loads(got.stdout)["deployment"]["arch"] == "x86_64", got
for name in "sm999", "H1000000", "foo", "sm9", "8x", "8xfoo", "gfx9", "RTX", "A", "11.7", "sm":
    got = run(name)
    assert got.returncode == 2, (name, got)
    assert got.stderr.startswith(f"mxfp4-repack: error: --arch: unknown machine '{name}'\nhint: "), got.stderr
    assert "list machines shows" in got.stderr, got.stderr
PY
expect_exit 2 "$BIN" convert "$model" -o out --arch sm999
expect_one_error "--arch: unknown machine 'sm999'$"
grep -qx 'hint: the nearest names: sm89, sm90; list machines shows all' stderr || { cat stderr >&2; fail hint; }
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
while IFS='|' read -r name hint; do
  expect_exit 2 "$BIN" explain --arch "$name"
  grep -qxF "hint: $hint" stderr || { cat stderr >&2; fail "no hint for $name"; }
done <<'END'
cpu|--arch x86_64 or --arch aarch64 is a CPU
4090|did you mean --arch 'RTX 4090'?
5090|did you mean --arch 'RTX 5090'?
Arc B580|Intel's GPUs are all one to the rules: --platform xpu, without --arch
Max 1550|Intel's GPUs are all one to the rules: --platform xpu, without --arch
Intel Arc B580|Intel's GPUs are all one to the rules: --platform xpu, without --arch
Intel Battlemage|Intel's GPUs are all one to the rules: --platform xpu, without --arch
Ponte Vecchio|Intel's GPUs are all one to the rules: --platform xpu, without --arch
Gaudi 3|a plug-in of the engine's serves it, by rules that this program does not know
TPU v6e|a plug-in of the engine's serves it, by rules that this program does not know
H100,B200|one machine at a time: --arch H100
MI300X or H100|one machine at a time: --arch MI300X
END
# Where nothing depends on it, any name will do.
expect_exit 0 "$BIN" explain --platform xpu --arch pvc
