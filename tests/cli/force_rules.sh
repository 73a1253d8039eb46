# --force loses nothing: a failed run leaves the old result, foreign files stay, no link is written
# through, and an input is recognised under every name.
model=$TESTDATA/ingest/gptoss_hf
expect_exit 0 "$BIN" convert "$model" -o old --arch sm80 --backend MARLIN
expect_exit 0 "$BIN" convert "$model" -o new --arch sm90
expect_exit 0 "$BIN" unpack old -o unpacked
clean() { [ -z "$(find . -name '.*mxfp4_repack*')" ] || { find . -name '.*mxfp4_repack*' >&2; fail "left after $1"; }; }
# same_again WHAT: OUT is as it was, and nothing lies beside or in it.
same_again() {
  diff -r old out || fail "the old result changed: $1"
  clean "$1"
}
cp -r old out

# A damaged blob, a missing input, a deployment without a layout, a full disk.
cp -r old damaged
printf X | dd of=damaged/layer-00001.safetensors.zst bs=1 seek=900 conv=notrunc status=none
expect_exit 3 "$BIN" unpack damaged -o out --force
expect_one_error 'damaged/layer-00001.safetensors.zst: '
same_again 'a damaged blob'
expect_exit 3 "$BIN" convert missing -o out --arch sm90 --force
expect_exit 4 "$BIN" convert "$model" -o out --backend NONE --arch sm90 --force
(ulimit -f 1 && exec "$BIN" convert "$model" -o out --arch sm90 --force >stdout 2>stderr) && fail 'no limit'
same_again 'a run without room'

# Only its content shows that a file is ours: neither a manifest nor a name is evidence.
expect_exit 0 "$BIN" convert "$model" -o whole --arch sm90 --include-rest
foreign() { # FILE: in a copy of `whole`, refused by its name
  cp -r copy before
  expect_exit 5 "$BIN" convert "$model" -o copy --arch sm90 --include-rest --force
  expect_one_error "copy: holds $1, which this program did not write\$"
  diff -r before copy || fail "files were touched beside $1"
  rm -r before copy
  clean "$1"
}
cp -r whole copy
echo mine >copy/tokenizer.json
"$python" - <<'PY'
import json, os, subprocess
path = "copy/mxfp4_repack/mxfp4_repack.json"
manifest = json.load(open(path))
del manifest["manifest_xxh3_128"]
manifest.setdefault("rest", []).append({"file": "thesis.docx", "size": 7, "xxh3_128": "0" * 32})
text = json.dumps(manifest, indent=2, ensure_ascii=False)
open(path, "wb").write(subprocess.run([os.environ["SEAL"]], input=text.encode(), capture_output=True, check=True).stdout)
open("copy/thesis.docx", "w").write("years\n")
PY
rm copy/tokenizer.json
foreign thesis.docx
cp -r whole copy
echo edited >>copy/config.json
foreign config.json
for name in layer-00000.safetensors layer-00009.safetensors mxfp4_repack.json .mxfp4_repack.progress \
  mxfp4_repack.shard-000-of-002.json .layer-00000.safetensors.tmp-abcdef; do
  mkdir copy
  echo mine >"copy/$name"
  foreign "$name"
done
# A layer in the loaded layout looks like any checkpoint: only its manifest shows that it is ours.
expect_exit 0 "$BIN" convert "$model" -o plain --arch sm80 --backend MARLIN --emit loaded --compress none
rm plain/mxfp4_repack.json
cp -r plain before
for flag in --resume --force --shard=0/2; do
  expect_exit 5 "$BIN" convert "$model" -o plain --arch sm90 $flag
  expect_one_error 'plain: holds layer-0000[01].safetensors, (which this program did not write|and no record of this conversion names it)$'
  diff -r before plain || fail "loaded layers were touched by $flag"
done
rm -r before
# The beginning of a file that a crash damaged still shows that it is ours.
cp -r old out2
truncate -s 3000 out2/layer-00000.safetensors.zst
expect_exit 0 "$BIN" convert "$model" -o out2 --arch sm90 --force
diff -r new out2

# Damage to a manifest, whatever is left of it, does not prevent --force: the layers
# beside it bear our mark. --resume cannot, and says what can.
damage() { # WHAT: to the manifest of out2
  case $1 in
    emptied) : >out2/mxfp4_repack.json ;;
    cut) truncate -s 700 out2/mxfp4_repack.json ;;
    zeros) head -c 4096 /dev/zero >out2/mxfp4_repack.json ;;
    reformatted) "$python" -c 'import json; p = "out2/mxfp4_repack.json"; d = json.load(open(p)); json.dump(d, open(p, "w"), sort_keys=True)' ;;
    duplicate) sed -i '1s/{/{"layout": "identity",/' out2/mxfp4_repack.json ;;
  esac
}
for what in emptied cut zeros reformatted duplicate; do
  rm -r out2
  cp -r old out2
  damage $what
  expect_exit 1 "$BIN" verify out2
  expect_exit 3 "$BIN" unpack out2 -o no
  expect_one_error 'out2/mxfp4_repack.json: '
  expect_exit 3 "$BIN" convert "$model" -o out2 --arch sm90 --resume
  expect_one_error 'out2/mxfp4_repack.json: '
  grep -qx 'hint: choose another directory; --force replaces it' stderr || fail "no hint: $(cat stderr)"
  expect_exit 0 "$BIN" convert "$model" -o out2 --arch sm90 --force
  diff -r new out2
done

# The same of an index, and of what lies behind the header of a layer without a mark, such as a seek
# table: a record says how that layer begins.
expect_exit 0 "$BIN" convert "$model" -o marked --arch sm80 --backend MARLIN --emit loaded
for from in old marked; do
  for what in index table tail; do
    rm -r out2
    cp -r $from out2
    layer=out2/layer-00000.safetensors.zst
    case $what in
      index) truncate -s 50 out2/model.safetensors.index.json ;;
      table) printf XXX | dd of=$layer bs=1 seek=$(($(stat -c %s $layer) - 20)) conv=notrunc status=none ;;
      tail) truncate -s -20 $layer ;;
    esac
    expect_exit 1 "$BIN" verify out2
    expect_exit 0 "$BIN" convert "$model" -o out2 --arch sm90 --force
    diff -r new out2
  done
done
# unpack --force replaces a blob with a damaged index, its own layers damaged behind their headers, and
# either beside a damaged index; a whole index that names other files is somebody's.
loaded=unpacked/layer-00000.safetensors
for from in old marked unpacked; do
  for what in emptied cut noise; do
    rm -r out2
    cp -r $from out2
    case $what in
      emptied) : >out2/model.safetensors.index.json ;;
      cut) cp old/model.safetensors.index.json out2 && truncate -s 50 out2/model.safetensors.index.json ;;
      noise) head -c 300 "$BIN" >out2/model.safetensors.index.json ;;
    esac
    if [ $from = unpacked ]; then
      printf XXX | dd of=out2/layer-00000.safetensors bs=1 seek=$(($(stat -c %s $loaded) - 20)) conv=notrunc status=none
    fi
    expect_exit 0 "$BIN" unpack old -o out2 --force
    diff -r unpacked out2
    clean "$from $what"
  done
done
echo '{"weight_map": {"a": "model.safetensors"}}' >out2/model.safetensors.index.json
cp -r out2 before
expect_exit 5 "$BIN" unpack old -o out2 --force
expect_one_error 'out2: holds model.safetensors.index.json, which this program did not write$'
diff -r before out2
rm -r before
cp -r old copy
echo '{"weight_map": {"a": "model.safetensors"}}' >copy/model.safetensors.index.json
foreign model.safetensors.index.json
cp -r marked copy
echo mine >copy/layer-00000.safetensors.zst
foreign layer-00000.safetensors.zst

# Links in the place of a journal, a marker or a lock are not written through.
for link in 'ln -s' ln; do
  echo precious >precious
  mkdir planted
  $link "$PWD/precious" planted/.mxfp4_repack.progress
  for flag in --resume --force --shard=0/2; do
    expect_exit 5 "$BIN" convert "$model" -o planted --arch sm90 $flag
    [ "$(cat precious)" = precious ] || fail "$link: written through with $flag"
  done
  rm -r planted precious
  : >precious
  mkdir planted
  $link "$PWD/precious" planted/.mxfp4_repack.progress
  for flag in --resume --force --shard=0/2; do
    "$BIN" convert "$model" -o planted --arch sm90 $flag >stdout 2>stderr || true
    [ ! -s precious ] || fail "$link: an empty file was written through with $flag"
  done
  rm -r planted precious
done

# OUT is a link: its target is replaced, and the link stays.
cp -r old target
ln -s target link
expect_exit 0 "$BIN" convert "$model" -o link --arch sm90 --force
[ -L link ] && diff -r new target || fail 'the link was replaced'
clean 'a link'
# Mode and neighbours stay; a file that came while the new one was made is not lost.
cp -r old moded
chmod 2750 moded
expect_exit 0 "$BIN" convert "$model" -o moded --arch sm90 --force
[ "$(stat -c %a moded)" = 2750 ] || fail "mode $(stat -c %a moded)"

# --include-rest copies no file that a link chooses.
cp -r "$model" linked
echo secret >secret
ln -s "$PWD/secret" linked/tokenizer.json
expect_exit 3 "$BIN" convert linked -o no --arch sm90 --include-rest
expect_one_error "linked/tokenizer.json: a link to $PWD/secret, which is not copied\$"
[ ! -e no ] || fail 'an output was left'
expect_exit 0 "$BIN" convert linked -o without --arch sm90
rm linked/tokenizer.json
mkfifo linked/tokenizer.json
expect_exit 3 "$BIN" convert linked -o no --arch sm90 --include-rest
expect_one_error 'linked/tokenizer.json: not a regular file, so it is not copied$'
[ ! -e no ] || fail 'an output was left'
mkdir -p hub/models--a--b/{blobs,snapshots/main}
for file in "$model"/*; do
  cp "$file" "hub/models--a--b/blobs/$(basename "$file")-sum"
  ln -s "../../blobs/$(basename "$file")-sum" "hub/models--a--b/snapshots/main/$(basename "$file")"
done
echo tokens >hub/models--a--b/blobs/tokens
ln -s ../../blobs/tokens hub/models--a--b/snapshots/main/tokenizer.json
expect_exit 0 "$BIN" convert hub/models--a--b/snapshots/main -o cached --arch sm90 --include-rest
[ "$(cat cached/tokenizer.json)" = tokens ] || fail 'a hub link was not followed'
mkdir -p hub/models--c--d/blobs
echo other >hub/models--c--d/blobs/tokens
ln -sf ../../../models--c--d/blobs/tokens hub/models--a--b/snapshots/main/tokenizer.json
expect_exit 3 "$BIN" convert hub/models--a--b/snapshots/main -o no --arch sm90 --include-rest

# The current directory keeps its name; so does a mount point. Only root may mount.
cp -r old here
expect_exit 5 env -C here "$BIN" convert "$model" -o . --arch sm90 --force
expect_one_error '[.]: cannot be replaced: the current directory keeps its name$'
diff -r old here
clean 'the current directory'
# A file system that cannot exchange two names.
if can_preload; then
  expect_exit 5 preloaded FAULT_NO_EXCHANGE=1 "$BIN" convert "$model" -o here --arch sm90 --force
  expect_one_error 'here: cannot be replaced: two names cannot be exchanged: Operation not supported$'
  diff -r old here
  clean 'no exchange'
fi
if [ "$(id -u)" != 0 ] || ! unshare --mount true 2>/dev/null; then echo 'no mounts: not root'; return 0; fi
mkdir volume second point small
cp -r unpacked volume/input
cp -r old volume/result
export -f fail expect_exit expect_one_error clean keep output_of preloaded can_preload
model=$model unshare --mount bash -eu <<'MOUNTS'
mount --bind volume second
expect_exit 5 "$BIN" convert volume/input -o second/input --arch sm90 --force
expect_one_error 'second/input: holds the input volume/input/layer-0000[01].safetensors$'
expect_exit 5 "$BIN" unpack volume/result -o second/result --force
expect_one_error 'second/result: holds the input volume/result$'
# FUSE and NFS give the second one another device number.
if can_preload; then
  expect_exit 5 preloaded FAULT_DEVICE="$PWD/second" "$BIN" unpack volume/result -o "$PWD/second/result" --force
  expect_one_error 'second/result: holds the input volume/result/layer-0000[01].safetensors.zst$'
fi
diff -r old volume/result
diff -r unpacked volume/input
cp -r old/. point
mount --bind point point
expect_exit 5 "$BIN" convert "$model" -o point --arch sm90 --force
expect_one_error 'point: cannot be replaced: two names cannot be exchanged: Device or resource busy$'
grep -qx 'hint: choose another directory, or remove the old result first' stderr || fail 'no way on'
diff -r old point
clean 'a mount point'
rm -r point/*
expect_exit 0 "$BIN" convert "$model" -o point --arch sm90
diff -r new point
# The old and the new result do not fit together: refused before anything is touched.
mount -t tmpfs -o size=$(($(du -sk old | cut -f1) + 40))k none small
cp -r old small/out
expect_exit 5 "$BIN" convert "$model" -o small/out --arch sm90 --force
expect_one_error 'small/out: needs up to [0-9.]* [KMG]iB beside the old result, which stays until the new one is complete; the file system has [0-9.]* [KMG]iB free$'
diff -r old small/out
clean 'a full disk'
MOUNTS
