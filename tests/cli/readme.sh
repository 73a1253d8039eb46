# The output at the top of README.md is what its commands print, figures aside; and it is on the
# first screen, with what the program is for, how to install it, and what it saves.
need_numpy
"$SOURCE_DIR/scripts/make-checkpoint" small >made
head -n 40 "$SOURCE_DIR/README.md" >screen
# Sizes are the program's; only times and rates differ from run to run.
masked() { sed -E 's/[0-9.]+ [KMG]?i?B\/s/N B\/s/g; s/ in [0-9.]+ s/ in N s/'; }
count=0
while IFS= read -r command; do
  read -r -a words <<<"$command"
  expect_exit 0 "$BIN" "${words[@]}"
  masked <stdout >printed
  awk -v command="    \$ mxfp4-repack ${words[0]} " '
    /^    \$ / || !NF { on = 0 } on { print substr($0, 5) } index($0, command) == 1 { on = 1 }' screen |
    masked | diff - printed ||
    fail "README.md shows something else: $command"
  count=$((count + 1))
done < <(sed -n 's/^    \$ mxfp4-repack //p' screen)
[ "$count" = 2 ] || fail 'not two commands on the first screen'
for words in '^Use it if ' '^Do not use it for ' 'mxfp4-repack explain' '^    pip install ./scripts/python ' 'man/guide/README.md' 'CHANGELOG' 'mxfp4-repack completion'; do
  grep -q "$words" screen || fail "not on the first screen: $words"
done

# The shares on the first screen are those of the table of measurements.
table() { sed -n "s/^| a blob, $1 | \([0-9.]*\) to \([0-9.]*\) | \([0-9.]*\): .*/\1 \2 \3/p" "$SOURCE_DIR/README.md"; }
read -r least _ peak < <(table '`--compress none`')
read -r _ most same < <(table default)
[ "$peak" = "$same" ] || fail 'two peaks in the table'
grep -qF "$least to $most of the time, $peak of the GPU memory peak" screen || fail "not the table's shares on the first screen"

# Links lead somewhere.
for page in README.md man/guide/*.md .github/CONTRIBUTING.md man/layouts/README.md scripts/python/*.md; do
  for page in "$SOURCE_DIR"/$page; do
    while IFS= read -r link; do
      [ -e "$(dirname "$page")/$link" ] || fail "$page: no $link"
    done < <(grep -oE '\]\([^)#]+' "$page" | sed 's/^](//' | grep -vE '^[a-z]+:')
  done
done
