"""Object storage on this machine: far_s3.py ROOT STATE. Each folder of ROOT is a bucket.

Lists two keys a page and serves ranges, as S3 does, if botocore makes the same signature of a request with
the user's keys; of the bucket "open" to everybody. STATE/port gets the port, STATE/refused a line for each
refusal, STATE/leaks what shows the secret.
"""
import http.server
import pathlib
import sys
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
    def is_signed(self):
        given = self.headers.get("Authorization", "")
        names = given.partition("SignedHeaders=")[2].partition(",")[0].split(";")
        headers = {name: self.headers.get(name, "") for name in names if name}
        request = AWSRequest("GET", f"http://{self.headers['Host']}{self.path}", headers)
        request.context["timestamp"] = self.headers.get("x-amz-date", "")
        auth = S3SigV4Auth(KEYS, "s3", REGION)
        signature = auth.signature(auth.string_to_sign(request, auth.canonical_request(request)), request)
        needed = {"host", *(name.lower() for name in self.headers if name.lower().startswith("x-amz-"))}
        return (given.startswith(f"AWS4-HMAC-SHA256 Credential={auth.scope(request)},") and needed == set(names)
                and given.endswith(f"Signature={signature}")
                and self.headers.get("x-amz-security-token") == KEYS.token)

    def do_GET(self):
        if KEYS.secret_key in f"{self.path} {self.headers}":
            (STATE / "leaks").write_text(f"{self.path} {self.headers}")
        path, _, query = self.path.partition("?")
        bucket, _, key = path[1:].partition("/")
        if bucket == "open" and "Authorization" in self.headers or bucket != "open" and not self.is_signed():
            with open(STATE / "refused", "a") as log:
                log.write(f"{self.path}\n{self.headers}")
            return self.answer(403, b"<Error/>")
        folder = ROOT / bucket
        if not folder.is_dir():
            return self.answer(404, b"<Error/>")
        if not key:
            return self.list_keys(folder, dict(urllib.parse.parse_qsl(query, keep_blank_values=True)))
        file = folder / urllib.parse.unquote(key)
        if not file.is_file():
            return self.answer(404, b"<Error/>")
        data = file.read_bytes()
        tag = f'"{file.stat().st_mtime_ns}"'
        if "Range" not in self.headers:
            return self.answer(200, data, ETag=tag)
        first, last = (int(word) for word in self.headers["Range"].removeprefix("bytes=").split("-"))
        last = min(last, len(data) - 1)
        return self.answer(206, data[first:last + 1], ETag=tag, Content_Range=f"bytes {first}-{last}/{len(data)}")

    def list_keys(self, folder, asked):
        keys = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
        keys = [key for key in keys if key.startswith(asked["prefix"])]
        begin = int(asked.get("continuation-token", "0+/=").rstrip("+/="))
        rows = "".join(f"<Contents><Key>{xml.sax.saxutils.escape(key)}</Key></Contents>" for key in keys[begin:begin + 2])
        more = f"<NextContinuationToken>{begin + 2}+/=</NextContinuationToken>" if begin + 2 < len(keys) else ""
        return self.answer(200, f"<ListBucketResult>{rows}{more}</ListBucketResult>".encode())


SERVER = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Storage)
SERVER.daemon_threads = True
(STATE / "port.new").write_text(str(SERVER.server_port))
(STATE / "port.new").rename(STATE / "port")
SERVER.serve_forever()
