# fits: whether a blob fits a release and a machine, by exit code: 0 yes, 1 no, 7 not known.
model=$TESTDATA/ingest/gptoss_hf
convert_quietly "$model" -o new --arch sm90 --revision 0.33.0
convert_quietly "$model" -o old --arch sm90 --revision 0.25.1
convert_quietly "$model" -o two --arch sm90 --revision 0.33.0 --tp-size 2
convert_quietly "$model" -o forced --arch sm90 --revision 0.33.0 --backend MARLIN
convert_quietly "$model" -o named --arch sm90 --revision 0.33.0 --moe-backend marlin
convert_quietly "$model" -o lean --arch sm100 --revision 0.33.0 --no-lib deep_gemm --no-lib humming --libs flashinfer,triton_kernels \
  --env VLLM_X=1 --quantization-config '{"moe": {"activation": "mxfp8"}}'
convert_quietly "$model" -o sglang --arch sm90 --engine sglang
convert_quietly "$model" -o ampere --arch sm80 --revision 0.33.0
printf '{"vllm": "0.33.0", "platform": "cuda", "arch": "sm90"}' >same.json
printf '{"vllm": "0.33.0", "platform": "cuda", "arch": "sm100"}' >other.json
printf '{"vllm": "0.99.0", "platform": "cuda", "arch": "sm90"}' >newer.json
printf '{"vllm": "0.20.0", "platform": "cuda", "arch": "sm90"}' >older.json

# EXIT|first reason|arguments
while IFS='|' read -r code reason arguments; do
  # shellcheck disable=SC2086
  expect_exit "$code" "$BIN" fits $arguments
  # Long reasons are broken at words.
  [ -z "$reason" ] || tr -s '\n ' '  ' <stdout | grep -qE " because $reason" || { cat stdout >&2; fail "fits $arguments: not the reason"; }
  [ -n "$reason" ] || ! grep -q '^  because' stdout || { cat stdout >&2; fail "fits $arguments: a reason for yes"; }
  # Where the answer is no, the command at the end makes a blob of which it is yes.
  if [ "$code" = 1 ]; then
    rm -rf NEW
    # shellcheck disable=SC2086
    next=$("$BIN" fits $arguments | sed -n '/^  next /,$p' | sed 's/^  next  *//')
    [[ $next = 'mxfp4-repack '* ]] || fail "fits $arguments: no command: $next"
    expect_exit 0 eval "$BIN ${next#mxfp4-repack } -q"
    # shellcheck disable=SC2086
    expect_exit 0 "$BIN" fits NEW ${arguments#* }
  fi
  # shellcheck disable=SC2086
  expect_exit "$code" "$BIN" fits $arguments --json
  "$python" -c 'import json,sys; assert json.load(open("stdout"))["fits"] is {"0": True, "1": False, "7": None}[sys.argv[1]]' "$code"
done <<'END'
0||new --revision 0.33.0
0||new --revision 0.30
0||new --target same.json
0||two --revision 0.33.0
0||two --tp-size 2
0||forced --revision 0.33.0
0||named --revision 0.33.0
1|layout triton/hopper-s4 there, this blob has triton/hopper|old --revision 0.33.0
1|layout triton/hopper there, this blob has triton/hopper-s4|new --revision 0.25.1
1|the engine chooses .* there, this blob is for TRITON|new --target other.json
1|4 ranks there, this blob is of 2 ranks|two --tp-size 4
1|1 rank there, this blob is of 2 ranks|two --tp-size 1
1|no --moe-backend gives MARLIN there|forced --arch gfx950
1|the engine chooses .* there, this blob is for|lean --arch sm80
0||forced --arch sm100
7|0.99.0 is newer than vllm-|new --revision 0.99.0
7|0.99.0 is newer than vllm-|new --target newer.json
7|sglang-9.0 is newer than sglang-|sglang --revision sglang-9.0
END
expect_exit 1 "$BIN" fits old --revision 0.99.0
tr -s '\n ' '  ' <stdout | grep -q ' next mxfp4-repack convert old .*--revision 0.99.0' || { cat stdout >&2; fail 'no command for a newer release'; }

# Some of the ranks answer for themselves; inspect ends with the same code, for the same reasons.
mkdir part
cp -r two/rank-01-of-02 part/
expect_exit 0 "$BIN" fits part --revision 0.33.0
expect_exit 1 "$BIN" fits part --revision 0.25.1
for arguments in '0 new --revision 0.33.0' '1 old --revision 0.33.0' '7 new --revision 0.99.0' '0 part --revision 0.33.0'; do
  # shellcheck disable=SC2086
  expect_exit ${arguments%% *} "$BIN" inspect ${arguments#* }
  grep -q "^serves " stdout || fail "inspect $arguments has no answer"
done
expect_exit 0 "$BIN" inspect new

# A blob without all of its bytes fits nothing, and what helps is another command.
for damage in 'rm {}' 'truncate -s -1 {}' 'cp /dev/null {}'; do
  rm -rf hurt
  cp -r new hurt
  eval "${damage/\{\}/hurt/layer-00000*}"
  for command in fits inspect; do
    expect_exit 1 "$BIN" $command hurt --revision 0.33.0
    grep -qE '^ *(because|reasons)  *hurt/layer-00000' stdout || { cat stdout >&2; fail "$command: $damage"; }
  done
  expect_exit 1 "$BIN" fits hurt --revision 0.33.0 --json
  "$python" -c 'import json; assert "--resume --check" in json.load(open("stdout"))["next"]'
done
# The text of a blob is quoted in the command that fits prints. One without all ranks is not its own input.
convert_quietly "$model" -o hostile --arch sm80 --backend MARLIN --tp-size 2
rm -r hostile/rank-01-of-02
"$python" - "$SEAL" <<'END'
import json, subprocess, sys
manifest = json.load(open("hostile/rank-00-of-02/mxfp4_repack.json"))
manifest["asked"] = dict(sorted({"all2all_backend": "x; touch PWNED", **manifest["asked"], "env": {"A=1; touch PWNED; B": "1"}}.items()))
del manifest["manifest_xxh3_128"]
text = json.dumps(manifest, indent=2, ensure_ascii=False).encode()
open("hostile/rank-00-of-02/mxfp4_repack.json", "wb").write(subprocess.run(sys.argv[1:], input=text, capture_output=True, check=True).stdout)
END
for json in '' --json; do
  # shellcheck disable=SC2086
  "$BIN" fits hostile --tp-size 4 $json >stdout 2>stderr || true
  sed -n '/next/,$p' stdout >command
  grep -q PWNED command || fail 'what the blob was asked with is not in the command'
  sed "s/'[^']*'//g" command >unquoted
  ! grep -q PWNED unquoted || { cat stdout >&2; fail 'a command of a stranger'; }
done
expect_exit 4 "$BIN" inspect hostile --serve
sed -i 's/"all2all_backend": "x; touch PWNED"/"all2all_backend": "naive"/' hostile/rank-00-of-02/mxfp4_repack.json
"$python" -c 'import json; m = json.load(open("hostile/rank-00-of-02/mxfp4_repack.json")); del m["manifest_xxh3_128"]; print(json.dumps(m, ensure_ascii=False))' |
  "$SEAL" >sealed
mv sealed hostile/rank-00-of-02/mxfp4_repack.json
expect_exit 0 "$BIN" inspect hostile --serve
! sed "s/'[^']*'//g" stdout | grep -q PWNED || { cat stdout >&2; fail 'a command of a stranger, to serve'; }

# Misuse.
expect_exit 2 "$BIN" fits new
expect_one_error "fits: nothing differs from the blob's own deployment$"
expect_exit 2 "$BIN" fits new --revision 0.33.0rc1
expect_exit 2 "$BIN" fits new --target older.json

# Drawn deployments: the verdict is what a fresh conversion gives.
"$python" "$SOURCE_DIR/tests/cli/fits_drawn.py" "$BIN" "$TESTDATA" "${MXFP4_FITS:-40}" || fail 'a verdict that a conversion contradicts'
