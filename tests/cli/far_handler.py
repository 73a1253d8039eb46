import http.server
import os


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, status, body=b"", **fields):
        self.send_response(status)
        for name, value in {"Content-Length": len(body), **fields}.items():
            self.send_header(name.replace("_", "-"), str(value))
        self.end_headers()
        self.wfile.write(body)


class Ranges(Handler):
    """Any file of this machine, by its path."""

    def do_GET(self):
        if not os.path.isfile(self.path):
            return self.answer(404)
        with open(self.path, "rb") as file:
            data = file.read()
        first, last = (int(word) for word in self.headers["Range"].removeprefix("bytes=").split("-"))
        part = data[first:last + 1]
        return self.answer(206, part, Content_Range=f"bytes {first}-{first + len(part) - 1}/{len(data)}", ETag='"one"')
