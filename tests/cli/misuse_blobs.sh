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
for edit in 'manifest["format_version"] = 2' 'manifest["layout"] = "triton/hopper-s9"'; do
  rm -rf newer
  cp -r zstd newer
  resealed newer "$edit"
  for command in inspect 'fits --revision 0.33.0' 'unpack -o no' 'convert --arch sm90 -o no' 'diff zstd'; do
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

# A manifest that came in part, or in another form.
while IFS='|' read -r words make; do
  rm -rf part
  cp -r zstd part
  eval "$make" <zstd/mxfp4_repack.json >part/mxfp4_repack.json
  expect_exit 3 "$BIN" fits part --revision 0.33.0
  expect_one_error "part/mxfp4_repack.json: $words$"
  expect_exit 1 "$BIN" verify part
  grep -q "^part/mxfp4_repack.json: $words$" stdout || { cat stdout >&2; fail "verify: $make"; }
done <<'END'
an empty file|true
manifest_xxh3_128: missing|head -c 300
a Git LFS pointer in place of the file|printf 'version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 12\n'
END

# Layer files without their manifest, from one file to all.
for blob in zstd none; do
  rm -rf part
  cp -r $blob part
  rm part/mxfp4_repack.json
  for command in inspect verify 'fits --revision 0.33.0' 'unpack -o no' 'convert --arch sm90 -o no' 'explain --arch sm90'; do
    # shellcheck disable=SC2086
    expect_exit 3 "$BIN" $command part
    expect_one_error 'part: layer files of a blob, but no mxfp4_repack.json$'
    grep -q '^hint: is the copy complete?' stderr || fail "$command: no hint"
  done
done
rm part/model.safetensors.index.json
# What unpack writes is a checkpoint, though its files have such names.
"$BIN" unpack zstd -o unpacked -q
expect_exit 0 "$BIN" inspect unpacked

# A layer file that is missing, cut or a pointer is named with the blob, not with a name that looks alike.
for damage in 'rm {}' 'truncate -s 100 {}' 'cp /dev/null {}' 'printf "version https://git-lfs.github.com/spec/v1\n" >{}'; do
  for blob in zstd none; do
    rm -rf hurt
    cp -r $blob hurt
    file=$(find hurt -name 'layer-*' | sort | tail -n 1)
    eval "${damage//\{\}/$file}"
    for command in 'unpack -o no' 'convert --arch sm100 -o no'; do
      # shellcheck disable=SC2086
      expect_exit 3 "$BIN" $command hurt
      expect_one_error "$file: "
      case $damage in
        printf*) grep -q 'a Git LFS pointer in place of the file$' stderr && grep -q '^hint: run `git lfs pull`' stderr ;;
        *) grep -qE '^mxfp4-repack: error: hurt/layer' stderr ;;
      esac || { cat stderr >&2; fail "$command: $damage"; }
      [ ! -e no ] || fail "$command left something"
    done
  done
done

# A rank that --rank did not make: the same flags would not make it either.
convert_quietly "$model" -o ranks --arch sm90 --revision 0.33.0 --tp-size 2 --rank 1
expect_exit 1 "$BIN" verify ranks
grep -qx 'next: convert again, with --resume and the same flags but without --rank: it makes those ranks' stdout ||
  { cat stdout >&2; fail 'no way to the other rank'; }
convert_quietly "$model" -o ranks --arch sm90 --revision 0.33.0 --tp-size 2 --resume
expect_exit 0 "$BIN" verify ranks

# Shards: what differs by name, and finalize only when all are there.
convert_quietly "$model" -o shards --arch sm90 --revision 0.33.0 --shard 0/2
while IFS='|' read -r words flags; do
  # shellcheck disable=SC2086
  expect_exit 5 "$BIN" convert "$model" -o shards --arch sm90 $flags
  expect_one_error "shard-000-of-002.progress: begun .*$words"
done <<'END'
--revision: vllm-0.33.0, now vllm-0.32.0|--shard 1/2 --revision 0.32.0
--level: 1, now 2|--shard 1/2 --revision 0.33.0 --level 2
--compress: zstd, now none|--shard 1/2 --revision 0.33.0 --compress none
as one of 2 shards, now of 3|--shard 1/3 --revision 0.33.0
END
expect_exit 0 "$BIN" convert "$model" -o more --arch sm90 --revision 0.33.0 --shard 1/2
grep -qx 'next: the other shards, then mxfp4-repack finalize more' stdout || { cat stdout >&2; fail 'too early'; }
expect_exit 0 "$BIN" convert "$model" -o more --arch sm90 --revision 0.33.0 --shard 0/2

# The version for scripts.
expect_exit 0 "$BIN" --version --json
"$python" -c 'import json; d = json.load(open("stdout")); assert d["command"] == "version" and d["version"] and d["engines"]["vllm"]["newest"]'
