# Experts whose gate and up are stored in different ways: contiguous parts are served from the map,
# the others are read. The bytes are those of a file that is contiguous throughout.
"$python" -c 'import h5py, numpy' 2>/dev/null || skip 'python3-h5py is not installed'
cat >make.py <<'END'
import json, h5py, numpy
config = {"model_type": "qwen3_moe", "hidden_size": 64, "moe_intermediate_size": 64, "num_experts": 3,
          "num_hidden_layers": 1, "quantization_config": {"quant_method": "mxfp4"}}
open("config.json", "w").write(json.dumps(config))
random = numpy.random.default_rng(3)
tensors = {}
for expert in range(3):
    for word in ("gate_proj", "up_proj", "down_proj"):
        name = f"model.layers.0.mlp.experts.{expert}.{word}.weight"
        tensors[name] = random.integers(0, 256, (64, 32), "u1")
        tensors[name + "_scale"] = random.integers(110, 130, (64, 2), "u1")
for kind, storage in {"plain": {}, "gate": {"chunks": (7, 2)}, "up": {"chunks": (16, 1), "compression": "gzip"}}.items():
    with h5py.File(kind + ".h5", "w") as file:
        for name, array in tensors.items():
            file.create_dataset(name, data=array, **(storage if kind + "_proj" in name else {}))
END
"$python" make.py
for kind in plain gate up; do
  convert_quietly $kind.h5 -o out_$kind --arch sm90 --emit loaded --compress none --model-config config.json
  mkdir data_$kind
  cp out_$kind/layer-* data_$kind/
done
diff -r data_plain data_gate
diff -r data_plain data_up
