# Every command on the pages of man/guide works exactly as written, on a small model of the same name.
mkdir programs
ln -s "$BIN" programs/mxfp4-repack
# The serving machine's answer; tests/cli/probe_target.sh runs the real one.
printf '#!/bin/sh\necho %s\n' "'{\"platform\": \"cuda\", \"arch\": \"sm90\"}'" >programs/mxfp4-repack-probe
chmod +x programs/mxfp4-repack-probe
# A stand-in for programs that are not installed here: the paths that it is given must exist.
cat >programs/stand-in <<'SH'
#!/bin/sh
for word in "$@" "$MXFP4_REPACK_BLOB"; do
  case $word in
    '{"blob": "'*)
      word=${word#*: \"}
      [ -d "${word%\"*}" ] || { echo "no $word" >&2; exit 1; } ;;
    gpt-oss-20b | */packed | ./scripts/python) [ -d "$word" ] || { echo "no $word" >&2; exit 1; } ;;
    # Until this project has the name, anybody may take it.
    mxfp4-repack | mxfp4_repack) [ "${0##*/}" != pip ] || { echo "pip: $word is not published" >&2; exit 1; } ;;
  esac
done
SH
chmod +x programs/stand-in
for name in hf pip podman vllm; do ln -s stand-in programs/$name; done
pages=(tutorial how-to pipeline container kubernetes explanation)
# The reader's packages; its own tests say so where they are missing.
if /usr/bin/python3 -c 'import numpy' 2>/dev/null && ! slow; then pages+=(python); fi
export PYTHONPATH=$SOURCE_DIR/scripts/python PYTHONDONTWRITEBYTECODE=1 MXFP4_REPACK=$BIN MXFP4_REPACK_LIBRARY=$LOADER
# Every page is run, but for the index.
for page in "$SOURCE_DIR"/man/guide/*.md; do
  name=$(basename "$page" .md)
  [[ " README python ${pages[*]} " = *" $name "* ]] || fail "man/guide/$name.md is not run"
  grep -q "($name.md)" "$SOURCE_DIR/man/guide/README.md" || [ "$name" = README ] || fail "man/guide/README.md: no $name.md"
done
for page in "${pages[@]}"; do
  mkdir $page
  ln -s "$SOURCE_DIR/scripts" $page/scripts
  "$SOURCE_DIR/scripts/make-checkpoint" $page/gpt-oss-20b >/dev/null
  (cd $page && PATH="$PWD/../programs:$PATH" /usr/bin/python3 "$SOURCE_DIR/tests/cli/guide.py" "$SOURCE_DIR/man/guide/$page.md") ||
    fail "man/guide/$page.md"
done
