"""The messages between the daemon's processes, as daemon/msg/*.h declares them:
types, directions, and the place of each field. So a storm sends every message,
the new ones included, without a list of its own.

    table() returns [Message]; a Message can become JSON by _asdict().
"""

import collections
import re

from harness import ROOT, check

# sender, receiver: "broker", "capture", "unwind", "ship" or "ctl" (sentry-profctl).
# fields: [(name, offset, bytes, is_text)]; fds: descriptors that it must have.
Message = collections.namedtuple(
    'Message', 'name type sender receiver size fds fields')

WIDTHS = {'uint32_t': 4, 'int32_t': 4, 'uint64_t': 8, 'int64_t': 8, 'char': 1}
HEADERS = ('daemon/msg/msg', 'daemon/msg/msg_capture', 'daemon/msg/msg_unwind',
           'daemon/msg/msg_ship', 'lib/base/watch_part')

# The comments in MSG_LIST, each before the messages of one direction.
DIRECTION = re.compile(r'/\* ([\w-]+(?: [\w-]+)*) -> ([^*,]+?)(?:,[^*]*)? *\*/')


def read():
    text = ''.join((ROOT / f'{name}.h').read_text()
                   for name in HEADERS)
    return text.replace('\\\n', '\n')


def numbers(text):
    """The constants that are plain numbers."""
    return {name: int(n) for name, n in
            re.findall(r'#define ((?:MSG|WATCH|HEARTBEAT)_\w+)\s+(\d+)\b', text)}


def structs(text):
    """Returns {name: [(type, field, count)]}."""
    known = numbers(text)
    bare = re.sub(r'/\*.*?\*/', '', text, flags=re.S)
    found = {}
    for name, body in re.findall(r'struct (\w+) \{\n(.*?)\n\};', bare, re.S):
        fields = []
        for declaration in body.split(';'):
            words = re.fullmatch(r'\s*(?:struct )?(\w+)\s+(.*?)\s*', declaration,
                                 re.S)
            for field in words[2].split(',') if words else ():
                at = re.fullmatch(r'\s*(\w+)(?:\[(\w+)\])?\s*', field)
                count = at[2] and (known.get(at[2]) or int(at[2]))
                fields.append((words[1], at[1], count))
        found[name] = fields
    return found


def lay_out(of, name, fields, at=0, path=''):
    """Appends the fields of a struct as the compiler places them; returns the offset
    behind it and its alignment."""
    align = 1
    for kind, field, count in of[name]:
        full = f'{path}{field}'
        for i in range(count or 1):
            one = full if count is None or kind == 'char' else f'{full}.{i}'
            if kind in WIDTHS:
                width = WIDTHS[kind]
                at += -at % width
                size = count if kind == 'char' and count else width
                fields.append((one, at, size, kind == 'char'))
                align, at = max(align, width), at + size
                if kind == 'char':
                    break
                continue
            # No struct of a message is inside another one with a larger alignment.
            at, inner = lay_out(of, kind, fields, at + -at % alignment(of, kind),
                                f'{one}.')
            align = max(align, inner)
    return at + -at % align, align


def alignment(of, name):
    return max(WIDTHS.get(kind) or alignment(of, kind)
               for kind, _, _ in of[name])


def parties(text):
    """"each child" stands for three; who is no process of the daemon is ctl."""
    if 'each child' in text:
        return ['capture', 'unwind', 'ship']
    words = re.findall(r'broker|capture|unwind|ship|sentry-profctl', text)
    return ['ctl' if 'sentry-profctl' in words else words[0]]


def table():
    text = read()
    of = structs(text)
    found, sender, receiver = [], [], []
    for part in re.findall(r'/\*.*?\*/|\bX\(MSG_\w+, *\w+, *\d\)',
                           text[:text.index('#define MSG_LIST')], re.S):
        arrow = DIRECTION.fullmatch(' '.join(part.split()))
        if arrow:
            sender, receiver = parties(arrow[1]), parties(arrow[2])
            continue
        entry = re.fullmatch(r'X\(MSG_(\w+), *(\w+), *(\d)\)', part)
        if not entry:
            continue
        fields = []
        size, _ = lay_out(of, entry[2], fields)
        for a in sender:
            for b in receiver:
                found.append((entry[1], a, b, size, int(entry[3]), fields[2:]))
    names = list(dict.fromkeys(name for name, *_ in found))
    check(len(names) > 30, f'the lists of daemon/msg/msg.h: {names}')
    return [Message(name, names.index(name) + 1, *rest)
            for name, *rest in found]
