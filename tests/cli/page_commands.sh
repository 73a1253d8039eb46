# Every command in the pages of the plug-ins, in --help and in the examples of the man page works as
# the page has it. readme.sh and guide.sh run those of README.md and of the guides, install_commands.sh what installs.
need_numpy
if slow; then skip 'the same commands, slowly'; fi
mkdir pages work
commands=$("$BIN" --help | sed -nE '/^Commands:/,/^$/s/^  ([a-z]+) .*/\1/p')
for command in '' $commands; do
  # shellcheck disable=SC2086
  "$BIN" $command --help >"pages/help-$command"
done
cp "$SOURCE_DIR"/scripts/python/{VLLM,SGLANG}.md "$SOURCE_DIR/man/mxfp4-repack.1" pages
cd work
"$python" "$SOURCE_DIR/tests/cli/pages.py" "$BIN" "$SOURCE_DIR" ../pages/* >../ran || fail 'a command of a page'
cat ../ran
# As many as a reader counts.
for row in 'VLLM.md: 3' 'SGLANG.md: 9' 'mxfp4-repack.1: '; do
  grep -q "^$row" ../ran || fail "not so many commands: $row"
done
