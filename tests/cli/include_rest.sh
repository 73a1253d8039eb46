# convert --include-rest: OUT is a model directory; verify, unpack and inspect take it.
need_numpy
source_dir=$TESTDATA/ingest/gptoss_hf
flags=(--arch sm90 --backend MARLIN --compress none)

mkdir input
cp "$source_dir"/* input/
printf '{"temperature": 1}\n' >input/generation_config.json
printf 'tokens\n' >input/tokenizer.json
ln -s tokenizer.json input/vocab.json
printf 'secret\n' >input/.hidden
printf 'other format\n' >input/pytorch_model.bin
mkdir input/original
printf 'x' >input/original/config.json

expect_exit 0 "$BIN" convert input -o out "${flags[@]}" --include-rest
(cd out && find . | LC_ALL=C sort) >listing
cat >want <<'END'
.
./config.json
./generation_config.json
./model.safetensors.index.json
./mxfp4_repack
./mxfp4_repack/layer-00000.safetensors
./mxfp4_repack/layer-00001.safetensors
./mxfp4_repack/model.safetensors.index.json
./mxfp4_repack/mxfp4_repack.json
./rest-00001.safetensors
./tokenizer.json
./vocab.json
END
diff want listing
# An engine without blobs has no such method, and refuses the directory; the rest is the input's.
"$python" - <<'END'
import json
before, after = (json.load(open(path + '/config.json')) for path in ('input', 'out'))
quantization = after['quantization_config']
assert quantization['quant_method'] == 'mxfp4_repack', quantization
quantization['quant_method'] = quantization.pop('mxfp4_repack_quant_method')
assert list(after) == list(before) and after == before
END
[ ! -L out/vocab.json ] || fail 'a link was copied as a link'

# Every tensor that is not expert weights is there, with its very bytes.
"$python" - <<'END'
import glob, json, layer_files
def tensors(path):
    read = [layer_files.read(name)[0] for name in glob.glob(path + '/*.safetensors')]
    return {name: (str(array.dtype), array.shape, array.tobytes()) for one in read for name, array in one.items()}
before, after = tensors('input'), tensors('out')
experts = {k for k in before if '.experts.' in k}
assert experts and {k: v for k, v in before.items() if k not in experts} == after
index = json.load(open('out/model.safetensors.index.json'))
assert set(index['weight_map']) == set(after)
assert index['metadata']['total_size'] == sum(len(v[2]) for v in after.values())
END

# The blob itself is what it is without the rest, but for the manifest's list of files.
expect_exit 0 "$BIN" convert input -o alone "${flags[@]}"
cmp alone/layer-00001.safetensors out/mxfp4_repack/layer-00001.safetensors
for path in out out/mxfp4_repack; do
  expect_exit 0 "$BIN" verify "$path" --against input
  expect_exit 0 "$BIN" inspect "$path"
done
expect_exit 0 "$BIN" unpack out -o loaded
[ -f loaded/layer-00001.safetensors ] || fail 'nothing was unpacked'
expect_exit 0 "$BIN" convert out -o again "${flags[@]}"
for layer in out/mxfp4_repack/layer-*; do cmp "$layer" "again/${layer##*/}" || fail 'a blob in its model directory converts to other layers'; done
expect_exit 4 "$BIN" convert out -o never "${flags[@]}" --include-rest
expect_one_error 'include-rest: the input is a blob'

# Layers chosen, ranks: the rest is whole, and there once.
expect_exit 0 "$BIN" convert input -o ranks "${flags[@]}" --include-rest --layers 1 --tp-size 2
cmp out/rest-00001.safetensors ranks/rest-00001.safetensors
[ "$(find ranks -name 'rest-*' | wc -l)" = 1 ] || fail 'the rest was written more than once'
[ -f ranks/mxfp4_repack/rank-01-of-02/layer-00001.safetensors ] || fail 'no rank directory'
expect_exit 0 "$BIN" verify ranks

# Damage to any file of the model directory is found.
for file in rest-00001.safetensors tokenizer.json model.safetensors.index.json config.json; do
  cp -r out broken
  printf 'X' | dd of="broken/$file" bs=1 seek=9 conv=notrunc status=none
  expect_exit 1 "$BIN" verify broken
  grep -q "$file" stdout || fail "the damage to $file was not named"
  rm "broken/$file"
  expect_exit 1 "$BIN" verify broken/mxfp4_repack
  rm -r broken
done
# A blob that was taken out of its model directory is whole by itself.
cp -r out/mxfp4_repack taken
expect_exit 0 "$BIN" verify taken
expect_exit 0 "$BIN" verify taken --against input
grep -q 'every byte of the experts is the repack of input' stdout || fail 'more claimed than compared'

# verify --against compares the rest with the input's, too: tensors, files, and what convert makes of
# config.json. differs WORDS: of out and the folder `changed`, which becomes the input again.
differs() {
  for path in out out/mxfp4_repack; do
    expect_exit 1 "$BIN" verify "$path" --against changed
    grep -q "$1" stdout || { cat stdout >&2; fail "no word of $1"; }
    grep -qx "$path: 1 difference" stdout || { cat stdout >&2; fail 'other differences'; }
  done
  rm -r changed
  cp -rL input changed
}
cp -rL input changed
printf 'tokenS\n' >changed/tokenizer.json
differs 'out/tokenizer.json: is not what convert makes of the input$'
rm changed/generation_config.json
differs 'out/generation_config.json: the input has no such file'
printf 'new\n' >changed/added.txt
differs 'out/added.txt: missing, the input has it$'
sed -i '0,/{/s//{ "added": 1,/' changed/config.json
differs 'out/config.json: is not what convert makes of the input$'
# One bit of a tensor besides the experts.
"$python" - <<'END'
import glob, json
for path in glob.glob('changed/*.safetensors'):
    raw = bytearray(open(path, 'rb').read())
    start = 8 + int.from_bytes(raw[:8], 'little')
    others = [tensor for name, tensor in sorted(json.loads(raw[8:start]).items()) if name != '__metadata__' and '.experts.' not in name]
    if others:
        raw[start + others[0]['data_offsets'][0] + 3] ^= 1
        open(path, 'wb').write(raw)
        break
else:
    raise SystemExit('no tensor besides the experts')
END
differs 'out/rest-00001.safetensors: is not what convert makes of the input$'
expect_exit 0 "$BIN" verify ranks --against input

# A side file may be called like a layer. The last one is larger than files may be, which stops the run
# when all others are there; --resume goes on.
cp -r input named
printf '{}\n' >named/layer-map.json
head -c 600000 /dev/zero >named/zeros.txt
begun=.stopped.mxfp4_repack-new
limited() { expect_exit 5 bash -c 'ulimit -f 500; exec "$@"' - "$BIN" convert named -o stopped "${flags[@]}" --include-rest "$@"; }
limited
[ -e $begun/result/layer-map.json ] || fail 'it was stopped too early'
expect_exit 0 "$BIN" convert named -o stopped "${flags[@]}" --include-rest --resume
expect_exit 0 "$BIN" verify stopped --against named
cmp named/layer-map.json stopped/layer-map.json
# What is there is believed only by its bytes: other ones of the same size are made again.
rm -r stopped
limited
[ -e $begun/result/rest-00001.safetensors ] || fail 'it was stopped too early'
for file in rest-00001.safetensors layer-map.json; do
  tail -c 1 "$begun/result/$file" | tr '\0-\377' '\1-\377\0' >other
  truncate -s -1 "$begun/result/$file"
  cat other >>"$begun/result/$file"
done
expect_exit 0 "$BIN" convert named -o stopped "${flags[@]}" --include-rest --resume
expect_exit 0 "$BIN" verify stopped --against named

# A file that the model directory cannot hold is refused before anything is written.
for name in mxfp4_repack rank-00-of-02 "$(printf 'n%.0s' $(seq 244))"; do
  rm -rf changed
  cp -rL input changed
  printf 'x' >"changed/$name"
  for dry in '' --dry-run; do
    # shellcheck disable=SC2086
    expect_exit 3 "$BIN" convert changed -o refused "${flags[@]}" --include-rest $dry
    expect_one_error "changed/$name: not copied, "
    [ ! -e refused ] || fail 'something was written'
  done
done

# Other containers: the tensors they have, and config.json if they carry one.
expect_exit 0 "$BIN" convert "$TESTDATA/containers/raw_checkpoint" -o raw --include-rest \
  --arch sm90 --backend MARLIN
expect_exit 0 "$BIN" verify raw
expect_exit 0 "$BIN" inspect "$TESTDATA/containers/raw_checkpoint" --model-config raw/config.json
for input in "$TESTDATA"/containers/hdf5/*checkpoint*.h5; do
  [ -e "$input" ] || continue
  expect_exit 0 "$BIN" convert "$input" -o h5 --include-rest --arch sm90 --backend MARLIN --force
  expect_exit 0 "$BIN" verify h5
done
[ -f raw/config.json ] || fail 'no config.json from a raw dump'
