"""How tests fail, and how they wait: for a condition, never for a time."""

import time

# What takes longer than this hangs. A virtual machine may be left with a twentieth
# of its processors for minutes: no test says how fast something has to be.
PATIENCE_S = 240
POLL_S = 0.005

class Failure(Exception):
    """The test does not hold; the text says why."""


class Skip(Exception):
    """The test cannot run here; the text says why."""


def check(condition, text):
    if not condition:
        raise Failure(text)


def wait_for(condition, what, timeout=PATIENCE_S):
    """Asks condition() again and again; returns its first true value."""
    deadline = time.monotonic() + timeout
    while True:
        asked = time.monotonic()
        value = condition()
        now = time.monotonic()
        if value:
            return value
        if now > deadline:
            raise Failure(f'waited {timeout} s in vain: {what}')
        # What is waited for needs the processors more than who asks.
        time.sleep(max(POLL_S, now - asked))


def in_turns(attempt, turns=5):
    """attempt() gives a list of what took too long, or came too rarely. That is
    not so in every turn if it is because somebody else had the processors. What
    it raises holds in each of them.
    """
    for _ in range(turns):
        found = attempt()
        if not found:
            return
    raise Failure(f'in each of {turns} turns; in the last: {found}')


def stretch():
    """How many times longer than it should something takes that only needs a
    processor, here and now."""
    began, used = time.monotonic(), time.process_time()
    while time.process_time() < used + 0.1:
        pass
    return max(1, (time.monotonic() - began) / 0.1)
