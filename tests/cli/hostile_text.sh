# The program shows text from files, names and flags so that no terminal obeys it.
"$python" "$SOURCE_DIR/tests/cli/hostile_text.py"
