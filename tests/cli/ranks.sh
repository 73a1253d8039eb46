# Several ranks: a directory each, what the manifests say, one rank alone, and the way back.
need_numpy
model=$TESTDATA/ingest/gptoss_hf
flags='--backend MARLIN --arch sm80'

# $1 ranks, then flags: every rank verifies, alone and with the others; --rank gives the same bytes.
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
for size in 2 4 8; do check_ranks $size --tp-size $size; done
check_ranks 2 --tp-size 2 --enable-expert-parallel
check_ranks 4 --dp-size 2 --tp-size 2 --enable-expert-parallel
flags='--backend MARLIN --arch sm80'
input=$TESTDATA/ingest/quark_w4a4
check_ranks 2 --tp-size 2
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
        said = json.load(open(f"all/{folder}/mxfp4_repack.json"))["rank"]
        assert said["rank"] == rank, said
        experts.append(said["experts"])
        spans.append(said["intermediate_range"])
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
        elif slot == "w2_bias":  # on the first rank alone
            assert not got[1].any(), key
            made = got[0]
        else:
            made = numpy.concatenate(got, 2 if slot.startswith("w2") else 1)
        assert numpy.array_equal(made, want), key
PY
  rm -rf whole
done

# What cannot be cut is refused: no output.
# shellcheck disable=SC2086
expect_exit 4 "$BIN" convert "$model" -o bad $flags --tp-size 3 --enable-expert-parallel
expect_one_error ''
[ ! -e bad ] || fail 'a refused cut left an output'
