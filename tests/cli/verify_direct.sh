# verify --direct reads what the device holds: a bit that changes there is found, a device that cannot be read is an
# error. $FLIPS: how many of its reads (5; all), drawn by $SEED (1).
model=$TESTDATA/ingest/gptoss_hf
export FAULT_PATH=out
"$BIN" convert "$model" -o out --backend MARLIN --arch sm80 --tp-size 2 --include-rest -j 1 -q
# positions CALL COMMAND...: some of the calls that the command makes, by number; without $FLIPS 5.
positions() {
  local count
  rm -f calls
  preloaded FAULT_CALLS=calls "${@:2}" >/dev/null 2>&1 || fail "$*"
  count=$(grep -c "^$1 " calls || true)
  [ "$count" = 0 ] || seq "$count" | shuf --random-source=<(yes "${SEED:-1}") | head -n "${FLIPS:-5}"
}

# Where files cannot be made direct, or not be read so, the cache lets them go.
for without in '' flag read; do
  expect_exit 0 preloaded FAULT_NO_DIRECT="$without" "$BIN" verify out --direct
done
some=$(positions pread "$BIN" verify out -j 1 --direct)
[ -n "$some" ] || fail 'verify --direct reads nothing'
for at in $some; do
  expect_exit 1 preloaded FAULT_AT="pread:$at:flip" "$BIN" verify out -j 1 --direct
  expect_exit 3 preloaded FAULT_AT="pread:$at:EIO" "$BIN" verify out -j 1 --direct
  expect_one_error 'out/.*: cannot be read: Input/output error$'
done
