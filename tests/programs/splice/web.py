"""web.py PORT READY: answers GET /N with N bytes of a known pattern."""
import http.server
import sys

PATTERN = bytes((n * 197 + n // 251) % 256 for n in range(1 << 16))


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        size = int(self.path[1:])
        body = (PATTERN * (size // len(PATTERN) + 1))[:size]
        self.send_response(200)
        self.send_header("Content-Length", str(size))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler)
with open(sys.argv[2], "w") as ready:
    ready.write(f"{server.server_port}\n")
server.serve_forever()
