# Errors of a command line name the flag, and the nearest name; short flags; help.
model=$TESTDATA/ingest/gptoss_hf

while IFS='|' read -r words hint arguments; do
  # shellcheck disable=SC2086
  expect_exit 2 "$BIN" $arguments
  expect_one_error "$words$"
  grep -qE "^hint: $hint" stderr || { cat stderr >&2; fail "$arguments: no hint: $hint"; }
done <<END
unknown flag '--tp'|did you mean --tp-size\?|convert $model -o out --arch sm90 --tp 2
unknown flag '-tp'|did you mean --tp-size\?|convert $model -o out --arch sm90 -tp 2
unknown flag '--prefill-context-parallel-size'|did you mean --pcp-size\?|explain --arch sm90 --prefill-context-parallel-size 2
unknown flag '--tp_size'|did you mean --tp-size\?|explain --arch sm90 --tp_size=2
unknown flag '--eplb-config.num_redundant_experts'|its member num_redundant_experts is|explain --eplb-config.num_redundant_experts 2
unknown flag '--out'|did you mean --output\?|convert $model --out out
unknown flag '--dry'|did you mean --dry-run\?|convert $model -o out --dry
unknown flag '--xyzzy'|mxfp4-repack verify --help|verify out --xyzzy
unknown flag '-x'|mxfp4-repack convert --help|convert $model -o out -x
unknown flag '--input'|the checkpoint is the first argument$|convert --input $model -o out
unknown command 'convrt'|did you mean convert\?|convrt
unknown command 'frobnicate'|one of convert, inspect|frobnicate
list: unknown value 'layout'|did you mean layouts\?$|list layout
-v excludes --quiet|mxfp4-repack verify --help|verify out -vq
Could not convert: --json = maybe|mxfp4-repack verify --help|verify out --json=maybe
--arch: 1 required TEXT missing|mxfp4-repack explain --help|explain --arch
--output is required|mxfp4-repack convert --help|convert $model
INPUT is required|mxfp4-repack convert --help|convert -o out
The following argument was not expected: b|mxfp4-repack convert --help|convert $model b -o out
--style requires --against|mxfp4-repack verify --help|verify out --style quark
--output: hf://org/x: an address; only convert without --shard writes to one, s3://...|write to a local directory|convert $model -o hf://org/x --arch sm90
--layer: '-3' is not a number from 0 to 999999|mxfp4-repack inspect --help|inspect $model --layer -3
--tp-size: 'two' is not a number from 1 to 65536|mxfp4-repack explain --help|explain --arch sm90 --tp-size two
END
expect_exit 0 "$BIN"
grep -q '^Usage: mxfp4-repack COMMAND' stdout || fail 'no help'
expect_exit 2 "$BIN" list bogus
[ "$(grep -o 'layouts' stderr | wc -l)" = 1 ] || { cat stderr >&2; fail 'the tables are listed twice or not'; }

expect_exit 0 "$BIN" help
mv stdout top
"$BIN" --help | diff - top || fail 'help is not --help'
# Flags that one deployment in ten needs are behind --help-all; --help says so.
expect_exit 0 "$BIN" convert --help
grep -q '^Rarer flags: mxfp4-repack convert --help-all$' stdout || fail 'no way to the other flags'
! grep -q -- '--selector' stdout || fail '--help shows a rare flag'
expect_exit 0 "$BIN" help convert
mv stdout one
"$BIN" convert --help | diff - one || fail 'help convert is not convert --help'

expect_exit 0 "$BIN" convert "$model" -o out --arch sm90 -n -q
[ ! -e out ] || fail '-n wrote'
expect_exit 0 "$BIN" convert "$model" -o out --arch sm90 -j 2 -q
expect_exit 5 "$BIN" convert "$model" -o out --arch sm90 -q
expect_exit 0 "$BIN" convert "$model" -o out --arch sm90 -f -j2 -q
