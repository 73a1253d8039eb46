# explain --nodes: what it reckons from headers, against every byte that ranks take, marked one by one, and the files that
# convert writes.
need_numpy
"$python" "$SOURCE_DIR/tests/cli/node_reads.py" "$BIN"
expect_exit 2 "$BIN" explain each --arch sm80 --tp-size 4 --nodes 3
expect_one_error '--nodes: 3 nodes for 4 ranks'
