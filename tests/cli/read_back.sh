# --read-back finds a bit that changes between memory and device before the file gets its name, in every
# command that writes; verify --direct finds it in what is there. $FLIPS: how many of each command's writes, and
# of its reads (5; all), drawn by $SEED (1).
model=$TESTDATA/ingest/gptoss_hf
convert=("$BIN" convert "$model" -o out --backend MARLIN --arch sm80 --tp-size 2 --include-rest -j 1)
unpack=("$BIN" unpack whole -o out -j 1)
export FAULT_PATH=out
# positions CALL COMMAND...: some of the calls that the command makes, by number; without $FLIPS 5.
positions() {
  local count
  rm -rf calls out .out.*
  [ -z "$begin" ] || cp -r "$begin" "$as"
  preloaded FAULT_CALLS=calls "${@:2}" >/dev/null 2>&1 || fail "$*"
  count=$(grep -c "^$1 " calls || true)
  [ "$count" = 0 ] || seq "$count" | shuf --random-source=<(yes "${SEED:-1}") | head -n "${FLIPS:-5}"
}

# With the flag and without, where files cannot be made direct or not be read so, the bytes are the same.
begin= as=out
"${convert[@]}" -q
mv out whole
for without in '' flag read; do
  rm -rf out
  expect_exit 0 preloaded FAULT_NO_DIRECT="$without" "${convert[@]}" --read-back
  diff -r whole out >/dev/null || fail "other bytes with --read-back (FAULT_NO_DIRECT=$without)"
  expect_exit 0 preloaded FAULT_NO_DIRECT="$without" "$BIN" verify out --direct
done
[ -z "$(positions pread "${convert[@]}")" ] || fail 'reads back without --read-back'
rm -rf out && "${unpack[@]}" -q && mv out loaded
"${unpack[@]}" --as-published -q && mv out published

# every_flip WANT MEND COMMAND...: a bit of a write, or of what is read back, changes: with --read-back the command
# ends with 5 and names the file, and MEND then makes WANT. Without --read-back writes of that kind pass.
every_flip() {
  local want=$1 mend=$2 call at silent=0 some got
  shift 2
  for call in pwritev pread; do
    some=$(positions "$call" "$@" --read-back)
    [ -n "$some" ] || fail "$*: no $call"
    for at in $some; do
      rm -rf out .out.* hit
      expect_exit 5 preloaded FAULT_AT="$call:$at:flip" FAULT_HIT=hit "$@" --read-back
      expect_one_error 'out.*: read back after fsync, its bytes are not those that were written$'
      [ -s hit ] || fail "$call $at of $* did not happen"
      [ ! -e out ] || fail "$call $at of $*: a result"
      # shellcheck disable=SC2086
      expect_exit 0 "$@" $mend
      diff -r "$want" out >/dev/null || fail "$call $at of $*: mended to other bytes"
    done
  done
  for at in $(positions pwritev "$@"); do
    rm -rf out .out.*
    got=0
    preloaded FAULT_AT="pwritev:$at:flip" "$@" -q 2>/dev/null || got=$?
    [ "$got" != 0 ] || diff -r "$want" out >/dev/null || silent=$((silent + 1))
  done
  [ "$silent" -gt 0 ] || fail "$*: changed bits are found without --read-back, so this shows nothing"
}
every_flip whole --resume "${convert[@]}"
every_flip loaded '' "${unpack[@]}"
every_flip published '' "${unpack[@]}" --as-published

# finalize reads the shards' files past the cache, and its manifests back.
rm -rf out .out.*
for shard in 0 1; do "${convert[@]}" --shard "$shard/2" -q; done
as=.out.mxfp4_repack-new begin=begin
mv $as begin
for call in pread pwritev; do
  for at in $(positions "$call" "$BIN" finalize out -j 1 --read-back); do
    rm -rf out $as && cp -r begin $as
    got=0
    preloaded FAULT_AT="$call:$at:flip" "$BIN" finalize out -j 1 --read-back >/dev/null 2>stderr || got=$?
    [ "$got" = 3 ] || [ "$got" = 5 ] || fail "finalize: $call $at: exit $got"
    expect_one_error 'out'
    expect_exit 0 "$BIN" finalize out
    diff -r whole out >/dev/null || fail "finalize: $call $at: mended to other bytes"
  done
done

# verify: what the device gives, not what the cache has. A device that cannot be read is an error.
begin=whole as=out
some=$(positions pread "$BIN" verify out -j 1 --direct)
[ -n "$some" ] || fail 'verify --direct reads nothing'
[ -z "$(positions pread "$BIN" verify out -j 1)" ] || fail 'verify reads past the cache without --direct'
for at in $some; do
  expect_exit 1 preloaded FAULT_AT="pread:$at:flip" "$BIN" verify out -j 1 --direct
  expect_exit 3 preloaded FAULT_AT="pread:$at:EIO" "$BIN" verify out -j 1 --direct
  expect_one_error 'out/.*: cannot be read: Input/output error$'
done
