# unpack leaves all layers or nothing: after SIGINT, SIGTERM and SIGHUP, and when a layer file is damaged.
need_numpy
"$python" -c 'import layer_files; layer_files.make_gpt_oss("model", 6, 16, 512, 512)'
convert_quietly model -o packed --backend MARLIN --arch sm80 --compress none

nothing_left() { [ ! -e back ] || fail 'something is left'; }
expect_interruptions back '^mxfp4-repack: interrupted; nothing that was unpacked is left$' nothing_left \
  "$BIN" unpack packed -o back --threads 1

# A signal that comes twice, as from a batch system, is one request.
started=$(date +%s%N)
rm -rf back
expect_exit 0 "$BIN" unpack packed -o back --threads 1
took=$((($(date +%s%N) - started) / 1000000))
twice=0
# On a busy machine few of a sanitizer's slow processes get both signals in time.
for attempt in $(seq 240); do
  rm -rf back
  "$BIN" unpack packed -o back --threads 1 >/dev/null 2>stderr &
  pid=$!
  delay=$((took * (attempt % 9 + 1) / 10))
  sleep "$((delay / 1000)).$(printf %03d $((delay % 1000)))"
  first=$(date +%s%N)
  kill -TERM $pid 2>/dev/null || true
  sleep 0.00$((attempt % 5))
  kill -TERM $pid 2>/dev/null || true
  second=$(date +%s%N)
  got=0
  wait $pid || got=$?
  # A second apart they are two requests, and the second ends it at once.
  [ "$got" = 0 ] || [ $((second - first)) -gt 500000000 ] && continue
  [ "$got" = 143 ] || fail "exit $got after two SIGTERM"
  [ ! -e back ] || fail 'something is left after two SIGTERM'
  [ "$(wc -l <stderr)" = 1 ] || continue
  twice=$((twice + 1))
  [ $twice -lt 12 ] || break
done
[ $twice -ge 3 ] || fail "only $twice attempts were stopped"

# A bit of data that no header would show.
printf X | dd of=packed/layer-00004.safetensors bs=1 seek=70000 conv=notrunc status=none
expect_exit 3 "$BIN" unpack packed -o back
expect_one_error 'packed/layer-00004.safetensors: checksum of the file differs$'
[ ! -e back ] || fail 'layers are left after an error'
