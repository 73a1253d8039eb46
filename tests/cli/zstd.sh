# Compressed layer files for readers that know nothing of this program: zstd's own tools accept
# them, what they give is a valid safetensors file, the header is a frame of its own, and any tensor
# can be decoded alone through the seek table.
command -v zstd >/dev/null || skip 'zstd is not installed'
need_numpy
"$python" -c 'import layer_files; layer_files.make_gpt_oss("model", 2, 6, 320, 192)'
convert_quietly model -o zstd --backend TRITON --arch sm90
convert_quietly model -o plain --backend TRITON --arch sm90 --compress none
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
