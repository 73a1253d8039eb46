# libmxfp4_repack.so: a C program reads compressed and plain blobs, whole and by experts, directly and
# not, and finds damage; only the C interface is visible.
need_numpy
"$python" -c 'import layer_files; layer_files.make_gpt_oss("model", 1, 6, 320, 192)'
convert_quietly model -o plain --backend TRITON --arch sm90 --compress none
convert_quietly model -o zstd --backend TRITON --arch sm90
convert_quietly model -o level9 --backend TRITON --arch sm90 --level 9
for blob in plain zstd level9; do
  "$LOADER_TEST" $blob plain/layer-00000.safetensors || fail "$blob"
done
"$PATHS_TEST" zstd || fail 'paths'
# Frames of only raw blocks, several an expert; and rows with padding of their own.
"$python" -c 'import layer_files; layer_files.make_gpt_oss("large", 1, 2, 2880, 2880)'
for backend in 'MARLIN --arch sm80' 'FLASHINFER_TRTLLM_MXFP4_MXFP8 --arch sm100'; do
  rm -rf plain zstd
  # shellcheck disable=SC2086
  convert_quietly large -o plain --backend $backend --compress none
  # shellcheck disable=SC2086
  convert_quietly large -o zstd --backend $backend
  "$LOADER_TEST" zstd plain/layer-00000.safetensors || fail "$backend"
done

# expect_refused DIRECTORY REGEX: the number of the fault (mxfp4_repack_fault), and words.
expect_refused() {
  "$LOADER_TEST" --refused "$1" >words || fail "$1 was opened"
  grep -q "^$2" words || { cat words >&2; fail "no word of $2"; }
}
expect_refused model '1 model/mxfp4_repack.json: '
expect_refused nowhere '1 nowhere/mxfp4_repack.json: '
cp -r plain cut
truncate -s -1 cut/layer-00000.safetensors
expect_refused cut '4 cut/layer-00000.safetensors: '
rm cut/layer-00000.safetensors
expect_refused cut '2 cut/layer-00000.safetensors: cannot be opened'
mkdir cut/layer-00000.safetensors
expect_refused cut '3 cut/layer-00000.safetensors: is not a regular file'
# The layer of a blob with the same sizes and other facts; and a manifest that was edited.
rm -r cut
cp -r plain cut
convert_quietly large -o other --backend FLASHINFER_TRTLLM_MXFP4_MXFP8 --arch sm100 --compress none --revision 0.32.0
cp other/layer-00000.safetensors cut/
expect_refused cut '6 cut/layer-00000.safetensors: __metadata__: differs from the manifest'
sed -i s/FLASHINFER_TRTLLM_MXFP4_MXFP8/FLASHINFER_TRTLLM_MXFP4_BF16/ cut/mxfp4_repack.json
expect_refused cut '5 cut/mxfp4_repack.json: manifest_xxh3_128: '

cat >flips.py <<'PY'
import os, random, subprocess, sys
program, places = sys.argv[1], random.Random(7)
for path in ("zstd/layer-00000.safetensors.zst", "plain/layer-00000.safetensors"):
    size = os.path.getsize(path)
    for i in range(24):
        # What lies behind the last frame is the seek table, before the first tensor the header.
        at = places.randrange(size // 100, size * 99 // 100)
        bit = 1 << places.randrange(8)
        with open(path, "r+b") as file:
            def flip():
                file.seek(at)
                byte = file.read(1)[0]
                file.seek(at)
                file.write(bytes([byte ^ bit]))
                file.flush()
            flip()
            if subprocess.run([program, "--damaged", os.path.dirname(path)]).returncode != 0:
                sys.exit(f"bit {bit:#x} of byte {at} of {path} was not found")
            flip()
PY
"$python" flips.py "$LOADER_TEST"

command -v nm >/dev/null || skip 'nm is not installed'
nm -D --defined-only "$LOADER" | awk '$2 != "A" { print $3 }' | grep -v '^mxfp4_repack_' >visible &&
  { cat visible >&2; fail 'more than the C interface is visible'; }
[ "$(nm -D --defined-only "$LOADER" | grep -c ' T mxfp4_repack_')" = 21 ] || fail 'functions are missing'
