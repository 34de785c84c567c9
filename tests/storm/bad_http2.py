"""The answers of a bad server by HTTP/2 (RFC 9113). A part of bad_lanes.py.

MODES has a function for each way to answer a request. It gets the connection, the
stream's number and a Maker (bad_answers.py), and returns the status of a whole
answer that breaks no rule; 0: the client may see none.
"""

import gzip
import struct

import bad_answers
from bad_wire import Cut
from http2 import (ACK, ALTSVC, CONTINUATION, DATA, END_HEADERS, END_STREAM, GOAWAY, HEADERS,
                   ORIGIN, PADDED, PING, PRIORITY, PUSH_PROMISE, RST_STREAM, SETTINGS,
                   WINDOW_UPDATE, block, frame, numbers, text)

LAST_STREAM = 2**31 - 1

ERROR_CODES = (*range(14), 255, 2**32 - 1)
# What a client may not be sent without end.
FLOOD = 20000

# Payloads of SETTINGS: (identifier, value) pairs.
SETTING = ((4, 2**31), (4, 0), (3, 0), (5, 1), (5, 2**31), (1, 2**32 - 1), (1, 0),
           (2, 1), (2, 7), (6, 0), (8, 1), (0xffff, 0xffffffff))


def send_answer(c, stream, m):
    """An answer of bad_answers.py as far as HTTP/2 can have it."""
    names = ('rate-limits', 'retry-after', 'date', 'x-sentry-error', 'place')
    name = m.next('h2 name', names)
    value = {'rate-limits': lambda: m.next('h2 limits', bad_answers.RATE_LIMITS),
             'retry-after': lambda: m.next('h2 retry', bad_answers.RETRY_AFTER),
             'date': lambda: m.next('h2 date', bad_answers.DATES),
             'x-sentry-error': lambda: m.next('h2 error', bad_answers.ERRORS),
             'place': lambda: m.next('h2 place', m.places)}[name]()
    if len(value) > 9000:
        value = value[:9000]
    sent = {'rate-limits': 'x-sentry-rate-limits', 'place': 'location'}.get(name, name)
    status = m.draw('choice', (200, 301, 302, 307, 308, 400, 503))
    c.answer(stream, status, [(sent, value)])
    return 0


def a_status(c, stream, m):
    status = m.next('h2 status', bad_answers.STATUSES)
    limits = [bad_answers.SHORT] if status == 429 else []
    if status < 200:
        c.send(HEADERS, END_HEADERS, stream, block(status))
        status = 200
    return c.answer(stream, status, limits) if status not in (204, 304, 429) else \
        c.answer(stream, status, limits) * 0


def go_away(c, stream, m):
    """Before the answer, in its middle or after it; with a last stream that has
    this request, or has not."""
    when = m.next('away', ('before', 'within', 'after', 'twice', 'instead'))
    last = m.draw('choice', (0, stream, stream - 2 if stream > 2 else 0, LAST_STREAM))
    payload = numbers(last, m.next('code', ERROR_CODES)) + \
        m.junk(m.draw('choice', (0, 8, 16000)))
    if when in ('before', 'twice', 'instead'):
        c.send(GOAWAY, 0, 0, payload)
    if when == 'twice':
        c.send(GOAWAY, 0, 0, numbers(0, 0))
    if when == 'instead':
        c.stream.wire.end(m.draw('choice', ('close', 'reset', 'stall')))
    if when == 'within':
        c.send(HEADERS, END_HEADERS, stream, block(200))
        c.send(GOAWAY, 0, 0, payload)
        c.send(DATA, END_STREAM, stream, b'{}')
    else:
        c.answer(stream)
    if when == 'after':
        c.send(GOAWAY, 0, 0, payload)
    return 0


def reset_stream(c, stream, m):
    code = numbers(m.next('code', ERROR_CODES))
    when = m.next('reset', ('instead', 'within', 'after', 'other', 'twice', 'zero'))
    if when == 'within':
        c.send(HEADERS, END_HEADERS, stream, block(200))
    if when == 'after':
        c.answer(stream)
    c.send(RST_STREAM, 0, {'other': stream + 2, 'zero': 0}.get(when, stream), code)
    if when == 'twice':
        c.send(RST_STREAM, 0, stream, code)
    if when in ('other', 'zero'):
        c.answer(stream)
    return 0


def settings(c, stream, m):
    kind, value = m.next('setting', SETTING)
    payload = struct.pack('>HI', kind, value) * m.draw('choice', (1, 1, 2000))
    c.send(SETTINGS, m.draw('choice', (0, 0, ACK)), m.draw('choice', (0, 0, stream)),
           payload[:m.draw('choice', (len(payload), len(payload) - 1))])
    c.answer(stream)
    # Some settings let the client send nothing more on this connection.
    c.stream.wire.end(m.draw('choice', ('close', 'stall')))


def flood(c, stream, m):
    part = m.next('flood', (
        frame(SETTINGS, 0, 0), frame(PING, 0, 0, bytes(8)), frame(SETTINGS, ACK, 0),
        frame(WINDOW_UPDATE, 0, 0, numbers(1)), frame(PRIORITY, 0, stream, bytes(5)),
        frame(DATA, 0, stream, b''), frame(DATA, 0, stream, bytes(1000)),
        frame(HEADERS, END_HEADERS, stream, block(103)), frame(99, 255, 99, bytes(99)),
        frame(RST_STREAM, 0, stream + 2, numbers(0)), frame(GOAWAY, 0, 0, bytes(8)),
        frame(PUSH_PROMISE, END_HEADERS, stream, numbers(2) + block(200)),
        frame(ALTSVC, 0, 0, b'\0\1xh2=":1"')))
    if m.draw('random') < 0.5:
        c.send(HEADERS, END_HEADERS, stream, block(200))
    for _ in range(FLOOD // 100):
        c.stream.write(part * 100)
    raise Cut


def continuations(c, stream, m):
    """A header block without end."""
    c.send(HEADERS, 0, stream, block(200))
    field = b'\0' + text('x-no') + text('end' * m.draw('choice', (0, 1, 1000)))
    for _ in range(FLOOD // 10):
        c.send(CONTINUATION, 0, stream, field)
    raise Cut


def bad_frame(c, stream, m):
    data = m.next('frame', (
        frame(HEADERS, END_HEADERS, 0, block(200)),
        frame(HEADERS, END_HEADERS, stream + 1, block(200)),
        frame(HEADERS, END_HEADERS | PADDED, stream, b'\xff' + block(200)),
        frame(HEADERS, END_HEADERS, stream, b'\xff' * 100),
        frame(HEADERS, END_HEADERS, stream, b''),
        frame(HEADERS, END_HEADERS, stream, b'\x3f\xff\xff\xff\xff\xff\xff\xff\xff'),
        frame(HEADERS, END_HEADERS, stream, b'\0' + text('no-status') + text('x')),
        frame(HEADERS, END_HEADERS, stream, block('2OO')),
        frame(HEADERS, END_HEADERS, stream, block(-1)),
        frame(HEADERS, END_HEADERS, stream, block(99999999999)),
        frame(HEADERS, END_HEADERS, stream, block(200) * 2),
        frame(HEADERS, END_HEADERS, stream, block(200, [('Upper', 'x')])),
        frame(HEADERS, END_HEADERS, stream, block(200, [('x', 'a\r\nb: c')])),
        frame(HEADERS, END_HEADERS, stream, block(200, [('', '')])),
        frame(HEADERS, END_HEADERS, stream, block(200, [('content-length', '-1')])),
        frame(HEADERS, END_HEADERS, stream, block(200, [('content-length', '5')])) +
        frame(DATA, END_STREAM, stream, b'longer than five'),
        frame(HEADERS, END_HEADERS, stream, block(200, [('content-encoding', 'gzip')])) +
        frame(DATA, END_STREAM, stream, gzip.compress(bytes(10**6))),
        frame(DATA, END_STREAM, stream, b'data first'),
        frame(DATA, END_STREAM | PADDED, stream, b'\xffx'),
        frame(DATA, 0, 0, b'x'), frame(RST_STREAM, 0, stream, b'xx'),
        frame(WINDOW_UPDATE, 0, 0, numbers(LAST_STREAM)) * 2,
        frame(WINDOW_UPDATE, 0, stream, numbers(0)), frame(PING, 0, 0, b'short'),
        frame(GOAWAY, 0, 0, b'x'), frame(CONTINUATION, 0, stream, b'x'),
        frame(PUSH_PROMISE, END_HEADERS, stream, numbers(2) + block(200)),
        frame(ALTSVC, 0, 0, struct.pack('>H', 9) + b'https://a' + b'h2=":1"; ma=9'),
        frame(ORIGIN, 0, 0, struct.pack('>H', 9) + b'https://a'),
        b'\xff' * 100, b'HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n',
        frame(HEADERS, END_HEADERS, stream, block(200))[:-1],
        struct.pack('>IBI', 0xffffff00 | DATA, 0, stream) + bytes(20000)))
    c.stream.write(data)
    c.answer(stream)
    c.stream.wire.end(m.draw('choice', ('close', 'reset', 'stall')))


def within(c, stream, m):
    """A whole answer in parts."""
    c.send(HEADERS, END_HEADERS, stream, block(100))
    c.send(HEADERS, END_HEADERS, stream, block(200))
    for _ in range(m.draw('randint', 0, 9)):
        c.send(DATA, 0, stream, m.junk(m.draw('randrange', 100)))
    if m.draw('random') < 0.5:
        c.send(DATA, END_STREAM, stream)
    else:
        c.send(HEADERS, END_HEADERS | END_STREAM, stream,
               block(200)[5:] + b'\0' + text('x-late') + text('x'))
    return 200


def no_answer(c, stream, m):
    if m.draw('random') < 0.5:
        c.send(HEADERS, END_HEADERS, stream, block(200))
    c.stream.wire.end(m.draw('choice', ('close', 'reset', 'stall')))


KIND = 'h2: '
MODES = {
    'answers': send_answer,
    'statuses': a_status,
    'goaway': go_away,
    'rst_stream': reset_stream,
    'settings': settings,
    'floods': flood,
    'continuations': continuations,
    'bad frames': bad_frame,
    'parts': within,
    'no answer': no_answer,
}

# Modes that are drawn twice as often, since each draws one of many kinds.
TWICE = ('answers', 'goaway', 'rst_stream', 'bad frames')
