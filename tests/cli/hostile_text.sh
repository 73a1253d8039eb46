# What files, names and flags say is shown, and never obeyed by a terminal.
"$python" "$SOURCE_DIR/tests/cli/hostile_text.py"
