#!/usr/bin/python3
"""A server for envelopes on loopback, as strict as Sentry's or stricter.

    server.py --dir DIR [--tls [--name NAME]... [--expired] [--mutual]]
              [--status N] [--script FILE] [--host ADDRESS] [--port N] [--stdin]

Prints one line of JSON when it listens:

    {"port": 40001, "dsn": "https://KEY@localhost:40001/42", "ca": "DIR/ca.pem"}

("ca" with --tls only.) Runs until SIGTERM; with --stdin also until its standard
input ends, so that it cannot outlive the test that started it.

Each complete request is a line in DIR/requests.jsonl, written before the answer
is sent:

    n           number of the request, from 1
    connection  the same number for requests on the same connection
    method, path, headers (names in lower case; of a repeated one the last)
    envelope    the file in DIR that has the decoded body: "0001.envelope"
    size, compressed_size
    items       the header of each item
    problems    violations by the client, as texts; a test expects []
    status      of the answer; null if there was none

A failed TLS handshake is a line {"tls_error": TEXT}.

--tls makes an authority (DIR/ca.pem) and a certificate for localhost and
127.0.0.1, or for the names that --name gives, by the openssl command;
--expired makes an expired one. --mutual requires a certificate of the client
by the same authority, such as DIR/server.pem with DIR/server.key. --for-files
accepts chunks with the members that only files have. --spotlight is a Spotlight
at /stream ("url" in the line of JSON), which accepts these, too, needs no key,
and decodes gzip only.

A request with problems gets the status 400, with the first problem in
X-Sentry-Error; any other request gets --status (200). --script FILE has the
answer to each request instead: line n for request n, as JSON. All members are
optional:

    {"status": 429, "headers": {"Retry-After": "60"}, "body": "text"}
    {"do": "close"}      closes the connection without an answer
    {"do": "reset"}      resets the connection without an answer
    {"do": "reset_body"} resets it in the middle of the request
    {"do": "reset_head"} resets it in the middle of the answer's first line
    {"do": "stall"}      does not answer until the client closes
    {"do": "garbage"}    answers with bytes that are not HTTP
    {"do": "endless"}    answers with endless headers without a status: 1xx
    {"do": "page"}       answers with a firewall's page and the status 200
    {"do": "endless_head"}, {"do": "endless_body"}
                         answers with the status, and then endlessly
    {"do": "endless_extension"}
                         answers with a chunk whose extension has no end
    {"do": "folded"}     answers with a first header that continues a line
    {"do": "truncate"}   closes in the middle of the answer's body
    {"do": "hang_up"}    answers, and closes without a Connection: close

After the last line --status applies again. A header's value may be a list: the
header is then sent once for each element.

With --stdin the server reads lines of JSON, and answers each by a line "ok":

    {"do": "down"}       stops listening, closes all connections
    {"do": "mute"}       accepts connections, and sends nothing
    {"do": "up"}         serves as at the start
    {"script": [...]}    answers to the next requests, in place of those that are left
    {"never": ID}        resets the connection of each request with this chunk, null: of none
    {"days": N}          has a new certificate, valid for N days, or expired with -1

For tests in Python: requests(DIR) returns the lines so far.
"""

import argparse
import contextlib
import http.server
import json
import os
import re
import signal
import socket
import socketserver
import ssl
import struct
import sys
import threading

from bodies import decode
from certificates import certify, make_context
from envelopes import (KEY, PROJECT, envelope_problems, header_problems,
                       spotlight_problems)

# Sentry accepts 50 MB. A longer body is not read.
BODY_MAX = 50 * 1000 * 1000 + 4096

# With this option close(2) sends RST.
AT_ONCE = struct.pack('ii', 1, 0)

SILENT = ('close', 'reset', 'reset_body', 'reset_head', 'stall', 'garbage',
          'endless', 'page')


def requests(directory):
    """Returns the requests so far, without a line that is being written."""
    try:
        with open(os.path.join(directory, 'requests.jsonl')) as f:
            return [json.loads(line) for line in f if line.endswith('\n')]
    except FileNotFoundError:
        return []


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    # An answer is sent at once, and one that is to be cut off ends at that
    # point.
    disable_nagle_algorithm = True

    def log_message(self, *args):
        pass

    def setup(self):
        super().setup()
        self.number = self.server.next_connection()

    def do_POST(self):
        n, answer = self.server.next_request()
        if answer.get('do') == 'reset_body':
            self.rfile.read(1)
            self.reset()
            return
        # Clients send the whole URL to a proxy.
        path = re.sub('^http://[^/]+', '', self.path)
        headers = {k.lower(): v for k, v in self.headers.items()}
        problems = (spotlight_problems if self.server.spotlight else
                    header_problems)(headers, path)
        body, data = self.read_body(headers, problems)
        items = []
        if data is not None:
            found, items = envelope_problems(data, headers.get('user-agent'),
                                             self.server.for_files)
            problems += found
        if data is not None and self.server.never and self.server.never.encode() in data:
            answer = {'do': 'reset'}
        answer = self.judge(answer, problems)
        self.log({
            'n': n,
            'connection': self.number,
            'method': self.command,
            'path': self.path,
            'headers': headers,
            'envelope': None,
            'size': None if data is None else len(data),
            'compressed_size': len(body),
            'items': items,
            'problems': problems,
            'status': answer.get('status'),
        }, data)
        self.answer(answer)

    def read_body(self, headers, problems):
        """Returns the body as received, and decoded; None if it cannot be
        decoded."""
        length = headers.get('content-length', '')
        if not length.isdecimal() or int(length) > BODY_MAX:
            problems.append('no Content-Length, or too large')
            self.close_connection = True
            return b'', None
        body = self.rfile.read(int(length))
        if len(body) < int(length):
            raise ConnectionError('the client has gone')
        encoding = headers.get('content-encoding')
        data = decode(encoding, body, BODY_MAX)
        if data is None:
            problems.append(f'the body is not {encoding}')
        return body, data

    def judge(self, answer, problems):
        """Returns the answer of the script, or else the one that the request
        deserves."""
        if answer.get('do') in SILENT:
            return answer
        if not answer and problems:
            return {'status': 400, 'headers': {'X-Sentry-Error': problems[0]}}
        return {'status': self.server.status, **answer}

    def log(self, entry, data):
        if data is not None:
            entry['envelope'] = f'{entry["n"]:04}.envelope'
            path = os.path.join(self.server.directory, entry['envelope'])
            with open(path, 'wb') as f:
                f.write(data)
        self.server.write(entry)

    def reset(self):
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                                   AT_ONCE)
        self.close_connection = True

    def answer(self, answer):
        what = answer.get('do', 'answer')
        if what != 'answer':
            self.close_connection = True
        if what == 'stall':
            while self.rfile.read(1):
                pass
        if what == 'garbage':
            self.wfile.write(bytes(range(256)) * 16)
        if what == 'endless':
            self.write_endlessly(b'HTTP/1.1 102 Processing\r\nX-No: end\r\n\r\n')
        if what == 'reset_head':
            self.wfile.write(b'HTTP/1.1 20')
        if what == 'page':
            self.wfile.write(b'HTTP/1.1 200 OK\r\nContent-Length: 15\r\n\r\n'
                             b'<!DOCTYPE html>')
        if what in ('reset', 'reset_head'):
            self.reset()
        if what in SILENT:
            return
        if what == 'endless_extension':
            self.wfile.write(b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;')
            self.write_endlessly(b'x' * 10000)
            return
        if what == 'folded':
            self.wfile.write(b'HTTP/1.1 200 OK\r\n folded: header\r\n'
                             b'Content-Length: 0\r\n\r\n')
            return
        body = answer.get('body', '{"id":""}').encode()
        if 'Date' in answer.get('headers', {}):
            self.send_response_only(answer['status'])
        else:
            self.send_response(answer['status'])
        for name, value in answer.get('headers', {}).items():
            for one in value if isinstance(value, list) else [value]:
                self.send_header(name, one)
        self.send_header('Content-Type', 'application/json')
        if what == 'endless_head':
            self.flush_headers()
            self.write_endlessly(b'X-No: end\r\n')
        if what == 'endless_body':
            self.end_headers()
            self.write_endlessly(b'{"no": "end"}\n')
        extra = 1000 if what == 'truncate' else 0
        self.send_header('Content-Length', str(len(body) + extra))
        self.end_headers()
        self.wfile.write(body)

    def write_endlessly(self, text):
        """Writes until the client closes the connection."""
        with contextlib.suppress(OSError):
            while True:
                self.wfile.write(text * 100)


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, directory, address, status, script, context, names, for_files,
                 spotlight):
        if ':' in address[0]:
            self.address_family = socket.AF_INET6
        # A port that was given by number stays reserved while the server does
        # not listen.
        with socket.socket(self.address_family) as s:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            s.bind(address)
            super().__init__(s.getsockname()[:2], Handler)
        self.directory = directory
        self.status = status
        self.script = script
        # Spotlight accepts chunks for files, as the real one does.
        self.for_files = for_files or spotlight
        self.spotlight = spotlight
        self.context = context
        self.names = names
        self.lock = threading.Condition()
        self.mode = 'up'
        self.never = None
        self.n = 0
        self.connections = 0
        # A descriptor of each open connection.
        self.handles = set()

    def server_bind(self):
        # HTTPServer's own function looks up the host name, and the name server
        # may not answer.
        socketserver.TCPServer.server_bind(self)

    def run(self):
        while True:
            with self.lock:
                self.lock.wait_for(lambda: self.mode != 'down')
            try:
                request, address = self.socket.accept()
            except OSError:
                continue
            handle = request.dup()
            with self.lock:
                self.handles.add(handle)
                if self.mode == 'down':
                    handle.shutdown(socket.SHUT_RDWR)
            threading.Thread(target=self.serve, daemon=True,
                             args=(request, address, handle)).start()

    # Runs on the connection's own thread, so that a slow handshake does not
    # delay the others.
    def serve(self, request, address, handle):
        if self.mode == 'mute':
            with contextlib.suppress(OSError):
                while handle.recv(4096):
                    pass
            request.close()
        else:
            self.process_request_thread(request, address)
        with self.lock:
            self.handles.remove(handle)
            handle.close()
            self.lock.notify_all()

    def finish_request(self, request, client_address):
        if self.context:
            try:
                request = self.context.wrap_socket(request, server_side=True)
            except OSError as e:
                self.write({'tls_error': str(e)})
                return
        try:
            super().finish_request(request, client_address)
        finally:
            if self.context:
                self.shutdown_request(request)

    def shutdown_request(self, request):
        if request.fileno() < 0:
            return
        linger = request.getsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                                    len(AT_ONCE))
        if linger == AT_ONCE:
            request.close()
        else:
            super().shutdown_request(request)

    def handle_error(self, request, client_address):
        # A client may close the connection at any time. Other exceptions are
        # faults of this server, and are shown.
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)

    def obey(self, command):
        with self.lock:
            if 'script' in command:
                # Those of the requests so far have no effect any more.
                self.script = [{}] * self.n + command['script']
            self.never = command.get('never', self.never)
            if 'days' in command:
                certify(self.context, self.directory, self.names, command['days'])
            self.mode = command.get('do', self.mode)
            self.lock.notify_all()
        if self.mode == 'down':
            # The socket stays bound, so that no other process gets the port.
            self.socket.shutdown(socket.SHUT_RDWR)
        elif 'do' in command:
            self.socket.listen(self.request_queue_size)
        if 'do' in command or 'days' in command:
            self.close_all()

    def close_all(self):
        """Returns when the connections of now are closed. Clients may make others
        meanwhile."""
        with self.lock:
            handles = set(self.handles)
            for handle in handles:
                with contextlib.suppress(OSError):
                    handle.shutdown(socket.SHUT_RDWR)
            self.lock.wait_for(lambda: handles.isdisjoint(self.handles))

    def next_connection(self):
        with self.lock:
            self.connections += 1
            return self.connections

    def next_request(self):
        """Returns the number of the request, and the script's answer to it."""
        with self.lock:
            self.n += 1
            if self.n <= len(self.script):
                return self.n, self.script[self.n - 1]
            return self.n, {}

    def write(self, entry):
        with self.lock, \
                open(os.path.join(self.directory, 'requests.jsonl'), 'a') as f:
            f.write(json.dumps(entry) + '\n')


def say(text):
    sys.stdout.write(text + '\n')
    sys.stdout.flush()


def main():
    parser = argparse.ArgumentParser(description='A server for envelopes.')
    parser.add_argument('--dir', required=True)
    parser.add_argument('--tls', action='store_true')
    parser.add_argument('--name', action='append')
    parser.add_argument('--expired', action='store_true')
    parser.add_argument('--mutual', action='store_true')
    parser.add_argument('--host', default='127.0.0.1')
    parser.add_argument('--port', type=int, default=0)
    parser.add_argument('--status', type=int, default=200)
    parser.add_argument('--script')
    parser.add_argument('--for-files', action='store_true')
    parser.add_argument('--spotlight', action='store_true')
    parser.add_argument('--stdin', action='store_true')
    args = parser.parse_args()

    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    script = []
    if args.script:
        with open(args.script) as f:
            script = [json.loads(line) for line in f]
    context = None
    names = args.name or ['localhost', '127.0.0.1']
    if args.tls:
        context = make_context(args.dir, names, -1 if args.expired else 2)
        if args.mutual:
            context.load_verify_locations(os.path.join(args.dir, 'ca.pem'))
            context.verify_mode = ssl.CERT_REQUIRED
    server = Server(args.dir, (args.host, args.port), args.status, script,
                    context, names, args.for_files, args.spotlight)
    port = server.server_address[1]
    scheme = 'https' if args.tls else 'http'
    host = f'[{args.host}]' if ':' in args.host else 'localhost'
    said = {'port': port,
            'dsn': f'{scheme}://{KEY}@{host}:{port}/{PROJECT}',
            'url': f'{scheme}://{host}:{port}/stream'}
    if args.tls:
        said['ca'] = os.path.join(args.dir, 'ca.pem')
    threading.Thread(target=server.run, daemon=True).start()
    say(json.dumps(said))
    if not args.stdin:
        signal.pause()
    for line in sys.stdin:
        server.obey(json.loads(line))
        say('ok')


if __name__ == '__main__':
    main()
