# A file system that is full: exit 5, one line, nothing left that could be taken for a blob.
[ "$(id -u)" = 0 ] || skip 'only root can mount a small file system'
need_numpy
"$python" -c 'import layer_files; layer_files.make_gpt_oss("model", 2, 8, 256, 256)'
mkdir small
mount -t tmpfs -o size=64k none small 2>/dev/null || skip 'mounting is not allowed here'
cleanup() { umount "$PWD/small" 2>/dev/null || true; }
trap 'cleanup; rm -rf "$PWD"' EXIT
expect_exit 5 "$BIN" convert model -o small/out --arch sm90
expect_one_error 'small/out: '
[ ! -e small/out ] || fail 'an output is left'

# Room by the count before the first byte, gone by the time it is written: /dev/full stands for it
# in the tables that commands print.
got=0
"$BIN" list backends >/dev/full 2>stderr || got=$?
[ "$got" = 5 ] || fail "list into a full device: exit $got"
expect_one_error ''
for size in 512k 900k 1200k 2000k; do
  mount -o remount,size=$size small
  got=0
  "$BIN" convert model -o small/out --arch sm90 --compress none >stdout 2>stderr || got=$?
  [ "$got" = 5 ] && expect_one_error 'small/out'
  [ "$got" = 0 ] || [ "$got" = 5 ] || fail "exit $got at $size"
  [ "$got" = 0 ] || [ ! -e small/out/mxfp4_repack.json ] || fail "a manifest at $size"
  [ "$got" != 0 ] || expect_exit 0 "$BIN" verify small/out
  rm -rf small/out
done
