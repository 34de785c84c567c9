"""The server's side of HTTP/2 (RFC 9113, RFC 7541), a frame at a time."""

import collections
import struct

PREFACE = b'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'
DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS = 0, 1, 2, 3, 4
PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = 5, 6, 7, 8, 9
ALTSVC, ORIGIN = 10, 12
END_STREAM, ACK, END_HEADERS, PADDED = 1, 1, 4, 8
INTERNAL_ERROR = 2


def frame(kind, flags, stream, payload=b''):
    return struct.pack('>I', len(payload))[1:] + \
        struct.pack('>BBI', kind, flags, stream) + payload


def text(value):
    """A string of HPACK, as it is."""
    if isinstance(value, str):
        value = value.encode('latin-1')
    if len(value) < 127:
        return bytes([len(value)]) + value
    rest, coded = len(value) - 127, b'\x7f'
    while rest >= 128:
        coded += bytes([rest % 128 + 128])
        rest //= 128
    return coded + bytes([rest]) + value


def block(status, headers=()):
    """A header block of literals; :status is entry 8 of HPACK's table."""
    return b'\x08' + text(str(status)) + b''.join(
        b'\0' + text(n.lower()) + text(v) for n, v in headers)


def numbers(*values):
    return struct.pack(f'>{len(values)}I', *values)


class Connection:
    """A connection on a stream of bytes, which has read(size) and write(data). The end of
    the stream is EOFError."""

    def __init__(self, stream):
        self.stream = stream
        self.bodies = collections.defaultdict(bytes)

    def read(self, size):
        data = self.stream.read(size)
        if len(data) < size:
            raise EOFError
        return data

    def send(self, *args):
        self.stream.write(frame(*args))

    def greet(self, settings=b''):
        if self.read(len(PREFACE)) != PREFACE:
            raise EOFError
        self.send(SETTINGS, 0, 0, settings)

    def make_room(self, stream, size, flags):
        """Flow control: the client may send as many bytes again."""
        if size:
            self.send(WINDOW_UPDATE, 0, 0, numbers(size))
            if not flags & END_STREAM:
                self.send(WINDOW_UPDATE, 0, stream, numbers(size))

    def read_request(self):
        """Returns the number of the stream and the body of the next request."""
        while True:
            head = self.read(9)
            size, = struct.unpack('>I', b'\0' + head[:3])
            kind, flags, stream = struct.unpack('>BBI', head[3:])
            payload = self.read(size)
            if kind == SETTINGS and not flags & ACK:
                self.send(SETTINGS, ACK, 0)
            elif kind == PING and not flags & ACK:
                self.send(PING, ACK, 0, payload)
            elif kind == DATA:
                self.bodies[stream] += payload
                self.make_room(stream, size, flags)
                if flags & END_STREAM:
                    return stream, self.bodies.pop(stream)
            elif kind == RST_STREAM:
                self.bodies.pop(stream, None)
            elif kind == GOAWAY:
                raise EOFError

    def answer(self, stream, status=200, headers=()):
        self.send(HEADERS, END_HEADERS | END_STREAM, stream, block(status, headers))
        return status
