"""What becomes of a socket of UDP in unusual hands: HOW ADDRESS-OF-THE-STACK OF-THE-KERNEL."""
import array
import ctypes
import mmap
import errno
import os
import select
import socket
import sys
import threading

how, own, kernel = sys.argv[1:4]


def bound(port=7):
    server = socket.socket(type=socket.SOCK_DGRAM)
    server.bind((own, port))
    return server


def ready():
    open(os.environ["READY_FILE"], "w").close()


def name(call):
    try:
        return repr(call())
    except OSError as error:
        return errno.errorcode[error.errno]


def workers():
    """Four processes on one socket: each datagram is for one of them, which says who it is."""
    server = bound()
    for _ in range(3):
        if os.fork() == 0:
            break
    else:
        ready()
    while True:
        data, peer = server.recvfrom(1000)
        server.sendto(b"%d" % os.getpid() if data != b"over" else b"over", peer)
        if data == b"over":
            return


def passed():
    """A socket that goes to an executed program, and by SCM_RIGHTS to another process."""
    server = bound()
    here, there = socket.socketpair(socket.AF_UNIX)
    if os.fork() == 0:
        data, control, _, _ = here.recvmsg(1, 64)
        again = socket.socket(fileno=array.array("i", control[0][2])[0])
        os.set_inheritable(again.fileno(), True)
        program = [sys.executable, "-B", __file__, "executed", str(again.fileno()), kernel]
        os.execv(sys.executable, program)
    there.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [server.fileno()]))])
    server.close()
    os.wait()


def executed():
    server = socket.socket(fileno=int(own))
    assert server.type == socket.SOCK_DGRAM and server.family == socket.AF_INET, server
    assert server.getsockname()[1] == 7
    ready()
    data, peer = server.recvfrom(1000)
    server.sendto(data, peer)


def closed():
    """A port is free for the next one as soon as it is closed, also at every address."""
    for _ in range(200):
        for address in (own, "0.0.0.0", "0.0.0.0"):
            one = socket.socket(type=socket.SOCK_DGRAM)
            one.bind((address, 7))
            one.close()
    print("done")


def unread():
    """Reads nothing until it is told how much there is, and then all of it."""
    server = bound()
    ready()
    for _ in range(int(sys.stdin.readline())):
        server.recv(70_000)
    print("done")


def refused():
    """Each error is told once: to who waits, to who sends, and as SO_ERROR."""
    client = socket.socket(type=socket.SOCK_DGRAM)
    client.connect((kernel, 99))
    poll = select.poll()
    poll.register(client, select.POLLIN)
    results = [client.send(b"x"), name(lambda: client.recv(10)), poll.poll(0)]
    client.send(b"x")
    results.append(len(poll.poll(20_000)))
    results.append(errno.errorcode[client.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)])
    results.append(client.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR))
    client = socket.socket(type=socket.SOCK_DGRAM)
    client.connect((kernel, 99))
    poll.register(client, select.POLLIN)
    client.send(b"x")
    while not any(fd == client.fileno() for fd, _ in poll.poll(20_000)):
        pass
    results += [name(lambda: client.send(b"x")), client.send(b"x")]
    client = socket.socket(type=socket.SOCK_DGRAM)
    client.connect((kernel, 99))
    client.send(b"x")
    poll = select.poll()
    poll.register(client, select.POLLIN)
    results += [len(poll.poll(20_000)), name(lambda: client.recv(10)), poll.poll(0)]
    print(results)


def orphan():
    server = bound()
    client = socket.socket(type=socket.SOCK_DGRAM)
    client.connect((kernel, 9))
    watched = select.epoll()
    watched.register(server, select.EPOLLIN)
    results = {}
    waits = threading.Thread(target=lambda: results.update(receives=name(lambda: client.recv(10))))
    waits.start()
    ready()
    waits.join()
    results["hears"] = name(lambda: server.recv(10))
    results["sends"] = name(lambda: client.send(b"x"))
    results["answers"] = name(lambda: server.sendto(b"x", (kernel, 9)))
    results["opens"] = name(bound)
    # A server that goes on to wait has nothing to try for ever.
    results["waits"] = name(lambda: watched.poll(0))
    print(" ".join(f"{what} {result}" for what, result in results.items()))


def hostile():
    """Writes what is no datagram to its end, round the library, and what would come from elsewhere."""
    server = bound()
    # mov rax, rdi; mov rdi, rsi; mov rsi, rdx; mov rdx, rcx; syscall; ret: calls by number are taken, too.
    code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    code.write(bytes.fromhex("4889f84889f74889d64889ca0f05c3"))
    kind = ctypes.CFUNCTYPE(ctypes.c_long, ctypes.c_long, ctypes.c_long, ctypes.c_char_p, ctypes.c_size_t)
    call = kind(ctypes.addressof(ctypes.c_char.from_buffer(code)))
    write = 1
    peer = socket.inet_aton(kernel)
    head = bytearray(48)
    head[0:2] = 1, 1 | 16
    head[4:6] = (9).to_bytes(2, "little")
    head[8:12] = peer
    forged = bytearray(head)
    forged[1] |= 2 | 32
    forged[24:28] = socket.inet_aton("10.0.0.77")
    all_bits = [bytes([kind, flags]) + bytes(46) for kind in range(4) for flags in range(256)]
    for text in [b"", b"x", bytes(47), bytes(48), b"\xff" * 48, b"\xff" * 66_000, bytes(forged) + b"forged", *all_bits]:
        call(write, server.fileno(), text, len(text))
    call(write, server.fileno(), bytes(head) + b"honest", 54)
    print("done", flush=True)
    # It answers still, behind the errors of what was refused.
    while True:
        try:
            data, who = server.recvfrom(100)
            server.sendto(data, who)
            return
        except OSError:
            pass


globals()[how]()
