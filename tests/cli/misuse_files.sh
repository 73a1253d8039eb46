# Files that are not what a command expects, and names that mean something to other programs: one error that says what
# is there, and what to do.
need_numpy
model=$TESTDATA/ingest/gptoss_hf
convert_quietly "$model" -o blob --arch sm90

convert_quietly "$model" -o parts --arch sm90 --tp-size 2
: >e

# A range, and no version, in place of one.
for sign in '==' '=' '>=3.5.1' '~=3.5' '<4' '!=3.5'; do
  expect_exit 2 "$BIN" explain "$model" --arch sm90 --libs "flashinfer$sign"
  expect_one_error "--libs: unknown kernel package 'flashinfer.*'$"
done

# Another model than the blob's: converting again is not what helps.
"$SOURCE_DIR/scripts/make-checkpoint" drawn --layers 1 --experts 4 --hidden 64 --intermediate 96 --seed 2 >made
for against in drawn "$TESTDATA/ingest/ct_mxfp4"; do
  expect_exit 1 "$BIN" verify blob --against "$against"
  grep -q '^next: --against the checkpoint that the blob was made from: layer 0 ' stdout || { cat stdout >&2; fail 'another next'; }
done
cp -r blob hurt
printf x | dd of="$(ls hurt/layer-00000*)" bs=1 seek=5000 conv=notrunc 2>/dev/null
expect_exit 1 "$BIN" verify hurt --against "$model"
grep -qx 'next: convert again, with the same flags and --resume --check; or fetch those files again' stdout || fail 'no way to mend it'

# The same command mends the blob, whatever lies at the file's name but a directory; other files stay.
layer=$(cd blob && ls -d layer-00000*)
for place in "mkdir $layer" "mkfifo $layer" "ln -s nowhere $layer" "touch $layer unknown"; do
  rm -rf hurt
  cp -r blob hurt
  rm "hurt/$layer"
  (cd hurt && eval "$place")
  expect_exit 1 "$BIN" verify hurt
  grep -qx 'next: convert again, with the same flags and --resume --check; or fetch those files again' stdout || { cat stdout >&2; fail "$place: no way to mend it"; }
  if [ "${place%% *}" = mkdir ]; then
    expect_exit 5 "$BIN" convert "$model" -o hurt --arch sm90 --resume --check
    expect_one_error "hurt/$layer: cannot be replaced: Is a directory"
    rmdir "hurt/$layer"
  fi
  expect_exit 0 "$BIN" convert "$model" -o hurt --arch sm90 --resume --check
  expect_exit 0 "$BIN" verify hurt
  [ "${place%% *}" != touch ] || [ -e hurt/unknown ] || fail 'a file of others is gone'
done

# A run of one rank leaves others for later runs.
for rank in 1 3 2 0; do
  expect_exit 0 "$BIN" convert "$model" -o ranks --arch sm90 --tp-size 4 --rank $rank
  grep -qx 'next: mxfp4-repack verify ranks --some-ranks' stdout || { cat stdout >&2; fail 'ranks are missing'; }
  mkdir -p ranks/rank-00-of-04  # as of another process that has just begun
done
expect_exit 0 "$BIN" verify ranks
