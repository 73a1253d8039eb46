# Names that are not UTF-8, which JSON cannot hold: an error, before anything is written, for files and
# values that belong into a manifest; no obstacle for paths on the command line.
need_numpy
# A model whose config states no heads, so that other reasons decide which rank counts work.
cp -r "$TESTDATA/ingest/gptoss_hf" .
chmod -R u+w gptoss_hf
sed -i '/num_attention_heads\|num_key_value_heads/d' gptoss_hf/config.json
model=gptoss_hf
odd=$'odd\xe8name'

mkdir "$odd"
cp -r "$model" "$odd/model"
convert_quietly "$odd/model" -o "$odd/out" --arch sm90 --json
for command in verify inspect unpack finalize; do
  to=()
  [ $command = unpack ] && to=(-o "$odd/loaded")
  expect_exit 0 "$BIN" $command "$odd/out" "${to[@]}" --json
  "$python" -c 'import json, sys; json.loads(open("stdout", "rb").read().decode())' || fail "$command --json"
done
expect_exit 0 "$BIN" convert "$odd/model" -o "$odd/again" --arch sm90 --json
"$python" -c 'import json; assert "odd\ufffdname" in json.loads(open("stdout", "rb").read().decode())["output"]'

cp -r "$model" side
echo text >"side/$odd.txt"
expect_exit 3 "$BIN" convert side -o no --arch sm90 --include-rest
LC_ALL=C expect_one_error 'not UTF-8'
expect_exit 0 "$BIN" convert side -o without --arch sm90
"$BIN" unpack without -o one -q
mv one/layer-00000.safetensors "one/$odd.safetensors"
rm -f one/layer-00001.safetensors
expect_exit 3 "$BIN" convert one -o no --arch sm90
LC_ALL=C expect_one_error 'not UTF-8'
for flag in --env --knob; do
  for value in $'params_dtype=\xff' $'\xffA=1'; do
    expect_exit 2 "$BIN" convert "$model" -o no --arch sm90 $flag "$value"
    LC_ALL=C expect_one_error "$flag"
  done
done
[ ! -e no ] || fail 'something was written'
