# Several ranks: a directory each, what the manifests say, one rank by itself, and the way back.
need_numpy
model=$TESTDATA/ingest/gptoss_hf
flags='--backend MARLIN --arch sm80 --revision vllm-2026-05-18'

# $1 ranks, then flags: every rank verifies, by itself and with the others; --rank gives the same bytes.
check_ranks() {
  local ranks=$1
  shift
  rm -rf all one back
  # shellcheck disable=SC2086
  convert_quietly "$input" -o all $flags "$@"
  expect_exit 0 "$BIN" verify all --against "$input"
  expect_exit 0 "$BIN" unpack all -o back
  for ((rank = 0; rank < ranks; ++rank)); do
    local folder
    folder=$(printf 'rank-%02d-of-%02d' $rank "$ranks")
    expect_exit 0 "$BIN" verify "all/$folder" --against "$input"
    # shellcheck disable=SC2086
    convert_quietly "$input" -o one $flags "$@" --rank $rank
    local alone=one
    [ ! -d "one/$folder" ] || alone=one/$folder
    diff -r "$alone" "all/$folder" || fail "--rank $rank of $*"
    rm -rf one
    [ -d "back/$folder" ] || fail "unpack lost $folder"
  done
  [ "$(find all -maxdepth 1 -type d -name 'rank-*' | wc -l)" = "$ranks" ] || fail 'rank directories'
}

input=$model
check_ranks 8 --tp-size 8
check_ranks 4 --dp-size 2 --tp-size 2 --enable-expert-parallel
input=$TESTDATA/ingest/quark_w4a4
check_ranks 3 --tp-size 3 --enable-expert-parallel
input=$TESTDATA/ingest/dsv4
check_ranks 4 --tp-size 4

# What TP ranks unpack to is the checkpoint's rows, each exactly once; EP ranks hold whole experts.
input=$model
for mode in '' --enable-expert-parallel; do
  # shellcheck disable=SC2086
  check_ranks 2 --tp-size 2 $mode
  # shellcheck disable=SC2086
  expect_exit 0 "$BIN" convert "$model" -o whole --emit loaded --pad none --compress none $flags
  "$python" - "$mode" <<'PY'
import json, sys, numpy, layer_files
expert_parallel = bool(sys.argv[1])
for layer in range(2):
    name = f"layer-{layer:05d}.safetensors"
    whole, _ = layer_files.read("whole/" + name)
    parts, experts, spans = [], [], []
    for rank in range(2):
        folder = f"rank-{rank:02d}-of-02"
        parts.append(layer_files.read(f"back/{folder}/{name}")[0])
        said = json.load(open(f"all/{folder}/mxfp4_repack.json"))
        assert said["rank"]["rank"] == rank, said
        (recipe,) = said["recipes"]
        experts.append(recipe["experts"])
        spans.append([recipe["intermediate_begin"], recipe["intermediate_end"]])
    if expert_parallel:
        assert experts == [[0, 1], [2, 3]] and spans == [[0, 96], [0, 96]], (experts, spans)
    else:
        assert experts == [[0, 1, 2, 3]] * 2 and spans[0][1] == spans[1][0], (experts, spans)
        assert spans[0][0] == 0 and spans[1][1] == 96, spans
    for key, want in whole.items():
        slot = key.rsplit(".", 1)[1]
        got = [part[key] for part in parts]
        if expert_parallel:
            made = numpy.concatenate(got, 0)
        elif slot == "w2_bias":  # only on the first rank
            assert not got[1].any(), key
            made = got[0]
        else:
            made = numpy.concatenate(got, 2 if slot.startswith("w2") else 1)
        assert numpy.array_equal(made, want), key
PY
  rm -rf whole
done

# Ranks that are made one by one into the same OUT add up to what one run writes, in any order.
for extra in '' --include-rest; do
  # shellcheck disable=SC2086
  convert_quietly "$model" -o together $flags --tp-size 4 $extra
  rm -rf added
  for rank in 2 0 3 1; do
    # shellcheck disable=SC2086
    expect_exit 0 "$BIN" convert "$model" -o added $flags --tp-size 4 --rank $rank $extra
  done
  diff -r together added
  # Ranks that are missing are made by a run without --rank.
  rm -r added/*rank-0[13]* added/*/rank-0[13]* 2>/dev/null || true
  cp -r added some
  # shellcheck disable=SC2086
  expect_exit 5 "$BIN" convert "$model" -o added $flags --tp-size 4 $extra
  expect_one_error 'added: a conversion into this directory is unfinished$'
  grep -qx 'hint: --resume goes on with it' stderr || fail 'no way on'
  diff -r some added
  # shellcheck disable=SC2086
  expect_exit 0 "$BIN" convert "$model" -o added $flags --tp-size 4 $extra --resume
  diff -r together added
  # --force removes no rank that it does not make again.
  for more in '' '--compress none'; do
    # shellcheck disable=SC2086
    expect_exit 5 "$BIN" convert "$model" -o added $flags --tp-size 4 --rank 1 $extra --force $more
    expect_one_error 'added: holds rank-0[0-3]-of-04, which this conversion does not make$'
    grep -qx 'hint: choose another directory; without --rank every rank is made again' stderr || fail 'no way on'
    diff -r together added
  done
  rm -r some together
done

# verify finds a rank under another's name or of another conversion, and a missing one.
# shellcheck disable=SC2086
convert_quietly "$model" -o two $flags --tp-size 2
mixed() {
  expect_exit 1 "$BIN" verify mixed
  grep -q "$1" stdout || { cat stdout; fail "verify has no word of $1"; }
  expect_exit 3 "$BIN" unpack mixed -o nothing
  expect_one_error "$1"
  expect_exit 0 "$BIN" inspect mixed
  grep -q "^mxfp4-repack: warning: mixed/$1" stderr || { cat stderr >&2; fail "inspect has no word of $1"; }
  [ ! -e nothing ] || fail 'unpack of mixed ranks left an output'
  rm -rf mixed
}
cp -r two mixed
mv mixed/rank-00-of-02 mixed/other
mv mixed/rank-01-of-02 mixed/rank-00-of-02
mv mixed/other mixed/rank-01-of-02
mixed 'rank-00-of-02: the manifest is of rank 1 of 2'
cp -r two mixed
rm -r mixed/rank-01-of-02
# shellcheck disable=SC2086
convert_quietly "$model" -o again ${flags/MARLIN --arch sm80/TRITON --arch sm90} --tp-size 2
mv again/rank-01-of-02 mixed
rm -r again
mixed 'rank-01-of-02: layout: not as in '
rm -r two/rank-01-of-02
expect_exit 1 "$BIN" verify two
grep -qx 'two: 1 of 2 ranks is here; rank 1 is not' stdout || fail 'half a blob holds'
expect_exit 1 "$BIN" verify two --json
grep -q '"holds": false' stdout || fail 'half a blob holds'
expect_exit 0 "$BIN" unpack two -o loaded

# The folders of ranks are checkpoints; all together are neither a checkpoint nor a blob.
expect_exit 3 "$BIN" convert loaded -o bad --arch sm90
expect_one_error 'loaded: no checkpoint here'
expect_exit 3 "$BIN" verify two --against loaded
expect_one_error 'loaded: no checkpoint here'

# One rank's share, by way of unpack: the bytes that the rank's blob has.
expect_exit 0 "$BIN" unpack two/rank-00-of-02 -o share
convert_quietly share/rank-00-of-02 -o share-again $flags --knob tp_size=2
"$python" - <<'PY'
import json
was, now = (json.load(open(path + "/mxfp4_repack.json"))["layers"] for path in ("two/rank-00-of-02", "share-again"))
assert was and [[t["name"], t["xxh3_128"]] for layer in was for t in layer["tensors"]] == [[t["name"], t["xxh3_128"]] for layer in now for t in layer["tensors"]]
PY

# An unpacked blob is an input: a whole layer is cut as the checkpoint is, a slice not once more.
# shellcheck disable=SC2086
{
  rm -rf whole direct around back
  convert_quietly "$model" -o whole $flags
  expect_exit 0 "$BIN" unpack whole -o back
  convert_quietly "$model" -o direct $flags --tp-size 2
  convert_quietly back -o around $flags --tp-size 2
  for file in direct/rank-*/layer-*; do cmp "$file" "around/${file#direct/}" || fail "$file by way of unpack"; done
  expect_exit 0 "$BIN" verify direct --against "$model"
  expect_exit 4 "$BIN" convert loaded/rank-00-of-02 -o bad $flags --tp-size 2
  expect_one_error 'may hold padding'
}

