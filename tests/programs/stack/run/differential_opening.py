"""Random calls that open connections at ADDRESS, from there and to there; peers are the kernel's at PEER. What each gave, a line each:
ADDRESS PEER FIRST_SEED PROGRAMS PATIENCE_MS [pairs]. The same lines on the kernel's stack and on another one, or they differ."""
import os
import random
import select
import socket
import sys
import time

from differential_calls import control, named, tried

address, peer, first, programs, patience = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), float(sys.argv[5]) / 1000
# Where a socket is one of a pair of unix(7): what is left out for it is in KNOWN_ISSUES.md (`stack run --mode pipeline`).
pairs = sys.argv[6:] == ["pairs"]
HERE, THERE, CLOSED = (7000, 7001), 7100, 7199
SLOTS = 4


def settle():
    """The other side's processing, and what it answers."""
    time.sleep(patience)


class One:
    """A socket, and what was done with it: its duplicates share it."""

    def __init__(self, socket, step="new"):
        self.socket, self.step = socket, [step]

    def dup(self, onto=None):
        twin = One(None)
        twin.step = self.step
        if onto is None:
            twin.socket = self.socket.dup()
        else:
            number = onto.socket.detach()
            os.dup2(self.socket.fileno(), number, inheritable=False)
            twin.socket = socket.socket(fileno=number)
            twin.socket.setblocking(False)
        return twin


class World:
    def __init__(self, rng):
        self.rng = rng
        self.slots = [None] * SLOTS
        self.sets = [select.epoll(), select.epoll()]
        # Of the kernel's, to which the program connects, and those that connect to it.
        self.listener = socket.socket()
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.listener.bind((peer, THERE))
        self.listener.listen(64)
        self.listener.setblocking(False)
        self.peers = []

    def place(self):
        """A free one, or any."""
        free = [n for n, one in enumerate(self.slots) if one is None]
        return self.rng.choice(free or range(SLOTS))

    def put(self, one, place=None):
        place = self.place() if place is None else place
        if self.slots[place]:
            self.slots[place].socket.close()
        self.slots[place] = one
        return place

    def any(self, *steps):
        """Of those that have come so far."""
        fit = [one for one in self.slots if one and (not steps or one.step[0] in steps)]
        return self.rng.choice(fit) if fit else None

    def close(self):
        for one in [*self.slots, *self.peers]:
            if one:
                getattr(one, "socket", one).close()
        for each in [*self.sets, self.listener]:
            each.close()


def shown(name):
    """Both stacks' addresses under the same name; ports that were chosen for a socket are not the same."""
    if not isinstance(name, tuple):
        return name
    host = {address: "HOST", peer: "HOST", "0.0.0.0": "ANY"}.get(name[0], name[0])
    return f"{host} {name[1] if name[1] in (0, THERE, CLOSED, *HERE) else 'chosen'}"


def opens(world):
    one = socket.socket()
    one.setblocking(False)
    one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    return world.put(One(one))


def binds(world):
    if not (one := world.any("new", "new", "bound", "bound anywhere", "listens")):
        return "none"
    port = world.rng.choice([*HERE, 0])
    done = tried(lambda: one.socket.bind((address, port)))
    if done is None:
        # Whether a port that has just been connected may be so again is a matter of loopback.
        one.step[0] = "bound" if port else "bound anywhere"
    return f"{port} {done}"


def listens(world):
    # Of one that no address has said whose it is: both stacks'.
    if not (one := world.any("bound", "bound", "bound anywhere", "listens", *([] if pairs else ["connects"]))):
        return "none"
    done = tried(lambda: one.socket.listen(64))
    if done is None:
        one.step[0] = "listens"
    return done


def connects(world):
    # Of one that has ended, a connect of a pair is EISCONN.
    if not (one := world.any("new", "new", "bound anywhere", *([] if pairs else ["connects", "listens"]))):
        return "none"
    to = world.rng.choice([THERE, THERE, THERE, CLOSED])
    was = one.step[0]
    done = tried(lambda: one.socket.connect((peer, to)))
    if done == "EINPROGRESS":
        # The kernel's loopback knows at once.
        answered(one.socket)
        done = tried(lambda: one.socket.connect((peer, to)))
        if pairs and done == "EISCONN":
            # The kernel says so from the next call on.
            done = None
    if was in ("new", "bound anywhere"):
        one.step[0] = "connects" if to == THERE else "refused"
    return f"{to} {done}"


def accepts(world):
    if not (one := world.any("listens", "listens", "bound", "bound anywhere", "connects")):
        return "none"
    got = tried(one.socket.accept)
    if isinstance(got, tuple):
        new, name = got
        new.setblocking(False)
        world.put(One(new, "connects"))
        got = shown(name)
    return got


def answered(end):
    poll = select.poll()
    poll.register(end, select.POLLOUT)
    return [named(bits) for _, bits in poll.poll(60_000)]


def arrives(world):
    """A peer connects, from a port of the kernel's."""
    end = socket.socket()
    end.bind((peer, 0))
    end.setblocking(False)
    begun = tried(lambda: end.connect((address, world.rng.choice(HERE))))
    world.peers.append(end)
    return answered(end), begun == "ECONNREFUSED" or tried(lambda: end.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR))


def arrived(world):
    """A peer accepts."""
    got = tried(world.listener.accept)
    if isinstance(got, tuple):
        got[0].setblocking(False)
        world.peers.append(got[0])
        return shown(got[1])
    return got


def peer_sends(world):
    if not world.peers:
        return "none"
    done = tried(lambda: world.rng.choice(world.peers).send(b"x" * world.rng.choice([1, 300])))
    # "They end in order, not by a reset, where it is closed before they are accepted"
    return "left out" if pairs else done


def peer_closes(world):
    if not world.peers:
        return "none"
    world.peers.pop(world.rng.randrange(len(world.peers))).close()
    return len(world.peers)


def dups(world):
    one = world.any()
    return world.put(one.dup()) if one else "none"


def dups_onto(world):
    places = [n for n, one in enumerate(world.slots) if one]
    if len(places) < 2:
        return "none"
    source, target = world.rng.sample(places, 2)
    world.slots[target] = world.slots[source].dup(world.slots[target])
    return f"{source} {target}"


def closes(world):
    places = [n for n, one in enumerate(world.slots) if one]
    if not places:
        return "none"
    place = world.rng.choice(places)
    world.slots[place].socket.close()
    world.slots[place] = None
    return place


def sends(world):
    one = world.any("connects", "listens", "bound", "bound anywhere")
    return tried(lambda: one.socket.send(b"y" * world.rng.choice([1, 300]), socket.MSG_NOSIGNAL)) if one else "none"


def receives(world):
    if not (one := world.any("connects", "listens", "bound", "bound anywhere")):
        return "none"
    got = tried(lambda: one.socket.recv(world.rng.choice([1, 1000])))
    return len(got) if isinstance(got, bytes) else got


def has_ended(end):
    poll = select.poll()
    poll.register(end, 0)
    return poll.poll(0)


def shuts(world):
    # Not of a listener, which stays one to SO_ACCEPTCONN and bind, nor of what is bound, which hears nothing of it (both inline).
    if not (one := world.any("connects")):
        return "none"
    if pairs and has_ended(one.socket):
        # "A shutdown of a connection that has ended is no edge"
        return "left out"
    # "Bytes that come after shutdown(SHUT_RD) are discarded"
    how = socket.SHUT_WR if pairs else world.rng.choice([socket.SHUT_RD, socket.SHUT_WR, socket.SHUT_RDWR])
    done = tried(lambda: one.socket.shutdown(how))
    # Of what has ended it is not ENOTCONN.
    return f"{how} {'left out' if pairs else done}"


def names(world):
    if not (one := world.any()):
        return "none"
    options = [one.socket.getsockopt(socket.SOL_SOCKET, name) for name in (socket.SO_TYPE, socket.SO_ACCEPTCONN, socket.SO_DOMAIN)]
    # When it is nobody's again, and who was the peer of what has ended, is not the same.
    own = "left out" if one.step[0] == "refused" else shown(tried(one.socket.getsockname))
    return f"{own} {'left out' if pairs else shown(tried(one.socket.getpeername))} {options}"


def errors(world):
    one = world.any()
    return tried(lambda: one.socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)) if one else "none"


def watches(world):
    # "A socket that is bound only is writable to poll"
    one = world.any("listens", "connects", *([] if pairs else ["bound", "bound anywhere", "refused"]))
    if not one:
        return "none"
    place = world.rng.randrange(2)
    # "EPOLLOUT with EPOLLET is reported after each send"
    without = select.EPOLLOUT if pairs else 0
    return f"{place} {control(world.rng, None, one.socket, world.sets[place], None, without)}"


def events(world):
    places = {one.socket.fileno(): n for n, one in enumerate(world.slots) if one}
    return [sorted((places.get(fd, -1), told(bits)) for fd, bits in each.poll(0)) for each in world.sets]


def told(bits):
    # "After a reset poll and epoll report IN and HUP, and no ERR"
    return named(bits & ~select.EPOLLERR if pairs else bits)


def polled(world):
    if not (one := world.any()):
        return "none"
    if pairs and one.step[0] in ("bound", "bound anywhere", "refused"):
        return "left out"
    poll = select.poll()
    poll.register(one.socket, world.rng.choice([select.POLLIN, select.POLLIN | select.POLLOUT | select.POLLRDHUP]))
    return [told(bits) for _, bits in poll.poll(0)]


CALLS = [opens, opens, binds, binds, listens, listens, connects, connects, accepts, accepts, accepts, arrives, arrives, arrived, arrived, peer_sends,
         peer_sends, peer_closes, dups, dups_onto, closes, sends, receives, receives, shuts, names, errors, watches, watches, watches, polled]

for seed in range(first, first + programs):
    world = World(random.Random(seed))
    # One that listens, to begin with.
    opens(world)
    one = world.any()
    one.socket.bind((address, HERE[0]))
    one.socket.listen(8)
    one.step[0] = "listens"
    for _ in range(world.rng.randrange(8, 40)):
        call = world.rng.choice(CALLS)
        print(seed, call.__name__, call(world))
        settle()
        if world.rng.random() < 0.5:
            print(seed, "events", events(world))
    world.close()
    settle()
