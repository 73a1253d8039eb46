# The first screen of README.md has what the program is for, how to install it, what it saves, and two commands with what
# they print (page_commands.sh runs them); its tables are the program's.
need_numpy
"$SOURCE_DIR/scripts/make-checkpoint" small >made
head -n 40 "$SOURCE_DIR/README.md" >screen
[ "$(grep -c '^    \$ mxfp4-repack ' screen)" = 2 ] || fail 'not two commands on the first screen'
for words in '^Use it if ' '^Do not use it for ' 'mxfp4-repack explain' '^    pip install ./scripts/python ' 'man/guide/README.md' 'CHANGELOG' 'mxfp4-repack completion'; do
  grep -q "$words" screen || fail "not on the first screen: $words"
done

# The shares on the first screen are those of the table of measurements.
table() { sed -n "s/^| $1 a blob | \([0-9.]*\) | [0-9.]* | \([0-9.]*\): .*/\1 \2/p" "$SOURCE_DIR/README.md"; }
read -r least peak < <(table with)
read -r _ same < <(table without)
most=$(sed -n 's/^With 0.33.0 it is \([0-9.]*\),.*/\1/p' "$SOURCE_DIR/README.md")  # the newest release
[ "$peak" = "$same" ] || fail 'two peaks in the table'
grep -qF "$least to $most of the time, at $peak of the GPU memory peak" screen || fail "not the table's shares on the first screen"

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

# Links lead somewhere.
for page in README.md man/guide/*.md .github/CONTRIBUTING.md man/layouts/README.md scripts/python/*.md; do
  for page in "$SOURCE_DIR"/$page; do
    while IFS= read -r link; do
      [ -e "$(dirname "$page")/$link" ] || fail "$page: no $link"
    done < <(grep -oE '\]\([^)#]+' "$page" | sed 's/^](//' | grep -vE '^[a-z]+:')
  done
done
