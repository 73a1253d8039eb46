# Blobs on the day of an upgrade, or after a copy that did not end: one error or finding that says what the files are,
# and what helps. Nothing is taken for what it is not.
model=$TESTDATA/ingest/gptoss_hf
for compress in zstd none; do convert_quietly "$model" -o $compress --arch sm90 --revision 0.33.0 --compress $compress; done

# resealed DIR EDIT: the manifest as another version of the program would have written it.
resealed() {
  "$python" - "$SEAL" "$1/mxfp4_repack.json" "$2" <<'END'
import json, subprocess, sys
seal, path, edit = sys.argv[1:]
manifest = json.load(open(path))
del manifest["manifest_xxh3_128"]
exec(edit)
text = subprocess.run([seal], input=json.dumps(manifest).encode(), capture_output=True, check=True).stdout
open(path, "wb").write(text)
END
}

# A newer program's blob: it is said, and no hint leads to replacing it.
for edit in 'manifest["format_version"] = 3' \
            'for part in [manifest, *manifest["recipes"]]: part["layout"] = "triton/hopper-s9"'; do
  rm -rf newer
  cp -r zstd newer
  resealed newer "$edit"
  for command in inspect 'unpack -o no' 'convert --arch sm90 -o no'; do
    # shellcheck disable=SC2086
    expect_exit 3 "$BIN" $command newer
    expect_one_error 'newer/mxfp4_repack.json: .* is not known'
    grep -qx 'hint: a newer mxfp4-repack wrote this blob; update this one' stderr || { cat stderr >&2; fail "$command: no hint"; }
  done
  expect_exit 1 "$BIN" verify newer
  grep -qx 'next: a newer mxfp4-repack wrote this blob; update this one' stdout || { cat stdout >&2; fail 'verify: no hint'; }
  expect_exit 3 "$BIN" convert "$model" -o newer --arch sm90 --resume
  ! grep -q -e --force stderr || fail 'a hint that replaces a newer blob'
done

# What the manifest says of its checkpoint does not fit its layers.
while IFS='|' read -r words edit; do
  rm -rf odd
  cp -r zstd odd
  resealed odd "at = manifest['layers'][1]['published']; $edit"
  expect_exit 1 "$BIN" verify odd
  grep -q "$words" stdout || { cat stdout >&2; fail "verify: $edit"; }
  for command in 'convert --arch sm100 -o no' 'unpack --as-published -o no'; do
    # shellcheck disable=SC2086
    expect_exit 3 "$BIN" $command odd
    expect_one_error "$words"
  done
done <<'END'
model.layers.1.mlp.experts.aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa: not a name of style gpt_oss|at['tensors'][0]['name'] = 'a' * 46
bytes by the manifest, its layer's sizes give|at['tensors'][0]['shape'][1] *= 2
fewer tensors than its files have|at['files'][0]['tensors'] = 2**40
END

# Layer files without their manifest, from one file to all.
for blob in zstd none; do
  rm -rf part
  cp -r $blob part
  rm part/mxfp4_repack.json
  for command in inspect verify 'convert --arch sm90 -o no'; do
    # shellcheck disable=SC2086
    expect_exit 3 "$BIN" $command part
    expect_one_error 'part: layer files of a blob, but no mxfp4_repack.json$'
    grep -q '^hint: is the copy complete?' stderr || fail "$command: no hint"
  done
done

# Another model than the blob's: converting again is not what helps.
expect_exit 1 "$BIN" verify zstd --against "$TESTDATA/ingest/ct_mxfp4"
grep -q '^next: --against the checkpoint that the blob was made from: layer 0 ' stdout || { cat stdout >&2; fail 'another next'; }

# The same command mends the blob, whatever lies at the file's name but a directory; other files stay.
layer=$(cd zstd && ls -d layer-00000*)
for place in "mkdir $layer" "mkfifo $layer" "ln -s nowhere $layer" "touch $layer unknown"; do
  rm -rf hurt
  cp -r zstd hurt
  rm "hurt/$layer"
  (cd hurt && eval "$place")
  expect_exit 1 "$BIN" verify hurt
  grep -qx 'next: convert again, with the same flags and --resume --check; or fetch those files again' stdout || { cat stdout >&2; fail "$place: no way to mend it"; }
  if [ "${place%% *}" = mkdir ]; then
    expect_exit 5 "$BIN" convert "$model" -o hurt --arch sm90 --resume --check
    expect_one_error "hurt/$layer: cannot be replaced: Is a directory"
    rmdir "hurt/$layer"
  fi
  expect_exit 0 "$BIN" convert "$model" -o hurt --arch sm90 --revision 0.33.0 --resume --check
  expect_exit 0 "$BIN" verify hurt
  [ "${place%% *}" != touch ] || [ -e hurt/unknown ] || fail 'a file of others is gone'
done

# The version for scripts.
expect_exit 0 "$BIN" --version --json
"$python" -c 'import json; d = json.load(open("stdout")); assert d["command"] == "version" and d["version"] and d["engines"]["vllm"]["newest"]'
