# If the system refuses reading, exit 3; if it refuses writing, exit 5: with one error line that names a
# path. A missing or damaged file of a blob remains a finding, exit 1.

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

# Paths that lead nowhere.
long=$(printf 'x%.0s' {1..300})
ln -s loop loop
mkdir closed
cp -r model closed/model
hand_over closed model
chmod 600 closed
for path in "$long" loop closed/model; do
  refused 3 "$path: " finalize "$path"
  refused 3 "$path: " verify "$path"
  refused 3 "$path: " inspect "$path"
  refused 3 "$path: " unpack "$path" -o new
  refused 3 "$path: " convert "$path" -o new --arch sm90
  # shellcheck disable=SC2086
  refused 5 "${path##*/}[^ ]*: " convert model -o "$path" $flags
done
[ ! -e new ] || fail 'a refused run left an output'

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

# A parent that cannot be written: with leftovers, among shards, before finalize.
mkdir parent
cp -r blob parent/
mkdir -p parent/.blob.mxfp4_repack-new
: >parent/.blob.mxfp4_repack-new/progress
# shellcheck disable=SC2086
expect_exit 0 "$BIN" convert model -o parent/shards $flags --shard 0/1
hand_over parent
chmod 555 parent parent/.blob.mxfp4_repack-new
# A complete result needs no writing: what a killed run left beside it is one warning.
# shellcheck disable=SC2086
expect_exit 0 "${as_anybody[@]}" ./program convert model -o parent/blob $flags --resume
grep -qx 'parent/blob: complete already, nothing to do' stdout || fail "complete: $(cat stdout)"
grep -q 'warning: parent/.blob.mxfp4_repack-new/progress: cannot remove: Permission denied; the result is complete' \
  stderr || fail "leftover: $(cat stderr)"
# shellcheck disable=SC2086
refused 5 'cannot (remove|create): Permission denied$' convert model -o parent/blob $flags --force
refused 5 'cannot be replaced: Permission denied$' finalize parent/shards
chmod 755 parent
expect_exit 0 "${as_anybody[@]}" ./program verify parent/blob

# An OUT that cannot be listed.
chmod 311 blob
# shellcheck disable=SC2086
for flag in '' --resume --force --shard=0/2; do
  refused 5 'blob: ' convert model -o blob $flags $flag
done
chmod 755 blob

# Directories that may only be read. A dry run ends as the run would, and nothing is left behind.
mkdir empty fixed
cp -r model fixed/model
: >file
hand_over empty fixed blob file
chmod 555 empty fixed fixed/model blob
names() { find . -path ./stdout -o -path ./stderr -o -print | sort; }
there=$(names)
while IFS='|' read -r out words dry more; do
  for last in '' --dry-run; do
    [ -z "$last" ] || words=$dry
    # shellcheck disable=SC2086
    refused 5 "$words: (Permission denied|Not a directory)$" convert fixed/model -o $out $flags -q $more $last
    [ "$(names)" = "$there" ] || fail "$out $more $last: something was left"
  done
done <<END
fixed/out|fixed/.out.mxfp4_repack-new: cannot create|/fixed: cannot write here|
fixed/a/b/out|fixed/a/b: cannot create|/fixed: cannot write here|
fixed/model/out|fixed/model/.out.mxfp4_repack-new: cannot create|/fixed/model: cannot write here|
empty|.empty.mxfp4_repack-new: cannot create|$PWD: cannot write here|
empty|.empty.mxfp4_repack-new: cannot create|$PWD: cannot write here|--shard 0/2
empty|.empty.mxfp4_repack-new: cannot create|$PWD: cannot write here|--resume
blob|.blob.mxfp4_repack-new: cannot create|$PWD: cannot write here|--force
file/out|file: cannot create|/file: cannot write here|
END
for arguments in 'unpack blob -o fixed/out' 'unpack blob -o empty'; do
  # shellcheck disable=SC2086
  refused 5 ': cannot create: Permission denied$' $arguments
  [ "$(names)" = "$there" ] || fail "$arguments: something was left"
done
# They are good inputs, and a complete result needs no writing.
for arguments in 'inspect fixed/model' 'convert fixed/model -o new/out' 'verify blob --against fixed/model' \
  'finalize blob' 'convert model -o blob --resume' 'convert model -o blob --resume --dry-run'; do
  [[ $arguments != convert* ]] || arguments+=" $flags"
  rm -rf new && mkdir new
  hand_over new
  # shellcheck disable=SC2086
  expect_exit 0 "${as_anybody[@]}" ./program $arguments
done

# A working directory below one that may not be searched: where the input lies cannot be said. Nothing is left.
program=$PWD/program
mkdir -p hidden/inside
cp -r model hidden/inside/
hand_over hidden
cd hidden/inside
chmod 000 ..
# shellcheck disable=SC2086
expect_exit 3 "${as_anybody[@]}" "$program" convert model -o a/b/out $flags
expect_one_error 'model: Permission denied$'
chmod 755 ..
[ ! -e a ] || fail 'folders above OUT were left'
cd ../..

# New folders that nobody may enter.
mkdir masked
hand_over masked
# shellcheck disable=SC2086
(umask 0777 && refused 5 'masked/a/[^ ]*: cannot create: Permission denied$' convert model -o masked/a/b $flags)
[ ! -e masked/a ] || fail 'folders above OUT were left'

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
