# What a person sees in a terminal: help, tables, colour, the progress bar, the line at the end.
model=$TESTDATA/ingest/gptoss_hf

# on_terminal COMMAND: runs it with a terminal for stdin, stdout and stderr; all output in `seen`.
on_terminal() {
  command -v script >/dev/null || skip 'util-linux script is not installed'
  TERM=xterm script -qec "stty cols 80; $1" /dev/null </dev/null >seen
}
fits() { [ "$(LC_ALL=C.UTF-8 wc -L <"$1")" -le 80 ] || { cat "$1" >&2; fail "$2: wider than 80"; }; }

# Help: examples before flags, every command, nothing wider than the terminal.
for command in '' convert inspect explain verify fits diff unpack finalize list completion; do
  # shellcheck disable=SC2086
  expect_exit 0 "$BIN" $command --help
  fits stdout "$command --help"
  [ "$(grep -n '^Examples:' stdout | cut -d: -f1)" -lt "$(grep -n -m1 '^  -' stdout | cut -d: -f1)" ] ||
    fail "$command --help: flags before examples"
  grep -qE "^  mxfp4-repack ${command:-explain} " stdout || fail "$command --help: no example of itself"
done

# Tables.
expect_exit 0 "$BIN" convert "$model" -o out --arch sm90
expect_exit 0 "$BIN" convert "$model" -o ranks --arch sm90 --tp-size 2 --backend MARLIN
for command in 'list backends' 'list layouts' 'list machines' 'list revisions' 'list styles' 'list variables' \
  'list libraries' 'list knobs' 'list layouts triton' 'fits out --revision 0.30' '--version -v' 'convert --help-all' 'inspect out' \
  'inspect ranks' "explain --arch sm90" "explain --arch sm100 --moe-backend triton"; do
  # shellcheck disable=SC2086
  "$BIN" $command >stdout 2>/dev/null || true
  fits stdout "$command"
done
ln -s "$model" model
expect_exit 0 "$BIN" inspect model --arch sm90
fits stdout 'inspect'
"$BIN" inspect ranks >stdout
grep -qE '^rank +data bytes +stored bytes ' stdout || fail 'no table of ranks'

# Colour on a terminal only; NO_COLOR and --color have their say; the words are the same without it.
escape=$(printf '\033')
expect_exit 0 "$BIN" inspect out
! grep -q "$escape" stdout || fail 'colour in a file'
expect_exit 0 "$BIN" inspect out --color always
grep -q "$escape" stdout || fail 'no colour with --color always'
sed "s/$escape\[[0-9;]*m//g" stdout >plain
"$BIN" inspect out | diff - plain || fail 'colour says more than words'
"$BIN" verify out --color always | grep -q "^out: $escape\[32mok$escape\[0m, " || fail 'ok is not green'
"$BIN" diff out ranks --color always | grep -q "^out and ranks $escape\[31mdiffer$escape\[0m: " || fail 'differ is not red'
on_terminal "$BIN inspect out"
grep -q "$escape\[1m" seen || fail 'no colour on a terminal'
on_terminal "$BIN convert $model -o new --dry-run --arch sm90"
grep -q "$escape\[1mlayers" seen || fail 'no colour in a plan'
on_terminal "NO_COLOR=1 $BIN inspect out"
! grep -q "$escape" seen || fail 'colour despite NO_COLOR'
on_terminal "$BIN inspect out --color never"
! grep -q "$escape" seen || fail 'colour despite --color never'

# The bar: bytes, rate, ETA; wiped before the one line at the end; only on a terminal.
bar='\[#* *\] +[0-9]+ %  [0-9.]+ [KMG]?i?B of [0-9.]+ [KMG]?i?B  [0-9.]+ [KMG]?i?B/s  ETA [0-9]+:[0-9]{2}'
wiped="$(printf '\r\033[K')"
for command in "convert $model -o 'a blank' --arch sm90" "verify 'a blank'" "unpack 'a blank' -o loaded"; do
  eval "\"\$BIN\" $command --progress always" >both 2>&1
  tr '\r' '\n' <both | grep -qE "$bar" || fail "$command: no bar"
  grep -qF "$wiped'a blank': " both || grep -qF "${wiped}loaded: " both ||
    fail "$command: the bar is not wiped before the last line"
  tr '\r' '\n' <both | sed "s/^$escape\[K//" | grep -vF 'next:' >lines
  fits lines "$command"
done
rm -r 'a blank'
expect_exit 0 "$BIN" convert "$model" -o 'a blank' --arch sm90 --revision vllm-2026-05-18
last="^'a blank': 2 layer files for TRITON, .* in [0-9.]+ s, .*/s\$"
grep -qE "$last" stdout || fail "the result is: $(cat stdout)"
[ "$(tail -n 1 stdout)" = "next: mxfp4-repack verify 'a blank'" ] || fail 'what to do next is not said last'
grep -q "^serve: vllm serve $model " stdout || fail 'how it is served is not said'
[ ! -s stderr ] || fail 'a bar without a terminal'

# Usual and wide terminals: help, tables and the bar fit, and say the same.
# What serves a blob is left out: a shell could not take its parts in pieces (cli.serve compares it).
in_width() { # COLUMNS COMMAND
  script -qec "stty cols $1; $2" /dev/null </dev/null | tr -d '\r' | sed "s/$escape\[[0-9;]*m//g; /^serve: /,\$d" >seen
}
words_of() { tr -d ' \n' <"$1" | fold -w1 | sort; }
if command -v script >/dev/null; then
  for command in 'inspect ranks' 'inspect model --arch sm90 --revision vllm-2026-05-18' 'verify --help' 'list styles'; do
    for width in 80 200; do
      in_width $width "$BIN $command"
      [ -z "$(grep -v '^  mxfp4-repack ' seen | awk -v w=$width 'length > w')" ] ||
        { cat seen; fail "wider than $width: $command"; }
      words_of seen >"words.$width"
      cmp words.80 "words.$width" ||
        fail "$command says something else at $width columns"
    done
  done
fi

# Without a terminal a line now and then, a minute by default: never a bar.
MXFP4_REPACK_PROGRESS_SECONDS=0.000001 expect_exit 0 "$BIN" verify out
line='mxfp4-repack: [0-9]+ %  [0-9.]+ [KMG]?i?B of [0-9.]+ [KMG]?i?B  [0-9.]+ [KMG]?i?B/s  ETA [0-9]+:[0-9]{2}'
grep -qxE "$line" stderr || fail "no line of progress: $(cat stderr)"
! grep -q "$escape" stderr || fail 'a bar in a log'
for flag in '--progress never' -q; do
  # shellcheck disable=SC2086
  MXFP4_REPACK_PROGRESS_SECONDS=0.000001 expect_exit 0 "$BIN" verify out $flag
  [ ! -s stderr ] || fail "progress with $flag"
done
