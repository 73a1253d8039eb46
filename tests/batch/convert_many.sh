# scripts/batch/parallel: many checkpoints, some bad; its exit code, its logs, and what a second run
# does.
[[ $(parallel --version 2>/dev/null || true) == 'GNU parallel'* ]] || skip 'GNU parallel is not installed (Debian: parallel)'
export MXFP4_REPACK=$BIN
model=$TESTDATA/ingest/gptoss_hf
for name in one 'a blank' bad worse last; do cp -r "$model" "$name"; done
rm bad/model-00000*
truncate -s 3000 worse/model-00001*
batch() {
  expect_exit "$1" "$SOURCE_DIR/scripts/batch/parallel" -j 2 out one 'a blank' bad worse last -- \
    --arch sm90 --backend MARLIN --quantization-config '{"moe": {}}'
}
started() { grep -c '^== started' "out/logs/$1.log"; }

batch 2
grep -q '^parallel: 2 of 5 failed; logs in out/logs' stdout || fail 'no summary'
grep -q '^bad: failed, exit 3: bad/model.safetensors.index.json: ' stdout || fail 'no reason for bad'
grep -q '^worse: failed, exit 3: worse/model-00001' stdout || fail 'no reason for worse'
for name in one 'a blank' last; do expect_exit 0 "$BIN" verify "out/$name" --against "$name"; done
for name in bad worse; do [ ! -e "out/$name" ] || fail 'a failure left a directory'; done

# Again: what failed is tried, what is done is not.
cp "$model"/model-00000* bad/
batch 1
[ "$(started one) $(started 'a blank') $(started bad) $(started worse)" = '1 1 2 2' ] || fail 'not only failures were repeated'
cp "$model"/model-00001* worse/
batch 0
grep -q '^parallel: all 5 are in out' stdout || fail 'no good end'
batch 0
[ "$(started worse) $(started last)" = '3 1' ] || fail 'finished ones were repeated'

# A result that somebody removed is made again; another request never trusts the old record.
expect_exit 0 "$BIN" convert one -o want --arch sm90 --backend MARLIN
diff -r want out/one
rm -r out/one
batch 0
diff -r want out/one
expect_exit 1 "$SOURCE_DIR/scripts/batch/parallel" out last -- --arch sm90 --backend TRITON
grep -q 'last: failed, exit 2: .*another conversion' stdout || fail 'another plan in the same place'

# A run that was killed leaves no record of its jobs: they go on.
rm -r out/joblog out/one/mxfp4_repack.json
batch 0
diff -r want out/one

# Nothing started: 255, one error, one hint.
refused() {
  expect_exit 255 "$SOURCE_DIR/scripts/batch/parallel" "$@"
  [ "$(wc -l <stderr)" = 2 ] || fail "not two lines: $*"
}
refused
refused out
refused out one
refused out -- --arch sm90
refused -j 0 out one -- --arch sm90
refused out one ./one/ -- --arch sm90
refused out x/logs -- --arch sm90
MXFP4_REPACK=/nowhere refused out one -- --arch sm90
expect_exit 0 "$SOURCE_DIR/scripts/batch/parallel" --help
