# verify --against an input that the blob was not made from: a finding, whatever differs, and never
# more than that.
need_numpy
make() { "$SOURCE_DIR/scripts/make-checkpoint" "$@" >/dev/null; }
make model --experts 4 --hidden 256 --intermediate 192
make fewer --experts 2 --hidden 256 --intermediate 192
make wider --experts 4 --hidden 512 --intermediate 192
make longer --experts 4 --hidden 256 --intermediate 256
make deeper --experts 4 --hidden 256 --intermediate 192 --layers 3
make other --experts 4 --hidden 256 --intermediate 192 --seed 2
models='model fewer wider longer deeper other'

# differs WORDS INPUT BLOB FLAGS...
differs() {
  local words=$1
  shift
  expect_exit 1 "$BIN" verify "$2" --against "$1" --threads 4
  grep -q "$words" stdout || { cat stdout; fail "$2 against $1: no word of $words"; }
  [ ! -s stderr ] || { cat stderr; fail "$2 against $1: more than findings"; }
}

for flags in '--backend TRITON --arch sm90' '--backend MARLIN --arch sm80' '--emit loaded --arch sm80'; do
  for made in model longer; do
    rm -rf blob
    # shellcheck disable=SC2086
    convert_quietly $made -o blob $flags
    for input in $models; do
      if [ $input = $made ]; then
        expect_exit 0 "$BIN" verify blob --against $input
      else
        differs 'the input has\|not the repack' $input blob
      fi
    done
  done
done
rm -rf blob
convert_quietly model -o blob --backend MARLIN --arch sm80 -q
differs 'layer 0: experts: 0-3 in the manifest, the input has 0-1$' fewer blob
differs 'layer 0: hidden size: 256 in the manifest, the input has 512$' wider blob
differs 'layer 0: intermediate rows: \[0, 192) in the manifest, the input has \[0, 256)$' longer blob
differs 'layers: 2 in the manifest, the input has 3$' deeper blob

# Some layers of a model are compared with those.
convert_quietly deeper -o some --backend MARLIN --arch sm80 --layers 1-2
expect_exit 0 "$BIN" verify some --against deeper
differs 'layers: 2 in the manifest, the input has 1$' model some

# Findings do not depend on threads.
"$BIN" verify blob --against other --threads 1 >one || true
"$BIN" verify blob --against other --threads 4 >four || true
[ "$(wc -l <one)" -gt 8 ] || fail 'few findings'
cmp one four || fail 'findings in another order'

# Ranks: a slice that the input does not have.
for flags in '--tp-size 2' '--tp-size 2 --enable-expert-parallel'; do
  rm -rf ranks
  # shellcheck disable=SC2086
  convert_quietly model -o ranks --backend MARLIN --arch sm80 $flags
  expect_exit 0 "$BIN" verify ranks --against model
  for input in fewer wider longer deeper other; do
    differs 'the input has\|not the repack' $input ranks
    differs 'the input has\|not the repack' $input ranks/rank-01-of-02
  done
done
make odd --experts 3 --hidden 256 --intermediate 192
differs 'the input has no such rank: 3 experts are not divisible' odd ranks
