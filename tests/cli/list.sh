# list: what can be said to --env, --libs, --knob and --moe-backend, with what each decides and where; one
# layout by name. --version -v, completion.
expect_exit 0 "$BIN" list variables
grep -q '^VLLM_MARLIN_INPUT_DTYPE ' stdout || fail 'no variable'
expect_exit 0 "$BIN" list variables --json
mv stdout variables.json
expect_exit 0 "$BIN" list libraries --json
mv stdout libraries.json
expect_exit 0 "$BIN" list knobs --json
mv stdout knobs.json
expect_exit 0 "$BIN" list backends --json
mv stdout backends.json
"$BIN" list revisions --json >revisions.json
"$python" - "$BIN" <<'PY'
import json, subprocess, sys
BIN = sys.argv[1]
load = lambda name: json.load(open(name + ".json"))[name]
releases = [row["revision"] for row in load("revisions")]
def accepted(*flags):
    return subprocess.run([BIN, "explain", "--arch", "sm90", *flags], capture_output=True).returncode != 2
for row in load("variables"):
    assert row["decides"] and row["revisions"], row
    assert set(row["revisions"]) <= set(releases), row
    assert accepted("--env", row["variable"] + "=1", "--backend", "XPU") or row["variable"].startswith("VLLM_HUMMING"), row
    # A release that is not named has no rule that looks at it, and says so.
    for release in set(releases[-1:]) - set(row["revisions"]):
        got = subprocess.run([BIN, "explain", "--arch", "sm90", "--env", row["variable"] + "=1", "--revision", release],
                             capture_output=True, text=True)
        assert f"no rule of {release} looks at" in got.stderr, (row, got.stderr)
for row in load("libraries"):
    assert row["revisions"], row
    assert accepted("--libs", row["library"], "--revision", row["revisions"][-1]), row
names = {row["library"]: row for row in load("libraries")}
assert names["flashinfer"]["version"], names["flashinfer"]
assert "cuda" in names["triton_kernels"]["stock_on"], names["triton_kernels"]
for row in load("knobs"):
    value = {"VERSION": "12.9", "N": "2"}.get(row["values"], row["values"].split("|")[0])
    assert accepted("--knob", f"{row['knob']}={value}"), row
    if "|" in row["values"]:
        assert not accepted("--knob", row["knob"] + "=bogus"), row
for name in {name for row in load("backends") for name in row["moe_backend"]}:
    assert accepted("--moe-backend", name), name
assert any("triton" in row["moe_backend"] for row in load("backends") if row["backend"] == "TRITON")
PY
expect_exit 0 "$BIN" list variables --revision 0.21.0
expect_exit 0 "$BIN" list backends
grep -qE '^TRITON +triton$' stdout || fail 'no names of --moe-backend'

# One layout, or a family.
expect_exit 0 "$BIN" list layouts triton/hopper-s4
[ "$(grep -c '^id ' stdout)" = 1 ] || fail 'not one layout'
expect_exit 0 "$BIN" list layouts triton --json
"$python" -c 'import json; ids = [row["id"] for row in json.load(open("stdout"))["layouts"]]; assert len(ids) > 1 and all(i.startswith("triton/") for i in ids), ids'
# One row of every table, in text and JSON; large and small letters do not matter.
while read -r table name first; do
  expect_exit 0 "$BIN" list "$table" "$name"
  grep -qF "$first" stdout || { cat stdout >&2; fail "list $table $name"; }
  expect_exit 0 "$BIN" list "$table" "$name" --json
  "$python" -c 'import json, sys
rows = json.load(open("stdout"))[sys.argv[1]]
assert rows and {next(iter(row.values())) for row in rows} == {sys.argv[2]}, rows' "$table" "$first"
done <<'END'
backends marlin MARLIN
knobs params_dtype params_dtype
knobs tp_size tp_size
libraries triton_kernels triton_kernels
machines h200 sm90
machines sm100 sm100
revisions 0.33.0 vllm-0.33.0
revisions 0.33 vllm-0.33.0
revisions v0.33.0+cu129 vllm-0.33.0
revisions 0.5.23 sglang-0.5.23
revisions sglang-0.5.23 sglang-0.5.23
styles quark quark
variables vllm_use_deep_gemm VLLM_USE_DEEP_GEMM
END
# The completion scripts are the files.
for shell in bash fish zsh; do
  expect_exit 0 "$BIN" completion $shell
  cmp stdout "$SOURCE_DIR/scripts/completions/mxfp4-repack.$shell" || fail "completion $shell"
done
expect_exit 2 "$BIN" completion csh

# A size as people write it.
model=$TESTDATA/ingest/gptoss_hf
for size in 8 8XB 8B 1.5 GB -1G 0 0G nanG infG 1e30G; do
  expect_exit 2 "$BIN" convert "$model" -o out --arch sm90 --memory "$size" -q --force
done
