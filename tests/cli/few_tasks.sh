# If the system allows fewer tasks than --threads, the conversion runs with fewer. If memory
# is short, the exit code is that of a full disk, not that of a bug.
foreign && skip 'an emulator starts tasks of its own'
model=$TESTDATA/ingest/gptoss_hf
convert_quietly "$model" -o want --arch sm90 --compress none
# The limit does not bind root: another user then, who can write here.
as_user=()
if [ "$(id -u)" = 0 ]; then
  as_user=(setpriv --reuid=65534 --regid=65534 --clear-groups)
  chmod 777 .
  "${as_user[@]}" test -x "$BIN" -a -r "$model/config.json" || skip 'no other user can read the build'
fi
# LeakSanitizer starts a task of its own as the program ends, and fails where none may be started.
export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0
user=$(${as_user[@]+"${as_user[@]}"} id -u)
for more in 1 2 4; do
  # This user's tasks of other programs count too.
  tasks=$(ps -L -o pid= -u "$user" | wc -l)
  rm -rf got
  expect_exit 0 ${as_user[@]+"${as_user[@]}"} prlimit --nproc=$((tasks + more)) \
    "$BIN" convert "$model" -o got --arch sm90 --compress none --threads 16 --progress never
  cmp want/layer-00000.safetensors got/layer-00000.safetensors
done
# Verification has threads too.
expect_exit 0 ${as_user[@]+"${as_user[@]}"} prlimit --nproc=$((tasks + 2)) "$BIN" verify got --threads 16
rm -rf got

# Address space for the program and little more: a sanitizer needs terabytes.
sanitized && exit 0
for space in 80 120 160 240; do
  got=0
  prlimit --as=$((space << 20)) "$BIN" convert "$model" -o small --arch sm90 --memory 4GiB --threads 2 -q 2>stderr || got=$?
  case $got in
    0 | 5) ;;
    127) continue ;;  # the libraries did not fit
    *) cat stderr >&2; fail "exit $got with $space MiB" ;;
  esac
  ! grep -q 'this is a bug' stderr || fail "a bug with $space MiB"
  rm -rf small
done
