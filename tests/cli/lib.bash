# Helpers for the scripts beside this file.

fail() { printf 'FAIL: %s\n' "$*" >&2; exit 1; }

# expect_exit CODE COMMAND...: runs it; stdout and stderr are left in files of those names. The witness reads
# what a conversion made.
expect_exit() {
  local want=$1 got=0
  shift
  "$@" >stdout 2>stderr || got=$?
  [ "$got" = "$want" ] || { cat stderr >&2; fail "exit $got instead of $want: $*"; }
  case "$got $*" in "0 "*' convert '*) keep "$(output_of "$@")" ;; esac
}

# expect_one_error REGEX: stderr of the last expect_exit has exactly one error line, and it matches.
expect_one_error() {
  [ "$(grep -c '^mxfp4-repack: error: ' stderr)" = 1 ] || { cat stderr >&2; fail 'not one error line'; }
  grep -qE "^mxfp4-repack: error: .*$1" stderr || { cat stderr >&2; fail "error does not match: $1"; }
}

# expect_interruptions OUT SAID CHECK COMMAND...: SIGINT, SIGTERM and SIGHUP in turn stop the command, which
# writes OUT: the signal's exit code, one line that matches SAID, and then CHECK holds. A signal may come
# before the handler or after the end: such attempts do not count.
expect_interruptions() {
  local out=$1 said=$2 check=$3 started took signal code attempt got delay stopped=
  shift 3
  rm -rf "$out" ".$out.mxfp4_repack-new"
  started=$(date +%s%N)
  expect_exit 0 "$@"
  took=$((($(date +%s%N) - started) / 1000000))
  for signal in INT TERM HUP; do
    case $signal in INT) code=130 ;; TERM) code=143 ;; HUP) code=129 ;; esac
    for attempt in $(seq 60); do
      rm -rf "$out" ".$out.mxfp4_repack-new"
      got=0
      delay=$((took * (attempt % 9 + 1) / 10))
      # The starter of the tests may ignore signals, as nohup ignores SIGHUP.
      timeout --preserve-status -s "$signal" "$((delay / 1000)).$(printf %03d $((delay % 1000)))" \
        env --default-signal=INT,TERM,HUP "$@" >/dev/null 2>stderr || got=$?
      [ "$got" = 0 ] && continue
      grep -q '^mxfp4-repack: interrupted' stderr || continue  # stopped before it was ready for that
      [ "$got" = "$code" ] || fail "exit $got after SIG$signal"
      grep -q "$said" stderr || fail 'no word about it'
      "$check"
      stopped+=$signal
      break
    done
  done
  [ "$stopped" = INTTERMHUP ] || fail "no attempt was stopped: $stopped"
}

# Whether the program was built for another processor than the tests' own programs: an emulator runs it.
foreign() { ! cmp -s -i 18 -n 2 "$LOADER" "$(command -v bash)"; }

# skip WHY: ends the script; ctest shows it as skipped.
skip() { printf 'SKIP: %s\n' "$*"; exit 77; }

# Whether the program was built with a sanitizer, which takes more memory and time.
sanitized() { grep -q '__[at]san_init' "$BIN"; }

# Whether something takes time and memory of its own: a sanitizer, or an emulator.
slow() { sanitized || foreign; }

# preloaded VARIABLE=VALUE... COMMAND...: runs it with the library whose calls fail (faults.cpp), or with $PRELOAD.
# Only the command gets the library: env would lack a sanitizer's names.
preloaded() {
  env LD_PRELOAD="${PRELOAD:-$FAULTS}" ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0" "$@"
}

# Whether this build runs so. ThreadSanitizer's runtime maps memory before a preloaded library's own functions
# can be found.
can_preload() { preloaded "$BIN" --version >/dev/null 2>&1; }
need_preloading() { can_preload || skip 'nothing can be preloaded into this build'; }

# played_pages BYTES COMMAND...: runs it on a system whose pages have so many bytes.
played_pages() { preloaded FAULT_PAGE_BYTES="$1" "${@:2}"; }

# The system's Python, which has Debian's numpy and h5py. Modules beside the scripts are found.
python=/usr/bin/python3
export PYTHONPATH=$SOURCE_DIR/tests/cli PYTHONDONTWRITEBYTECODE=1
need_numpy() { "$python" -c 'import numpy' 2>/dev/null || skip 'python3-numpy is not installed'; }

# convert_quietly ARGUMENTS...: what must succeed without a word on stdout. The witness reads the result.
convert_quietly() {
  "$BIN" convert "$@" -q 2>warnings || { cat warnings >&2; fail "convert $*"; }
  keep "$(output_of "$@")"
}

# The value of -o or --output among the words.
output_of() {
  local word previous=
  for word; do
    case $previous in -o | --output) printf '%s\n' "$word" ;; esac
    previous=$word
  done | tail -n 1
}

# keep OUT: a copy of what is there now, if it holds a blob, for the witness: judge_kept. A test may change or
# remove OUT afterwards.
keep() {
  [ -d "$1" ] && [ -n "$(find "$1" -name mxfp4_repack.json -print -quit 2>/dev/null)" ] || return 0  # a shard, a dry run
  [ "$(du -sm "$1" 2>/dev/null | cut -f 1)" -le 32 ] || return 0
  cp -rH "$1" "$(mktemp -d "$KEPT/XXXXXX")/" 2>/dev/null || true  # another process may write there
}

# What a test removes, the witness reads: of a test that removes a hundred blobs, the first ones.
rm() {
  local word
  for word; do
    [ -d "$word" ] || continue
    [ "$(find "$KEPT" -maxdepth 1 | wc -l)" -ge 50 ] || keep "$word"
  done
  command rm "$@"
}

# judge_kept DIR: an independent reader (tests/witness) finds every blob that was kept, and every blob that the test
# left in DIR, as it should be; what verify refuses, a test damaged. cli/witness says if packages are missing.
judge_kept() {
  local got=0
  [ -n "$(find "$KEPT" "$1" -name mxfp4_repack.json -print -quit 2>/dev/null)" ] || return 0
  "$python" "$SOURCE_DIR/tests/witness" --program "$BIN" "$KEPT" "$1" || got=$?
  [ "$got" = 0 ] || [ "$got" = 77 ]
}
