# --force, killed at each call that changes files: the old or the new result is there, whole, each time,
# and the same command again ends with the new one and nothing beside it. RANDOM_KILLS: how many kills
# at random moments beside them (0).
model=$TESTDATA/ingest/gptoss_hf
blobs=0
for flags in '--backend MARLIN --arch sm80 --compress none' '--backend MARLIN --arch sm80 --include-rest'; do
  # shellcheck disable=SC2086
  expect_exit 0 "$BIN" convert "$model" -o "blob$((++blobs))" $flags
done
expect_exit 0 "$BIN" convert "$model" -o "blob$((++blobs))" --arch sm90
expect_exit 0 "$BIN" convert "$model" -o "blob$((++blobs))" --arch sm90 --include-rest --tp-size 2
root=$PWD
mkdir work
cd work
printf 'mine\n' >beside

need_preloading

# Whether DIRECTORY is whole: bytes of $1 or $2.
is_one_of() { diff -rq "$1" "$3" >/dev/null || diff -rq "$2" "$3" >/dev/null; }
# Kills at every call; at every fourth if a process takes long to begin.
every=1
if slow; then every=4; fi
# kills OLD NEW COMMAND...
kills() {
  local old=$1 new=$2 at got
  shift 2
  for ((at = 1; at < 1000; at += ${KILL_STEP:-$every})); do
    rm -rf out .out.*
    cp -r "$old" out
    got=0
    preloaded FAULT_KILL_AT=$at "$@" -o out --force >/dev/null 2>../stderr || got=$?
    [ "$got" = 0 ] && break
    [ "$got" = 137 ] || fail "exit $got at call $at"
    is_one_of "$old" "$new" out || fail "neither whole at call $at"
    [ "$(cat beside)" = mine ] || fail 'a neighbour was touched'
    # Again, undisturbed.
    expect_exit 0 "$@" -o out --force
    diff -r "$new" out || fail "other bytes after call $at"
    [ -z "$(find . -name '.out*' -o -name '.mxfp4_repack*')" ] || fail "something was left after call $at"
  done
  [ "$at" -gt 20 ] || fail "only $at calls were counted"
  diff -r "$new" out
  echo "killed at $((at - 1)) calls of $1"
}
kills $root/blob1 $root/blob3 "$BIN" convert "$model" --arch sm90
KILL_STEP=$((3 * every))
kills $root/blob2 $root/blob4 "$BIN" convert "$model" --arch sm90 --include-rest --tp-size 2

# random_kills OLD NEW COMMAND...
random_kills() {
  local old=$1 new=$2 i started took delay pid olds=0 news=0 ended=0
  shift 2
  rm -rf out .out.*
  started=$(date +%s%N)
  "$@" -o out --force >/dev/null 2>&1
  took=$((($(date +%s%N) - started) / 1000))
  for ((i = 0; i < RANDOM_KILLS; ++i)); do
    rm -rf out .out.*
    cp -r "$old" out
    "$@" -o out --force >/dev/null 2>&1 &
    pid=$!
    delay=$((RANDOM * took / 29000))
    sleep "$((delay / 1000000)).$(printf %06d $((delay % 1000000)))"
    kill -9 $pid 2>/dev/null || true
    if wait $pid 2>/dev/null; then ended=$((ended + 1)); fi
    if is_one_of "$old" "$old" out; then
      olds=$((olds + 1))
    else
      is_one_of "$new" "$new" out || fail "neither whole after kill $i"
      news=$((news + 1))
    fi
    expect_exit 0 "$@" -o out --force
    diff -r "$new" out || fail "other bytes after kill $i"
    [ -z "$(find . -name '.out*' -o -name '.mxfp4_repack*')" ] || fail "something was left after kill $i"
  done
  echo "$RANDOM_KILLS random kills of $2: the old result $olds times, the new one $news; $ended ended before"
}
if [ "${RANDOM_KILLS:-0}" -gt 0 ]; then
  random_kills $root/blob2 $root/blob4 "$BIN" convert "$model" --arch sm90 --include-rest --tp-size 2
fi
