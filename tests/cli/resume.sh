# An interrupted conversion: never a manifest over an incomplete set, never a wrong file, and
# --resume ends with the bytes of an undisturbed run. RESUME_KILLS sets how many kills each way.
kills=${RESUME_KILLS:-12}
RANDOM=20261121

# Eight layers of a size that takes a while: the goldens' layers, many times over.
need_numpy
cat >make.py <<'END'
import layer_files, numpy, sys
E, H, I = 8, 256, 128
tensors, random = {}, numpy.random.default_rng(7)
for layer in range(8):
    p = f'layers.{layer}.experts.'
    for kind, low, high, per in (('_weight', 0, 256, 2), ('_weight_scale', 110, 130, 32)):
        for name, rows, columns in (('w13', 2 * I, H), ('w2', H, I)):
            tensors[p + name + kind] = 'U8', random.integers(low, high, (E, rows, columns // per), 'u1')
    # Not equal in the first layer, of which a backend that takes their maximum warns.
    for name in ('w13', 'w2') if sys.argv[1:] else ():
        tensors[p + name + '_input_scale'] = 'F32', numpy.array([0.5 + (layer == 0), *[0.5] * 7], 'f4')
tensors['norm.weight'] = 'BF16', random.integers(0, 1 << 16, (1000, 8), 'u2')
layer_files.write((sys.argv[1:] or ['input.safetensors'])[0], tensors, {'family': 'generic', 'intermediate_size': str(I)})
END
"$python" make.py
convert=("$BIN" convert input.safetensors --arch sm90 --backend MARLIN --revision vllm-2026-05-18)

# The manifests in OUT, if any, hold: each rank's appears when all files of all ranks are there.
check_state() {
  local file
  while read -r file; do
    expect_exit 0 "$BIN" verify "$(dirname "$file")"
  done < <(find "$1" -name mxfp4_repack.json 2>/dev/null)
  while read -r file; do
    cmp "$file" "want${file#out}" || fail "$file appeared with wrong bytes"
  done < <(find "$1" -name '*.safetensors*' ! -name '.*' 2>/dev/null)
  while read -r file; do
    cmp "$file" "want${file#.out.mxfp4_repack-new/result}" || fail "$file appeared with wrong bytes"
  done < <(find .out.mxfp4_repack-new -name '*.safetensors*' ! -name '.*' 2>/dev/null)
}

kill_loop() {
  local started took i
  rm -rf want out .out.*
  started=$(date +%s%N)
  expect_exit 0 "${convert[@]}" -o want "$@"
  took=$((($(date +%s%N) - started) / 1000))
  for ((i = 0; i < kills; ++i)); do
    # Most kills fall into a run, some before its first file or after its last.
    local delay=$((RANDOM * took / 30000))
    "${convert[@]}" -o out "$@" --resume >/dev/null 2>&1 &
    local pid=$!
    sleep "$((delay / 1000000)).$(printf %06d $((delay % 1000000)))"
    kill -9 "$pid" 2>/dev/null || true
    wait "$pid" 2>/dev/null || true
    check_state out
    # Half of them go on from the wreck of the one before.
    if ((RANDOM % 2)); then
      expect_exit 0 "${convert[@]}" -o out "$@" --resume
      diff -r want out
      rm -rf out
    fi
  done
  expect_exit 0 "${convert[@]}" -o out "$@" --resume
  diff -r want out
  [ -z "$(find . -name '.*' -type f)" ] || fail 'a temporary or a journal was left'
}
kill_loop --compress none
kill_loop --compress none --include-rest --tp-size 2

# Complete: nothing to do for the same plan, refused for another.
flags=(--compress none --include-rest --tp-size 2)
expect_exit 0 "${convert[@]}" -o out "${flags[@]}" --resume
grep -q 'complete already' stdout || fail 'it did not say that all is there'
# A kill behind the last step leaves this.
mkdir .out.mxfp4_repack-new
: >.out.mxfp4_repack-new/progress
expect_exit 0 "${convert[@]}" -o out "${flags[@]}" --resume
diff -r want out
[ ! -e .out.mxfp4_repack-new ] || fail 'a leftover stays'

# Interrupted by a signal: no manifest, no temporary, and what is there can be resumed.
no_manifest() {
  [ ! -e out ] || fail 'a result after an interruption'
  [ -z "$(find . -name '.*.tmp-*' 2>/dev/null)" ] || fail 'a temporary after an interruption'
}
expect_interruptions out '^mxfp4-repack: interrupted' no_manifest \
  "${convert[@]}" -o out --compress zstd --level 9 --threads 1
rm -rf want
expect_exit 0 "${convert[@]}" -o want --compress zstd --level 9
expect_exit 0 "${convert[@]}" -o out --compress zstd --level 9 --resume
diff -r want out

# An unfinished run, which was killed.
begun=.out.mxfp4_repack-new
unfinished() {
  rm -rf out $begun
  local i
  for i in $(seq 200); do
    "${convert[@]}" -o out --compress none --threads 1 >/dev/null 2>&1 &
    local pid=$!
    while kill -0 "$pid" 2>/dev/null && [ "$(find $begun -name 'layer-0000*' 2>/dev/null | wc -l)" -lt 2 ]; do :; done
    kill -9 "$pid" 2>/dev/null || true
    wait "$pid" 2>/dev/null || true
    # On a busy machine the kill may come late: all files are there.
    [ -e out ] || [ "$(find $begun -name 'layer-0000*' | wc -l)" = 8 ] || return 0
    rm -rf out $begun
  done
  fail 'no run could be killed in time'
}
rm -rf want
expect_exit 0 "${convert[@]}" -o want --compress none

# --resume makes a finished file again that was damaged since then.
unfinished
printf X | dd of=$begun/result/layer-00000.safetensors bs=1 seek=9000 conv=notrunc status=none
expect_exit 0 "${convert[@]}" -o out --compress none --resume
diff -r want out

# Behind a line that a kill tore, the lines of the next run count.
if can_preload; then
  unfinished
  printf torn >>$begun/progress
  expect_exit 5 preloaded FAULT_AT=rename:3:ENOSPC FAULT_PATH=out \
    "${convert[@]}" -o out --compress none --threads 1 --resume
  finished=$(sed 1d $begun/progress | grep -ao '"file":"layer-[0-9]*' | sort -u | wc -l)  # the first line is the plan
  expect_exit 3 "$BIN" inspect out
  expect_one_error "out: unfinished: $finished of 8 layer files are complete\$"
  expect_exit 0 "${convert[@]}" -o out --compress none --resume
  diff -r want out
fi

# A source that changed is refused; --force starts over.
unfinished
cp input.safetensors saved
printf X | dd of=input.safetensors bs=1 seek=60000 conv=notrunc status=none
expect_exit 2 "${convert[@]}" -o out --compress none --resume
expect_one_error 'out: the unfinished conversion was begun (on an input that has changed since|otherwise: .*)$'
expect_exit 0 "${convert[@]}" -o out --compress none --force
expect_exit 0 "$BIN" verify out --against input.safetensors
cp saved input.safetensors

# Commands that read a result say that this one is unfinished, and what to do.
unfinished
for command in 'inspect out' 'verify out' 'unpack out -o no' 'convert out -o no --arch sm90'; do
  # shellcheck disable=SC2086
  expect_exit 3 "$BIN" $command
  expect_one_error 'out: unfinished: [0-7] of 8 layer files are complete$'
  grep -qx 'hint: convert with the same flags and --resume goes on' stderr || fail 'no hint'
done
[ ! -e no ] || fail 'an output of an unfinished input'

# --resume makes missing and damaged files of a complete result again, and says so.
expect_exit 0 "${convert[@]}" -o out --compress none --resume
rm out/layer-00003.safetensors out/model.safetensors.index.json
truncate -s 10000 out/layer-00005.safetensors
expect_exit 0 "${convert[@]}" -o out --compress none --resume
for said in 'layer-00003.safetensors: missing' 'model.safetensors.index.json: .*' \
  'layer-00005.safetensors: 10000 bytes, [0-9]* in the manifest'; do
  grep -qE "warning: out/$said; made again\$" stderr || fail "no word of $said"
done
[ "$(grep -c warning stderr)" = 3 ] || fail 'other warnings'
diff -r want out
printf X | dd of=out/layer-00006.safetensors bs=1 seek=60000 conv=notrunc status=none
expect_exit 0 "${convert[@]}" -o out --compress none --resume
[ ! -s stderr ] || fail 'a checksum was looked at'
expect_exit 0 "${convert[@]}" -o out --compress none --resume --check
grep -q 'warning: out/layer-00006.safetensors: checksum differs; made again$' stderr || fail 'no word'
diff -r want out
expect_exit 0 "${convert[@]}" -o zstd --compress zstd
cp -r zstd zwant
printf X | dd of=zstd/layer-00002.safetensors.zst bs=1 seek=$(($(stat -c %s zstd/layer-00002.safetensors.zst) - 5)) conv=notrunc status=none
expect_exit 0 "${convert[@]}" -o zstd --compress zstd --resume
grep -q 'warning: zstd/layer-00002.safetensors.zst: .*; made again$' stderr || fail 'a seek table was not looked at'
diff -r zwant zstd

# Files that are kept and files that are made again come from the same input, or it is refused:
# here the input has its old size, and what its sample sees is other.
mkdir other
cp input.safetensors other
tail -c 299999 input.safetensors | head -c 131072 | dd of=other/input.safetensors bs=1 seek=$(($(stat -c %s input.safetensors) / 2)) conv=notrunc status=none
other=("$BIN" convert other/input.safetensors --arch sm90 --backend MARLIN --revision vllm-2026-05-18)
for flags in '--compress none' '--compress zstd'; do
  rm -rf mixed
  # shellcheck disable=SC2086
  expect_exit 0 "${convert[@]}" -o mixed $flags
  cp -r mixed before
  rm mixed/layer-0000[1-6].*
  # shellcheck disable=SC2086
  got=0
  "${other[@]}" -o mixed $flags --resume >stdout 2>stderr || got=$?
  [ "$got" = 2 ] || { cat stderr >&2; fail "exit $got: $flags"; }
  expect_one_error 'mixed(/layer-0000[0-7]\.safetensors[.zst]*: its bytes differ from those in the manifest: the input has changed since|: holds a complete result of another conversion: the input.s experts)$'
  grep -qxE 'hint: (--force converts everything again|choose another directory; --force replaces it)' stderr || { cat stderr >&2; fail 'no hint'; }
  # shellcheck disable=SC2086
  expect_exit 0 "${convert[@]}" -o mixed $flags --resume
  diff -r before mixed
  rm -rf before
done

# What the run before warned of, in layers that are kept, is in the manifest.
"$python" make.py scaled.safetensors
convert=("$BIN" convert scaled.safetensors --arch gfx950 --backend AITER_MXFP4_FP8)
rm -rf want
expect_exit 0 "${convert[@]}" -o want --compress none
grep -q 'Found input_scales that are not equal' want/mxfp4_repack.json || fail 'no warning'
unfinished
expect_exit 0 "${convert[@]}" -o out --compress none --resume
grep -q 'warning: Found input_scales that are not equal' stderr || fail 'no word of what the run before found'
diff -r want out
