# Published configs that state sizes, layers and exclusions in their own words, and Inkling's stacked experts.
need_numpy
"$python" "$SOURCE_DIR/tests/cli/published.py" "$BIN"
