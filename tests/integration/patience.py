"""How tests fail, and how they wait: for a condition, never for a fixed time.
"""

import time

# An operation that takes longer than this hangs. A virtual machine may get
# only a twentieth of its processors for minutes, so no test checks how fast
# something is.
PATIENCE_S = 240
POLL_S = 0.005

class Failure(Exception):
    """The test has failed; the text is the reason."""


class Skip(Exception):
    """The test cannot run here; the text is the reason."""


def check(condition, text):
    if not condition:
        raise Failure(text)


def wait_for(condition, what, timeout=PATIENCE_S):
    """Calls condition() repeatedly; returns its first true value."""
    deadline = time.monotonic() + timeout
    while True:
        asked = time.monotonic()
        value = condition()
        now = time.monotonic()
        if value:
            return value
        if now > deadline:
            raise Failure(f'waited {timeout} s in vain: {what() if callable(what) else what}')
        # The awaited program needs the processors more than the test.
        time.sleep(max(POLL_S, now - asked))


def in_turns(attempt, turns=5):
    """Repeats attempt(), which returns a list of what took too long or came
    too rarely. On a busy machine an item is not in the list of every attempt,
    so only items that are in all of them fail the test. An exception fails it
    at once.
    """
    for _ in range(turns):
        found = attempt()
        if not found:
            return
    raise Failure(f'in each of {turns} turns; in the last: {found}')


def stretch():
    """Returns by which factor a program that only needs a processor is slowed
    down on this machine now."""
    began, used = time.monotonic(), time.process_time()
    while time.process_time() < used + 0.1:
        pass
    return max(1, (time.monotonic() - began) / 0.1)
