"""Bad servers: four that a DSN names, a proxy, and places that nothing names.

Each server answers some requests honestly and draws for each of the others a mode
(bad_answers.py, bad_http2.py), and for each connection faults of its bytes and of
its certificate. When calm() was called, all of them are honest:

    plain    HTTP/1.1 without TLS
    tls      HTTP/1.1 above TLS 1.2 and 1.3
    h2       HTTP/2 above TLS
    proxied  as tls, behind the proxy

Each address of 127.0/16 is theirs (for proxied: of 127.1/16), so a server has as
many DSNs as addresses. No client may ever connect to the places: answers lead
there, by redirects and in other ways.

What a client must not do is in problems, as texts.
"""

import collections
import contextlib
import functools
import itertools
import os
import random
import re
import socket
import ssl
import subprocess
import threading
import zlib

import bad_answers
import bad_http2
import bodies
import certificates
import envelopes
import http2
from bad_wire import SILENCE_S, Cut, Plan, Stream, Tls, Wire
from harness import Envelope

BODY_MAX = 50 << 20

# Addresses of the servers, and of the place that no configuration names.
HOSTS = range(2, 120)
PLACE = '127.2.0.1'

# Shares of the requests and connections that are served honestly.
HONEST_REQUESTS, HONEST_CONNECTIONS = 0.25, 0.5
# A stall; the last lasts as long as ship waits, and is drawn rarely.
STALLS_S, LONG_STALL_S = (0.05, 0.3, 1.0), 35.0
# Only a storm that lasts longer has what makes ship wait for its time-out.
LONG_S = 120

# More of an answer than the client reads (64 KB) and the kernel keeps (10 MB).
ANSWER_MAX = 32 << 20

OK_PROXY = b'HTTP/1.1 200 Connected\r\n\r\n'


class Ledger:
    """What the servers have seen."""

    def __init__(self):
        self.lock = threading.Lock()
        self.counts = collections.Counter()
        self.modes = collections.Counter()
        self.problems = []
        self.recent = collections.deque(maxlen=40)  # for the text of a failure
        self.arrived = set()   # chunks that came whole
        self.settled = {}      # chunk: the status that its client has certainly read
        self.positions = set()
        self.honest = collections.Counter()  # of each server, since calm()

    def problem(self, text):
        with self.lock:
            self.problems.append(text)

    def arrive(self, chunk):
        """Notes a chunk that came whole; returns it."""
        with self.lock:
            self.arrived.add(chunk)
            if chunk in self.settled:
                self.problems.append(f'{chunk} came again after its answer, '
                                     f'{self.settled[chunk]}')
        return chunk

    def settle(self, chunk, status):
        """The client has read the answer: it has sent another request on the
        connection. After these statuses it may send the chunk again."""
        if status in (401, 403, 502, 503, 504):
            return
        with self.lock:
            self.settled[chunk] = status

    def was_honest(self, name):
        with self.lock:
            self.honest[name] += 1

    def count(self, what):
        with self.lock:
            self.counts[what] += 1

    def mode(self, lane, name):
        with self.lock:
            self.modes[name] += 1
            self.recent.append(f'{lane}: {name}')


def is_final(status, mode):
    """Returns false if the client may send the chunk again: without an answer, and after a success
    of a bad server, whose body may be the page of a firewall."""
    return status and (mode == 'honest' or not 200 <= status < 300)


class Certificates:
    """Contexts for each way in which a certificate is right or wrong. The
    daemon trusts bundle; the authority of 'stranger' is not in it."""

    def __init__(self, box):
        self.dirs = {}
        names = ['localhost'] + [f'127.{n}.0.{h}' for n in (0, 1) for h in HOSTS]
        for name, names_of, days in (('right', names, 2), ('expired', names, -1),
                                     ('other host', ['sentry.example'], 2),
                                     ('stranger', names, 2)):
            self.dirs[name] = box.make_dir('certificate')
            certificates.make_context(self.dirs[name], names_of, days)
        self.bundle = box.dir / 'authorities.pem'
        self.bundle.write_bytes(b''.join(
            (d / 'ca.pem').read_bytes() for n, d in self.dirs.items()
            if n != 'stranger'))
        # The authority's own certificate, which it has signed itself.
        own = self.dirs['self-signed'] = box.make_dir('certificate')
        subprocess.run(
            ['openssl', 'req', '-x509', '-newkey', 'ec', '-pkeyopt',
             'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2', '-subj',
             '/CN=localhost', '-addext', 'subjectAltName=' + ','.join(
                 f'IP:{n}' for n in names[1:]), '-keyout', own / 'server.key',
             '-out', own / 'server.pem'],
            check=True, stdin=subprocess.DEVNULL, capture_output=True)
        chain = (self.dirs['right'] / 'server.pem').read_bytes() + \
            (self.dirs['right'] / 'ca.pem').read_bytes() * 100
        self.long = box.dir / 'long.pem'
        self.long.write_bytes(chain)

    @functools.cache
    def context(self, kind, alpn, lowest, highest):
        of = self.dirs.get(kind, self.dirs['right'])
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        if highest < ssl.TLSVersion.TLSv1_2:
            context.set_ciphers('ALL:@SECLEVEL=0')
        context.minimum_version, context.maximum_version = lowest, highest
        context.load_cert_chain(self.long if kind == 'long chain' else
                                of / 'server.pem', of / 'server.key')
        context.set_alpn_protocols([alpn])
        if kind == 'asks for a certificate':
            context.load_verify_locations(of / 'ca.pem')
            context.verify_mode = ssl.CERT_REQUIRED
        if kind == 'many tickets':
            context.num_tickets = 100
        return context


# Certificates and handshakes of a connection: with the first ones the client must
# send no request.
UNTRUSTED = ('expired', 'other host', 'stranger', 'self-signed', 'old version')
HANDSHAKES = UNTRUSTED + (
    'asks for a certificate', 'long chain', 'many tickets', 'no tls', 'cut handshake',
    'flipped handshake', 'mute', 'renegotiates', 'renegotiates often', 'updates its key',
    'slow handshake', 'closes after it')


class Deck:
    """Draws each of some modes once, and some of them twice, before any comes again.
    $MODE is a pattern of the modes that are drawn, with their kind ("TLS: expired")."""

    def __init__(self, rng, kind, modes, twice=()):
        self.rng, self.kind, self.left = rng, kind, []
        self.values = [m for m in (*modes, *twice)
                       if re.search(os.environ.get('MODE', ''), kind + m)]

    def names(self):
        return {self.kind + m for m in self.values}

    def draw(self):
        """Returns a mode; None: all are left out."""
        if not self.values:
            return None
        if not self.left:
            self.left = self.values[:]
            self.rng.shuffle(self.left)
        return self.left.pop()


class Lane:
    """One server: a port, and what is drawn for it."""

    def __init__(self, servers, name, module):
        self.servers, self.name = servers, name
        seed = servers.rng.random()
        self.rng = random.Random(seed)
        self.lock = threading.Lock()
        self.modes = Deck(self.rng, module.KIND, module.MODES, module.TWICE)
        self.handshakes = Deck(self.rng, 'TLS: ', HANDSHAKES,
                               ('cut handshake', 'renegotiates'))
        self.maker = bad_answers.Maker(self.rng, self.lock, servers.places)
        self.listening = socket.create_server(('0.0.0.0', 0), backlog=64)
        self.port = self.listening.getsockname()[1]
        servers.listen(self.listening, self.serve)

    def chance(self, share):
        with self.lock:
            return self.rng.random() < share

    @property
    def calm(self):
        return self.servers.calm

    def draw_stall_s(self):
        with self.lock:
            long = self.servers.seconds > LONG_S and self.rng.random() < 0.01
            return LONG_STALL_S if long else self.rng.choice(STALLS_S)

    def draw_plan(self):
        return Plan(stall_s=self.draw_stall_s(),
                    cut_how=self.maker.draw('choice', ('close', 'reset', 'stall')))

    def serve(self, sock):
        plan = self.draw_plan()
        wire = Wire(sock, plan, self.calm)
        if self.name == 'plain':
            self.serve_requests(Stream(wire))
            return
        kind = 'right'
        if not self.calm.is_set() and not self.chance(HONEST_CONNECTIONS):
            kind = self.draw(self.handshakes) or 'right'
        self.serve_tls(wire, kind)

    def serve_tls(self, wire, kind):
        ledger, plan = self.servers.ledger, wire.plan
        alpn = 'h2' if self.name == 'h2' else 'http/1.1'
        low, high = ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3
        if kind == 'old version':
            low, high = ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1
        elif kind.startswith('renegotiates') or self.chance(0.3):
            high = ssl.TLSVersion.TLSv1_2
        if kind == 'mute':
            wire.end('stall')
        if kind == 'no tls':
            wire.send(bad_answers.HONEST)
            wire.end('stall')
        if kind == 'cut handshake':
            plan.cut = self.maker.draw('randrange', 3000)
        elif kind == 'flipped handshake':
            plan.flip = self.maker.draw('randrange', 2000)
        elif kind == 'slow handshake':
            plan.pace_s = 0.0005
        try:
            tls = Tls(wire, self.servers.certificates.context(kind, alpn, low, high))
        except ssl.SSLError:
            ledger.count('TLS handshakes that fail')
            return
        plan.cut = plan.flip = -1
        plan.pace_s = 0
        tls.kind = kind
        if kind == 'closes after it':
            wire.end(plan.cut_how)
        if kind in UNTRUSTED:
            # TLS 1.3 ends for the server before the client has checked.
            with contextlib.suppress(ssl.SSLError):
                data = tls.more()
                if data:
                    ledger.problem(f'a request was sent to a server whose certificate '
                                   f'is wrong ({kind}): {data[:200]}')
            return
        if self.name == 'h2':
            self.serve_http2(tls)
        else:
            self.serve_requests(tls)
        ledger.count('TLS connections')

    # What TLS does between the parts of a request or an answer.
    def disturb(self, stream):
        kind = getattr(stream, 'kind', '')
        ledger = self.servers.ledger
        if self.calm.is_set():
            return
        if kind in ('renegotiates', 'renegotiates often'):
            for _ in range(1 if kind == 'renegotiates' else 20):
                stream.renegotiate()
            ledger.count('renegotiations asked for')
            with ledger.lock:
                ledger.counts['renegotiations'] += stream.renegotiations()
        elif kind == 'updates its key':
            for _ in range(5):
                stream.update_key()

    def draw(self, deck):
        with self.lock:
            mode = deck.draw()
        if mode:
            self.servers.ledger.mode(self.name, deck.kind + mode)
        return mode

    def draw_mode(self):
        if self.calm.is_set() or self.chance(HONEST_REQUESTS):
            return 'honest'
        return self.draw(self.modes) or 'honest'

    # HTTP/1.1.

    def serve_requests(self, stream):
        ledger, before = self.servers.ledger, None
        while True:
            head = stream.read_until(b'\r\n\r\n')
            if before:
                ledger.settle(*before)
                before = None
            mode = self.draw_mode()
            answer = bad_answers.honest() if mode == 'honest' else \
                bad_answers.MODES[mode](self.maker)
            length = self.body_length(head)
            self.disturb(stream)
            if answer.early < 1:
                stream.read(int(length * answer.early))
            else:
                chunk = self.take(head, stream.read(length))
                if chunk and answer.then == 'keep' and is_final(answer.status, mode):
                    before = chunk, answer.status
            self.answer(stream, answer, mode)
            if mode == 'honest':
                ledger.was_honest(self.name)

    def answer(self, stream, answer, mode):
        plan = stream.wire.plan
        if answer.cut >= 0:
            with self.servers.ledger.lock:
                self.servers.ledger.positions.add(answer.cut)
            stream.write(b''.join(answer.parts)[:answer.cut])
            stream.wire.end(answer.then)
        if mode == 'a slow answer':
            plan.pace_s = 0.005
        size = 0
        for n, part in enumerate(answer.parts):
            stream.write(part)
            size += len(part)
            if size > ANSWER_MAX and answer.is_counted:
                self.servers.ledger.problem(
                    f'{self.name}: the client reads an answer without end: {size} bytes')
                raise Cut
            if n == 0:
                self.disturb(stream)
            if self.calm.is_set() and n > 100:
                raise Cut
        if answer.then != 'keep':
            plan.stall_s = self.draw_stall_s()
            stream.wire.end(answer.then)

    @staticmethod
    def body_length(head):
        for line in head.split(b'\r\n'):
            name, _, value = line.partition(b':')
            if name.lower() == b'content-length':
                return min(int(value), BODY_MAX)
        return 0

    def take(self, head, body):
        """Checks a request, and notes its chunk, whose id is returned."""
        lines = head.decode('latin-1').split('\r\n')
        _, path, _ = lines[0].split(' ', 2)
        headers = {n.lower(): v.strip() for n, _, v in
                   (line.partition(':') for line in lines[1:] if line)}
        problems = envelopes.header_problems(headers, path)
        return self.take_body(headers.get('content-encoding'), body, problems,
                              headers.get('user-agent'))

    def take_body(self, encoding, body, problems=(), agent=None):
        ledger, problems = self.servers.ledger, list(problems)
        data = bodies.decode(encoding, body, BODY_MAX)
        if data is None:
            ledger.problem(f'{self.name}: the body is not {encoding}: {len(body)} bytes, '
                           f'{body[:16].hex()}...{body[-16:].hex()}')
            return None
        if agent:
            problems += envelopes.envelope_problems(data, agent)[0]
        if problems:
            ledger.problem(f'{self.name}: {problems}')
            return None
        ledger.count(f'requests of {self.name}')
        chunk = Envelope(data, self.name).chunk
        return ledger.arrive(chunk['chunk_id']) if chunk else None

    # HTTP/2.

    def sent_once(self, stream, body):
        """Returns the body alone, once. While the server renegotiates, which HTTP/2
        forbids, TLS cannot write at times; libcurl 7.88 then sends the head of the
        request again, as text before the body, and the body again."""
        if not stream.kind.startswith('renegotiates'):
            return body
        whole = body
        while body.startswith(b'POST /'):
            body = body.partition(b'\r\n\r\n')[2]
        gzip = zlib.decompressobj(wbits=31)
        with contextlib.suppress(zlib.error):
            gzip.decompress(body)
            body = body[:len(body) - len(gzip.unused_data)]
        if body != whole:
            self.servers.ledger.count('requests that libcurl sent in part twice')
        return body

    def serve_http2(self, stream):
        ledger, before = self.servers.ledger, None
        c = http2.Connection(stream)
        # The client may have no stream on this connection, and waits for its time-out.
        odd = self.servers.seconds > LONG_S and not self.calm.is_set() and \
            self.chance(0.02)
        c.greet(b'\0\3\0\0\0\0' if odd else b'')
        while True:
            self.disturb(stream)
            number, body = c.read_request()
            if before:
                ledger.settle(*before)
            chunk = self.take_body('gzip', self.sent_once(stream, body))
            mode = self.draw_mode()
            stream.wire.plan.stall_s = self.draw_stall_s()
            if mode == 'honest':
                status = c.answer(number)
                ledger.was_honest(self.name)
            else:
                status = bad_http2.MODES[mode](c, number, self.maker)
            before = (chunk, status) if chunk and is_final(status, mode) else None


class Proxy:
    """A proxy that knows CONNECT only, and must see neither the key nor a
    chunk."""

    MODES = ('refuses', 'asks', 'redirects', 'garbage', 'close', 'reset', 'stall',
             'endless', 'cut', 'a body', 'more bytes', 'ends soon', 'slow', 'limits')

    def __init__(self, servers):
        self.servers = servers
        self.rng = random.Random(servers.rng.random())
        self.lock = threading.Lock()
        self.deck = Deck(self.rng, 'proxy: ', self.MODES)
        self.maker = bad_answers.Maker(self.rng, self.lock, servers.places)
        self.listening = socket.create_server(('127.0.0.1', 0), backlog=64)
        self.port = self.listening.getsockname()[1]
        servers.listen(self.listening, self.serve)

    def serve(self, sock):
        stream = Stream(Wire(sock, Plan(), self.servers.calm))
        head = stream.read_until(b'\r\n\r\n')
        self.look(head)
        method, host, _ = head.split(b' ', 2)
        address, _, port = host.decode().rpartition(':')
        ledger = self.servers.ledger
        if method != b'CONNECT' or not address.startswith('127.1.') or \
                int(port) != self.servers.lanes['proxied'].port:
            ledger.problem(f'the proxy was asked for {method} {host}')
        mode = 'honest'
        with self.lock:
            if not self.servers.calm.is_set() and self.rng.random() > 0.5:
                mode = self.deck.draw() or mode
        if mode != 'honest':
            ledger.mode('proxy', f'proxy: {mode}')
        self.answer(stream, mode)
        self.pump_both(sock, (address, int(port)), mode)

    def look(self, data):
        if envelopes.KEY.encode() in data or b'X-Sentry-Auth' in data:
            self.servers.ledger.problem(f'the proxy sees the key: {data[:300]}')

    def answer(self, stream, mode):
        m, wire = self.maker, stream.wire
        if mode in ('close', 'reset', 'stall'):
            wire.end(mode)
        answers = {
            'refuses': lambda: bad_answers.head(m.next('refuses', (
                400, 403, 404, 429, 500, 502, 503, 504)), ['Retry-After: 3600']),
            'limits': lambda: bad_answers.head(m.next('limits', (403, 429)), [
                'X-Sentry-Rate-Limits: 3600:profile_chunk:key',
                'X-Sentry-Error: the proxy']),
            'asks': lambda: bad_answers.head(407, ['Proxy-Authenticate: ' + m.next(
                'asks', ('Basic realm="x"', 'NTLM', 'Digest realm="x", nonce="y"'))]),
            'redirects': lambda: bad_answers.head(302, [
                ('Location', m.next('place', m.places))]),
            'garbage': lambda: m.junk(500),
            'cut': lambda: OK_PROXY[:m.draw('randrange', len(OK_PROXY))],
            'a body': lambda: bad_answers.head(200, length=5) + b'hello',
            'more bytes': lambda: OK_PROXY + m.junk(9)}
        if mode == 'endless':
            for part in itertools.repeat(b'X-No: end\r\n' * 100):
                wire.send(part)
                if self.servers.calm.is_set():
                    raise Cut
        if mode == 'slow':
            wire.plan.pace_s = 0.005
        wire.send(answers.get(mode, lambda: OK_PROXY)())
        if mode in ('refuses', 'limits', 'asks', 'redirects', 'garbage', 'cut'):
            raise Cut

    def pump_both(self, client, address, mode):
        with socket.create_connection(address, SILENCE_S) as server:
            back = threading.Thread(target=self.pump, args=(server, client),
                                    daemon=True)
            back.start()
            self.pump(client, server, 1 if mode == 'ends soon' else 10**9)
            back.join()

    def pump(self, source, target, most=10**9):
        with contextlib.suppress(OSError):
            while most > 0 and (data := source.recv(65536)):
                self.look(data)
                target.sendall(data)
                most -= 1
        # Also if the source was reset.
        with contextlib.suppress(OSError):
            target.shutdown(socket.SHUT_RDWR)


class Bait:
    """Places that answers lead to: a port of each scheme, and a file."""

    SCHEMES = ('http', 'https', 'ftp', 'ftps', 'gopher', 'gophers', 'dict', 'telnet',
               'smtp', 'imap', 'pop3', 'ldap', 'rtsp', 'scp', 'sftp', 'smb', 'tftp',
               'mqtt', 'ws', 'wss', 'HTTP', 'h2')

    def __init__(self, servers):
        self.servers = servers
        self.listening = socket.create_server((PLACE, 0), backlog=64)
        port = self.listening.getsockname()[1]
        # A reader of a FIFO lets a writer open it.
        self.fifo = servers.box.dir / 'bait'
        os.mkfifo(self.fifo, 0o644)
        at = f'{PLACE}:{port}'
        self.urls = [f'{s}://{at}/api/42/envelope/' for s in self.SCHEMES] + [
            f'http://{envelopes.KEY}@{at}/', f'//{at}/x', f'http:/{at}', f'http:{at}',
            f'\\\\{at}\\x', f'http://{at}\\@127.0.0.1/', f' http://{at}/',
            f'http://127.0.0.1@{at}/', f'file://{self.fifo}', f'FILE:{self.fifo}',
            f'file://localhost{self.fifo}', f'view-source:http://{at}',
            f'jar:http://{at}', 'javascript:alert(1)', 'data:,x', '/', '?', '', '#',
            '\0', 'x' * 50000, f'http://{at}/' + '../' * 1000, f'//{at}',
            f'http://[::ffff:{PLACE}]:{port}/', f'{at}']
        servers.listen(self.listening, self.serve)

    def serve(self, sock):
        sock.settimeout(1)
        data = b''
        with contextlib.suppress(OSError):
            data = sock.recv(4096)
        self.servers.ledger.problem(
            f'a client has connected to a place that no configuration names: {data}')

    def check_file(self):
        try:
            os.close(os.open(self.fifo, os.O_WRONLY | os.O_NONBLOCK))
        except OSError:
            return
        self.servers.ledger.problem('a client has opened a file that an answer names')


class Servers:
    """All of them. seconds: how long the storm lasts."""

    def __init__(self, box, rng, seconds):
        self.box, self.rng, self.seconds = box, rng, seconds
        self.calm = threading.Event()
        self.calm.set()
        self.closed = False
        self.ledger = Ledger()
        self.certificates = Certificates(box)
        self.bait = Bait(self)
        self.places = self.bait.urls
        self.lanes = {
            name: Lane(self, name, bad_http2 if name == 'h2' else bad_answers)
            for name in ('plain', 'tls', 'h2', 'proxied')}
        self.proxy = Proxy(self)

    def modes(self):
        """Returns the names of all modes that are drawn."""
        decks = [self.proxy.deck]
        for lane in self.lanes.values():
            decks.append(lane.modes)
            if lane.name != 'plain':
                decks.append(lane.handshakes)
        return set().union(*(deck.names() for deck in decks))

    def listen(self, listening, serve):
        threading.Thread(target=self.accept, args=(listening, serve),
                         daemon=True).start()

    def accept(self, listening, serve):
        while not self.closed:
            try:
                sock, _ = listening.accept()
            except OSError:
                continue
            self.ledger.count('connections')
            threading.Thread(target=self.run, args=(sock, serve), daemon=True).start()

    def run(self, sock, serve):
        try:
            with contextlib.closing(sock):
                serve(sock)
        except (OSError, EOFError, Cut):
            pass
        except Exception as e:
            self.ledger.problem(f'fault of the bad server: {e!r}')

    def dsn(self, name, n):
        """The nth DSN of a server."""
        scheme = 'http' if name == 'plain' else 'https'
        net = '127.1' if name == 'proxied' else '127.0'
        return f'{scheme}://{envelopes.KEY}@{net}.0.{HOSTS[n % len(HOSTS)]}:' \
               f'{self.lanes[name].port}/{envelopes.PROJECT}'

    def proxy_url(self):
        return f'http://127.0.0.1:{self.proxy.port}'

    def close(self):
        self.closed = True
        self.calm.set()
