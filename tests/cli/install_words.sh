# No page or help text sends anybody to a package index by this project's name: it is not published,
# and whoever takes the name there first would be installed.
bare() { grep -rnIE '((pip3?|pipx|uv|poetry|tool) +(install|add|run)|uvx)[^|`;&]*[ "'\''`]mxfp4[-_.]repack(\[|[ "'\''`=<>~;,]|$)' "$@" || [ $? = 1 ]; }
printf '%s\n' 'pip install mxfp4-repack' 'run `pip install -U mxfp4_repack`' 'uv pip install "mxfp4-repack[gpu]"' 'pipx install mxfp4.repack==1' >sent
[ "$(bare sent | wc -l)" = 4 ] || fail 'the pattern finds nothing'
printf '%s\n' 'pip install ./mxfp4_repack-*.whl' 'pip install ./scripts/python' 'pip uninstall mxfp4-repack' >kept
[ -z "$(bare kept)" ] || fail 'the pattern finds too much'

mkdir said
for command in '' convert explain inspect verify diff unpack finalize list; do
  # shellcheck disable=SC2086
  "$BIN" $command --help >"said/help-$command"
done
found=$(bare said "$SOURCE_DIR"/{README.md,.github,man,scripts,apps,formats,lib})
[ -z "$found" ] || { printf '%s\n' "$found" >&2; fail 'a name that anybody could take'; }

# What they say instead is there: the folder that pip builds, and the wheel's name as it is built.
[ -f "$SOURCE_DIR/scripts/python/pyproject.toml" ] || fail 'nothing to install in scripts/python'
grep -qx 'name = "mxfp4-repack"' "$SOURCE_DIR/scripts/python/pyproject.toml" || fail 'wheels have another name'
