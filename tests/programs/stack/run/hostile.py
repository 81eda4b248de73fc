"""Says what it must not to an instance: SOCKET VERSION SEED ROUNDS PID. The process has sockets that are not to be had, nor to be changed."""
import array
import json
import mmap
import os
import random
import socket
import sys
import tempfile

path, version, seed, rounds, others = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5]
rng = random.Random(seed)


def door(hello=None):
    stream = socket.socket(socket.AF_UNIX)
    stream.settimeout(20)
    stream.connect(path)
    if hello is None:
        hello = json.dumps({"version": version, "name": "hostile"}).encode()
    stream.sendall(hello)
    return stream


def rights(*fds):
    return [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))]


def channel(stream, kind=socket.SOCK_SEQPACKET):
    here, there = socket.socketpair(socket.AF_UNIX, kind)
    here.settimeout(20)
    stream.sendmsg([b"x"], rights(there.fileno()))
    there.close()
    return here


def welcome(stream):
    data, control, _, _ = stream.recvmsg(65536, 64)
    for _, _, fds in control:
        for fd in array.array("i", fds):
            # Processes of other users read it, too.
            again = os.open(f"/proc/self/fd/{fd}", os.O_RDWR)
            writes = mmap.PROT_READ | mmap.PROT_WRITE
            harms = [lambda: os.ftruncate(again, 0), lambda: os.pwrite(again, b"x", 0)]
            harms += [lambda: os.pwrite(fd, b"x", 0), lambda: mmap.mmap(again, 80, prot=writes)]
            for harm in harms:
                try:
                    harm()
                except OSError:
                    continue
                raise AssertionError("the table is written")
            os.close(again)
            os.close(fd)
    return json.loads(data)


REQUESTS = [
    {"Bind": {"New": {"ipv6": False, "local": "10.0.0.2:0", "options": []}}},
    {"Bind": {"There": {"row": 0, "generation": 1}}},
    {"Listen": {"which": {"New": {"ipv6": False, "local": "0.0.0.0:0", "options": [[6, 9, [1]]]}}, "backlog": 4294967295}},
    {"Listen": {"which": {"There": {"row": 1, "generation": 1}}, "backlog": 1}},
    {"Connect": {"which": {"New": {"ipv6": False, "local": None, "options": [[1, 13, [1, 2]]]}}, "peer": "10.0.0.1:1", "filled": 0}},
    {"Connect": {"which": {"There": {"row": 0, "generation": 1}}, "peer": "10.0.0.1:9", "filled": 4294967295}},
    {"Disconnect": {"name": {"row": 1, "generation": 1}}},
    {"Unlisten": {"name": {"row": 1, "generation": 1}}},
    {"WakeUp": {"name": {"row": 0, "generation": 1}}},
    {"SetOption": {"name": {"row": 4294967295, "generation": 4294967295}, "option": [6, 1, []]}},
    {"Option": {"name": {"row": 0, "generation": 1}, "level": 6, "option": 11}},
    {"Queued": {"name": {"row": 0, "generation": 1}}},
    {"Whose": {"inodes": list(range(1000))}},
    "Share",
]


def garbage():
    text = bytearray(json.dumps(rng.choice(REQUESTS)).encode())
    for _ in range(rng.choice([0, 0, 1, 3])):
        text[rng.randrange(len(text))] = rng.randrange(256)
    return bytes(text)


def requests_of(name):
    """All that names a socket."""
    there = {"There": name}
    yield {"Bind": there}
    yield {"Listen": {"which": there, "backlog": 1}}
    yield {"Connect": {"which": there, "peer": "10.0.0.1:9", "filled": 0}}
    # TCP_NODELAY, SO_KEEPALIVE, SO_LINGER of no time, IP_TOS.
    for option in [[6, 1, [0, 0, 0, 0]], [1, 9, [0, 0, 0, 0]], [1, 13, [1, 0, 0, 0, 0, 0, 0, 0]], [0, 1, [0, 0, 0, 0]]]:
        yield {"SetOption": {"name": name, "option": option}}
    yield {"Option": {"name": name, "level": 6, "option": 11}}
    yield {"Queued": {"name": name}}
    yield {"DatagramsBind": {"name": name, "local": "10.0.0.2:0", "everywhere": False}}
    yield {"DatagramsConnect": {"name": name, "peer": "10.0.0.1:9", "by_kernel": False}}
    yield {"DatagramsWant": {"name": name, "wants": 255}}
    yield {"DatagramsLongest": {"name": name, "peer": "10.0.0.1"}}
    yield {"DatagramsKernel": {"name": name}}


def names_others():
    """Who has no socket guesses names of others': in vain, each."""
    stream = door()
    assert "Here" in welcome(stream)
    asks = channel(stream)

    def answer(request):
        asks.send(json.dumps(request).encode())
        data, control, _, _ = asks.recvmsg(65536, 64)
        assert not control, f"{request}: descriptors"
        return json.loads(data)

    for row in range(8):
        for generation in range(1, 5):
            for request in requests_of({"row": row, "generation": generation}):
                told = answer(request)
                assert isinstance(told, dict) and "Failed" in told, f"{request}: {told}"
    sockets = [os.readlink(f"/proc/{others}/fd/{fd}") for fd in os.listdir(f"/proc/{others}/fd")]
    inodes = [int(link[8:-1]) for link in sockets if link.startswith("socket:[")]
    told = answer({"Whose": {"inodes": inodes}})["Whose"]
    assert "Others" in told and not any("Yours" in one for one in told), told


names_others()
# What is no hello is answered with why, and the end.
for hello in [b"\0", b"{}", rng.randbytes(4000), json.dumps({"version": "0", "name": ""}).encode()]:
    stream = door(hello)
    assert "Refused" in welcome(stream), hello
    assert stream.recv(1) == b""
for _ in range(rounds):
    stream = door()
    assert "Here" in welcome(stream)
    # Descriptors of all kinds for a channel.
    with tempfile.TemporaryFile() as file, open("/dev/zero") as zero:
        stream.sendmsg([b"x"], rights(file.fileno(), zero.fileno(), stream.fileno()))
    other = channel(stream, socket.SOCK_STREAM)
    assert other.recv(1) == b"", "a stream is no channel"
    asks = channel(stream)
    kept = []
    for _ in range(30):
        sent = rights(zero_fd := os.open("/dev/zero", os.O_RDONLY)) if rng.random() < 0.2 else []
        asks.sendmsg([garbage()], sent)
        if sent:
            os.close(zero_fd)
        data, control, _, _ = asks.recvmsg(65536, 64)
        assert data
        for _, _, fds in control:
            kept += [socket.socket(fileno=fd) for fd in array.array("i", fds)]
    # What it got it fills, shuts and leaves.
    for end in kept:
        end.setblocking(False)
        try:
            end.send(rng.randbytes(rng.choice([1, 70_000, 300_000])))
            end.recv(rng.choice([1, 100_000]))
        except OSError:
            pass
        if rng.random() < 0.3:
            end.shutdown(rng.randrange(3))
    # Asks without reading the answers.
    floods = channel(stream)
    floods.setblocking(False)
    try:
        while True:
            floods.send(garbage())
    except OSError:
        pass
print("done")
