"""A hub on this machine, and the content host to which it redirects: far_server.py ROOT STATE.

The hub serves the folder ROOT as the model org/model: its list of files, and a redirect for each file
with the SHA-256. It asks for the token "far-token"; the content host writes to STATE/leaks if it sees
one, and serves ranges. STATE/port gets the hub's port, STATE/mode says what the content host does wrong
(see Content.faulty), STATE/asked has a line for each of its answers: bytes asked for, bytes sent.
"""
import hashlib
import http.server
import json
import pathlib
import random
import sys
import threading
import time

from far_handler import Handler

ROOT, STATE = (pathlib.Path(word) for word in sys.argv[1:])
COMMIT = "0123456789abcdef0123456789abcdef01234567"
TOKEN = "far-token"
LOCK = threading.Lock()
DRAWN = random.Random(62)


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128
    asked = 0  # answers so far, in this mode
    mode = ""

    def handle_error(self, request, client_address):
        pass  # a connection that this cut, or the program closed


class Hub(Handler):
    def do_GET(self):
        if self.headers.get("Authorization") != f"Bearer {TOKEN}":
            return self.answer(401)
        if self.path == "/api/models/org/model/revision/main":
            names = sorted(path.name for path in ROOT.iterdir())
            listing = {"sha": COMMIT, "siblings": [{"rfilename": name} for name in names]}
            return self.answer(200, json.dumps(listing).encode())
        folder = f"/org/model/resolve/{COMMIT}/"
        path = ROOT / self.path.removeprefix(folder)
        if not self.path.startswith(folder) or not path.is_file():
            return self.answer(404)
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        return self.answer(302, Location=f"http://localhost:{CONTENT.server_port}/{path.name}?signed=1",
                           X_Linked_Etag=f'"{digest}"', X_Linked_Size=path.stat().st_size)


class Content(Handler):
    def cut(self):
        self.close_connection = True
        self.connection.shutdown(2)

    def do_GET(self):
        if "Authorization" in self.headers or TOKEN in str(self.headers):
            (STATE / "leaks").write_text(str(self.headers))
        with LOCK:
            mode = (STATE / "mode").read_text().strip()
            if mode != self.server.mode:
                self.server.mode, self.server.asked = mode, 0
            self.server.asked += 1
            number = self.server.asked
        data = (ROOT / self.path.lstrip("/").split("?")[0]).read_bytes()
        self.tag = '"one"'
        if "Range" not in self.headers:
            return self.answer(200, data, ETag=self.tag)
        first, last = (int(word) for word in self.headers["Range"].removeprefix("bytes=").split("-"))
        last = min(last, len(data) - 1)
        if not self.faulty(mode, number, data, first, last):
            self.part(data[first:last + 1], first, last, len(data))

    def part(self, body, first, last, total, length=None, sent=None):
        self.send_response(206)
        self.send_header("Content-Range", f"bytes {first}-{last}/{total}")
        self.send_header("Content-Length", str(len(body) if length is None else length))
        self.send_header("ETag", self.tag)
        self.end_headers()
        body = body if sent is None else body[:sent]
        self.wfile.write(body)
        with LOCK, open(STATE / "asked", "a") as log:
            log.write(f"{last - first + 1} {len(body)}\n")

    def faulty(self, mode, number, data, first, last):
        body = data[first:last + 1]
        if mode == "cut" and number % 2:
            with LOCK:
                sent = DRAWN.randrange(len(body))
            self.part(body, first, last, len(data), sent=sent)
            self.cut()
        elif mode == "unwell" and number % 3 == 0:
            self.answer(500, b"later")
        elif mode == "busy" and number < 20:
            self.answer(429, Retry_After=1)
        elif mode == "expired" and number % 5 == 0:
            self.answer(403, b"expired")
        elif mode == "down":
            self.answer(503)
        elif mode == "closed_for_long":
            self.answer(503, Retry_After=86400)
        elif mode == "short":
            self.part(body[:-1], first, last, len(data))
        elif mode == "long":
            self.part(body + b"x", first, last, len(data))
        elif mode == "chunked":  # no length, and too many bytes
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {first}-{last}/{len(data)}")
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            body += b"x"
            self.wfile.write(b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body))
        elif mode == "elsewhere":
            self.part(body, first + 1, last + 1, len(data) + 2)
        elif mode == "grown":
            self.part(body, first, last, len(data) + 1 if number > 8 else len(data))
        elif mode == "whole":
            self.answer(200, data)
        elif mode == "packed":
            self.answer(206, body, Content_Range=f"bytes {first}-{last}/{len(data)}",
                        Content_Encoding="gzip")
        elif mode == "changed" and number > 8:
            self.tag = '"two"'
            return False
        elif mode == "circle":
            self.answer(302, Location=self.path)
        elif mode == "to_file":
            self.answer(302, Location="file:///etc/passwd")
        elif mode == "silent":
            time.sleep(30)
        else:
            return False
        return True


CONTENT = Server(("127.0.0.1", 0), Content)
threading.Thread(target=CONTENT.serve_forever, daemon=True).start()
HUB = Server(("127.0.0.1", 0), Hub)
(STATE / "port.new").write_text(str(HUB.server_port))
(STATE / "port.new").rename(STATE / "port")
HUB.serve_forever()
