# libmxfp4_repack.so reads past the page cache where it can: the same bytes on a RAM disk, and on a file
# system that refuses such reads at once or at the first one; a file that is cut meanwhile.
need_numpy
"$python" -c 'import layer_files; layer_files.make_gpt_oss("model", 1, 2, 2880, 2880)'
convert_quietly model -o plain --backend TRITON --arch sm90 --compress none
convert_quietly model -o zstd --backend TRITON --arch sm90
convert_quietly model -o level9 --backend TRITON --arch sm90 --level 9
cp plain/layer-00000.safetensors expected

direct() { "$DIRECT_TEST" "$1" "$1"/layer-00000.safetensors*; }
refusing() { # WHEN COMMAND...
  preloaded FAULT_NO_DIRECT="$1" "${@:2}"
}
for blob in plain zstd level9; do
  here=$(direct $blob)
  # Where there are no direct reads, the page cache is filled: file systems that say so, and an emulator.
  case $here in '1 1') ;; '0 0' | '0 0 cached') here='0 0' ;; *) fail "$blob: $here" ;; esac
  for when in flag read; do
    refusing $when "$LOADER_TEST" $blob expected || fail "$blob: $when"
    found=$(refusing $when "$DIRECT_TEST" $blob $blob/layer-00000.safetensors*)
    case "$here, $when: ${found% cached}" in
      *', flag: 0 0' | '1 1, read: 1 0' | '0 0, read: 0 0') ;;
      *) fail "$blob: $when: $found" ;;
    esac
  done
done

if [ -w /dev/shm ]; then
  ram=$(mktemp -d -p /dev/shm)
  cleanup() { rm -rf "$ram"; }
  for blob in plain zstd; do
    cp -r $blob "$ram"
    "$LOADER_TEST" "$ram/$blob" expected || fail "$blob on a RAM disk"
  done
fi
for blob in plain zstd level9; do
  "$DIRECT_TEST" --shorter $blob $blob/layer-00000.safetensors* || fail "$blob: shorter"
done
