# --force loses nothing: foreign files stay, links are not followed, and what cannot be exchanged is refused.
# every_call.sh and kill_force.sh have the runs that fail.
model=$TESTDATA/ingest/gptoss_hf
expect_exit 0 "$BIN" convert "$model" -o old --arch sm80 --backend MARLIN
expect_exit 0 "$BIN" convert "$model" -o new --arch sm90
clean() { [ -z "$(find . -name '.*mxfp4_repack*')" ] || { find . -name '.*mxfp4_repack*' >&2; fail "left after $1"; }; }

# The manifest says which files are this program's, and how it wrote those of the model directory.
expect_exit 0 "$BIN" convert "$model" -o whole --arch sm90 --include-rest
foreign() { # FILE: in `copy`, refused by its name
  cp -r copy before
  expect_exit 5 "$BIN" convert "$model" -o copy --arch sm90 --include-rest --force
  expect_one_error "copy: holds $1, which this program did not write\$"
  diff -r before copy || fail "files were touched beside $1"
  rm -r before copy
  clean "$1"
}
for name in thesis.docx layer-00009.safetensors README.md .layer-00000.safetensors.tmp-abcdef folder/notes; do
  cp -r whole copy
  mkdir -p "copy/$(dirname $name)"
  echo mine >"copy/$name"
  foreign ${name%/*}
done
cp -r whole copy
echo edited >>copy/config.json
foreign config.json
cp -r whole copy
ln -s "$PWD/old" copy/mxfp4_repack/link
foreign mxfp4_repack/link

# A link in the place of a journal is not written through.
for link in 'ln -s' ln; do
  echo precious >precious
  mkdir -p .planted.mxfp4_repack-new/result
  $link "$PWD/precious" .planted.mxfp4_repack-new/progress
  for flag in --resume --force --shard=0/2; do
    "$BIN" convert "$model" -o planted --arch sm90 $flag >stdout 2>stderr || true
    [ "$(cat precious)" = precious ] || fail "$link: written through with $flag"
  done
  rm -rf planted .planted* precious
done

# OUT is a link: its target is replaced, and the link stays.
cp -r old target
ln -s target link
expect_exit 0 "$BIN" convert "$model" -o link --arch sm90 --force
[ -L link ] && diff -r new target || fail 'the link was replaced'
clean 'a link'
# Its mode stays.
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
  expect_one_error 'here: cannot be replaced: two names cannot be exchanged: Invalid argument$'
  diff -r old here
  clean 'no exchange'
fi
if [ "$(id -u)" != 0 ] || ! unshare --mount true 2>/dev/null; then echo 'no mounts: not root'; return 0; fi
mkdir volume second point small
cp -r old volume/result
export -f fail expect_exit expect_one_error clean keep output_of preloaded can_preload
model=$model unshare --mount bash -eu <<'MOUNTS'
mount --bind volume second
expect_exit 5 "$BIN" convert volume/result -o second/result --arch sm90 --force
expect_one_error 'second/result: holds the input volume/result/'
diff -r old volume/result
cp -r old/. point
mount --bind point point
expect_exit 5 "$BIN" convert "$model" -o point --arch sm90 --force
expect_one_error 'point: cannot be replaced: two names cannot be exchanged: Device or resource busy$'
grep -q '^hint: name a directory in it' stderr || fail 'no way on'
diff -r old point
clean 'a mount point'
rm -r point/*
expect_exit 5 "$BIN" convert "$model" -o point --arch sm90
expect_one_error 'point: cannot be replaced: two names cannot be exchanged: Device or resource busy$'
expect_exit 0 "$BIN" convert "$model" -o point/in --arch sm90
diff -r new point/in
# The old and the new result do not fit together: refused before anything is touched.
mount -t tmpfs -o size=$(($(du -sk old | cut -f1) + 40))k none small
cp -r old small/out
expect_exit 5 "$BIN" convert "$model" -o small/out --arch sm90 --force
expect_one_error 'small/out: needs up to [0-9.]* [KMG]iB beside what is there until it is complete, the file system has [0-9.]* [KMG]iB free$'
diff -r old small/out
clean 'a full disk'
MOUNTS
