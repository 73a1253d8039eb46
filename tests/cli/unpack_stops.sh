# unpack leaves all layers or nothing: after SIGINT and SIGTERM, and when a layer file is damaged.
need_numpy
"$python" -c 'import layer_files; layer_files.make_gpt_oss("model", 6, 16, 512, 512)'
convert_quietly model -o packed --backend MARLIN --arch sm80 --compress none

nothing_left() { [ ! -e back ] || fail 'something is left'; }
expect_interruptions back '^mxfp4-repack: interrupted; nothing of it is left$' nothing_left \
  "$BIN" unpack packed -o back --threads 1

# A bit of data that no header would show.
printf X | dd of=packed/layer-00004.safetensors bs=1 seek=70000 conv=notrunc status=none
expect_exit 3 "$BIN" unpack packed -o back
expect_one_error 'packed/layer-00004.safetensors: checksum of the file differs$'
[ ! -e back ] || fail 'layers are left after an error'
