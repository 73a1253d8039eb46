# --help-all, the man page and the completion name the same commands and flags.
python3 "$SOURCE_DIR/tests/cli/flags.py" "$BIN" "$SOURCE_DIR"
# Each completion is at least a program of its shell.
bash -n "$SOURCE_DIR/scripts/completions/mxfp4-repack.bash"
! command -v zsh >/dev/null || zsh -n "$SOURCE_DIR/scripts/completions/mxfp4-repack.zsh"
! command -v fish >/dev/null || fish -n "$SOURCE_DIR/scripts/completions/mxfp4-repack.fish"
