# OUT when somebody changes paths at the worst moment, folders above OUT, and who may read it: what every_call.sh and
# kill_force.sh do not draw.
model=$TESTDATA/containers/safetensors
flags=(--arch sm80 --backend MARLIN)
need_preloading
# at CALL:N:WHAT PATH COMMAND...: runs it; its exit code is in $got, and ./hit is there if that call came.
at() {
  local rule=$1 path=$2
  shift 2
  got=0
  rm -f hit
  preloaded FAULT_AT="$rule" FAULT_PATH="$path" FAULT_HIT="$PWD/hit" "$@" >stdout 2>stderr || got=$?
}
expect_exit 0 "$BIN" convert "$model" -o old "${flags[@]}" --compress none
expect_exit 0 "$BIN" convert "$model" -o new "${flags[@]}"

# Somebody gives the sibling's name to a directory of theirs before the manifest is written.
FAULT_RUN='mv .out.mxfp4_repack-new moved; mkdir .out.mxfp4_repack-new; echo mine >.out.mxfp4_repack-new/thesis' \
  at rename:3:run out "$BIN" convert "$model" -o out "${flags[@]}"
[ $got = 5 ] && [ -e hit ] || fail "exit $got after the sibling was swapped"
expect_one_error '.out.mxfp4_repack-new: another directory has got its name$'
[ "$(cat .out.mxfp4_repack-new/thesis)" = mine ] && [ ! -e out ] || fail 'their file is gone'
rm -rf .out.mxfp4_repack-new moved

# A file that appears beside the old result while the new one is made; OUT that appears.
cp -r old out
FAULT_RUN='echo mine >out/thesis' at rename:2:run result "$BIN" convert "$model" -o out "${flags[@]}" --force
[ $got = 5 ] && [ -e hit ] || fail "exit $got after a file appeared"
expect_one_error 'out: holds thesis, which this program did not write$'
rm out/thesis
diff -r old out
expect_exit 0 "$BIN" convert "$model" -o out "${flags[@]}" --resume
diff -r new out
rm -r out
FAULT_RUN='mkdir out; echo mine >out/thesis' at rename:2:run result "$BIN" convert "$model" -o out "${flags[@]}"
[ $got = 5 ] && [ -e hit ] || fail "exit $got after OUT appeared"
expect_one_error 'out: cannot be replaced: Directory not empty$'
[ "$(cat out/thesis)" = mine ] || fail 'their file is gone'
rm -r out
expect_exit 0 "$BIN" convert "$model" -o out "${flags[@]}" --resume
diff -r new out
rm -r out


# Each new directory is made durable in the one above.
synced=
for n in 1 2 3 4 5 6 7 8; do
  at fsync:$n:EIO "$PWD" "$BIN" convert "$model" -o deep/er/out "${flags[@]}"
  [ -e hit ] || break
  synced+=$(sed -n "s/.*error: \(.*\): cannot fsync.*/\1/p" stderr)' '
  rm -rf deep
done
case $synced in *"$PWD $PWD/deep "*) ;; *) fail "synced: $synced" ;; esac
rm -rf deep

# The input is replaced, linked elsewhere, or overwritten with its size and time put back.
cp -rL "$model" fresh
printf '{"a": 1}\n' >fresh/generation_config.json
echo secret >secret
while IFS='|' read -r when path words command; do
  rm -rf in o .o.* saved
  cp -r fresh in
  FAULT_RUN=$command at "$when:run" "$path" "$BIN" convert in -o o "${flags[@]}" --include-rest
  [ $got = 3 ] || { cat stderr >&2; fail "exit $got after: $command"; }
  expect_one_error "$words"
  [ ! -e o ] || fail "a result after: $command"
  ! grep -rqs secret .o.* || fail "a link was followed: $command"
  [ -e .o.mxfp4_repack-new ] || continue
  case $command in ln*) want=3 ;; *) want=2 ;; esac
  expect_exit $want "$BIN" convert in -o o "${flags[@]}" --include-rest --resume
  expect_one_error '(begun (otherwise|on an input that has changed since).*|a link to ../secret, which is not copied)$'
done <<'END'
rename:1|result/|in/generation_config.json: |ln -sf ../secret in/generation_config.json
rename:1|result/|in/generation_config.json: changed while it was read|printf '{"a": 2}\n' >in/x; touch -r in/generation_config.json in/x; mv in/x in/generation_config.json
rename:1|generation_config.json|in/generation_config.json: changed while it was read|printf '{"a": 2}\n' >in/x; touch -r in/generation_config.json in/x; mv in/x in/generation_config.json
rename:1|result/|in/.*safetensors: changed while it was read: its change time moved|for f in in/*.safetensors; do cp -p $f saved; printf XXXX | dd of=$f bs=1 seek=$(($(stat -c %s $f) - 9)) conv=notrunc status=none; touch -r saved $f; done
rename:1|result/|in/.*safetensors: changed while it was read: another file has its name|for f in in/*.safetensors; do cp -p $f saved; mv saved $f; done
END
rm -rf in o .o.* saved

# No file is open to more users than the input's.
cp -r fresh in
for mode in 600 640; do
  chmod $mode in/*
  for flag in '' --include-rest; do
    # shellcheck disable=SC2086
    expect_exit 0 "$BIN" convert in -o o "${flags[@]}" $flag
    [ -z "$(find o -type f -perm "/$(printf %o $((0666 & ~0$mode)))")" ] || fail "a wider file than $mode"
    expect_exit 0 "$BIN" unpack o -o u
    [ -z "$(find u -type f -perm "/$(printf %o $((0666 & ~0$mode)))")" ] || fail "unpack: a wider file than $mode"
    rm -r o u
  done
  for shard in 0 1; do expect_exit 0 "$BIN" convert in -o o "${flags[@]}" --shard $shard/2; done
  expect_exit 0 "$BIN" finalize o
  [ -z "$(find o -type f -perm "/$(printf %o $((0666 & ~0$mode)))")" ] || fail "finalize: a wider file than $mode"
  rm -r o
done
rm -r in

[ "$(id -u)" = 0 ] || { echo 'the rest needs root'; return 0; }
# What another user put in the way is neither taken nor removed.
mkdir p
cp -r old p/out
cp -r old p/.out.mxfp4_repack-new
chown -R 65534 p/.out.mxfp4_repack-new
expect_exit 5 "$BIN" convert "$model" -o p/out "${flags[@]}" --force
expect_one_error ".out.mxfp4_repack-new: is in the way, and is another user's\$"
diff -r old p/out
diff -r old p/.out.mxfp4_repack-new
