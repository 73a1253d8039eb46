# A file system that is full, at 50 sizes: exit 5, one line, no manifest over an incomplete set, and
# with room again --resume ends with the bytes of an undisturbed run.
need_numpy
if [ "$(id -u)" != 0 ]; then
  unshare --user --map-root-user --mount true 2>/dev/null ||
    skip 'only root, or a user namespace, can mount a small file system'
  got=0
  unshare --user --map-root-user --mount "$SOURCE_DIR/tests/cli/run" "$script" || got=$?
  exit "$got"
fi
"$python" -c 'import layer_files; layer_files.make_gpt_oss("model", 3, 8, 256, 256)'
mkdir small
mount -t tmpfs -o size=64k none small 2>/dev/null || skip 'mounting is not allowed here'
cleanup() { umount "$scratch/small" 2>/dev/null || true; }

# fills OPTIONS FLAGS...: converts into a tmpfs mounted with those options.
runs=0 full=0
fills() {
  local options=$1 got=0
  shift
  umount small
  mount -t tmpfs -o "$options" none small
  "$BIN" convert model -o small/out --arch sm90 "$@" >stdout 2>stderr || got=$?
  case $got in
    0) expect_exit 0 "$BIN" verify small/out ;;
    5)
      expect_one_error 'small'
      [ "$(grep -vc 'no --revision: taking' stderr)" -le 2 ] || fail "more than an error and a hint at $options: $(cat stderr)"
      [ ! -e small/out ] || fail "a result at $options"
      [ -z "$(find small -name '.*.tmp-*')" ] || fail "a temporary at $options"
      full=$((full + 1))
      mount -o remount,size=64m,nr_inodes=1000 small
      expect_exit 0 "$BIN" convert model -o small/out --arch sm90 "$@" --resume
      ;;
    *) cat stderr >&2; fail "exit $got at $options" ;;
  esac
  diff -r "want$runs" small/out || fail "other bytes at $options"
}

# Room is counted before the first byte, so a small file system is refused at once; one that has
# just what was counted fills up with headers, journal and manifests; one without inodes fills up
# anywhere.
for flags in '--compress none' '--compress zstd --tp-size 2' '--compress zstd --include-rest'; do
  # shellcheck disable=SC2086
  expect_exit 0 "$BIN" convert model -o "want$runs" --arch sm90 $flags
  # shellcheck disable=SC2086
  expect_exit 0 "$BIN" convert model -o unmade --arch sm90 $flags --dry-run --json
  bytes=$("$python" -c 'import json, sys; print(json.load(sys.stdin)["data_bytes"])' <stdout)
  for ((i = 0; i < 6; ++i)); do
    # shellcheck disable=SC2086
    fills "size=$((bytes * i / 6 + 16384))" $flags
  done
  for ((i = 0; i < 6; ++i)); do
    # shellcheck disable=SC2086
    fills "size=$(((bytes / 4096 + 1 + 2 * i) * 4096))" $flags
  done
  for ((i = 2; i < 7; ++i)); do
    # shellcheck disable=SC2086
    fills "size=64m,nr_inodes=$i" $flags
  done
  runs=$((runs + 1))
done
echo "51 file systems, $full of them full"
[ "$full" -ge 30 ] || fail "only $full were full"

# The same for unpack, which leaves nothing.
umount small
for options in size=16k size=1m size=64m,nr_inodes=3 size=64m,nr_inodes=4; do
  mount -t tmpfs -o $options none small
  expect_exit 5 "$BIN" unpack want0 -o small/back
  expect_one_error 'small/.*back'
  ! grep -q -- --shard stderr || fail "a hint at a flag that unpack does not have: $(cat stderr)"
  [ -z "$(find small -type f)" ] || fail "unpack left files at $options"
  umount small
done

# /dev/full stands in for a full disk in the tables that commands print.
got=0
"$BIN" list backends >/dev/full 2>stderr || got=$?
[ "$got" = 5 ] || fail "list into a full device: exit $got"
expect_one_error ''
