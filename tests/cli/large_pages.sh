# Pages of 64 KiB, as kernels for 64-bit Arm have them: the same bytes, and no call that such a system
# refuses (faults.cpp). What the format aligns to 4,096 bytes has nothing to do with pages.
need_numpy
"$python" -c 'import layer_files; layer_files.make_gpt_oss("model", 2, 4, 320, 352)'
mkdir driver
cp "$FAKE_CUDA" driver/libcuda.so.1

# The library: ordinary and direct reads, a GPU's ring, memory that CPUs and GPU share, and what is made
# from the checkpoint.
read_by_library() { # BLOB PAGE
  played_pages "$2" "$LOADER_TEST" "$1" layer || fail "the library, $1 with pages of $2 bytes"
  for where in '' '--made model'; do
    # shellcheck disable=SC2086
    LD_LIBRARY_PATH=$PWD/driver played_pages "$2" "$GPU_TEST" $where "$1" || fail "a GPU $where, $1 with pages of $2 bytes"
  done
}

for compress in none zstd; do
  flags="--backend TRITON --arch sm90 --compress $compress"
  rm -rf want
  # shellcheck disable=SC2086
  convert_quietly model -o want $flags
  [ "$compress" = zstd ] || cp want/layer-00000.safetensors layer
  for page in 16384 65536; do
    rm -rf got back parts cut
    # shellcheck disable=SC2086
    expect_exit 0 played_pages $page "$BIN" convert model -o got -q $flags
    diff -r want got || fail "$compress with pages of $page bytes"
    for command in 'verify got' 'verify got --direct' 'verify got --against model' 'diff want got' \
      'unpack got -o back -q'; do
      # shellcheck disable=SC2086
      expect_exit 0 played_pages $page "$BIN" $command
    done
    # Shards, and a run that was killed: records that one run seals and another reads.
    for shard in 0 1; do
      # shellcheck disable=SC2086
      expect_exit 0 played_pages $page "$BIN" convert model -o parts -q --shard $shard/2 $flags
    done
    expect_exit 0 played_pages $page "$BIN" finalize parts -q
    diff -r want parts || fail "shards, $compress with pages of $page bytes"
    # shellcheck disable=SC2086
    FAULT_KILL_AT=14 expect_exit 137 played_pages $page "$BIN" convert model -o cut -q -j 1 $flags
    # shellcheck disable=SC2086
    expect_exit 0 played_pages $page "$BIN" convert model -o cut -q --resume $flags
    diff -r want cut || fail "resumed, $compress with pages of $page bytes"
  done
  read_by_library want 65536
done
