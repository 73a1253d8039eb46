# A source that is rewritten or only touched while it is read: exit 3, one line, no manifest.
# --resume refuses what is left, since the input is another one; --force starts over.
need_numpy
"$python" -c 'import layer_files; layer_files.make_gpt_oss("model", 6, 16, 512, 512)'
convert=("$BIN" convert model -o out --arch sm90 --compress none --threads 1)

# change COMMAND...: runs it in the middle of a conversion; false if that was over too soon.
change() {
  rm -rf out .out.*
  "${convert[@]}" >/dev/null 2>stderr &
  local pid=$! got=0
  while kill -0 "$pid" 2>/dev/null && [ ! -e .out.mxfp4_repack-new/result/layer-00000.safetensors ]; do :; done
  kill -STOP "$pid" 2>/dev/null || true
  [ ! -e out ] || { kill -CONT "$pid"; wait "$pid" || true; return 1; }
  "$@"
  kill -CONT "$pid"
  wait "$pid" || got=$?
  [ "$got" = 3 ] || fail "exit $got after $*"
  [ ! -e out ] || fail "a result after $*"
  [ -z "$(find . -name '.*.tmp-*')" ] || fail "a temporary after $*"
}
flip() { printf X | dd of=model/model.safetensors bs=1 seek=900000 conv=notrunc status=none; }
grow() { printf X >>model/config.json; }
later() { touch -d '2031-02-03' model/model.safetensors; }

for what in 'later:model/model.safetensors: changed while it was read: its modification time moved' \
  'flip:model/model.safetensors: changed while it was read: its modification time moved' \
  'grow:model/config.json: changed while it was read: .* bytes, .* when it was opened'; do
  for attempt in $(seq 20); do
    change "${what%%:*}" && break
    [ "$attempt" -lt 20 ] || fail 'every conversion was over too soon'
  done
  expect_one_error "${what#*:}$"
  [ "${what%%:*}" != grow ] || sed -i 's/X$//' model/config.json
  expect_exit 2 "${convert[@]}" --resume
  expect_one_error 'on an input that has changed since$'
  expect_exit 0 "${convert[@]}" --force
  expect_exit 0 "$BIN" verify out --against model
done
