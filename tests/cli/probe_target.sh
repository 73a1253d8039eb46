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
PY
printf 'fp4_quantize = None\n' >fake/flashinfer/__init__.py
probe PYTHONPATH=fake VLLM_HAS_FLASHINFER_CUBIN=1 >fake.json
grep -q flashinfer_cutlass fake.json && fail 'flashinfer without its CUTLASS parts was taken'
probe PYTHONPATH=fake >fake.json
command -v nvcc >/dev/null || ! grep -q flashinfer fake.json || fail 'flashinfer without kernels was taken'
