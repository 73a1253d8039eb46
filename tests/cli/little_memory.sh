# A limit of memory is never called a damaged file: a command that it stops ends with one true
# line, loses nothing, and can be repeated without the limit. $LIMITS: how many limits for each command (16), drawn
# by $SEED (1).
slow && skip 'a sanitizer or an emulator takes memory of its own'
flags=(--backend MARLIN --arch sm80 -q)
model=$TESTDATA/ingest/gptoss_hf
hdf5=$TESTDATA/containers/hdf5/loaded_gzip.h5
"$BIN" convert "$model" -o whole "${flags[@]}"
"$BIN" convert "$hdf5" -o whole5 "${flags[@]}"
"$BIN" unpack whole -o loaded -q

# The least limit, in KiB, under which main() runs: below it nothing is tested but the system's loader, and how much
# that takes depends on the libraries.
begins=
for kib in $(seq 10000 250 100000); do
  got=0
  (ulimit -v "$kib" && exec "$BIN" --version >stdout 2>stderr) || got=$?
  case $got in 0 | 3 | 5) begins=$kib && break ;; esac
done
[ -n "$begins" ] || fail 'the program begins under no limit'

# limited WANT MEND COMMAND...: under limits from where the program does not even begin to where it always succeeds;
# WANT: what OUT then is; '': the command writes nothing. MEND: the flag that goes on after a failure.
limited() {
  local want=$1 mend=$2 kib got stopped=0
  shift 2
  for kib in $(seq $((begins - 1000)) 50 $((begins + 22000)) | shuf --random-source=<(yes "${SEED:-1}") | head -n "${LIMITS:-16}"); do
    rm -rf out .out.*
    got=0
    (ulimit -v "$kib" && exec "$@" >stdout 2>stderr) || got=$?
    case $got in
      0) ;;
      # Before main() the system's own loader speaks.
      127 | 139) [ -z "$(grep '^mxfp4-repack:' stderr)" ] || fail "$kib KiB: exit $got: $*" ;;
      # Nor is there a handler yet while static tables are made.
      134) grep -q '^terminate called' stderr && [ ! -e out ] || { cat stderr; fail "$kib KiB: aborts: $*"; } ;;
      3 | 5)
        stopped=$((stopped + 1))
        expect_one_error ''
        ! grep -qiE 'damaged|checksum|bad_alloc|truncated|became shorter' stderr || { cat stderr; fail "$kib KiB: $*"; }
        [ -z "$want" ] || [ -z "$(find out -name mxfp4_repack.json 2>/dev/null)" ] || fail "$kib KiB: a manifest: $*"
        ;;
      *) cat stderr; fail "$kib KiB: exit $got: $*" ;;
    esac
    [ -n "$want" ] || continue
    [ "$got" = 0 ] || expect_exit 0 "$@" $mend
    diff -r "$want" out >/dev/null || fail "$kib KiB: other files: $*"
  done
  [ $stopped -gt 0 ] || fail "no limit stopped $*"
}
limited whole --resume "$BIN" convert "$model" -o out "${flags[@]}" -j 2
limited whole5 --resume "$BIN" convert "$hdf5" -o out "${flags[@]}" -j 2
limited loaded '' "$BIN" unpack whole -o out -q -j 2
limited '' '' "$BIN" verify whole -j 2
limited '' '' "$BIN" inspect "$hdf5"
limited '' '' "$BIN" explain "$model" --arch sm90
