# shellcheck disable=SC2086
# convert -o s3://BUCKET/PREFIX, onto object storage on this machine (far_s3.py): what comes to be there is what
# a local directory would hold, whatever is cut off, killed or in the way, and no key lies in it.
need_numpy
ldconfig -p | grep -q 'libcurl.*\.so\.4' || skip 'libcurl is not installed'
"$python" -c 'import botocore' 2>/dev/null || skip 'python3-botocore is not installed'
mkdir -p state home tmp 'closed/a b+c&'
"$SOURCE_DIR/scripts/make-checkpoint" model --experts 4 --hidden 512 --intermediate 512 --layers 3 --shards 2 >/dev/null
"$python" "$SOURCE_DIR/tests/cli/far_s3.py" . state &
server=$!
cleanup() { kill "$server" 2>/dev/null || true; }
for _ in $(seq 100); do [ -e state/port ] || sleep 0.05; done
export HOME=$PWD/home TMPDIR=$PWD/tmp AWS_ENDPOINT_URL http_proxy='' https_proxy=''
AWS_ENDPOINT_URL=http://127.0.0.1:$(cat state/port)
unset AWS_PROFILE AWS_DEFAULT_REGION AWS_SHARED_CREDENTIALS_FILE AWS_CONFIG_FILE AWS_ENDPOINT_URL_S3
export AWS_REGION=eu-test-1 AWS_ACCESS_KEY_ID=far-id AWS_SECRET_ACCESS_KEY=far-secret AWS_SESSION_TOKEN=far-session
there='closed/a b+c&/out' out='s3://closed/a b+c&/out'
many='--backend MARLIN --arch sm80 --tp-size 2' one='--arch sm90'
convert_quietly model -o many $many --include-rest
convert_quietly model -o one $one
# to FLAGS: converts to OUT.
to() { "$BIN" convert model -o "$out" -q "$@"; }
# is LOCAL: OUT is that result, and nothing else is left.
is() {
  diff -r "$1" "$there" || fail "OUT is not $1${2:+, $2}"
  [ -z "$(find tmp -mindepth 1)" ] || fail "left behind: $(find tmp)"
  [ -z "$(find state/parts -type f 2>/dev/null)" ] || fail 'parts were left'
}
no_reader() { expect_exit 3 "$BIN" verify "$out" && expect_one_error "$1"; }

# Both forms, and what the commands say of them; what stands there already.
expect_exit 0 "$BIN" convert model -o "$out/" $many --include-rest
grep -q "verify '$out/'" stdout || fail 'no next step'
is many
expect_exit 0 "$BIN" verify "$out" --against model
expect_exit 0 "$BIN" inspect "$out"
expect_exit 5 to $many --include-rest
expect_one_error 'exists and is not empty'
expect_exit 0 "$BIN" convert model -o "$out" $many --include-rest --resume
grep -q 'complete already' stdout || fail 'not complete already'
expect_exit 2 to $one --resume
# A layer that is gone is made again, of the bytes that it had.
rm "$there"/mxfp4_repack/rank-01-of-02/layer-00001*
expect_exit 0 to $many --include-rest --resume
grep -q 'missing; made again' stderr || fail 'nothing about the missing layer'
is many
expect_exit 0 to $one --force
cp -r "$there" forced
rm -r "$there"
for name in one/*; do cmp "$name" "forced/${name#one/}" || fail "$name after --force"; done
[ -z "$(find forced -name 'rank-*' -type f -o -name 'rest-*')" ] || fail 'files of the old blob are left'
mkdir "$there" && touch "$there/mine"
expect_exit 5 to $one
expect_exit 5 to $one --force
expect_one_error 'holds mine, which this program did not write'
[ "$(ls "$there")" = mine ] || fail 'something came beside it'
rm -r "$there"
expect_exit 2 to $one --shard 0/2
expect_one_error 'only convert without --shard writes to one'

# Keys that may not, a bucket that is not there; connections that break, a server that is busy.
AWS_SECRET_ACCESS_KEY=wrong expect_exit 3 to $one
expect_one_error 'refuses it \(403\)'
grep -q 'AWS_ACCESS_KEY_ID' stderr || fail 'no word about keys'
expect_exit 3 "$BIN" convert model -o s3://nobody/out $one
grep -q 'a bucket nobody in region eu-test-1' stderr || fail 'no word about the bucket'
touch state/readonly
expect_exit 5 to $one
expect_one_error 'mxfp4_repack.progress: the server refuses it \(403\)'
grep -q 'AWS_ACCESS_KEY_ID' stderr || fail 'no word about keys'
rm state/readonly
[ ! -e "$there" ] || fail 'something is there'
touch state/faulty
expect_exit 0 to $many --include-rest
rm state/faulty
is many 'past faults'

# signal N NAME FLAGS: starts to convert; the process gets the signal at request N.
signal() {
  rm -f state/pid state/hit
  echo "$1 $2" >state/at
  (echo "$BASHPID" >state/pid && exec "$BIN" convert model -o "$out" -q "${@:3}" >said 2>&1) &
  run=$!
}
: >state/asked
rm -r "$there"
expect_exit 0 to $many --include-rest
requests=$(wc -l <state/asked)
elsewhere=0
for at in $(seq 1 23 | while read -r _; do echo $((RANDOM % (requests - 1) + 1)); done) "$requests"; do
  rm -rf "$there"
  signal "$at" KILL $many --include-rest
  wait "$run" && fail "not killed at request $at of $requests"
  if [ -e "$there" ]; then
    no_reader 'unfinished: |nothing is there|no mxfp4_repack.json here|which is incomplete|layer files of a blob'
  fi
  # From another machine, with a staging directory of its own, each second time.
  if [ $((elsewhere = 1 - elsewhere)) = 1 ]; then rm -rf tmp/.m*; fi
  expect_exit 0 to $many --include-rest --resume
  rm -rf state/parts
  is many "killed at request $at of $requests"
done
for at in 2 3 4 5 9 14 "$requests"; do  # of --force: never a mixture
  rm -rf "$there"
  cp -r one "$there"
  signal "$at" KILL $many --include-rest --force
  wait "$run" || true
  [ ! -e "$there/mxfp4_repack.progress" ] || no_reader 'unfinished: '
  expect_exit 0 to $many --include-rest --resume
  rm -rf state/parts
  is many "--force killed at request $at"
done

# Interrupted, it gives up what is on its way, and says what to do.
for at in 3 8 17; do
  rm -rf "$there"
  signal "$at" TERM $many --include-rest
  wait "$run" && fail 'not interrupted'
  grep -q -e '--resume' said || fail "nothing about --resume: $(cat said)"
  [ -z "$(find state/parts tmp -mindepth 1)" ] || fail "left behind: $(find state/parts tmp)"
  no_reader 'unfinished: '
  expect_exit 0 to $many --include-rest --resume
  is many "interrupted at request $at"
done

# Two writers at once: one makes it, whole. One that sleeps, and goes on when another has taken over, stops.
for _ in 1 2 3 4; do
  rm -rf "$there"
  mkdir -p tmp2
  TMPDIR=$PWD/tmp2 "$BIN" convert model -o "$out" -q $many --include-rest >other 2>&1 &
  other=$! codes=0
  to $many --include-rest 2>said || codes=$?
  wait "$other" || codes=$((codes + $?))
  [ "$codes" = 5 ] || fail "exit codes $codes: $(cat said other)"
  cat said other | grep -qE 'another process is writing here|is unfinished|is not empty' || fail "$(cat said other)"
  is many 'by two writers'
done
for at in 1 4 9 21; do
  rm -rf "$there"
  signal "$at" STOP $many --include-rest
  while [ ! -e state/hit ]; do sleep 0.01; done
  TMPDIR=$PWD/tmp2 expect_exit 5 to $many --include-rest
  expect_one_error 'unfinished'
  TMPDIR=$PWD/tmp2 expect_exit 0 to $many --include-rest --resume
  kill -CONT "$run"
  code=0
  wait "$run" || code=$?
  [ "$code" = 5 ] || fail "exit $code of the one that slept: $(cat said)"
  grep -q 'another process is writing here' said || fail "$(cat said)"
  is many "taken over at request $at"
done

# Large layers go in parts, and two of them at most lie on the disk.
rm -r "$there" model
"$SOURCE_DIR/scripts/make-checkpoint" model --experts 8 --hidden 2048 --intermediate 2048 --layers 6 --shards 2 >/dev/null
convert_quietly model -o large $one --compress none
signal 100000 KILL $one --compress none
peak=0 layer=$(stat -c %s large/layer-00000*)
while kill -0 "$run" 2>/dev/null; do
  now=$(du -sb tmp 2>/dev/null | cut -f 1) || true
  [ "${now:-0}" -le "$peak" ] || peak=$now
done
wait "$run" || fail "$(cat said)"
rm state/at
is large
grep -q "partNumber=2" state/asked || fail "no two parts"
echo "at most $peak bytes lay on the disk, $((peak * 100 / layer)) % of a layer"
[ "$peak" -gt "$layer" ] && [ "$peak" -lt $((layer * 3)) ] || fail "$peak bytes on the disk, a layer has $layer"
[ ! -e state/leaks ] || { cat state/leaks; fail 'the secret was sent'; }
! grep -rlE 'far-(secret|session)' closed stdout stderr said other tmp2 || fail 'a key was written'
