"""The answers of a bad server to a request of HTTP/1.1: honest ones, and those
that break a rule each. A part of bad_lanes.py.

MODES has a function for each mode. It gets a Maker, and returns an Answer.
"""

import dataclasses
import email.utils
import gzip
import itertools
import time
import zlib

STATUSES = range(100, 600)

# A real limit of the server that is over soon.
SHORT = ('X-Sentry-Rate-Limits', '1:profile_chunk:key')

STATUS_LINES = (
    'HTTP/1.1 99 Low', 'HTTP/1.1 600 High', 'HTTP/1.1 999', 'HTTP/1.1 1000 OK',
    'HTTP/1.1 -200 OK', 'HTTP/1.1 000 OK', 'HTTP/1.1 2OO OK', 'HTTP/1.1  200 OK',
    'HTTP/1.1\t200\tOK', 'HTTP/1.1', 'HTTP/1.1 ', 'HTTP/9.9 200 OK',
    'HTTP/0.9 200 OK', 'HTTP/1.0 200 OK', 'HTTP/2 200', 'HTTP/3 200',
    'http/1.1 200 ok', 'ICY 200 OK', 'RTSP/1.0 200 OK', 'SIP/2.0 200 OK', '',
    ' HTTP/1.1 200 OK', '\0HTTP/1.1 200 OK', 'HTTP/1.1 200 ' + 'x' * 100000,
    'HTTP/1.1 200 \x1b[2J\x07', 'HTTP/1.1 4294967496 OK')

RATE_LIMITS = (
    '', ':', ',,,,', '60', '60:', ':profile_chunk', '0:profile_chunk',
    '-1:profile_chunk', '-99999999999999999999:profile_chunk',
    '1e9:profile_chunk', 'nan:profile_chunk', 'inf:', '0x10:profile_chunk',
    '1.:profile_chunk', '.5:profile_chunk', '1.999999999999999999:profile_chunk',
    '99999999999999999999:profile_chunk', '18446744073709551616:',
    '3600:profile_chunk:organization:reason:a;b;c:more:and:more',
    '2:;;;;profile_chunk;;;', '2:PROFILE_CHUNK', '2 : profile_chunk ',
    '2:profile_chunk\t,\t2:profile', ';'.join(['2:error'] * 3000),
    ','.join(['1:profile_chunk'] * 2000), '2:' + 'x;' * 30000,
    '2:profile_chunk\x00:x', '\xff\xfe:profile_chunk', '%n%s%n:%s', '2:profile_'
    'chunk:' + '\x1b]0;x\x07')

RETRY_AFTER = (
    '', '0', '-1', '1', '2', '1.5', '99999999999999999999', '4294967297', '0x7f',
    'soon', ' 2', '2 3', '2, 3', 'Thu, 01 Jan 1970 00:00:00 GMT',
    'Fri, 31 Dec 9999 23:59:59 GMT', 'Tue, 30 Feb 2027 25:61:61 GMT',
    'Sun Nov  6 08:49:37 1994', '\x00', '\xff' * 100, '%s%n', 'x' * 60000)

DATES = (
    '', 'now', 'Thu, 01 Jan 1970 00:00:00 GMT', 'Fri, 31 Dec 9999 23:59:59 GMT',
    'Tue, 19 Jan 2038 03:14:08 GMT', 'Mon, 01 Jan 0001 00:00:00 GMT',
    'Tue, 30 Feb 2027 25:61:61 GMT', '-1', '9' * 50, '\xff\x00', 'x' * 50000)

ERRORS = (
    '', '%s%n%x%x%x', '\x1b[2J\x1b]0;title\x07', '\xff\xfe\xc3(', 'x' * 60000,
    '\r', '\x00\x00', '\xe2\x80\xae evil', 'a\tb', '"\\\'`$(id)')

LENGTHS = (
    '-1', '18446744073709551615', '18446744073709551616', '9223372036854775807',
    '9223372036854775808', '0x10', '10, 10', '10, 11', '1e3', '', ' ', '+2',
    '10 ', 'ten', '\x00', '9' * 1000)

CODINGS = (
    'gzip', 'deflate', 'br', 'zstd', 'gzip, chunked', 'chunked, chunked',
    'identity', 'chunked, gzip', 'x', '', 'chunked\x00', ' chunked',
    ', '.join(['chunked'] * 50))

CHUNKED = (
    b'g\r\nxx\r\n', b'-1\r\nx\r\n', b'ffffffffffffffff\r\nx', b'1' * 100 + b'\r\n',
    b'fffffffffffffffff\r\n', b'5\r\nab\r\n', b'2\r\nabcd\r\n0\r\n\r\n',
    b'2\nab\n0\n\n', b'\r\n', b'', b'0\r\n', b'0\r\nX-Late: 1\r\n',
    b'2;' + b'x' * 70000 + b'\r\nab\r\n0\r\n\r\n', b'2\r\nab', b'\0\0\0\0',
    b'0\r\nX-Sentry-Rate-Limits: 3600:profile_chunk:key\r\n\r\n',
    b'0\r\n' + b'X-Late: 1\r\n' * 20000 + b'\r\n', b' 2\r\nab\r\n0\r\n\r\n',
    b'0x2\r\nab\r\n0\r\n\r\n', b'2 \r\nab\r\n0 \r\n\r\n')

LINES = (
    'no colon', ': no name', 'Space : before', 'X-Nul: a\0b', '\x01: x',
    'X-Fold: a\r\n b\r\n\tc', ' Fold: at the start', 'X-Cr: a\rb', 'X: ' + '\xff' * 99,
    'X' * 100000 + ': name', 'X-Long: ' + 'x' * 100000,
    'Connection: keep-alive, close, Upgrade, X-Sentry-Auth', 'Keep-Alive: -1',
    'Keep-Alive: timeout=99999999999999999999, max=0', 'Proxy-Connection: close',
    'Expect: 100-continue', 'Trailer: Retry-After', 'Transfer-Encoding:',
    'Strict-Transport-Security: max-age=99999999999; includeSubDomains')

# What asks a client for its credentials, or for another protocol.
QUESTIONS = (
    (401, 'WWW-Authenticate: Basic realm="x"'),
    (401, 'WWW-Authenticate: Digest realm="x", nonce="x", qop="auth"'),
    (401, 'WWW-Authenticate: NTLM'), (401, 'WWW-Authenticate: Negotiate'),
    (401, 'WWW-Authenticate: Bearer'), (401, 'WWW-Authenticate: ' + 'x' * 9999),
    (407, 'Proxy-Authenticate: Basic realm="x"'),
    (407, 'Proxy-Authenticate: NTLM'),
    (101, 'Upgrade: h2c\r\nConnection: Upgrade'),
    (101, 'Upgrade: websocket\r\nConnection: Upgrade'),
    (426, 'Upgrade: HTTP/3.0\r\nConnection: Upgrade'),
    (421, 'Connection: close'), (305, 'Connection: close'))


@dataclasses.dataclass
class Answer:
    """parts: bytes to send, possibly without end. then: 'keep', 'close', 'reset'
    or 'stall'. status: of a whole answer that breaks no rule; 0: the client may
    see none."""
    parts: object = ()
    then: str = 'keep'
    status: int = 0
    # After this share of the request, not at its end.
    early: float = 1.0
    cut: int = -1
    # The client counts its bytes, and stops soon; of others it limits the processor time.
    is_counted: bool = True


def head(status, headers=(), length=0, reason='X'):
    lines = [f'HTTP/1.1 {status} {reason}'] + \
        [h if isinstance(h, str) else f'{h[0]}: {h[1]}' for h in headers]
    if length is not None:
        lines.append(f'Content-Length: {length}')
    return '\r\n'.join(lines + ['', '']).encode('latin-1')


def forever(part):
    return itertools.repeat(part)


def bomb():
    """100 MB of zeros that a few KB stand for."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    zeros = bytes(1 << 20)
    data = b''.join(packer.compress(zeros) for _ in range(100))
    return data + packer.flush()


BOMB = bomb()
HONEST = head(200, length=9) + b'{"id":""}'


class Maker:
    """Draws answers. Each list is gone through in turn, from a random place.
    places: URLs that must not be asked. lock: for the lists."""

    def __init__(self, rng, lock, places):
        self.rng, self.lock, self.places = rng, lock, places
        self.at = {}

    def next(self, name, values):
        with self.lock:
            n = self.at.get(name)
            if n is None:
                n = self.rng.randrange(len(values))
            self.at[name] = n + 1
            return values[n % len(values)]

    def draw(self, function, *args):
        with self.lock:
            return getattr(self.rng, function)(*args)

    def cut(self):
        """A byte of the honest answer."""
        return self.next('cut', range(len(HONEST)))

    def junk(self, size):
        with self.lock:
            return self.rng.randbytes(size)


def honest(maker=None, status=200, headers=()):
    return Answer([head(status, headers, 9) + b'{"id":""}'], status=status)


def a_status(m):
    status = m.next('status', STATUSES)
    if status < 200:
        parts = [head(status, length=None), head(200)]
        return Answer(parts, then='close' if status == 101 else 'keep')
    whole = status not in (204, 304, 429)
    return Answer([head(status, [SHORT] if status == 429 else ())],
                  status=status if whole else 0)


def with_header(m, name, values, statuses):
    value = m.next(name, values)
    status = m.draw('choice', statuses)
    return Answer([head(status, [(name, value), *([SHORT] if status == 429 and
                                                 name != 'Retry-After' else [])])])


def a_redirect(m):
    place = m.next('place', m.places)
    names = m.next('leads', (['Location'], ['Refresh', 'Location'],
                             ['Alt-Svc', 'Link', 'Content-Location'],
                             ['Location', 'Location']))
    values = {'Refresh': f'0; url={place}', 'Link': f'<{place}>; rel=preconnect',
              'Alt-Svc': 'h2="{}"; ma=3600, http/1.1="{}"'.format(
                  *[place.split('//')[-1].split('/')[0]] * 2)}
    status = m.next('moved', (301, 302, 303, 307, 308, 300, 304, 305, 306, 200, 401))
    return Answer([head(status, [(n, values.get(n, place)) for n in names])],
                  status=status if status not in (304,) else 0)


def chunked(body, headers=()):
    return head(200, ['Transfer-Encoding: chunked', *headers], None) + body


def endless(m):
    start, part = m.next('endless', (
        (b'', head(102, length=None)), (b'HTTP/1.1 200 X\r\n', b'X-No: end\r\n'),
        (b'HTTP/1.1 200 X\r\nX-No: ', b'end '), (b'HTTP/1.1 200 ', b'X'),
        (head(200, length=None), b'no end\n'), (head(200, length=10**15), b'no end\n'),
        (chunked(b''), b'2\r\nno\r\n'), (chunked(b'0\r\n'), b'X-Late: 1\r\n'),
        (chunked(b'2;'), b'x'), (b'', b'\r\n'), (b'', b'x'), (b'', b'\0'),
        # Answers to requests that the server does not read.
        (head(500), head(500)),
        (chunked(b'', ['Content-Encoding: gzip']), b'1\r\n\x1f\r\n')))
    return Answer(itertools.chain([start], forever(part * (5000 // len(part)))), then='close',
                  is_counted=not start.endswith(b';'))


def gzip_lie(m):
    body = m.next('gzip', (b'plain', b'', b'\x1f\x8b', gzip.compress(b'x')[:-4], BOMB,
                           b'\x1f\x8b\x08\x00' + b'\xff' * 500))
    coding = m.next('coding', ('gzip', 'deflate', 'br', 'zstd', 'x-gzip', 'x',
                               ', '.join(['gzip'] * 20), 'identity', ''))
    return Answer([head(200, [('Content-Encoding', coding)], len(body)), body])


def wrong_length(m):
    which = m.draw('randrange', 4)
    if which == 0:
        return Answer([head(200, length=1000), b'short'], then='close')
    if which == 1:  # the rest looks like answers to the next requests
        return Answer([head(200, length=2), b'{}' + HONEST * 3])
    if which == 2:
        return Answer([head(200, ['Content-Length: 3'], 2), b'{}x'], then='close')
    return Answer([head(200, length=m.next('length', LENGTHS)), b'{}'], then='close')


def chunked_lie(m):
    if m.draw('random') < 0.3:
        coding = m.next('transfer', CODINGS)
        return Answer([head(200, [('Transfer-Encoding', coding)], 2), b'{}'],
                      then='close')
    return Answer([chunked(m.next('chunked', CHUNKED))], then='close')


def a_cut(m):
    how = m.draw('choice', ('close', 'reset', 'stall'))
    return Answer([HONEST], then=how, cut=m.cut())


def a_part_of_the_request(m):
    return Answer(early=m.draw('random'),
                  then=m.draw('choice', ('close', 'reset', 'stall')))


def early_answer(m):
    status = m.draw('choice', (200, 400, 413, 500))
    return Answer([head(status)], early=m.draw('random'),
                  then=m.draw('choice', ('close', 'reset', 'stall')))


def flipped(m):
    data = bytearray(HONEST)
    for _ in range(m.draw('randint', 1, 8)):
        data[m.draw('randrange', len(data))] = m.draw('randrange', 256)
    return Answer([bytes(data)], then='close')


def garbage(m):
    return Answer([m.junk(m.draw('randint', 1, 9000))], then='close')


def line_ends(m):
    end = m.next('ends', ('\n', '\r', '\n\r', '\r\r\n', '\r\n\0'))
    return Answer([HONEST.replace(b'\r\n', end.encode())], then='close')


def a_question(m):
    status, line = m.next('question', QUESTIONS)
    return Answer([head(status, [line], None if status == 101 else 0)],
                  then='close' if status == 101 else 'keep')


def cookies(m):
    values = [('Set-Cookie', f'a{n}={"x" * 200}; Domain=.; Path=/; Max-Age=999999')
              for n in range(m.draw('choice', (1, 100, 400)))]
    return Answer([head(200, values)])


def many_headers(m):
    return Answer([head(200, [f'X-{n}: {n}' for n in range(
        m.draw('choice', (100, 4000, 50000)))])], then='close')


def old_date(m):
    ahead_s = m.draw('choice', (-10**9, -100, 100, 10**8, 10**12))
    try:
        text = email.utils.formatdate(time.time() + ahead_s, usegmt=True)
    except (ValueError, OverflowError):
        text = str(ahead_s)
    return Answer([head(200, [('Date', text)])], status=200)


KIND = ''
MODES = {
    'a status': a_status,
    'a status line': lambda m: Answer([
        (m.next('line', STATUS_LINES) + '\r\n').encode('latin-1'), HONEST[16:]],
        then='close'),
    'rate limits': lambda m: with_header(
        m, 'X-Sentry-Rate-Limits', RATE_LIMITS, (200, 200, 503)),
    'rate limits with 429': lambda m: with_header(
        m, 'X-Sentry-Rate-Limits', RATE_LIMITS, (429,)),
    'retry after': lambda m: with_header(
        m, 'Retry-After', RETRY_AFTER, (200, 503, 429)),
    'a date': lambda m: with_header(m, 'Date', DATES, (200, 429)),
    'a clock': old_date,
    'an error': lambda m: with_header(m, 'X-Sentry-Error', ERRORS, (200, 400, 500)),
    'a header': lambda m: Answer([head(200, [m.next('header', LINES)])], then='close'),
    'a redirect': a_redirect,
    'a cut answer': a_cut,
    'a cut request': a_part_of_the_request,
    'an early answer': early_answer,
    'no answer': lambda m: Answer(then=m.draw('choice', ('close', 'reset', 'stall'))),
    'hang up': lambda m: Answer([HONEST], then='close'),
    'hang up soon': lambda m: Answer([HONEST], then='reset'),
    'garbage': garbage,
    'flipped bits': flipped,
    'line ends': line_ends,
    'endless': endless,
    'a wrong length': wrong_length,
    'chunked': chunked_lie,
    'a gzip lie': gzip_lie,
    'a question': a_question,
    'cookies': cookies,
    'many headers': many_headers,
    'a slow answer': lambda m: Answer([HONEST], then='close', status=0),
    'two answers': lambda m: Answer([HONEST * m.draw('randint', 2, 50)]),
}

# Modes that are drawn twice as often, since each draws one of many kinds.
TWICE = ('a redirect', 'a cut answer', 'endless', 'chunked')
