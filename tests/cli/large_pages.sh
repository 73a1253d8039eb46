# Pages of 64 KiB, as kernels for 64-bit Arm have them: the same bytes, and no call that such a system
# refuses (faults.cpp). What the format aligns to 4,096 bytes has nothing to do with pages.
need_numpy
"$python" -c 'import layer_files; layer_files.make_gpt_oss("model", 2, 4, 320, 352)'
for compress in none zstd; do
  flags="--backend TRITON --arch sm90 --compress $compress"
  rm -rf want
  # shellcheck disable=SC2086
  convert_quietly model -o want $flags
  for page in 16384 65536; do
    rm -rf got back
    # shellcheck disable=SC2086
    expect_exit 0 played_pages $page "$BIN" convert model -o got -q $flags
    diff -r want got || fail "$compress with pages of $page bytes"
    for command in 'verify got' 'verify got --against model' 'diff want got' 'unpack got -o back -q'; do
      # shellcheck disable=SC2086
      expect_exit 0 played_pages $page "$BIN" $command
    done
  done
done
# The stand-in is strict: it ends a program that takes pages for smaller ones.
FAULT_PAGE_HIDDEN=1 expect_exit 134 played_pages 65536 "$BIN" verify got
grep -q '^madvise: .* is inside of a page$' stderr || fail 'not the call that was meant'
