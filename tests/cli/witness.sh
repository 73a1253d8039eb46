# The witness (tests/witness), which reads what the other tests write, finds faults. Skipped where it cannot read.
witness() { "$python" "$SOURCE_DIR/tests/witness" "$@"; }
got=0
witness "$TESTDATA/mutants/blob" >stdout 2>stderr || got=$?
[ "$got" != 77 ] || skip "$(sed 's/^SKIP: //' stdout): no test's blobs are judged"
[ "$got" = 0 ] || { cat stderr >&2; fail 'it refuses a kept blob'; }
grep -qE '^witness: [1-9][0-9]* whole, 0 damaged' stdout || fail 'it read nothing'

convert_quietly "$TESTDATA/ingest/gptoss_hf" -o out --backend MARLIN --arch sm80
expect_exit 0 witness out
kept=$(find "$KEPT" -name mxfp4_repack.json)
[ "$(grep -c . <<<"$kept")" = 1 ] || fail "not one blob was kept: $kept"
# A byte of every file; a damaged blob that verify would accept does not pass.
accepting=$PWD/accepting
printf '#!/bin/sh\nexit 0\n' >"$accepting"
chmod +x "$accepting"
for file in out/*; do
  [ -f "$file" ] || continue
  cp -r out damaged
  "$python" - "damaged/${file#out/}" <<'PY'
import random, sys
data = bytearray(open(sys.argv[1], "rb").read())
data[random.randrange(len(data))] ^= 1 << random.randrange(8)
open(sys.argv[1], "wb").write(data)
PY
  expect_exit 1 witness damaged
  grep -q '^witness: ' stderr || { cat stderr >&2; fail 'no word'; }
  expect_exit 1 witness --program "$accepting" damaged
  expect_exit 0 witness --program "$BIN" damaged
  grep -qx 'witness: 0 whole, 1 damaged as verify says, 0 too large' stdout || { cat stdout >&2; fail "not counted: $file"; }
  rm -rf damaged
done
