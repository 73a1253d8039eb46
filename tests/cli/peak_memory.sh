# Memory does not grow with experts or layers: anonymous resident memory of a conversion, sampled,
# stays under 512 MiB, and what is resident of mapped files under half of the smaller input. $BIG=1:
# one layer of gpt-oss-120b (1.6 GB on disk); else a quarter of it.
need_numpy
slow && skip 'a sanitizer or an emulator has memory of its own'
experts=32
[ -z "${BIG:-}" ] || experts=128
"$python" -c "import layer_files; layer_files.make_gpt_oss('model', 1, $experts, 2880, 2880)"
cat >sample.py <<'PY'
import os, subprocess, sys, time
run = subprocess.Popen(sys.argv[2:])
anonymous = mapped = 0
while run.poll() is None:
    try:
        with open(f"/proc/{run.pid}/status") as status:
            now = {line.split()[0]: int(line.split()[1]) for line in status if line.startswith("Rss")}
        anonymous = max(anonymous, now.get("RssAnon:", 0))
        mapped = max(mapped, now.get("RssFile:", 0) + now.get("RssShmem:", 0))
    except OSError:
        pass
    time.sleep(0.002)
print(f"{' '.join(sys.argv[3:])}: peak {anonymous / 1024:.0f} MiB, mapped {mapped / 1024:.0f} MiB")
expected = int(os.environ.get("EXIT", 0))
assert run.returncode == expected and (anonymous > 0 or expected), run.returncode
assert anonymous < int(sys.argv[1]) << 10, "over the limit"
assert mapped < 200 << 10, "pages of files that were read are kept"
PY
"$python" sample.py 512 "$BIN" convert model -o out --arch sm100 --threads 4 -q
"$python" sample.py 512 "$BIN" verify out --against model -q
"$python" sample.py 512 "$BIN" unpack out -o back --threads 4 -q
rm -rf back
"$python" sample.py 512 "$BIN" unpack out -o back --as-published --threads 4 -q
rm -rf back
# What is restored of a blob is in the budget, too; less than one job takes is refused.
"$python" sample.py 192 "$BIN" convert out -o again --arch sm90 --threads 2 --memory 128MiB -q
EXIT=2 "$python" sample.py 128 "$BIN" convert out -o small --arch sm90 --threads 2 --memory 64MiB -q
rm -rf out back again
"$python" sample.py 512 "$BIN" convert model -o out --arch sm90 --tp-size 8 --threads 4 -q
rm -rf out
"$python" sample.py 128 "$BIN" convert model -o out --arch sm90 --threads 2 --memory 32MiB -q

# Contiguous HDF5 datasets are mapped, and let go, too.
if "$python" -c 'import h5py' 2>/dev/null; then
  "$python" - <<'PY'
import h5py, layer_files
tensors, _ = layer_files.read("model/model.safetensors")
with h5py.File("model.h5", "w") as file:
    for name, array in tensors.items():
        file.create_dataset(name, data=array)
PY
  rm -rf out
  "$python" sample.py 512 "$BIN" convert model.h5 -o out --arch sm90 --threads 4 --model-config model/config.json -q
fi

# What compressors take at a high level is within --memory. Tensors of one value each: random ones are
# not compressed, and others take long.
"$python" - <<'PY'
import layer_files, numpy
class Even:
    integers = staticmethod(lambda low, high, shape, dtype: numpy.full(shape, low, dtype))
numpy.random.default_rng = lambda seed: Even
layer_files.make_gpt_oss('even', 1, 16, 2880, 2880)
PY
rm -rf out
"$python" sample.py 128 "$BIN" convert even -o out --arch sm90 --threads 8 --level 19 --memory 128MiB -q

# One expert that is larger than many layers: within the budget, or refused before anything is written.
"$python" -c "import layer_files; layer_files.make_gpt_oss('odd', 1, 1, 32, 1 << 20)"
odd=(convert odd -o out --arch sm90 --backend TRITON --threads 4 --allow-known-defects -q)
rm -rf out
expect_exit 2 "$BIN" "${odd[@]}" --memory 64MiB
expect_one_error '--memory: 64 MiB; the least part of this model that can be worked on takes [0-9]* MiB$'
[ ! -e out ] || fail 'something was written'
"$python" sample.py 300 "$BIN" "${odd[@]}" --memory 256MiB

# Shapes that no model has: what one expert exceeds is refused before any buffer is made.
"$python" -c "import layer_files; layer_files.make_gpt_oss('tall', 1, 1, 1 << 20, 32)"
rm -rf out
for refused in odd:MARLIN:sm80 odd:TRITON:gfx950 tall:MARLIN:sm80 tall:AITER_MXFP4_BF16:gfx950; do
  IFS=: read -r shape backend arch <<<"$refused"
  # The last release whose bytes of TRITON on AMD GPUs are known.
  EXIT=2 "$python" sample.py 64 "$BIN" convert $shape -o out --backend $backend --arch $arch \
    --revision 0.30.0 --memory 128MiB --allow-known-defects -q 2>stderr
  expect_one_error '--memory: 128 MiB; the least part of this model that can be worked on takes [0-9]* MiB$'
  [ ! -e out ] || fail "$refused: something was written"
done
# Tables of two million rows: those of the steps are made before the refusal, the schedules are not.
for refused in FLASHINFER_TRTLLM_MXFP4_BF16:sm100 FLASHINFER_CUTLASS_MXFP4_BF16:sm90; do
  IFS=: read -r backend arch <<<"$refused"
  EXIT=2 "$python" sample.py 192 "$BIN" convert odd -o out --backend $backend --arch $arch \
    --revision 0.28.0 --memory 256MiB --allow-known-defects -q 2>stderr
  expect_one_error '--memory: 256 MiB; the least part of this model that can be worked on takes [0-9]* MiB$'
  [ ! -e out ] || fail "$refused: something was written"
done
"$python" sample.py 300 "$BIN" convert tall -o out --backend TRITON --arch sm90 --memory 256MiB --allow-known-defects -q
