# Threads and memory change the speed, never a byte.
need_numpy
"$python" -c 'import layer_files; layer_files.make_gpt_oss("model", 3, 8, 320, 192)'
for flags in '--backend TRITON --arch sm90' '--backend MARLIN --arch sm80 --tp-size 2' \
  '--backend FLASHINFER_TRTLLM_MXFP4_MXFP8 --arch sm100 --compress none' \
  '--arch sm100 --tp-size 4 --enable-expert-parallel --level 3' '--emit loaded --arch sm90'; do
  rm -rf want got
  # shellcheck disable=SC2086
  convert_quietly model -o want $flags
  for resources in '--threads 1' '--threads 4' '--threads 1 --memory 1KiB' '--threads 4 --memory 64k' \
    '--threads 7 --memory 3MiB'; do
    rm -rf got
    # shellcheck disable=SC2086
    convert_quietly model -o got $flags $resources
    diff -r want got || fail "$flags $resources"
  done
  mkdir -p unpacked
  expect_exit 0 "$BIN" unpack want -o unpacked/1 --threads 1
  expect_exit 0 "$BIN" unpack want -o unpacked/4 --threads 4 --memory 1KiB
  diff -r unpacked/1 unpacked/4 || fail "unpack of $flags"
  rm -rf unpacked
done
