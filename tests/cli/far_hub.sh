# hf://ORG/MODEL, from a hub on this machine (far_server.py) that redirects to another host: the bytes are
# those of a local directory whatever breaks, each fault has its error, and the token goes to the hub only.
need_numpy
ldconfig -p | grep -q 'libcurl.*\.so\.4' || skip 'libcurl is not installed'
"$SOURCE_DIR/scripts/make-checkpoint" model --experts 4 --hidden 512 --intermediate 512 --layers 3 --shards 3 >/dev/null
mkdir state home
echo ok >state/mode
"$python" "$SOURCE_DIR/tests/cli/far_server.py" model state &
server=$!
cleanup() { kill "$server" 2>/dev/null || true; }
for _ in $(seq 100); do [ -e state/port ] || sleep 0.05; done
export HF_ENDPOINT HF_TOKEN=far-token HF_HOME=$PWD/home HF_HUB_DOWNLOAD_TIMEOUT=1 http_proxy='' https_proxy=''
HF_ENDPOINT=http://127.0.0.1:$(cat state/port)
unset HF_HUB_OFFLINE HF_TOKEN_PATH HF_HUB_CACHE
far=hf://org/model
made='--backend MARLIN --arch sm80 --include-rest'

# far_convert OUT FLAGS...
far_convert() { "$BIN" convert "$far" -o "$@" $made -q --threads 4 >stdout 2>stderr; }

# The same bytes, each fetched once; the manifest says what the hub says of the files.
convert_quietly model -o here $made
: >state/asked
far_convert there || { cat stderr; fail 'convert'; }
without_sha256() {
  "$python" -c 'import json, sys
manifest = json.load(open(sys.argv[1]))
manifest.pop("manifest_xxh3_128")
for file in manifest["source"]["files"]:
    file.pop("sha256", None)
print(json.dumps(manifest, indent=1))' "$1/mxfp4_repack/mxfp4_repack.json"
}
diff <(without_sha256 there) <(without_sha256 here) || fail 'manifests differ'
grep -q "$(sha256sum model/model-00000-*.safetensors | cut -c 1-64)" there/mxfp4_repack/mxfp4_repack.json ||
  fail 'no sha256 in the manifest'
same() { diff -r --exclude=mxfp4_repack.json here "$1" || fail "$1 differs: $2"; }
same there 'no fault'
expect_exit 0 "$BIN" verify there --against $far
for command in explain inspect; do
  # shellcheck disable=SC2086
  expect_exit 0 "$BIN" $command model --arch sm90
  cp stdout wanted
  expect_exit 0 "$BIN" $command $far --arch sm90
  diff <(sed "s#$far#model#g; s#org/model#model#" stdout) wanted || fail "$command differs"
done
# Of a checkpoint with many tensors, and so a large index, explain fetches little more than the config.
cp model/model.safetensors.index.json .
printf '%1100000s' ' ' >>model/model.safetensors.index.json
: >state/asked
expect_exit 0 "$BIN" explain $far --arch sm90 --nodes 1 --json
[ "$(awk '{ n += $1 } END { print n }' state/asked)" -lt 100000 ] || fail 'explain fetched the index'
grep -q '"config_only"' stdout || fail 'no word about the weights'
grep -q '"whole checkpoint"' stdout || fail 'the head of the index was not read'
mv model.safetensors.index.json model

# What breaks and heals. ${CUTS:-60} connections end at drawn bytes.
: >state/asked
for mode in unwell busy expired cut; do
  echo $mode >state/mode
  while true; do
    command rm -rf there
    far_convert there || { cat stderr; fail "convert: $mode"; }
    same there $mode
    [ $mode = cut ] || break
    cuts=$(awk '$2 < $1' state/asked | wc -l)
    [ "$cuts" -lt "${CUTS:-60}" ] || break
  done
done

# What does not heal: one error each, in seconds, and nothing is left that convert takes for a result.
refused() {
  echo "$1" >state/mode
  command rm -rf bad
  expect_exit 3 timeout 60 "$BIN" convert $far -o bad $made -q
  expect_one_error "$2"
  [ ! -e bad/mxfp4_repack/mxfp4_repack.json ] || fail "$1: a manifest"
}
refused short 'with [0-9]* bytes, Content-Range'
refused long 'with [0-9]* bytes, Content-Range'
refused chunked 'more bytes than it was asked for'
refused elsewhere 'Content-Range'
refused grown 'changed while it was read'
refused changed 'changed while it was read'
refused whole 'no ranges'
refused packed 'encoded'
refused circle 'redirects'
refused to_file 'a redirect to "file://'
refused closed_for_long 'asks to wait 86400 s'
refused down 'answers 503, 6 times'
refused silent ', 6 times'
echo ok >state/mode

# Who may read it, and what is there.
HF_TOKEN=wrong expect_exit 3 "$BIN" inspect $far
expect_one_error 'refuses it \(401\)'
grep -q 'the token of HF_TOKEN may not read it' stderr || fail 'no word about the token'
HF_TOKEN='' expect_exit 3 "$BIN" inspect $far
grep -q 'HF_TOKEN is not set' stderr || fail 'no word about a token'
expect_exit 3 "$BIN" inspect $far@other
grep -q 'a revision other' stderr || fail 'no word about the revision'
expect_exit 2 "$BIN" inspect hf://model
expect_exit 2 "$BIN" inspect ftp://host/model
expect_one_error 'another kind of address'
HF_ENDPOINT=http://127.0.0.1:1 expect_exit 3 "$BIN" inspect $far
expect_one_error '127.0.0.1'
printf 'far-token\n' >home/token
HF_TOKEN='' expect_exit 0 "$BIN" inspect $far

# The hub's cache: what it has of the commit is not fetched; offline, nothing is.
commit=0123456789abcdef0123456789abcdef01234567
snapshot=home/hub/models--org--model/snapshots/$commit
HF_HUB_OFFLINE=1 expect_exit 3 "$BIN" inspect $far
expect_one_error 'HF_HUB_OFFLINE'
mkdir -p $snapshot home/hub/models--org--model/refs
cp model/*.json model/model-00000-*.safetensors $snapshot
: >state/asked
command rm -rf there
far_convert there || { cat stderr; fail 'convert with a part in the cache'; }
same there cache
others=$(find model -name '*.safetensors' ! -name 'model-00000-*' -printf '%s\n' | awk '{ n += $1 } END { print n }')
[ "$(awk '{ n += $1 } END { print n }' state/asked)" -lt $((others + 300000)) ] ||  # with samples of each layer
  fail 'what is in the cache was fetched'
cp model/* $snapshot
printf %s $commit >home/hub/models--org--model/refs/main
command rm -rf there
HF_ENDPOINT=http://127.0.0.1:1 HF_HUB_OFFLINE=1 far_convert there || { cat stderr; fail offline; }
same there offline
command rm -rf home/hub

# Killed again and again, it goes on at the layer.
kills=0
command rm -rf there .there.*
for attempt in $(seq $((${KILLS:-20} * 10))); do
  got=0
  timeout -s KILL "0.$((10 + attempt % 20))" "$BIN" convert $far -o there $made -q --resume --threads 2 >/dev/null 2>stderr || got=$?
  [ $got = 0 ] && { command rm -rf there .there.*; continue; }
  [ $got = 137 ] || { cat stderr; fail "exit $got"; }
  kills=$((kills + 1))
  [ $kills -lt "${KILLS:-20}" ] || break
done
[ $kills -ge "${KILLS:-20}" ] || fail "only $kills kills"
far_convert there --resume || { cat stderr; fail 'convert after kills'; }
same there 'killed'

[ ! -e state/leaks ] || { cat state/leaks; fail 'the token went to the content host'; }
! grep -rq far-token there here stdout stderr || fail 'the token was written'
