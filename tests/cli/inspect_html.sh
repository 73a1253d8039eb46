# inspect --html: a page that needs no other file; a browser, if one is installed, renders it.
model=$TESTDATA/ingest/gptoss_hf
convert_quietly "$model" -o out --arch sm90 --tp-size 2
expect_exit 0 "$BIN" inspect out --html page.html
"$python" - <<'END'
import html.parser
import json
import re
import subprocess
import os

page = open("page.html", encoding="utf-8").read()


class Page(html.parser.HTMLParser):
    VOID = {"meta"}
    open, cells, text = [], 0, []

    def handle_starttag(self, tag, attributes):
        assert tag not in ("script", "img", "link", "iframe"), tag
        assert not {"src", "href", "onload", "onclick"} & dict(attributes).keys(), attributes
        self.cells += tag == "td"
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, tag

    def handle_data(self, data):
        self.text.append(data)


found = Page()
found.feed(page)
assert found.open == [], found.open
assert "url(" not in page and "@import" not in page
text = " ".join(found.text)
ranks = json.loads(subprocess.run([os.environ["BIN"], "inspect", "out", "--tensors", "--json"], stdout=subprocess.PIPE, check=True).stdout)["ranks"]
for rank in ranks:
    assert f"Tensors of {os.path.basename(rank['path'])}" in text
    for tensor in rank["tensors"]:
        assert text.count(tensor["name"]) >= 1, tensor["name"]
# Every column has a head, and heads of numbers lie over their numbers.
assert "<th></th>" not in page and re.search("<th class=n>decoded", page)
for table in re.findall("<table><tr>(?:<th.*?)</table>", page, re.S):
    heads = re.findall("<th( class=n)?>", table.split("</tr>")[0])
    for row in re.findall("<tr><td.*?</tr>", table, re.S):
        assert [bool(head) for head in heads] == [bool(re.match("<td class=n ", cell)) for cell in re.findall("<td[^>]*>", row)], row
for word in "TRITON", "triton/hopper", "cuda sm90", "block scales", "chosen", "padding", "vllm serve MODEL", '"blob": "out"':
    assert word in text, word
assert len(re.findall("<summary>Layer", page)) == sum(len(rank["layers"]) for rank in ranks)
END

# An earlier page is replaced, any other file is not; no page without a blob.
expect_exit 0 "$BIN" inspect out/rank-00-of-02 --html page.html --json
echo precious >notes
expect_exit 5 "$BIN" inspect out --html notes
expect_one_error 'notes: exists, and is not a page of this program'
[ "$(cat notes)" = precious ] || fail 'notes are gone'
expect_exit 2 "$BIN" inspect "$model" --html page.html
expect_one_error '--html: has no effect with a checkpoint'
expect_exit 5 "$BIN" inspect out --html nowhere/page.html

# Names from a blob are text on the page, never markup.
mkdir '<img src=x onerror=alert(1)>'
cp -r out/rank-00-of-02/. '<img src=x onerror=alert(1)>'
expect_exit 0 "$BIN" inspect '<img src=x onerror=alert(1)>' --html odd.html
! grep -q '<img' odd.html || fail 'a path became markup'

browser=$(command -v chromium || command -v google-chrome || true)
[ -n "$browser" ] && ! sanitized || exit 0
expect_exit 0 timeout 100 "$browser" --headless --no-sandbox --disable-gpu --user-data-dir="$PWD/profile" \
  --screenshot="$PWD/page.png" --window-size=1000,1400 "file://$PWD/page.html"
# A picture with a page on it: not all of one colour.
"$python" - <<'END'
import struct, zlib
data = open("page.png", "rb").read()
assert data[:8] == b"\x89PNG\r\n\x1a\n"
assert struct.unpack(">II", data[16:24]) == (1000, 1400)
at, pixels = 8, b""
while at < len(data):
    length, kind = struct.unpack(">I4s", data[at:at + 8])
    if kind == b"IDAT":
        pixels += data[at + 8:at + 8 + length]
    at += 12 + length
assert len(set(zlib.decompress(pixels))) > 20
END
