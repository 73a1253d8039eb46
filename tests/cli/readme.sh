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

# The tables are the program's: commands, what list shows, naming styles, exit codes, backends of gpt-oss.
same() { diff <(printf '%s\n' "$2" | sort -u) <(printf '%s\n' "$3" | sort -u) || fail "README.md and the program differ: $1"; }
section() { awk -v head="## $1" '/^## / { on = $0 == head } on' "$SOURCE_DIR/README.md"; }
first_column() { sed -nE 's/^\| (`[^|]*|[0-9][^|]*[0-9]|[0-9]) \|.*/\1/p' | tr -d '`' | sed 's/, /\n/g'; }
same commands "$(section Commands | first_column)" "$("$BIN" --help | sed -nE '/^Commands:/,/^$/s/^  ([a-z]+) .*/\1/p')"
expect_exit 2 "$BIN" list nothing
same 'what list shows' "$(section Commands | sed -n 's/^| `list` | //p' | grep -o '`[a-z]*`' | tr -d '`')" \
  "$(sed -n 's/^hint: one of //p' stderr | sed 's/, /\n/g')"
same styles "$(section Inputs | first_column)" "$("$BIN" list styles --json | sed -n 's/.*"style": "\(.*\)",/\1/p')"
said=$(tr '\n' ' ' <"$SOURCE_DIR/README.md" | sed 's/.*stock packages //; s/\. .*//')
for row in sm100:FLASHINFER_TRTLLM_MXFP4_BF16 sm90:TRITON gfx942:TRITON gfx950:TRITON sm80:MARLIN sm120:MARLIN; do
  "$BIN" explain small --arch "${row%:*}" -q | head -n 1 | grep -q "^${row#*:}," || fail "another backend: $row"
  grep -qE "${row#*:} on ([a-z0-9, ]*|.* )${row%:*}" <<<"$said" || fail "README.md does not say it: $row"
done

# The commands below the first screen work as they are, on a small model whose heads 8 ranks share.
"$SOURCE_DIR/scripts/make-checkpoint" model --hidden 512 --intermediate 2048 >made
sed -i -E 's/("num_attention_heads": )[0-9]+/\164/; s/("num_key_value_heads": )[0-9]+/\18/' model/config.json
cp -r model gpt-oss-20b
count=0
while IFS= read -r command; do
  case $command in
    'explain gpt-oss-20b/ '*) rm -rf packed ;;  # a new story
    *'--tp-size 8') rm -rf packed ;;
  esac
  got=0
  eval "\"$BIN\" $command" >stdout 2>stderr || got=$?
  case $command:$got in *:0 | fits*:1 | 'explain --arch sm120 '*:4) ;; *) cat stderr >&2; fail "exit $got: $command" ;; esac
  count=$((count + 1))
done < <(sed -n '41,$s/^    mxfp4-repack \([^#]*[^# ]\).*/\1/p' "$SOURCE_DIR/README.md")
[ "$count" = 8 ] || fail "$count commands in place of 8"

# Links lead somewhere.
for page in README.md man/guide/*.md .github/CONTRIBUTING.md man/layouts/README.md scripts/python/*.md; do
  for page in "$SOURCE_DIR"/$page; do
    while IFS= read -r link; do
      [ -e "$(dirname "$page")/$link" ] || fail "$page: no $link"
    done < <(grep -oE '\]\([^)#]+' "$page" | sed 's/^](//' | grep -vE '^[a-z]+:')
  done
done
