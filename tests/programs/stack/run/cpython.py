"""CPython's own tests: VERDICTS [-TEST…] NAME…; -TEST is left out. Into the file VERDICTS a line for each, its name, a tab and the verdict, as
soon as there is one; at the end `all`, a tab, and how many frames the kernel's loopback has had meanwhile."""
import faulthandler
import signal
import sys
import unittest

from test import support

verdicts = open(sys.argv[1], "w", buffering=1)
left_out = {word[1:] for word in sys.argv[2:] if word.startswith("-")}
names = [word for word in sys.argv[2:] if not word.startswith("-")]
# Nothing that leaves the machine, and nothing large. This one says that it would, and does not.
support.use_resources = ["network"] if names == ["test_socketserver"] else []
# Whoever runs in the background of a shell ignores it, and some tests interrupt themselves.
signal.signal(signal.SIGINT, signal.default_int_handler)
# Seconds, far above what any of them takes: the rest has no verdict then.
HANGS = 120


class Verdicts(unittest.TextTestResult):
    def startTest(self, test):
        super().startTest(test)
        faulthandler.dump_traceback_later(HANGS, exit=True)

    def say(self, test, verdict):
        print(test.id().removeprefix("test."), verdict, sep="\t", file=verdicts)

    def addSuccess(self, test):
        super().addSuccess(test)
        self.say(test, "ok")

    def addError(self, test, error):
        super().addError(test, error)
        self.say(test, "error")

    def addFailure(self, test, error):
        super().addFailure(test, error)
        self.say(test, "failure")

    def addSubTest(self, test, subtest, error):
        super().addSubTest(test, subtest, error)
        if error is not None:
            self.say(test, "failure")

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.say(test, "skipped")

    def addExpectedFailure(self, test, error):
        super().addExpectedFailure(test, error)
        self.say(test, "expected failure")

    def addUnexpectedSuccess(self, test):
        super().addUnexpectedSuccess(test)
        self.say(test, "unexpected success")


def wanted(suite):
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield unittest.TestSuite(wanted(test))
        elif test.id().removeprefix("test.") not in left_out:
            yield test


def frames():
    for line in open("/proc/net/dev"):
        if line.lstrip().startswith("lo:"):
            return int(line.split()[2])


before = frames()
whole = unittest.TestSuite()
for name in names:
    whole.addTest(unittest.defaultTestLoader.loadTestsFromName("test." + name))
runner = unittest.TextTestRunner(resultclass=Verdicts, verbosity=2)
runner.run(unittest.TestSuite(wanted(whole)))
print("all", frames() - before, sep="\t", file=verdicts)
