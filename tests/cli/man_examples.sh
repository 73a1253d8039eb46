# The examples of man 5, as a user copies them from the page: each makes an input that converts.
page=$SOURCE_DIR/man/mxfp4-repack-container.5
"$python" -c 'import h5py, numpy' 2>/dev/null || skip 'python3-h5py is not installed'
command -v man >/dev/null || skip 'man-db is not installed'
MANWIDTH=100 man -l -Tascii "$page" 2>/dev/null | col -bx >page.txt || fail 'man cannot show the page'
# Programs begin with an import and end before the next heading, which is not indented.
"$python" - <<'END'
import textwrap
blocks, lines = [], []
for line in open("page.txt").read().split("\n") + ["END"]:
    if line.strip().startswith("import ") and not lines:
        lines = [line]
    elif lines and line and not line.startswith(" "):
        blocks.append(textwrap.dedent("\n".join(lines)))
        lines = []
    elif lines:
        lines.append(line)
assert len(blocks) == 2, len(blocks)
for number, block in enumerate(blocks):
    open(f"example{number}.py", "w").write(block)
END
grep -q h5py example0.py || fail 'the first example is not the one of HDF5'
"$python" example0.py
"$python" example1.py
for input in model.h5 dump; do
  convert_quietly $input -o packed_$input --arch sm90
  expect_exit 0 "$BIN" verify packed_$input --against $input
done
# The commands stand there as they are meant.
tr -s ' \n' ' ' <page.txt >words.txt
for command in 'convert model.h5 -o packed/ --arch sm90' 'convert dump/ -o packed/ --arch sm90'; do
  grep -qF -- "$command" words.txt || fail "not on the page: $command"
done
# A byte that is not the manifest's is found by its sha256.
printf '\377' | dd of=dump/layer-0.bin bs=1 seek=100 conv=notrunc status=none
expect_exit 3 "$BIN" convert dump -o broken --arch sm90
expect_one_error 'w13_weight: its bytes do not have the sha256'
