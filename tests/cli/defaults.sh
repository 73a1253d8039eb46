# Defaults by variable: a flag wins over them; explain -v shows them.
model=$TESTDATA/ingest/gptoss_hf
export MXFP4_REPACK_REVISION=0.31.0 MXFP4_REPACK_THREADS=2 MXFP4_REPACK_MEMORY=0.5GiB
expect_exit 0 "$BIN" explain "$model" --arch sm90 -v
grep -qE '^  rules +vllm-0\.31\.0 ' stdout || fail 'the variable has no effect'
for word in revision:0.31.0 threads:2 memory:0.5GiB; do
  grep -qE "^  default +${word%:*} ${word#*:}( |\$)" stdout || { cat stdout; fail "explain -v does not show $word"; }
done
grep -q 'no --revision: taking vllm-0.31.0, by MXFP4_REPACK_REVISION$' stderr || { cat stderr; fail 'a default without a word'; }
expect_exit 0 "$BIN" explain "$model" --arch sm90 -v --revision 0.29.0
grep -qE '^  rules +vllm-0\.29\.0 ' stdout || fail 'the flag does not win'
expect_exit 0 "$BIN" convert "$model" -o out --arch sm90 -q
grep -q '"revision": "vllm-0.31.0"' out/mxfp4_repack.json || fail 'convert has another default'
# A blob is asked for a release only by a flag.
expect_exit 0 "$BIN" inspect out
! grep -q '^serves' stdout || fail 'a default asks a question'
# fits asks about the default, since that is all it is for; not of a blob for the other engine.
expect_exit 0 "$BIN" fits out
grep -q '^out: yes, it fits vllm-0.31.0$' stdout || fail 'fits does not ask about the default'
grep -q 'no --revision: taking vllm-0.31.0, by MXFP4_REPACK_REVISION$' stderr || fail 'fits takes a default without a word'
MXFP4_REPACK_REVISION=0.25.1 expect_exit 1 "$BIN" fits out
grep -q -- '--revision vllm-0.25.1' stdout || { cat stdout >&2; fail 'the command is not for the release that was asked about'; }
MXFP4_REPACK_REVISION=0.25.1 expect_exit 0 "$BIN" fits out --revision 0.31.0
MXFP4_REPACK_REVISION=sglang-0.5.23 expect_exit 0 "$BIN" explain --arch sm90 --engine vllm
grep -q 'no --revision: taking vllm-[0-9.]*, the newest known release$' stderr || { cat stderr >&2; fail 'a default of another engine is named'; }
MXFP4_REPACK_SIMD='' expect_exit 0 "$BIN" verify out -q
MXFP4_REPACK_REVISION=sglang-0.5.23 expect_exit 2 "$BIN" fits out
expect_one_error "fits: nothing differs from the blob's own deployment$"
expect_exit 0 "$BIN" list styles

# Wrong ones are named by their place.
MXFP4_REPACK_THREADS=many expect_exit 2 "$BIN" verify out
expect_one_error "MXFP4_REPACK_THREADS: 'many' is not a number from 1 to 1024\$"
MXFP4_REPACK_REVISION=9.9.9 expect_exit 2 "$BIN" explain --arch sm90
expect_one_error 'MXFP4_REPACK_REVISION: 9.9.9 is newer than vllm-[0-9.]*, the newest release that this program knows$'
MXFP4_REPACK_MEMORY=lots expect_exit 2 "$BIN" verify out
expect_one_error "MXFP4_REPACK_MEMORY: 'lots' is not a size such as 256MiB\$"
expect_exit 0 "$BIN" --help
MXFP4_REPACK_COLOR=always expect_exit 0 "$BIN" list styles
grep -q $'\033' stdout || fail 'no colour'
MXFP4_REPACK_COLOR=always expect_exit 0 "$BIN" list styles --color never
! grep -q $'\033' stdout || fail 'the flag does not win'
