# A blob that is converted is restored by all threads at once: the bytes do not depend on their number, and a
# fault that one of them meets ends the run without a result.
need_numpy
"$SOURCE_DIR/scripts/make-checkpoint" model --layers 3 --experts 8 --hidden 256 --intermediate 256 --experts-only >made
flags=(--arch sm100 --compress none --enable-expert-parallel=false)
convert_quietly model -o want "${flags[@]}" --tp-size 2
for blob in '--arch sm90' '--arch sm80 --tp-size 4' '--arch gfx942 --tp-size 2 --enable-expert-parallel'; do
  rm -rf blob
  # shellcheck disable=SC2086
  convert_quietly model -o blob $blob
  for threads in 1 2 8; do
    rm -rf got
    convert_quietly blob -o got "${flags[@]}" --tp-size 2 -j $threads
    diff -r want got || fail "$threads threads, of $blob"
    expect_exit 0 "$BIN" verify got --against model -q
    rm -rf published
    expect_exit 0 "$BIN" unpack blob -o published --as-published -q -j $threads
    [ $threads != 1 ] || { rm -rf published-by-one && cp -r published published-by-one; }
    diff -r published-by-one published || fail "$threads threads, as published, of $blob"
    expect_exit 0 "$BIN" verify want --against published -q
  done
done
for threads in 1 8; do
  for layer in 0 2; do
    cp -r blob hurt
    printf x | dd of="$(find hurt/rank-01-of-02 -name "layer-0000$layer*")" bs=1 seek=9000 conv=notrunc status=none
    expect_exit 3 "$BIN" convert hurt -o got.hurt "${flags[@]}" -j $threads
    expect_one_error "hurt/rank-01-of-02/layer-0000$layer.safetensors.zst: checksum of the file differs\$"
    [ -z "$(find got.hurt -name mxfp4_repack.json 2>/dev/null)" ] || fail 'a result of a damaged blob'
    expect_exit 3 "$BIN" unpack hurt -o published.hurt --as-published -j $threads
    expect_one_error "hurt/rank-01-of-02/layer-0000$layer.safetensors.zst: checksum of the file differs\$"
    [ ! -e published.hurt ] || fail 'a part of a damaged blob'
    rm -rf hurt got.hurt .got.hurt.*
  done
done
