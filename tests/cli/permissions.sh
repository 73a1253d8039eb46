# If the system refuses reading, exit 3, with one error line that names a path; a missing or damaged file of a blob
# remains a finding, exit 1. every_call.sh has each call that writes.

# No permission keeps root out. The program and its files are copied to where anybody may look.
as_anybody=()
if [ "$(id -u)" = 0 ]; then
  as_anybody=(setpriv --reuid 65534 --regid 65534 --clear-groups)
  "${as_anybody[@]}" true 2>/dev/null || skip 'setpriv does not work here'
fi
chmod 755 .
cleanup() { chmod -R u+rwx "$scratch"; }
cp "$BIN" program
cp -r "$TESTDATA/ingest/gptoss_hf" model
"${as_anybody[@]}" ./program --version >/dev/null || skip 'the program needs what only root may read'
"${as_anybody[@]}" test -x "$PWD" || skip "no other user can reach $PWD"
flags='--backend MARLIN --arch sm80'
# Whoever runs this test, the files belong to the user without permission.
hand_over() { [ ${#as_anybody[@]} = 0 ] || chown -R 65534:65534 "$@"; }

# refused CODE REGEX ARGUMENTS...
refused() {
  local code=$1 regex=$2
  shift 2
  expect_exit "$code" "${as_anybody[@]}" ./program "$@"
  expect_one_error "$regex"
}

# verify: a file that is there and cannot be read.
# shellcheck disable=SC2086
convert_quietly model -o blob $flags
# shellcheck disable=SC2086
convert_quietly model -o whole $flags --include-rest
hand_over blob whole
for file in blob/layer-00001.safetensors.zst blob/mxfp4_repack.json blob/model.safetensors.index.json \
  whole/config.json whole/mxfp4_repack/mxfp4_repack.json; do
  chmod 000 "$file"
  refused 3 "$file: cannot be opened: Permission denied$" verify "${file%%/*}"
  [ ! -s stdout ] || fail 'a finding about what was not read'
  chmod 644 "$file"
done
chmod 311 blob
refused 3 'blob: cannot be listed: Permission denied$' verify blob
chmod 755 blob
mv blob/layer-00001.safetensors.zst saved
for make in true 'touch blob/layer-00001.safetensors.zst' 'ln -s nowhere blob/layer-00001.safetensors.zst' \
  'mkdir blob/layer-00001.safetensors.zst'; do
  $make
  expect_exit 1 ./program verify blob
  grep -q '^blob/layer-00001.safetensors.zst: ' stdout || fail "no finding after: $make"
  rm -rf blob/layer-00001.safetensors.zst
done
mv saved blob/layer-00001.safetensors.zst

# Directories that may only be read are good inputs, and a complete result needs no writing.
mkdir fixed
cp -r model fixed/model
hand_over fixed blob
chmod 555 fixed fixed/model blob
for arguments in 'inspect fixed/model' 'convert fixed/model -o new/out' 'verify blob --against fixed/model' \
  'finalize blob' 'convert model -o blob --resume' 'convert model -o blob --resume --dry-run'; do
  [[ $arguments != convert* ]] || arguments+=" $flags"
  rm -rf new && mkdir new
  hand_over new
  # shellcheck disable=SC2086
  expect_exit 0 "${as_anybody[@]}" ./program $arguments
done

# What cannot be seen is not absent: a blob, a shard behind a link.
"$python" "$SOURCE_DIR/scripts/make-checkpoint" split --experts 2 --hidden 64 --intermediate 64 --shards 2
shard=$(basename "$(find split -name '*.safetensors' | sort | tail -1)")
mkdir unseen
mv split/$shard unseen/
ln -s ../unseen/$shard split/$shard
hand_over unseen blob
chmod 000 unseen blob
for arguments in 'verify blob' 'unpack blob -o new' 'fits blob --arch sm90' 'diff blob blob'; do
  # shellcheck disable=SC2086
  refused 3 'blob/mxfp4_repack.json: cannot be opened: Permission denied$' $arguments
done
for command in 'explain' 'inspect' 'convert -o new'; do
  # shellcheck disable=SC2086
  refused 3 "split/$shard: cannot be opened: Permission denied$" ${command% -o*} split ${command#"${command% -o*}"} --arch sm90
done
ln -sf $shard split/$shard
refused 3 "split/$shard: cannot be opened: Too many levels of symbolic links$" explain split --arch sm90
