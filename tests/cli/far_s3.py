"""Object storage on this machine: far_s3.py ROOT STATE. Each folder of ROOT is a bucket.

Lists two keys a page, serves ranges, takes objects whole, in parts and on conditions, as S3 does, if botocore
makes the same signature of a request with the user's keys; of the bucket "open" to everybody. STATE/port gets
the port, STATE/refused a line for each refusal, STATE/leaks what shows the secret, STATE/asked a line for each
request that changes something, STATE/parts the uploads that were not ended. What the test says:
STATE/readonly  such requests are refused
STATE/faulty    every third such request ends badly: answered 503 or 500, cut off halfway, done without an answer
STATE/at        "N SIGNAL": the process STATE/pid gets the signal before request N from now, an even one after it;
                STATE/hit comes when the request is done. What else a killed process asked for is dropped.
"""
import hashlib
import http.server
import os
import pathlib
import re
import signal
import socket
import sys
import threading
import urllib.parse
import xml.sax.saxutils

from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from far_handler import Handler

ROOT, STATE = (pathlib.Path(word) for word in sys.argv[1:])
KEYS = Credentials("far-id", "far-secret", "far-session")
REGION = "eu-test-1"


class Storage(Handler):
    wbufsize = 1 << 16  # an answer is one packet

    def is_signed(self):
        given = self.headers.get("Authorization", "")
        names = given.partition("SignedHeaders=")[2].partition(",")[0].split(";")
        headers = {name: self.headers.get(name, "") for name in names if name}
        request = AWSRequest(self.command, f"http://{self.headers['Host']}{self.path}", headers)
        request.context["timestamp"] = self.headers.get("x-amz-date", "")
        auth = S3SigV4Auth(KEYS, "s3", REGION)
        signature = auth.signature(auth.string_to_sign(request, auth.canonical_request(request)), request)
        needed = {"host", *(name.lower() for name in self.headers if name.lower().startswith("x-amz-"))}
        return (given.startswith(f"AWS4-HMAC-SHA256 Credential={auth.scope(request)},") and needed <= set(names)
                and given.endswith(f"Signature={signature}")
                and self.headers.get("x-amz-security-token") == KEYS.token)

    def refused(self, bucket):
        """Whether a request was refused, and answered."""
        if KEYS.secret_key in f"{self.path} {self.headers}":
            (STATE / "leaks").write_text(f"{self.path} {self.headers}")
        closed = self.command != "GET" and (STATE / "readonly").exists()
        if closed or bucket == "open" and "Authorization" in self.headers or bucket != "open" and not self.is_signed():
            with open(STATE / "refused", "a") as log:
                log.write(f"{self.path}\n{self.headers}")
            self.answer(403, b"<Error/>")
            return True
        if not (ROOT / bucket).is_dir():
            self.answer(404, b"<Error/>")
            return True
        return False

    def do_GET(self):
        path, _, query = self.path.partition("?")
        bucket, _, key = path[1:].partition("/")
        if self.refused(bucket):
            return None
        folder = ROOT / bucket
        if not key:
            return self.list_keys(folder, dict(urllib.parse.parse_qsl(query, keep_blank_values=True)))
        file = folder / urllib.parse.unquote(key)
        with LOCK:
            tag = tag_of(file)
            if not tag:
                return self.answer(404, b"<Error/>")
            data = file.read_bytes()
        if "Range" not in self.headers:
            return self.answer(200, data, ETag=tag)
        first, last = (int(word) for word in self.headers["Range"].removeprefix("bytes=").split("-"))
        last = min(last, len(data) - 1)
        return self.answer(206, data[first:last + 1], ETag=tag, Content_Range=f"bytes {first}-{last}/{len(data)}")

    def list_keys(self, folder, asked):
        keys = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
        keys = [key for key in keys if key.startswith(asked["prefix"])]
        keys = [key for key in keys if key > asked.get("continuation-token", "").removesuffix("+/=")]
        names = [xml.sax.saxutils.escape(key) for key in keys]
        rows = "".join(f"<Contents><Key>{name}</Key></Contents>" for name in names[:2])
        more = f"<NextContinuationToken>{names[1]}+/=</NextContinuationToken>" if len(names) > 2 else ""
        return self.answer(200, f"<ListBucketResult>{rows}{more}</ListBucketResult>".encode())


    def change(self):
        """PUT, POST and DELETE."""
        hit = None
        with LOCK:
            FAULTS.append(1)
            number = len(FAULTS)
            with open(STATE / "asked", "a") as log:
                log.write(f"{self.command} {self.path}\n")
            if (STATE / "at").exists():
                COUNT.append(1)
                at, name = (STATE / "at").read_text().split()
                if len(COUNT) == int(at):
                    (STATE / "at").unlink()
                    COUNT.clear()
                    hit = int(at), getattr(signal, "SIG" + name)
        fault = number // 3 % 4 if number % 3 == 0 and (STATE / "faulty").exists() else None
        size = int(self.headers["Content-Length"])
        data = self.rfile.read(size // 2 if fault == 2 else size)
        signalled = hit is not None
        if hit and hit[0] % 2 == 1:
            os.kill(int((STATE / "pid").read_text()), hit[1])
            if hit[1] == signal.SIGKILL:
                self.close_connection = True
                return
            hit = None
        self.close_connection = fault in (2, 3)
        if fault == 2:
            return
        bucket, _, key = self.path.partition("?")[0][1:].partition("/")
        if fault in (0, 1):
            self.answer(503 - 3 * fault, b"<Error/>")
        elif not self.refused(bucket):
            with LOCK:
                if self.is_gone():
                    return
                status, body, tag = self.store(ROOT / bucket / urllib.parse.unquote(key), data)
            if hit:
                os.kill(int((STATE / "pid").read_text()), hit[1])
            if signalled:
                (STATE / "hit").touch()
            if fault is None:
                self.answer(status, body, **({"ETag": tag} if tag else {}))

    def is_gone(self):
        try:
            return self.connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) == b""
        except BlockingIOError:
            return False
        except ConnectionError:
            return True

    do_PUT = do_POST = do_DELETE = change

    def store(self, file, data):
        """Does it. Returns status, answer and ETag."""
        asked = dict(urllib.parse.parse_qsl(self.path.partition("?")[2], keep_blank_values=True))
        now = tag_of(file)
        wanted = self.headers.get("If-Match", now)
        if wanted != now or now and self.headers.get("If-None-Match") == "*":
            return 412, b"<Error/>", ""
        parts = STATE / "parts" / asked.get("uploadId", "")
        if "uploads" in asked:
            name = hashlib.sha256(os.urandom(8)).hexdigest()
            (parts / name).mkdir(parents=True)
            return 200, f"<X><UploadId>{name}</UploadId></X>".encode(), ""
        if not parts.is_dir() and "uploadId" in asked:
            return 404, b"<Error/>", ""
        if "partNumber" in asked:
            file = parts / asked["partNumber"]
        elif "uploadId" in asked:
            told = re.findall(b"<PartNumber>([0-9]+)</PartNumber><ETag>([^<]*)</ETag>", data)
            pieces = [parts / number.decode() for number, _ in told]
            assert [tag_of(piece).encode() for piece in pieces] == [tag for _, tag in told]
            assert all(piece.stat().st_size >= 5 << 20 for piece in pieces[:-1])
            data = b"".join(piece.read_bytes() for piece in pieces)
            for piece in parts.iterdir():
                piece.unlink()
            parts.rmdir()
        if self.command == "DELETE":
            if "uploadId" not in asked:
                file.unlink(missing_ok=True)
            return 204, b"", ""
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
        return 200, b"<X/>", tag_of(file)


def tag_of(file):
    return f'"{hashlib.md5(file.read_bytes()).hexdigest()}"' if file.is_file() else ""


LOCK = threading.Lock()
FAULTS, COUNT = [], []
SERVER = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Storage)
SERVER.daemon_threads = True
(STATE / "port.new").write_text(str(SERVER.server_port))
(STATE / "port.new").rename(STATE / "port")
SERVER.serve_forever()
