# Compressed layer files for readers that know nothing of this program: zstd's own tools accept
# them, what they give is a valid safetensors file, the header is a frame of its own, and any tensor
# can be decoded by itself through the seek table.
command -v zstd >/dev/null || skip 'zstd is not installed'
need_numpy
"$python" -c 'import layer_files; layer_files.make_gpt_oss("model", 2, 6, 320, 192)'
convert_quietly model -o zstd --backend TRITON --arch sm90 --revision vllm-2026-05-18
convert_quietly model -o plain --backend TRITON --arch sm90 --revision vllm-2026-05-18 --compress none
for file in zstd/*.zst; do
  zstd -tq "$file" || fail "zstd -t $file"
  plain=plain/$(basename "$file" .zst)
  zstd -dcq "$file" | cmp - "$plain" || fail "zstd -dc $file"
  [ "$(stat -c %s "$file")" -lt "$(stat -c %s "$plain")" ] || fail "$file is not smaller"
done

cat >check.py <<'PY'
import glob, struct, subprocess, sys
import numpy
import layer_files

def decode(data):
    return subprocess.run(["zstd", "-dcq"], input=data, check=True, stdout=subprocess.PIPE).stdout

for path in sorted(glob.glob("zstd/*.zst")):
    tensors, metadata = layer_files.read(path)
    assert len(tensors) == 6 and metadata["mxfp4_repack.layout"] == "triton/hopper", path
    data = open(path, "rb").read()
    count, flags, magic = struct.unpack("<IBI", data[-9:])
    assert magic == 0x8F92EAB1 and flags == 0x80, "seek table"
    table = len(data) - 9 - 12 * count
    assert struct.unpack("<II", data[table - 8:table]) == (0x184D2A5E, 12 * count + 9)
    frames, encoded, decoded = [], 0, 0
    for i in range(count):
        small, large, _ = struct.unpack_from("<III", data, table + 12 * i)
        frames.append((encoded, small, decoded, large))
        encoded, decoded = encoded + small, decoded + large
    assert encoded == table - 8, "frames do not tile the file"

    header = decode(data[:frames[0][1]])
    (length,) = struct.unpack_from("<Q", header)
    assert len(header) == 8 + length and len(header) % 4096 == 0, "the header is not one frame"
    at = len(header)
    for name, array in tensors.items():
        inside = [f for f in frames if f[2] >= at and f[2] + f[3] <= at + array.nbytes]
        assert inside[0][2] == at, name + ": no frame begins at the tensor"
        begin, end = inside[0][0], inside[-1][0] + inside[-1][1]
        assert decode(data[begin:end]) == array.tobytes(), name
        at += array.nbytes
    assert at == decoded, path
PY
"$python" check.py

# Codes are raw blocks and their padding RLE blocks, whatever the layout: every decoder takes them,
# the content is that of --compress none, and a flip anywhere in such blocks is found. H and I are
# padded by every one of these.
"$python" -c 'import layer_files; layer_files.make_gpt_oss("padded", 1, 3, 320, 192)'
cat >blocks.py <<'PY'
import glob, os, struct, subprocess, sys
program, layout_pads = sys.argv[1], sys.argv[2] == "pads"
(path,) = glob.glob("zstd/*.zst")
data = open(path, "rb").read()
(count,) = struct.unpack_from("<I", data, len(data) - 9)
table = len(data) - 9 - 12 * count

places = {}  # what: its places in the file
at = 0
for i in range(count):
    encoded, decoded, _ = struct.unpack_from("<III", data, table + 12 * i)
    block, last = at + 9, data[at + 4] != 0xA4
    while not last:
        (header,) = struct.unpack("<I", data[block:block + 3] + b"\0")
        kind, size, last = ("raw", "rle", "coded")[header >> 1 & 3], header >> 3, header & 1
        stored = 1 if kind == "rle" else size
        if i > 0:
            places.setdefault(kind + " header", []).append(block)
            places.setdefault(kind, []).append(block + 3 + stored // 2)
        block += 3 + stored
    at += encoded
assert "raw" in places and (not layout_pads or len(places["rle"]) > 2), places.keys()
for what in ("raw", "rle", "raw header", "rle header"):
    for place in places.get(what, [])[::97][:4]:
        for bit in (0, 4):
            changed = bytearray(data)
            changed[place] ^= 1 << bit
            open(path, "wb").write(changed)
            run = subprocess.run([program, "verify", "zstd"], capture_output=True, text=True)
            if run.returncode != 1 or path not in run.stdout + run.stderr:
                sys.exit(f"{what}: byte {place}: exit {run.returncode}\n{run.stdout}{run.stderr}")
open(path, "wb").write(data)
PY
while read -r backend arch pads; do
  rm -rf zstd plain
  convert_quietly padded -o zstd --backend "$backend" --arch "$arch" --allow-known-defects --revision vllm-2026-05-18
  convert_quietly padded -o plain --backend "$backend" --arch "$arch" --allow-known-defects --compress none --revision vllm-2026-05-18
  zstd -tq zstd/*.zst || fail "$backend: zstd -t"
  zstd -dcq zstd/*.zst | cmp - plain/layer-00000.safetensors || fail "$backend: zstd -dc"
  "$python" blocks.py "$BIN" "$pads"
  "$BIN" verify -q zstd || fail "$backend: verify"
done <<'END'
FLASHINFER_TRTLLM_MXFP4_MXFP8 sm100 pads
FLASHINFER_CUTLASS_MXFP4_BF16 sm90 pads
TRITON sm90 not
MARLIN sm80 pads
EMULATION sm80 not
END
