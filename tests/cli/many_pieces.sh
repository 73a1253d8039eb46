# Inputs of very many small pieces take time in proportion: HDF5 chunks, JSON objects, tensors of a
# raw dump. Where it was quadratic these sizes took hours, so the bound may be wide for slow machines.
model=$TESTDATA/ingest/gptoss_hf
patient() { timeout 240 "$@"; }

# Very many chunks, in both kinds of index, and one that is missing.
if "$python" -c 'import h5py, numpy' 2>/dev/null; then
  cat >make.py <<'END'
import sys, h5py, numpy
for name, libver in ("old.h5", "earliest"), ("new.h5", "latest"):
    with h5py.File(name, "w", libver=libver) as file:
        file.attrs["config_json"] = open(sys.argv[1] + "/config.json").read()
        count = 100_000
        data = file.create_dataset("many", (count,), "u1", chunks=(1,))
        for i in range(0, count - 1):
            data.id.write_direct_chunk((i,), b"\1")
        data = file.create_dataset("model.layers.0.mlp.experts.gate_up_proj_blocks", (4, 8, 1, 16), "u1", chunks=(1, 8, 1, 1))
        data[...] = numpy.arange(512, dtype="u1").reshape(4, 8, 1, 16)
END
  "$python" make.py "$model"
  for file in old new; do
    # No whole model: the first complaint about its tensors comes after every chunk was found.
    expect_exit 3 patient "$BIN" inspect $file.h5
    expect_one_error "$file.h5: .*gate_up_proj_blocks: hidden size 32 and intermediate size 4"
  done
fi

# A config.json of 16 MiB: many objects, many keys in one object, many rules.
"$python" - "$model/config.json" <<'END'
import json, sys
config = json.load(open(sys.argv[1]))
config["objects"] = [{}] * 2_000_000
config["keys"] = {f"k{i}": {"a": [i]} for i in range(300_000)}
json.dump(config, open("config.json", "w"), separators=(",", ":"))
END
mkdir big
cp "$model"/*.safetensors big/
[ ! -e "$model/model.safetensors.index.json" ] || cp "$model/model.safetensors.index.json" big/
cp config.json big/
[ "$(stat -c %s config.json)" -lt $((16 << 20)) ] || fail 'the config is larger than is read'
expect_exit 0 patient "$BIN" inspect big --arch sm90

# A raw dump's manifest of 94,000 tensors, most of them not of experts.
mkdir raw
"$python" - <<'END'
import json
tensors = [{"name": f"noise.{i}", "file": "data.bin", "dtype": "U8", "shape": [1], "offset": i, "nbytes": 1}
           for i in range(94_000)]
json.dump({"format": "mxfp4-raw", "version": 1, "tensors": tensors}, open("raw/manifest.json", "w"))
open("raw/data.bin", "wb").write(bytes(94_000))
END
expect_exit 3 patient "$BIN" inspect raw
expect_one_error 'raw'
