# unpack leaves all layers or nothing: after SIGINT and SIGTERM, and when a layer file is damaged.
need_numpy
"$python" -c 'import layer_files; layer_files.make_gpt_oss("model", 6, 16, 512, 512)'
convert_quietly model -o packed --backend MARLIN --arch sm80 --compress none

# A signal may come before the handler or after the end: such attempts do not count.
started=$(date +%s%N)
expect_exit 0 "$BIN" unpack packed -o back --threads 1
took=$((($(date +%s%N) - started) / 1000000))
stopped=
for signal in INT TERM; do
  code=143
  [ "$signal" = TERM ] || code=130
  for attempt in $(seq 60); do
    rm -rf back
    got=0
    delay=$((took * (attempt % 9 + 1) / 10))
    timeout --preserve-status -s "$signal" "$((delay / 1000)).$(printf %03d $((delay % 1000)))" \
      "$BIN" unpack packed -o back --threads 1 >/dev/null 2>stderr || got=$?
    [ "$got" = 0 ] && continue
    [ "$(wc -l <stderr)" = 1 ] || continue
    [ "$got" = "$code" ] || fail "exit $got after SIG$signal"
    grep -qx 'mxfp4-repack: interrupted; nothing of it is left' stderr || fail 'no word about it'
    [ ! -e back ] || fail 'something is left'
    stopped+=$signal
    break
  done
done
[ "$stopped" = INTTERM ] || fail "no attempt was stopped: $stopped"

# A bit of data that no header would show.
printf X | dd of=packed/layer-00004.safetensors bs=1 seek=70000 conv=notrunc status=none
expect_exit 3 "$BIN" unpack packed -o back
expect_one_error 'packed/layer-00004.safetensors: checksum of the file differs$'
[ ! -e back ] || fail 'layers are left after an error'
