# Errors of a command line name the flag; short flags; help.
model=$TESTDATA/ingest/gptoss_hf

while IFS='|' read -r words hint arguments; do
  # shellcheck disable=SC2086
  expect_exit 2 "$BIN" $arguments
  expect_one_error "$words$"
  grep -qE "^hint: $hint" stderr || { cat stderr >&2; fail "$arguments: no hint: $hint"; }
  ! grep -qE 'TEXT|INT|FLOAT|required|[Ee]xcludes|Could not|expected' stderr || { cat stderr >&2; fail "raw words: $arguments"; }
done <<END
unknown flag '--tp'|did you mean --tp-size\?|convert $model -o out --arch sm90 --tp 2
unknown flag '-tp'|did you mean --tp-size\?|convert $model -o out --arch sm90 -tp 2
unknown flag '--tensor-parallel-size'|did you mean --tp-size\?|explain --arch sm90 --tensor-parallel-size 2
unknown flag '--tp_size'|did you mean --tp-size\?|explain --arch sm90 --tp_size=2
unknown flag '--ep'|did you mean --enable-expert-parallel\?|explain --arch sm90 --ep
unknown flag '--gpu'|did you mean --arch\?|explain --gpu H100
unknown flag '--out'|did you mean --output\?|convert $model --out out
unknown flag '--overwrite'|did you mean --force\?|convert $model -o out --arch sm90 --overwrite
unknown flag '--jobs'|did you mean --threads\?|verify out --jobs 2
unknown flag '--backend-name'|did you mean --backend\?|explain --backend-name MARLIN
unknown flag '--dry'|did you mean --dry-run\?|convert $model -o out --dry
unknown flag '--quiett'|did you mean --quiet\?|verify out --quiett
unknown flag '--verbose'|did you mean -v\?|verify out --verbose
unknown flag '--vllm-version'|did you mean --revision\?|explain --arch sm90 --vllm-version 0.31.0
unknown flag '--shard'|--shard is a flag of convert|explain --arch sm90 --shard 0/4
unknown flag '--xyzzy'|mxfp4-repack verify --help|verify out --xyzzy
unknown flag '-x'|mxfp4-repack verify --help|verify out -x
unknown flag '-t'|mxfp4-repack convert --help|convert $model -o out -t
unknown flag '--bogus'|mxfp4-repack convert --help|convert $model -o out -j4 --bogus
unknown flag '-x'|mxfp4-repack convert --help|convert $model -o out -nvx
unknown flag '-f'|-f is a flag of convert, unpack|verify out -vf
unknown flag '-json'|did you mean --json\?|verify out -json
-v and --quiet contradict each other: give one of them|.|verify out -vq
unknown flag '-v'|flags follow the command|-v verify out
unknown flag '--version'|--version takes no command|verify --version
--json: 'maybe' is neither true nor false; the flag without a value means true|.|verify out --json=maybe
unknown command 'convrt'|did you mean convert\?|convrt
unknown command 'frobnicate'|one of convert, inspect|frobnicate
unknown command 'convrt'|did you mean convert\?|help convrt
unknown command 'version'|did you mean --version\?|version
--arch: its value is missing|mxfp4-repack explain --help|explain --arch
--arch: its value is missing|mxfp4-repack explain --help|explain --arch sm90 --arch
--threads: its value is missing|mxfp4-repack convert --help|convert $model -o out -nj
--arch: given more than once|mxfp4-repack explain --help|explain --arch sm90 --arch sm90
--enable-lora: 'maybe' is neither true nor false; the flag without a value means true|.|explain --enable-lora --enable-lora=maybe
--output is missing: directory to write|mxfp4-repack convert --help|convert $model
--output is missing: directory to write|did you mean -o packed\?$|convert $model packed
--output is missing: directory to write|did you mean -o packed\?$|convert $model packed --arch H100
--output is missing: directory to write|did you mean -o back\?$|unpack packed back
--output is missing: directory to write|mxfp4-repack convert --help|convert $model a b
'b' is one argument too many|a checkpoint of several files is given by its directory|convert $model b -o out
'H100' is one argument too many|did you mean --arch H100\?$|convert $model H100 -o out
'mi300x' is one argument too many|did you mean --arch mi300x\?$|explain $model mi300x
INPUT is missing: checkpoint: directory, file or manifest|mxfp4-repack convert --help|convert -o out
--layer: '-3' is not a number from 0 to 999999|mxfp4-repack inspect --help|inspect $model --layer -3
--tp-size: 'two' is not a number from 1 to 65536|mxfp4-repack explain --help|explain --arch sm90 --tp-size two
'b' is one argument too many|did you mean --against b\?$|verify a b
2 arguments too many: 'b' 'c'|mxfp4-repack verify --help|verify a b c
'c' is one argument too many|mxfp4-repack finalize --help|finalize a -- c
2 arguments too many: 'b' 'c'|a checkpoint of several files is given by its directory|convert a b c -o out
--style: has no effect without --against|mxfp4-repack verify --help|verify out --style quark
'0.33.0' is one argument too many|did you mean --revision 0.33.0\?$|fits out 0.33.0
'vllm-0.25.1' is one argument too many|did you mean --revision vllm-0.25.1\?$|explain $model vllm-0.25.1
'facts.json' is one argument too many|did you mean --target facts.json\?$|fits out facts.json
unknown flag '—tp-size'|its dash is not the keyboard's: --tp-size$|convert $model -o out --arch sm90 —tp-size 2
unknown flag '–-arch=sm90'|its dash is not the keyboard's: --arch=sm90$|explain $model –-arch=sm90
unknown flag '−v'|its dash is not the keyboard's: -v$|verify out −v
--output is missing: directory to write|behind -- no word is a flag$|convert $model -- -o out
unknown command 'probe'|mxfp4-repack-probe is a program of its own$|probe
unknown flag '--input'|the checkpoint is the first argument$|convert --input $model -o out
unknown flag '-i'|the checkpoint is the first argument$|convert -i $model -o out
unknown flag '--num-workers'|did you mean --threads\?$|convert $model -o out --num-workers 4
list: unknown value 'gpus'|did you mean machines\?$|list gpus
list: unknown value 'env'|did you mean variables\?$|list env
list: unknown value 'releases'|did you mean revisions\?$|list releases
list: unknown value 'libs'|did you mean libraries\?$|list libs
completion: unknown value '/usr/bin/zsh'|did you mean zsh\?$|completion /usr/bin/zsh
--arch: unknown machine 'native'|on the serving machine, mxfp4-repack-probe > facts.json; then --target facts.json$|explain --arch native
--arch: unknown machine 'Auto'|on the serving machine, mxfp4-repack-probe > facts.json; then --target facts.json$|explain --arch Auto
--arch: unknown machine 'cuda'|the GPU is what counts: --arch sm90|explain --arch cuda
--arch: unknown machine 'all'|one machine at a time$|explain --arch all
--output: s3://bucket/x: an address, and this program writes local files only|write to a local directory|convert $model -o s3://bucket/x --arch sm90
--output: hf://a/b: an address, and this program writes local files only|write to a local directory|unpack out -o hf://a/b
--output: ~/packed: the shell left ~ as it is|leave out quotes and "="; ./~/packed is a path|convert $model --output=~/packed --arch sm90
--output: ~: the shell left ~ as it is|.|unpack out --output=~
END
expect_exit 3 "$BIN" explain H100
expect_one_error 'H100: a machine, not a checkpoint$'
grep -qx 'hint: did you mean --arch H100?' stderr || fail 'no hint for a machine'
expect_exit 0 "$BIN"
grep -q '^Usage: mxfp4-repack COMMAND' stdout || fail 'no help'
expect_exit 2 "$BIN" list bogus
[ "$(grep -o 'layouts' stderr | wc -l)" = 1 ] || { cat stderr >&2; fail 'the tables are listed twice or not'; }

expect_exit 0 "$BIN" help
mv stdout top
"$BIN" --help | diff - top || fail 'help is not --help'
expect_exit 0 "$BIN" help help
diff stdout top || fail 'help help is not help'
expect_exit 0 "$BIN" help convert
mv stdout one
"$BIN" convert --help | diff - one || fail 'help convert is not convert --help'

expect_exit 0 "$BIN" convert "$model" -o out --arch sm90 -n -q
[ ! -e out ] || fail '-n wrote'
expect_exit 0 "$BIN" convert "$model" -o out --arch sm90 -j 2 -q
expect_exit 5 "$BIN" convert "$model" -o out --arch sm90 -q
expect_exit 0 "$BIN" convert "$model" -o out --arch sm90 -f -j2 -q
