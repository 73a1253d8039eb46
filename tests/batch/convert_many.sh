# scripts/batch/convert-many: many checkpoints, some bad; its exit code, its logs, and what a second run
# does.
[[ $(parallel --version 2>/dev/null || true) == 'GNU parallel'* ]] || skip 'GNU parallel is not installed (Debian: parallel)'
export MXFP4_REPACK=$BIN
many=$SOURCE_DIR/scripts/batch/convert-many
model=$TESTDATA/ingest/gptoss_hf
for name in one 'a blank' bad worse last; do cp -r "$model" "$name"; done
rm bad/model-00000*
truncate -s 3000 worse/model-00001*
batch() {
  expect_exit "$1" "$many" --jobs 2 out one 'a blank' bad worse last -- \
    --arch sm90 --backend MARLIN --quantization-config '{"moe": {}}'
}
started() { grep -c '^== started' "out/logs/$1.log"; }

batch 3
grep -qx 'convert-many: 2 of 5 failed: bad, worse; logs in out/logs' stdout || fail 'no summary'
grep -qx 'convert-many: 2 will fail again: change what their lines name' stdout || fail 'failures that stay are not told'
grep -q '^bad: failed, will come again, exit 3: bad/model.safetensors.index.json: ' stdout || fail 'no reason for bad'
grep -q '^worse: failed, will come again, exit 3: worse/model-00001' stdout || fail 'no reason for worse'
for name in one 'a blank' last; do expect_exit 0 "$BIN" verify "out/$name" --against "$name"; done
for name in bad worse; do [ ! -e "out/$name" ] || fail 'a failure left a directory'; done

# Again: what failed is tried, what is done is not.
cp "$model"/model-00000* bad/
batch 3
[ "$(started one) $(started 'a blank') $(started bad) $(started worse)" = '1 1 2 2' ] || fail 'not only failures were repeated'
cp "$model"/model-00001* worse/
batch 0
grep -qx 'convert-many: all 5 are in out' stdout || fail 'no good end'
batch 0
[ "$(started worse) $(started last)" = '3 1' ] || fail 'finished ones were repeated'

# A result that somebody removed is made again; another request never trusts the old record.
expect_exit 0 "$BIN" convert one -o want --arch sm90 --backend MARLIN
diff -r want out/one
rm -r out/one
batch 0
diff -r want out/one
expect_exit 3 "$many" -j2 out last -- --arch sm90 --backend TRITON
grep -q '^last: failed, will come again, exit 2: .*another conversion' stdout || fail 'another plan in the same place'

# A run that was killed leaves no record of its jobs: they go on.
rm -r out/joblog out/one
batch 0
diff -r want out/one

# Failures that may pass when tried again, a full disk (5) or a kill, are counted apart; with both kinds the exit code is 4.
cat >sometimes <<'END'
#!/bin/sh
case $2 in *full) echo 'mxfp4-repack: error: disk: no space' >&2; exit 5 ;; *killed) kill -KILL $$ ;; *bad) exit 3 ;; esac
END
chmod +x sometimes
sometimes() { MXFP4_REPACK=$PWD/sometimes expect_exit "$1" "$many" --jobs=1 "${@:2}" -- --arch sm90; }
sometimes 1 later full killed
grep -qx 'full: failed, may pass when tried again, exit 5: disk: no space' stdout || fail 'a full disk is final'
grep -q '^killed: failed, may pass when tried again, exit 137' stdout || fail 'a kill is final'
grep -qx 'convert-many: 2 may pass: give the same command again' stdout || fail 'no word on trying again'
sometimes 4 both full bad
[ "$(grep -cE '^convert-many: 1 (will fail again|may pass)' stdout)" = 2 ] || fail 'the two kinds are not told apart'
sometimes 3 names 1bad 2bad 3bad 4bad
grep -qx 'convert-many: 4 of 4 failed: 1bad, 2bad, 3bad, ...; logs in names/logs' stdout || fail 'no names'

# Nothing started: 2, one error, one hint.
refused() {
  expect_exit 2 "$many" "$@"
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
for jobs in --jobs --jobs= --jobs=x -jx '--jobs 0' '--jobs -1' --job -k '-j 99999'; do
  # shellcheck disable=SC2086
  refused $jobs out one -- --arch sm90
done
for help in -h --help '-j 3 --help'; do
  # shellcheck disable=SC2086
  expect_exit 0 "$many" $help
  grep -q -e '-j, --jobs JOBS' stdout || fail "no help: $help"
done
