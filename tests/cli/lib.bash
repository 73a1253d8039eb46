# Helpers for the scripts beside this file.

fail() { printf 'FAIL: %s\n' "$*" >&2; exit 1; }

# expect_exit CODE COMMAND...: runs it; stdout and stderr are left in files of those names.
expect_exit() {
  local want=$1 got=0
  shift
  "$@" >stdout 2>stderr || got=$?
  [ "$got" = "$want" ] || { cat stderr >&2; fail "exit $got instead of $want: $*"; }
}

# expect_one_error REGEX: stderr of the last expect_exit has exactly one error line, and it matches.
expect_one_error() {
  [ "$(grep -c '^mxfp4-repack: error: ' stderr)" = 1 ] || { cat stderr >&2; fail 'not one error line'; }
  grep -qE "^mxfp4-repack: error: .*$1" stderr || { cat stderr >&2; fail "error does not match: $1"; }
}

# skip WHY: ends the script; ctest shows it as skipped.
skip() { printf 'SKIP: %s\n' "$*"; exit 77; }

# The system's Python, which has Debian's numpy and h5py. Modules beside the scripts are found.
python=/usr/bin/python3
export PYTHONPATH=$SOURCE_DIR/tests/cli PYTHONDONTWRITEBYTECODE=1
need_numpy() { "$python" -c 'import numpy' 2>/dev/null || skip 'python3-numpy is not installed'; }

# convert_quietly ARGUMENTS...: what must succeed without a word on stdout.
convert_quietly() { "$BIN" convert "$@" -q 2>warnings || { cat warnings >&2; fail "convert $*"; }; }
