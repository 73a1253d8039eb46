# The commands of scripts/batch/README.md that sign a blob and check it, as they stand there.
need_numpy
command -v ssh-keygen >/dev/null || skip 'ssh-keygen is not installed'
mkdir programs
ln -s "$BIN" programs/mxfp4-repack
PATH=$PWD/programs:$PATH
# The blocks of the section, comments aside: to sign, the line of trusted, to check.
awk '/^## / { on = ($0 == "## Signatures") } on && /^    / { print substr($0, 5); next } on { print "--" }' \
  "$SOURCE_DIR/scripts/batch/README.md" | awk '/^--$/ { open = 0; next } !open { ++n; open = 1 } { print > ("block" n) }'
grep -q 'Y sign' block1 && grep -q '^packer@' block2 && grep -q 'Y verify' block3 || fail 'other blocks than expected'
"$python" -c "import layer_files; layer_files.make_gpt_oss('model', 1, 2, 64, 64)"
convert_quietly model -o packed --arch sm90
ssh-keygen -q -t ed25519 -N '' -C packer@example.org -f packer
bash -e block1 2>/dev/null
sed "s|ssh-ed25519 AAAA...|$(cut -d' ' -f1,2 packer.pub)|" block2 >trusted
check() { bash -c "$(cat block3)" >stdout 2>stderr; }
check || { cat stderr >&2; fail 'a signed blob is refused'; }

# A forger makes every checksum of the blob right again: only the signature shows it.
cp -r packed honest
rm packed/*
"$python" -c "import layer_files; layer_files.make_gpt_oss('forged', 1, 2, 64, 64, seed=2)"
convert_quietly forged -o other --arch sm90
cp other/* packed/
expect_exit 0 "$BIN" verify packed
check && fail 'a forged blob passes'
cp packed.sha256 signed.sha256
(cd packed && find . -type f -print0 | sort -z | xargs -0 sha256sum) >packed.sha256
check && fail 'a list that nobody signed passes'
mv signed.sha256 packed.sha256
rm -r packed
mv honest packed
check || fail 'the signed blob is refused'
cp packed/layer-00000.safetensors.zst packed/layer-00001.safetensors.zst
check && fail 'a layer that nobody signed passes'
# Signed by somebody else.
rm packed/layer-00001.safetensors.zst packed.sha256.sig
ssh-keygen -q -t ed25519 -N '' -C packer@example.org -f stranger
ssh-keygen -q -Y sign -f stranger -n mxfp4-repack packed.sha256
check && fail "a stranger's signature passes"
true
