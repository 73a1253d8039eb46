# The page of layouts is what the tables make of it, and every page renders without a warning.
"$SOURCE_DIR/scripts/make-layouts-man" "$BIN" >layouts.7
diff "$SOURCE_DIR/man/mxfp4-repack-layouts.7" layouts.7 || fail 'run scripts/make-layouts-man'

# The pictures show what this program writes; what a sanitizer would see in it, the golden tests show.
if ! sanitized && "$python" -c 'import numpy' 2>/dev/null; then
  "$python" "$SOURCE_DIR/scripts/draw-layouts" "$BIN" "$SOURCE_DIR/man/layouts" --check || fail 'run scripts/draw-layouts'
fi

command -v man >/dev/null || exit 0
# With the build directory in PATH, man finds every page there.
for page in "$SOURCE_DIR"/man/*.[0-9]; do
  name=$(basename "${page%.*}")
  found=$(unset MANPATH && PATH=$(dirname "$BIN"):$PATH man -w "$name") || fail "man does not find $name"
  [ "$(realpath "$found")" = "$(realpath "$page")" ] || fail "man finds $found"
done
for page in "$SOURCE_DIR"/man/*.[0-9]; do
  MANWIDTH=80 LC_ALL=C.UTF-8 man --warnings -l "$page" >page.txt 2>warnings.txt
  [ ! -s warnings.txt ] || { cat warnings.txt; fail "$page"; }
  ! grep -nE '^.{81}' page.txt || fail "$page is wider than 80 columns"
done
