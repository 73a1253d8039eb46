# The C interface's way to a GPU, with a stand-in for CUDA's driver: bytes, damage, a driver that fails
# in each of its functions, and a machine without one. tests/gpu/made_check.py runs on a real GPU.
need_numpy
"$python" -c 'import layer_files; layer_files.make_gpt_oss("model", 2, 5, 320, 352)
layer_files.make_gpt_oss("large", 1, 9, 2880, 2880)'
convert_quietly model -o plain --backend TRITON --arch sm90 --compress none
convert_quietly model -o zstd --backend TRITON --arch sm90
convert_quietly model -o level9 --backend MARLIN --arch sm80 --level 9
convert_quietly large -o large-plain --backend MARLIN --arch sm80 --compress none
convert_quietly large -o large-zstd --backend TRITON --arch sm90

"$GPU_TEST" --no-gpu zstd >words || fail 'without a driver'
grep -q 'libcuda.so.1: there is no CUDA driver' words || { cat words >&2; fail 'without a driver: the words'; }

mkdir driver
cp "$FAKE_CUDA" driver/libcuda.so.1
export LD_LIBRARY_PATH=$PWD/driver
for blob in plain zstd level9 large-plain large-zstd; do
  "$GPU_TEST" $blob || fail "$blob"
done
FAKE_CUDA_OLD=1 "$GPU_TEST" large-plain || fail 'a driver that copies one by one'
for function in cuInit:1 cuDevicePrimaryCtxRetain:1 cuStreamCreate:1 cuStreamCreate:2 cuEventCreate:3 \
  cuModuleLoadData:1 cuMemHostRegister_v2:1 cuMemHostGetDevicePointer_v2:1 cuMemcpyBatchAsync:1 \
  cuMemcpyBatchAsync:5 cuMemcpyHtoDAsync_v2:1 cuMemcpyHtoDAsync_v2:5 cuLaunchKernel:1 cuLaunchKernel:4 cuEventRecord:1 cuEventQuery:2 \
  cuStreamSynchronize:1; do
  case $function in cuMemcpyHtoD*) export FAKE_CUDA_OLD=1 ;; *) unset FAKE_CUDA_OLD ;; esac
  FAKE_CUDA_FAIL=$function "$GPU_TEST" --no-gpu large-zstd >words || fail "$function"
  grep -q 'the fake driver fails (1)' words || { cat words >&2; fail "$function: the words"; }
done
unset FAKE_CUDA_OLD

# Made from the checkpoint, by the GPU's kernel and by CPUs: nibbles, bytes and bits that move; rows; element maps.
convert_quietly model -o folded --backend FLASHINFER_CUTLASS_MXFP4_BF16 --arch sm90
convert_quietly model -o rows --backend FLASHINFER_TRTLLM_MXFP4_MXFP8 --arch sm100
convert_quietly model -o maps --backend DEEPGEMM_MXFP4 --arch sm100
for blob in plain level9 folded rows maps; do
  "$GPU_TEST" --made model $blob || fail "$blob made"
done
convert_quietly large -o large-rows --backend FLASHINFER_TRTLLM_MXFP4_MXFP8 --arch sm100 --compress none
"$GPU_TEST" --made-once large large-rows || fail 'more than the staging area holds, made'
FAKE_CUDA_FAIL=cuMemAlloc_v2:1 "$GPU_TEST" --made-on-cpus cuMemAlloc model level9 || fail 'a full GPU'
FAKE_CUDA_FAIL=gather:1 "$GPU_TEST" --made-on-cpus cuModuleLoadData model level9 || fail 'a driver that cannot compile the kernel'

# A file as it is, in place of a blob.
for checkpoint in model large; do
  "$GPU_TEST" --file $checkpoint/model.safetensors plain || fail "the file of $checkpoint"
done

cat >flip.py <<'PY'
import os, sys
path = sys.argv[1]
with open(path, "r+b") as file:
    file.seek(os.path.getsize(path) * 2 // 3)
    byte = file.read(1)[0]
    file.seek(-1, 1)
    file.write(bytes([byte ^ 16]))
PY
for file in large-plain/layer-00000.safetensors large-zstd/layer-00000.safetensors.zst; do
  "$python" flip.py $file
  "$GPU_TEST" --damaged "${file%/*}" >words || fail "$file"
  grep -q "$file: .*: checksum differs" words || { cat words >&2; fail "$file: the words"; }
done

# The Python package's way there; numpy's memory stands in for the GPU's. An interpreter cannot load a
# library that needs a sanitizer's first, or another processor.
! slow || exit 0
export PYTHONPATH=$SOURCE_DIR/scripts/python:$SOURCE_DIR/tests/cli MXFP4_REPACK_LIBRARY=$LOADER MXFP4_REPACK=$BIN
"$python" - <<'PY' || fail 'from Python'
import os

import numpy as np
import mxfp4_repack
from mxfp4_repack.native_gpu import open_gpu

gpu = open_gpu(0, threads=3, ring_bytes=16 << 20)


def opened(blob):
    """"made": what "plain" holds, from the checkpoint itself."""
    if blob != "made":
        return mxfp4_repack.open_blob(blob)
    return mxfp4_repack.open_checkpoint("model", backend="TRITON", arch="sm90")


def read(layer):
    """{name: bytes} of what comes to the GPU."""
    memory = {name: np.zeros(layer.info(name).nbytes, "u1") for name in layer.tensors}
    layer.read_to_gpu(gpu, {name: flat.ctypes.data for name, flat in memory.items()})
    return memory


def compare(memory, layer, what):
    for name, flat in memory.items():
        assert np.array_equal(flat, layer.numpy(name, stored=True).reshape(-1).view("u1")), (what, name)


stored = mxfp4_repack.open_blob("plain").layer(0)
for blob in ("plain", "zstd", "made"):
    for _ in range(3):
        compare(read(opened(blob).layer(0)), stored, blob)
# To a GPU raw experts, which its kernel makes the tensor from; to the host by CPUs.
for backend, arch in (("TRITON", "sm90"), ("TRITON", "sm100"), ("MARLIN", "sm80"),
                      ("FLASHINFER_TRTLLM_MXFP4_MXFP8", "sm100"), ("FLASHINFER_CUTLASS_MXFP4_MXFP8", "sm100"),
                      ("FLASHINFER_CUTLASS_MXFP4_BF16", "sm90")):
    with mxfp4_repack.open_checkpoint("large", backend=backend, arch=arch) as made:
        layer = made.layer(0)
        compare(read(layer), layer, backend)
# From the checkpoint's tensors in the GPU's memory, in the files' place; "apart" has one for each matrix.
import json
import layer_files
random = np.random.default_rng(5)
os.mkdir("apart")
layer_files.write("apart/model.safetensors", {
    f"layers.0.ffn.experts.{expert}.{word}{kind}": (dtype, random.integers(112, 128, (rows, columns // each)).astype("u1"))
    for expert in range(6) for word, rows, columns in (("w1", 512, 256), ("w3", 512, 256), ("w2", 256, 512))
    for kind, dtype, each in ((".weight", "I8", 2), (".scale", "F8_E8M0", 32))})
with open("apart/config.json", "w") as file:
    json.dump({"architectures": ["DeepseekV4ForCausalLM"], "model_type": "deepseek_v4", "hidden_size": 256, "moe_intermediate_size": 512,
               "num_hidden_layers": 1, "n_routed_experts": 6, "num_experts_per_tok": 2, "norm_topk_prob": True, "scoring_func": "sqrtsoftplus",
               "topk_method": "noaux_tc", "num_attention_heads": 64, "expert_dtype": "fp4", "quantization_config": {
                   "quant_method": "fp8", "activation_scheme": "dynamic", "weight_block_size": [128, 128]}}, file)
for path, backend, arch, ranks in (
        ("model", "TRITON", "sm90", 1), ("model", "MARLIN", "sm80", 2), ("model", "DEEPGEMM_MXFP4", "sm100", 1),
        ("large", "FLASHINFER_TRTLLM_MXFP4_MXFP8", "sm100", 2), ("large", "TRITON", "sm100", 2),
        ("apart", "MARLIN", "sm90", 1), ("apart", "FLASHINFER_TRTLLM_MXFP4_MXFP8", "sm100", 2)):
    held = {}
    for file in sorted(os.listdir(path)):
        if file.endswith(".safetensors"):
            held.update({name: np.ascontiguousarray(array) for name, array in layer_files.read(os.path.join(path, file))[0].items()})
    places = {name: (array.ctypes.data, array.nbytes) for name, array in held.items()}
    for rank in range(ranks):
        with mxfp4_repack.open_checkpoint(path, rank=rank, tp_size=ranks, backend=backend, arch=arch) as made:
            layer = made.layer(0)
            assert layer.can_make_on_gpu(), (path, backend)
            memory = {name: np.full(layer.info(name).nbytes, 0xEE, "u1") for name in layer.tensors}
            to = {name: flat.ctypes.data for name, flat in memory.items()}
            last = [name for name in places if name.startswith(layer.prefix)][-1]
            for wrong, error in (({**places, last: (places[last][0], 2)}, mxfp4_repack.SizeError),
                                 ({name: place for name, place in places.items() if name != last}, mxfp4_repack.NotFoundError)):
                try:
                    layer.make_on_gpu(gpu, to, wrong)
                    raise SystemExit(f"{path}: {last} is not missed")
                except error as found:
                    assert last in str(found), found
            assert all((flat == 0xEE).all() for flat in memory.values()), "written without a tensor"
            layer.make_on_gpu(gpu, to, places)
            compare(memory, layer, (path, backend, rank))
assert not stored.can_make_on_gpu()
for blob in ("large-plain", "large-zstd"):  # damaged above
    try:
        read(opened(blob).layer(0))
        raise SystemExit(f"{blob}: the damage was not found")
    except mxfp4_repack.ChecksumError as error:
        assert "checksum" in str(error), error
layer = opened("made").layer(0)
shard = next(path for path in sorted(os.listdir("model")) if path.endswith(".safetensors"))
os.truncate(os.path.join("model", shard), 4096)
try:
    read(layer)
    raise SystemExit("made: the truncation was not found")
except mxfp4_repack.BlobError as error:
    assert shard in str(error), error
gpu.close()
PY
