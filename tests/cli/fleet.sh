# explain --fleet: every release for each deployment of a file, as text, JSON and a page.
model=$TESTDATA/ingest/gptoss_hf
convert_quietly "$model" -o 'packed h100' --arch sm90
printf '{"platform": "rocm", "arch": "gfx950", "env": {"VLLM_ROCM_USE_AITER": "1"}}' >mi.json
cat >fleet.txt <<'FLEET'
# what we serve
prod:     --arch H100 --blob "packed h100"

two ways: --arch sm100 --tp-size 2
mi300:    --target mi.json
off:      --arch sm90 --moe-backend flashinfer_trtllm
FLEET
expect_exit 0 "$BIN" explain "$model" --fleet fleet.txt --html fleet.html
for word in deployment releases backend fits 'what to do' prod 'two ways' mi300 'serve the blob' 'convert again' 'convert: layout' TRITON; do
  grep -qF "$word" stdout || { cat stdout >&2; fail "no word of $word"; }
done
expect_exit 0 "$BIN" explain "$model" --fleet fleet.txt --json
mv stdout fleet.json
# As an editor of Windows stores it: the same rows.
(printf '\357\273\277' && sed 's/$/\r/' fleet.txt) >marked.txt
expect_exit 0 "$BIN" explain "$model" --fleet marked.txt --json
cmp stdout fleet.json || fail 'a byte order mark is a part of a name'
"$python" - "$BIN" "$model" <<'END'
import json, subprocess, sys

program, model = sys.argv[1:]
rows = json.load(open("fleet.json"))["fleet"]
page = open("fleet.html").read().replace("<span>", "").replace("</span>", "")  # around words of commands
flags = {"prod": ["--arch", "H100"], "two ways": ["--arch", "sm100", "--tp-size", "2"], "mi300": ["--target", "mi.json"],
         "off": ["--arch", "sm90", "--moe-backend", "flashinfer_trtllm"]}
releases = [row["revision"] for row in json.loads(subprocess.run([program, "list", "revisions", "--engine", "vllm", "--json"], stdout=subprocess.PIPE, check=True).stdout)["revisions"]
            if not row["revision"].startswith("vllm-20")]


def ask(*words):
    done = subprocess.run([program, *words, "--json"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return json.loads(done.stdout)


for name, own in flags.items():
    mine = [row for row in rows if row["deployment"] == name]
    # Every release once, the newest first.
    assert [revision for row in mine for revision in row["revisions"]] == releases[::-1], mine
    for row in mine:
        for revision in (row["revisions"][0], row["revisions"][-1]):
            answer = ask("explain", model, *own, "--revision", revision)
            assert row["backend"] == answer.get("backend"), (revision, row, answer)
            if name == "prod":
                assert row["fits"] == ask("fits", "packed h100", *own, "--revision", revision)["fits"], (revision, row)
        assert row["action"] in page and (row["next"] is None or "--revision " + row["revisions"][0] in page)
assert {row["fits"] for row in rows if row["deployment"] == "prod"} == {True, False}
assert all(row["next"] is None and row["reason"] for row in rows if row["deployment"] == "off")
again = [row for row in rows if row["deployment"] == "two ways" and row["next"]][0]["next"]
subprocess.run(again.replace("mxfp4-repack", program, 1).replace("NEW", "made") + " -q", shell=True, check=True)
assert "<script" not in page and page.count("<table") == page.count("</table>") == 1
END

# Names are known by their text, without the blanks around them; no word is cut for the lists behind a refusal.
printf 'one: --arch sm90\n  one : --arch sm100\n' >fleet.txt
expect_exit 3 "$BIN" explain "$model" --fleet fleet.txt
expect_one_error 'fleet.txt: line 2: one: line 1 has this name, too$'
printf 'cpu: --arch x86_64-avx512\n' >fleet.txt
expect_exit 0 "$BIN" explain "$model" --fleet fleet.txt --json
grep -q '"reason": "No MXFP4 MoE backend supports the deployment configuration\."' stdout || { cat stdout >&2; fail 'not the sentence only'; }

# A line of another engine has that engine's releases, for the blob of this one, too.
printf 'mine: --arch sm90 --blob "packed h100"\nother: --arch sm90 --engine sglang --blob "packed h100"\n' >fleet.txt
expect_exit 0 "$BIN" explain "$model" --fleet fleet.txt
grep -q 'SGLang 0' stdout || fail 'the other engine is not named'
expect_exit 0 "$BIN" explain "$model" --fleet fleet.txt --json
"$python" - <<'END'
import json

rows = json.load(open("stdout"))["fleet"]
for name, prefix in (("mine", "vllm-"), ("other", "sglang-")):
    mine = [row for row in rows if row["deployment"] == name]
    assert mine and all(revision.startswith(prefix) for row in mine for revision in row["revisions"]), mine
assert not any("plug-in" in row["action"] or "serve" in row["action"] for row in rows if row["deployment"] == "other"), rows
END

# A line that is wrong is named; nothing else is mixed in.
printf 'good: --arch sm90\nbad: --arhc sm90\n' >fleet.txt
expect_exit 2 "$BIN" explain "$model" --fleet fleet.txt
expect_one_error "fleet.txt: line 2: .*--arhc"
while IFS='|' read -r code line said; do
  printf '# first\n%s\n' "$line" >fleet.txt
  expect_exit "$code" "$BIN" explain "$model" --fleet fleet.txt
  expect_one_error "fleet.txt: line 2: $said"
done <<'END'
2|nothing:|the serving machine is not known
3|input: convert --arch sm90|convert: cannot be opened
2|none: --arch sm9|--arch: unknown machine
3|file: --target nowhere.json|nowhere.json: cannot be opened
END
printf 'no colon here\n' >fleet.txt
expect_exit 3 "$BIN" explain "$model" --fleet fleet.txt
expect_one_error 'fleet.txt: line 1: expected NAME: FLAGS'
printf 'open: --arch "sm90\n' >fleet.txt
expect_exit 3 "$BIN" explain "$model" --fleet fleet.txt
expect_one_error 'line 1: the quote " is not closed'
printf 'again: --arch sm90 --revision 0.33.0\n' >fleet.txt
expect_exit 2 "$BIN" explain "$model" --fleet fleet.txt
expect_one_error 'every release of its engine is asked for it'
# Where no release serves a deployment, another release does not help.
printf 'never: --arch B200 --tp-size 64 --enable-expert-parallel\n' >fleet.txt
expect_exit 0 "$BIN" explain "$model" --fleet fleet.txt --json
"$python" -c 'import json; rows = json.load(open("stdout"))["fleet"]
assert rows and all(row["action"] == "change the deployment" and row["reason"] for row in rows), rows'
for flag in --json -q -v '--color always' '--progress never' '--html page.html' '--fleet fleet.txt'; do
  printf 'print: --arch sm90 %s\n' "$flag" >fleet.txt
  expect_exit 2 "$BIN" explain "$model" --fleet fleet.txt
  expect_one_error 'line 1: a line has the flags of a deployment'
done
printf 'twice: --arch sm90 --blob nowhere --blob=elsewhere\n' >fleet.txt
expect_exit 3 "$BIN" explain "$model" --fleet fleet.txt
expect_one_error 'line 1: --blob: given twice'
printf 'gone: --arch sm90 --blob nowhere\n' >fleet.txt
expect_exit 3 "$BIN" explain "$model" --fleet fleet.txt
expect_one_error 'line 1: nowhere'
: >fleet.txt
expect_exit 3 "$BIN" explain "$model" --fleet fleet.txt
expect_one_error 'no deployment'
expect_exit 2 "$BIN" explain "$model" --fleet fleet.txt --arch sm90
expect_one_error '--arch: has no effect with --fleet'
expect_exit 2 "$BIN" explain "$model" --html page.html
expect_one_error '--html: has no effect without --fleet'
[ ! -e page.html ] || fail 'a page was written'
