# Every block of README.md, of the guides, of the pages of plug-ins and batch scripts, of the man page and of --help works as
# the page has it. readme.sh looks at README's tables; what installs is run by tests/package.
need_numpy
"$python" -c 'import yaml' 2>/dev/null || skip 'python3-yaml is not installed'
mkdir help work
commands=$("$BIN" --help | sed -nE '/^Commands:/,/^$/s/^  ([a-z]+) .*/\1/p')
for command in '' $commands; do
  # shellcheck disable=SC2086
  "$BIN" $command --help >"help/help-$command"
done
pages=("$SOURCE_DIR"/{README.md,scripts/batch/README.md,man/mxfp4-repack.1} "$SOURCE_DIR"/scripts/python/{README,VLLM,SGLANG}.md "$PWD"/help/*)
for page in "$SOURCE_DIR"/man/guide/*.md; do
  case $page in */README.md) continue ;; esac
  grep -q "(${page##*/})" "$SOURCE_DIR/man/guide/README.md" || fail "man/guide/README.md: no $page"
  pages+=("$page")
done
# Beside a sanitizer or an emulator: the guides that need no reader.
if slow; then pages=("$SOURCE_DIR"/man/guide/{tutorial,how-to,pipeline,container,kubernetes,explanation}.md); fi
cd work
PAGES_PROGRAM=$BIN PAGES_SOURCE=$SOURCE_DIR "$python" "$SOURCE_DIR/tests/cli/pages.py" "${pages[@]}" || fail 'a block of a page'
