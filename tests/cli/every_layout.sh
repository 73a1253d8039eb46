# unpack, then convert, gives identical bytes for every row of every layout table.
need_numpy
"$python" "$SOURCE_DIR/tests/cli/every_layout.py" "$BIN"
