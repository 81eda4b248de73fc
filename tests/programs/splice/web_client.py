"""web_client.py PORT REQUESTS: through the proxy, a new connection every tenth request."""
import http.client
import sys

PATTERN = bytes((n * 197 + n // 251) % 256 for n in range(1 << 16))
SIZES = [1, 100, 1460, 16384, 65536, 1000000, 7]

port, requests = int(sys.argv[1]), int(sys.argv[2])
# The proxy may not listen yet.
while True:
    try:
        connection = http.client.HTTPConnection("127.0.0.1", port)
        connection.connect()
        break
    except ConnectionRefusedError:
        pass
for n in range(requests):
    if n % 10 == 0:
        connection.close()
    size = SIZES[n % len(SIZES)]
    connection.request("GET", f"/{size}")
    answer = connection.getresponse()
    body = answer.read()
    expected = (PATTERN * (size // len(PATTERN) + 1))[:size]
    if answer.status != 200 or body != expected:
        sys.exit(f"request {n}: {answer.status}, {len(body)} bytes of {size}")
