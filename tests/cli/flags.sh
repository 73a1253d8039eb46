# --help-all, the man page and the completion name the same commands and flags.
python3 "$SOURCE_DIR/tests/cli/flags.py" "$BIN" "$SOURCE_DIR"
# Each completion is at least a program of its shell.
bash -n "$SOURCE_DIR/scripts/completions/mxfp4-repack.bash"
! command -v zsh >/dev/null || zsh -n "$SOURCE_DIR/scripts/completions/mxfp4-repack.zsh"
! command -v fish >/dev/null || fish -n "$SOURCE_DIR/scripts/completions/mxfp4-repack.fish"

# The comparison can fail: a flag, a command or a value that one of them lost or invented is named.
mkdir -p copy/scripts
damaged() {
  local file=$1 edit=$2 what=$3
  rm -rf copy/man copy/scripts/completions
  cp -r "$SOURCE_DIR/man" copy/
  cp -r "$SOURCE_DIR/scripts/completions" copy/scripts/
  sed -i -E "$edit" "copy/$file"
  cmp -s "copy/$file" "$SOURCE_DIR/$file" && fail "$file: '$edit' changed nothing"
  expect_exit 1 python3 "$SOURCE_DIR/tests/cli/flags.py" "$BIN" copy
  grep -q -e "$what" stdout || { cat stdout; fail "$file: not found: $what"; }
}
damaged man/mxfp4-repack.1 's/include\\-rest/include\\-all/' 'the man page has convert --include-all, --help not'
damaged man/mxfp4-repack.1 's/^\.B \\-\\-resume$/.B resume/' '^--help has convert --resume, the man page not'
