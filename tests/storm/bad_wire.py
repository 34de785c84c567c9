"""A connection of a bad server: its bytes, with faults in them, and TLS above
them. A part of bad_lanes.py.

The faults of a connection are its Plan. They concern the bytes of the wire, so
that the same plan cuts off a plain answer, or a TLS handshake.
"""

import ctypes
import dataclasses
import socket
import ssl
import struct

# With this option close(2) sends RST.
RESET = struct.pack('ii', 1, 0)

# A connection on which nothing arrives for so long is closed. ship gives a
# request up after 30 s.
SILENCE_S = 40

READ_BYTES = 65536

_libssl = ctypes.CDLL('libssl.so.3')
_libssl.SSL_ctrl.restype = ctypes.c_long
SSL_CTRL_GET_TOTAL_RENEGOTIATIONS = 12


class Cut(Exception):
    """The server ends the connection here, as its plan says."""


@dataclasses.dataclass
class Plan:
    cut: int = -1           # bytes after which the server ends the connection; -1: none
    cut_how: str = 'close'  # 'close', 'reset', or 'stall' before it closes
    flip: int = -1          # the byte that is changed; -1: none
    pace_s: float = 0.0     # seconds between two bytes
    stall_s: float = 0.3    # seconds for which a stall lasts


class Wire:
    """The bytes of a connection. calm: an event; once it is set, nothing is
    slow any more."""

    def __init__(self, sock, plan, calm):
        self.sock, self.plan, self.calm = sock, plan, calm
        self.sent = 0
        sock.settimeout(SILENCE_S)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(self, data):
        plan, at = self.plan, self.sent
        self.sent += len(data)
        if at <= plan.flip < self.sent:
            data = bytearray(data)
            data[plan.flip - at] ^= 0x10
        if 0 <= plan.cut <= self.sent:
            self.push(data[:max(0, plan.cut - at)])
            self.end(plan.cut_how)
        self.push(data)

    def push(self, data):
        if not self.plan.pace_s:
            self.sock.sendall(data)
            return
        for at in range(len(data)):
            self.sock.sendall(data[at:at + 1])
            self.calm.wait(self.plan.pace_s)

    def end(self, how):
        """Ends the connection: raises Cut."""
        if how == 'stall':
            self.calm.wait(self.plan.stall_s)
        if how == 'reset':
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        raise Cut

    def recv(self):
        return self.sock.recv(READ_BYTES)


class Stream:
    """A stream of bytes without TLS. The end of the connection is EOFError."""

    def __init__(self, wire):
        self.wire = wire
        self.buffer = b''

    def more(self):
        return self.wire.recv()

    def fill(self):
        data = self.more()
        if not data:
            raise EOFError
        self.buffer += data

    def read(self, size):
        while len(self.buffer) < size:
            self.fill()
        data, self.buffer = self.buffer[:size], self.buffer[size:]
        return data

    def read_until(self, end):
        while end not in self.buffer:
            self.fill()
        return self.read(self.buffer.index(end) + len(end))

    def write(self, data):
        self.wire.send(data)


class Tls(Stream):
    """TLS through memory, so that the wire gets each record as bytes."""

    def __init__(self, wire, context):
        super().__init__(wire)
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self.incoming, self.outgoing,
                                    server_side=True)
        self.step(self.tls.do_handshake)

    def flush(self):
        data = self.outgoing.read()
        if data:
            self.wire.send(data)

    def step(self, function, *args):
        """Calls a function of TLS until it needs no more bytes of the client."""
        while True:
            try:
                result = function(*args)
                self.flush()
                return result
            except ssl.SSLWantReadError:
                self.flush()
            data = self.wire.recv()
            if not data:
                raise EOFError
            self.incoming.write(data)

    def more(self):
        try:
            return self.step(self.tls.read, READ_BYTES)
        except ssl.SSLZeroReturnError:
            return b''

    def write(self, data):
        # A record has 16 KB at most.
        while data:
            n = self.step(self.tls.write, data[:16384])
            data = data[n:]

    # What the module ssl does not have: functions of libssl by the SSL * that
    # follows a pointer in the object (PySSLSocket in CPython's Modules/_ssl.c).

    @property
    def pointer(self):
        inner = self.tls._sslobj
        return ctypes.c_void_p.from_address(
            id(inner) + object.__basicsize__ + ctypes.sizeof(ctypes.c_void_p))

    def renegotiate(self):
        """Asks the client for a new handshake (TLS 1.2), which later reads and
        writes carry out."""
        _libssl.SSL_renegotiate(self.pointer)
        _libssl.SSL_do_handshake(self.pointer)
        self.flush()

    def renegotiations(self):
        return _libssl.SSL_ctrl(self.pointer,
                                SSL_CTRL_GET_TOTAL_RENEGOTIATIONS, 0, None)

    def update_key(self):
        """Changes the key, and asks the client for the same (TLS 1.3). The next
        write sends it."""
        _libssl.SSL_key_update(self.pointer, 1)
        _libssl.SSL_do_handshake(self.pointer)
        self.flush()
