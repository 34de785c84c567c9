#!/usr/bin/python3
"""A server for envelopes on loopback, as strict as Sentry's and stricter.

    server.py --dir DIR [--tls [--name NAME]...] [--status N] [--script FILE]
              [--stdin]

Prints one line of JSON when it listens, and then nothing more:

    {"port": 40001, "dsn": "https://KEY@localhost:40001/42", "ca": "DIR/ca.pem"}

("ca" with --tls only.) It runs until SIGTERM; with --stdin also until its standard input ends, so that
it cannot outlive the test that started it.

Every request is a line in DIR/requests.jsonl, written before the answer is:

    n           counts up from 1
    connection  the same number for requests on the same connection
    method, path, headers (names in lower case; several of a name: the last)
    envelope    the file in DIR that has the body, gunzipped: "0001.envelope"
    size, compressed_size
    items       the header of each item
    problems    what no client of ours may do, in words; [] is what a test wants
    status      the answer's; null if there was none

A failed TLS handshake is a line {"tls_error": TEXT}.

--tls makes an authority (DIR/ca.pem) and a certificate for localhost and
127.0.0.1, or for the names that --name gives, by the openssl command.

A request with problems is answered by 400, with the first of them in
X-Sentry-Error; any other by --status (200). --script FILE says it for each
request instead, the n-th line for the n-th, as JSON; all are optional:

    {"status": 429, "headers": {"Retry-After": "60"}, "body": "text"}
    {"do": "close"}      closes the connection without an answer
    {"do": "stall"}      answers nothing until the client closes
    {"do": "truncate"}   closes in the middle of the answer's body

After the last line --status holds again. A header's value may be a list: then
it is sent as often.

For tests in Python: requests(DIR) returns the lines that are there so far, and
read_envelope(BYTES) takes an envelope apart.
"""

import argparse
import gzip
import http.server
import json
import os
import re
import signal
import ssl
import subprocess
import sys
import threading

KEY = '0123456789abcdef0123456789abcdef'
PROJECT = '42'
SDK = 'sentry.native.profd'
VERSION = r'\d+\.\d+\.\d+(?:-[0-9A-Za-z.-]+)?'

# Sentry takes 50 MB; what is longer is not read.
BODY_MAX = 50 * 1000 * 1000 + 4096


def read_envelope(data):
    """Returns the header and [(item header, payload bytes)].

    Raises ValueError with what is wrong.
    """
    line, end, rest = data.partition(b'\n')
    if not end:
        raise ValueError('the envelope has no header line')
    header = read_line(line, 'envelope header')
    items = []
    while rest:
        line, end, rest = rest.partition(b'\n')
        item = read_line(line, 'item header')
        length = item.get('length')
        if type(length) is not int:
            raise ValueError('an item has no length')
        if len(rest) < length + 1 or rest[length:length + 1] != b'\n':
            raise ValueError('a payload does not end where length says')
        items.append((item, rest[:length]))
        rest = rest[length + 1:]
    return header, items


def read_line(line, what):
    try:
        value = json.loads(line)
    except ValueError as e:
        raise ValueError(f'the {what} is not JSON') from e
    if not isinstance(value, dict):
        raise ValueError(f'the {what} is no object')
    compact = json.dumps(value, separators=(',', ':'), ensure_ascii=False)
    if compact.encode() != line:
        raise ValueError(f'the {what} is not compact JSON')
    return value


def requests(directory):
    """The requests so far; a line that is being written is left out."""
    try:
        with open(os.path.join(directory, 'requests.jsonl')) as f:
            return [json.loads(line) for line in f if line.endswith('\n')]
    except FileNotFoundError:
        return []


def envelope_problems(data, client):
    try:
        header, items = read_envelope(data)
    except ValueError as e:
        return [str(e)], []
    problems = []
    if not re.fullmatch('[0-9a-f]{32}', str(header.get('event_id'))):
        problems.append('event_id is not 32 hex digits')
    if not re.fullmatch(r'\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z',
                        str(header.get('sent_at'))):
        problems.append('sent_at is not RFC 3339 in UTC')
    sdk = header.get('sdk')
    if not isinstance(sdk, dict) or \
            f'{sdk.get("name")}/{sdk.get("version")}' != client:
        problems.append('sdk is not the one that sends')
    if not items:
        problems.append('the envelope is empty')
    chunks = [i for i in items if i[0].get('type') == 'profile_chunk']
    if len(chunks) > 1:
        problems.append('more than one profile_chunk')
    for item, payload in chunks:
        problems += chunk_problems(item, payload)
    return problems, [item for item, _ in items]


def chunk_problems(item, payload):
    problems = []
    if item.get('content_type') != 'application/json':
        problems.append('content_type is not application/json')
    try:
        chunk = json.loads(payload)
    except ValueError:
        return problems + ['the chunk is not JSON']
    if not isinstance(chunk, dict) or \
            chunk.get('platform') != item.get('platform'):
        problems.append("the item's platform is not the chunk's")
    return problems


def header_problems(headers, path):
    problems = []
    if not re.fullmatch(rf'(/[\w./-]+)?/api/{PROJECT}/envelope/', path):
        problems.append('the path is not /api/PROJECT/envelope/')
    client = headers.get('user-agent', '')
    if not re.fullmatch(re.escape(SDK) + '/' + VERSION, client):
        problems.append('User-Agent is not NAME/VERSION')
    auth = re.fullmatch('Sentry sentry_version=7, sentry_client=([^ ,]+), '
                        'sentry_key=([^ ,]+)(, sentry_secret=[^ ,]+)?',
                        headers.get('x-sentry-auth', ''))
    if not auth:
        problems.append('X-Sentry-Auth is malformed or absent')
    else:
        if auth[1] != client:
            problems.append('sentry_client is not User-Agent')
        if auth[2] != KEY:
            problems.append('sentry_key is not the key')
    if headers.get('content-type') != 'application/x-sentry-envelope':
        problems.append('Content-Type is not application/x-sentry-envelope')
    if headers.get('content-encoding') != 'gzip':
        problems.append('Content-Encoding is not gzip')
    if 'expect' in headers:
        problems.append('there is an Expect header')
    return problems


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'

    def log_message(self, *args):
        pass

    def setup(self):
        super().setup()
        self.number = self.server.next_connection()

    def do_POST(self):
        # A proxy is asked for the whole URL.
        path = re.sub('^http://[^/]+', '', self.path)
        headers = {k.lower(): v for k, v in self.headers.items()}
        problems = header_problems(headers, path)
        body, data = self.read_body(headers, problems)
        items = []
        if data is not None:
            found, items = envelope_problems(data,
                                             headers.get('user-agent'))
            problems += found
        with self.server.lock:
            answer = self.log({
                'n': 0,
                'connection': self.number,
                'method': self.command,
                'path': self.path,
                'headers': headers,
                'envelope': None,
                'size': None if data is None else len(data),
                'compressed_size': len(body),
                'items': items,
                'problems': problems,
            }, data)
        self.answer(answer)

    def read_body(self, headers, problems):
        """The body as it came, and gunzipped; None if that cannot be done."""
        length = headers.get('content-length', '')
        if not length.isdecimal() or int(length) > BODY_MAX:
            problems.append('no Content-Length, or too large')
            self.close_connection = True
            return b'', None
        body = self.rfile.read(int(length))
        try:
            return body, gzip.decompress(body)
        except (OSError, EOFError, ValueError):
            problems.append('the body is not gzip')
            return body, None

    def log(self, entry, data):
        """Stores the request and returns how to answer."""
        server = self.server
        server.n += 1
        entry['n'] = server.n
        if data is not None:
            entry['envelope'] = f'{server.n:04}.envelope'
            path = os.path.join(server.directory, entry['envelope'])
            with open(path, 'wb') as f:
                f.write(data)
        if server.n <= len(server.script):
            answer = dict(server.script[server.n - 1])
            answer.setdefault('status', server.status)
        elif entry['problems']:
            answer = {'status': 400,
                      'headers': {'X-Sentry-Error': entry['problems'][0]}}
        else:
            answer = {'status': server.status}
        silent = answer.get('do') in ('close', 'stall')
        entry['status'] = None if silent else answer['status']
        server.write(entry)
        return answer

    def answer(self, answer):
        what = answer.get('do', 'answer')
        if what != 'answer':
            self.close_connection = True
        if what == 'stall':
            while self.rfile.read(1):
                pass
        if what in ('close', 'stall'):
            return
        body = answer.get('body', '{"id":""}').encode()
        self.send_response(answer['status'])
        for name, value in answer.get('headers', {}).items():
            for one in value if isinstance(value, list) else [value]:
                self.send_header(name, one)
        self.send_header('Content-Type', 'application/json')
        extra = 1000 if what == 'truncate' else 0
        self.send_header('Content-Length', str(len(body) + extra))
        self.end_headers()
        self.wfile.write(body)


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, directory, port, status, script, context):
        super().__init__(('127.0.0.1', port), Handler)
        self.directory = directory
        self.status = status
        self.script = script
        self.context = context
        self.lock = threading.Lock()
        self.n = 0
        self.connections = 0

    def next_connection(self):
        with self.lock:
            self.connections += 1
            return self.connections

    def write(self, entry):
        with open(os.path.join(self.directory, 'requests.jsonl'), 'a') as f:
            f.write(json.dumps(entry) + '\n')

    # On the connection's own thread: a slow handshake stops no other.
    def finish_request(self, request, client_address):
        if self.context:
            try:
                request = self.context.wrap_socket(request, server_side=True)
            except OSError as e:
                with self.lock:
                    self.write({'tls_error': str(e)})
                return
        super().finish_request(request, client_address)

    def handle_error(self, request, client_address):
        # A client may go at any time. What is not that is ours, and shown.
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)


def openssl(*args):
    subprocess.run(['openssl', *args], check=True, stdin=subprocess.DEVNULL,
                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def make_certificate(directory, names):
    """Makes ca.pem, server.pem, server.key; returns a context with them."""
    def path(name):
        return os.path.join(directory, name)

    new_key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1',
               '-nodes']
    openssl('req', '-x509', *new_key, '-days', '2',
            '-subj', '/CN=sentry-profd test authority',
            '-keyout', path('ca.key'), '-out', path('ca.pem'))
    openssl('req', *new_key, '-subj', '/CN=sentry-profd test server',
            '-keyout', path('server.key'), '-out', path('server.csr'))
    kinds = ['IP' if re.fullmatch(r'[\d.]+', n) else 'DNS' for n in names]
    with open(path('server.ext'), 'w') as f:
        f.write('subjectAltName=' +
                ','.join(f'{k}:{n}' for k, n in zip(kinds, names)) + '\n')
    openssl('x509', '-req', '-days', '2', '-in', path('server.csr'),
            '-CA', path('ca.pem'), '-CAkey', path('ca.key'),
            '-CAcreateserial', '-extfile', path('server.ext'),
            '-out', path('server.pem'))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path('server.pem'), path('server.key'))
    return context


def main():
    parser = argparse.ArgumentParser(description='A server for envelopes.')
    parser.add_argument('--dir', required=True)
    parser.add_argument('--tls', action='store_true')
    parser.add_argument('--name', action='append')
    parser.add_argument('--port', type=int, default=0)
    parser.add_argument('--status', type=int, default=200)
    parser.add_argument('--script')
    parser.add_argument('--stdin', action='store_true')
    args = parser.parse_args()

    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    script = []
    if args.script:
        with open(args.script) as f:
            script = [json.loads(line) for line in f]
    context = None
    if args.tls:
        context = make_certificate(args.dir,
                                   args.name or ['localhost', '127.0.0.1'])
    server = Server(args.dir, args.port, args.status, script, context)
    port = server.server_address[1]
    scheme = 'https' if args.tls else 'http'
    said = {'port': port,
            'dsn': f'{scheme}://{KEY}@localhost:{port}/{PROJECT}'}
    if args.tls:
        said['ca'] = os.path.join(args.dir, 'ca.pem')
    sys.stdout.write(json.dumps(said) + '\n')
    sys.stdout.flush()
    if args.stdin:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        while sys.stdin.buffer.read(4096):
            pass
    else:
        server.serve_forever()


if __name__ == '__main__':
    main()
