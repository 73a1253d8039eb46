# The output at the top of README.md is what its commands print, figures aside; and it stands on the
# first screen, with what the program is for.
need_numpy
"$SOURCE_DIR/scripts/make-checkpoint" small >made
head -n 40 "$SOURCE_DIR/README.md" >screen
masked() { sed -E 's/[0-9.]+ [KMG]?i?B/N B/g; s/ in [0-9.]+ s/ in N s/'; }
count=0
while IFS= read -r command; do
  read -r -a words <<<"$command"
  expect_exit 0 "$BIN" "${words[@]}"
  masked <stdout >printed
  sed -n "/^    \$ mxfp4-repack ${words[0]} /{n;s/^    //p}" screen | masked | diff - printed ||
    fail "README.md shows something else: $command"
  count=$((count + 1))
done < <(sed -n 's/^    \$ mxfp4-repack //p' screen)
[ "$count" = 2 ] || fail 'not two commands on the first screen'
for words in '^Use it if ' '^Do not use it for ' 'mxfp4-repack explain'; do
  grep -q "$words" screen || fail "not on the first screen: $words"
done
