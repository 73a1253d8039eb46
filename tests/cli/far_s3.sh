# s3://BUCKET/PREFIX, from object storage on this machine (far_s3.py) that takes botocore's word for each
# signature: a checkpoint and a blob there are those of a local directory.
need_numpy
ldconfig -p | grep -q 'libcurl.*\.so\.4' || skip 'libcurl is not installed'
"$python" -c 'import botocore' 2>/dev/null || skip 'python3-botocore is not installed'
mkdir state home open
"$SOURCE_DIR/scripts/make-checkpoint" model --experts 4 --hidden 512 --intermediate 512 --layers 2 --shards 2 >/dev/null
made='--backend MARLIN --arch sm80 --tp-size 2'
# shellcheck disable=SC2086
convert_quietly model -o packed $made --include-rest
# shellcheck disable=SC2086
convert_quietly model -o plain $made --compress none
mkdir -p 'closed/a b+c&'
cp -r model packed plain 'closed/a b+c&'
cp -r model open
"$python" "$SOURCE_DIR/tests/cli/far_s3.py" . state &
server=$!
cleanup() { kill "$server" 2>/dev/null || true; }
for _ in $(seq 100); do [ -e state/port ] || sleep 0.05; done
export HOME=$PWD/home AWS_ENDPOINT_URL http_proxy='' https_proxy=''
AWS_ENDPOINT_URL=http://127.0.0.1:$(cat state/port)
unset AWS_PROFILE AWS_REGION AWS_DEFAULT_REGION AWS_SHARED_CREDENTIALS_FILE AWS_CONFIG_FILE AWS_ENDPOINT_URL_S3
unset AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY AWS_SESSION_TOKEN
far='s3://closed/a b+c&'

# Without keys, what everybody may read; then keys from a file, and from variables.
# shellcheck disable=SC2086
convert_quietly s3://open/model -o there $made --include-rest
same() { diff -r --exclude=mxfp4_repack.json packed "$1" || fail "$1 differs"; }
same there
expect_exit 3 "$BIN" inspect "$far/model"
expect_one_error 'refuses it \(403\)'
grep -q AWS_ACCESS_KEY_ID stderr || fail 'no word about keys'
mkdir home/.aws
printf '[other]\nregion = no\n[default]\nregion = eu-test-1\n' >home/.aws/config
printf '[default]\naws_access_key_id=far-id\naws_secret_access_key = far-secret\naws_session_token=far-session\n' \
  >home/.aws/credentials
expect_exit 0 "$BIN" inspect "$far/model"
rm -r home/.aws
export AWS_REGION=eu-test-1 AWS_ACCESS_KEY_ID=far-id AWS_SECRET_ACCESS_KEY=far-secret AWS_SESSION_TOKEN=far-session
rm -r there
# shellcheck disable=SC2086
convert_quietly "$far/model/" -o there $made --include-rest
same there
AWS_SECRET_ACCESS_KEY=wrong expect_exit 3 "$BIN" inspect "$far/model"
expect_exit 3 "$BIN" inspect s3://nobody/model
grep -q 'a bucket nobody in region eu-test-1' stderr || fail 'no word about the bucket'
expect_exit 3 "$BIN" inspect "$far/nothing"
expect_one_error 'nothing is there'

# A blob there: every command that reads one, of the model directory and of a bare blob.
for blob in packed plain; do
  for command in inspect "inspect --layer 1" verify "verify --against model" "fits --tp-size 4"; do
    # shellcheck disable=SC2086
    set -- $command
    code=0
    "$BIN" "$1" $blob "${@:2}" --json >wanted || code=$?
    expect_exit $code "$BIN" "$1" "$far/$blob" "${@:2}" --json
    diff <(sed "s#$far/##g" stdout | grep -v 'elapsed\|"next"\|"serve"') \
      <(grep -v 'elapsed\|"next"\|"serve"' wanted) || fail "$command of $blob differs"
  done
  expect_exit 0 "$BIN" unpack "$far/$blob" -o "back-$blob" -q
  expect_exit 0 "$BIN" unpack $blob -o "back-here-$blob" -q
  diff -r "back-$blob" "back-here-$blob" || fail "unpack of $blob"
done
expect_exit 0 "$BIN" convert "$far/plain" -o again --backend TRITON --arch sm90 -q
expect_exit 0 "$BIN" verify again --against "$far/model"
byte=$(find 'closed/a b+c&/plain' -name 'layer-*0.safetensors' | head -n 1)
printf x | dd of="$byte" bs=1 seek=9000 conv=notrunc status=none
expect_exit 1 "$BIN" verify "$far/plain"
grep -q 'checksum differs' stdout || fail 'a changed byte was not seen'
[ ! -e state/leaks ] || { cat state/leaks; fail 'the secret was sent'; }
