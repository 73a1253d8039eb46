# unpack, then convert, gives identical bytes for every row of every layout table.
need_numpy
step=1
! slow || step=18  # it takes long to start
"$python" "$SOURCE_DIR/tests/cli/every_layout.py" "$BIN" $step
