"""nginx, redis-server and a web application in Python, as packaged by Debian,
and clients that send them one request after another.

Each service has pids() of its processes, restart(), and ask(): one request,
which must be answered correctly, or an exception.
"""

import http.client
import os
import shutil
import signal
import socket
import threading
import zlib

import harness
from harness import BUILD, PATIENCE_S, Skip, check, children, wait_for
from programs import Program

PYTHON = '/usr/bin/python3'
WORKERS = 8
WORDS = 20000
TEXT = b''.join(b'%d words, ' % (n * n) for n in range(30000))

WEB = '''
import sys, zlib
from wsgiref import simple_server

class Handler(simple_server.WSGIRequestHandler):
    def log_message(self, *args):
        pass

TEXT = open(sys.argv[2], 'rb').read()

def application(environ, start_response):
    body = zlib.compress(TEXT, 9)
    start_response('200 OK', [('Content-Type', 'application/zlib'),
                              ('Content-Length', str(len(body)))])
    return [body]

simple_server.make_server('127.0.0.1', int(sys.argv[1]), application,
                          handler_class=Handler).serve_forever()
'''

# The begin of a configuration of nginx, whose files are all in one directory.
NGINX_BEGIN = '''
daemon off;
{user}
worker_processes {workers};
pid {dir}/nginx.pid;
error_log {dir}/error.log;
events {{ worker_connections 64; }}
http {{
    access_log off;
    client_body_temp_path {dir}/body;
    proxy_temp_path {dir}/proxy;
    fastcgi_temp_path {dir}/fastcgi;
    uwsgi_temp_path {dir}/uwsgi;
    scgi_temp_path {dir}/scgi;
'''

NGINX = NGINX_BEGIN + '''
    gzip on;
    gzip_comp_level 9;
    gzip_types text/plain;
    server {{
        listen 127.0.0.1:{port};
        location /text {{ root {dir}; }}
        location /web {{ proxy_pass http://127.0.0.1:{web}; }}
    }}
}}
'''


def get(port, path, wbits):
    """Returns the body, which was compressed. Uses a new connection."""
    connection = http.client.HTTPConnection('127.0.0.1', port,
                                            timeout=PATIENCE_S)
    try:
        connection.request('GET', path, headers={'Accept-Encoding': 'gzip'})
        answer = connection.getresponse()
        check(answer.status == 200, f'{path}: status {answer.status}')
        return zlib.decompress(answer.read(), wbits)
    finally:
        connection.close()


class Service:
    """The common parts: a directory, a port and a program."""

    def __init__(self, box, name):
        self.box, self.name = box, name
        self.dir = box.make_dir(name)
        self.port = harness.free_port()

    def await_answers(self):
        def answers():
            check(self.program.running(), self.program.report())
            try:
                self.ask()
            except OSError:
                return False
            return True
        wait_for(answers, f'{self.name} answers')

    def pids(self):
        return [self.program.pid]

    def restart(self):
        self.program.process.terminate()
        self.program.wait()
        self.start()


class Redis(Service):
    """redis-server, which a section matches by its pid file."""

    def __init__(self, box):
        super().__init__(box, 'redis')
        # Debian's redis-tools has the same executable under another name. Its
        # behaviour depends on the name.
        self.exe = shutil.which('redis-server') or \
            shutil.which('redis-check-rdb')
        if not self.exe:
            raise Skip('no redis (Debian: redis-tools)')
        self.pid_file = self.dir / 'redis.pid'
        self.rule = f'pid_file = {self.pid_file}'
        self.start()

    def start(self):
        self.program = self.box.start(
            ['redis-server', '--port', self.port, '--bind', '127.0.0.1',
             '--save', '', '--dir', self.dir, '--pidfile', self.pid_file],
            executable=self.exe)
        self.connection = None
        self.await_answers()

    def connect(self):
        self.connection = socket.create_connection(
            ('127.0.0.1', self.port), PATIENCE_S)
        for first in range(0, WORDS, 1000):
            words = ' '.join(f'w{n * 7919 % WORDS}'
                             for n in range(first, first + 1000))
            check(self.say(f'RPUSH words {words}') == first + 1000, 'words')

    def say(self, line):
        """Sends a command on a connection that stays open; returns the answer,
        a number."""
        self.connection.sendall(line.encode() + b'\r\n')
        answer = b''
        while not answer.endswith(b'\r\n'):
            more = self.connection.recv(4096)
            if not more:
                raise ConnectionError('redis has closed the connection')
            answer += more
        check(answer.startswith(b':'), f'{line[:20]}: {answer}')
        return int(answer[1:])

    def ask(self):
        if self.connection is None:
            self.connect()
        check(self.say('SORT words ALPHA LIMIT 0 10 STORE first') == 10, 'sort')


class Web(Service):
    """The web application, which a section matches by its command line."""

    def __init__(self, box):
        super().__init__(box, 'web')
        if not os.path.exists(PYTHON):
            raise Skip('no python3')
        self.program_path = self.dir / 'web.py'
        self.program_path.write_text(WEB)
        self.text_path = self.dir / 'text'
        self.text_path.write_bytes(TEXT)
        self.rule = f'cmdline = * {self.program_path} *'
        self.start()

    def start(self):
        self.program = self.box.start([PYTHON, self.program_path, self.port,
                                       self.text_path])
        self.await_answers()

    def ask(self):
        check(get(self.port, '/', 15) == TEXT, 'another text')


class Master(Program):
    """The master process of nginx. If it were killed, it would leave its
    workers behind."""

    def end(self):
        if self.running():
            self.process.terminate()
            self.wait()
        super().end()


class Nginx(Service):
    """nginx, which a section matches by its executable: a master and its
    workers. It is a proxy for the web application, and serves a text of its
    own."""

    def __init__(self, box, web):
        super().__init__(box, 'nginx')
        # Debian's package would start a server, so tests/tools/deps.sh only
        # unpacks it.
        found = shutil.which('nginx') or shutil.which(
            'nginx', path=f'/usr/sbin:{BUILD}/debian/usr/sbin')
        if not found:
            raise Skip('no nginx')
        # A copy, because the sections must not match the machine's own nginx.
        self.exe = self.dir / 'nginx'
        shutil.copy(found, self.exe)
        self.rule = f'exe = {self.exe}'
        (self.dir / 'text').write_bytes(TEXT)
        self.config = self.dir / 'nginx.conf'
        self.config.write_text(NGINX.format(
            user='user nobody nogroup;' if os.geteuid() == 0 else '',
            workers=WORKERS, dir=self.dir, port=self.port, web=web.port))
        self.paths = ('/text', 31), ('/web', 15)
        self.start()

    def start(self):
        self.program = self.box.start([self.exe, '-c', self.config,
                                       '-e', self.dir / 'error.log'],
                                      cls=Master)
        self.await_answers()
        self.await_workers(set())

    def workers(self):
        return children(self.program.pid)

    def pids(self):
        return [self.program.pid, *self.workers()]

    def await_workers(self, old):
        wait_for(lambda: len(self.workers()) == WORKERS and
                 not old & set(self.workers()), 'new workers')

    def restart(self):
        """nginx's own way, which loses no request: new workers replace the old
        ones."""
        old = set(self.workers())
        self.program.signal(signal.SIGHUP)
        self.await_workers(old)

    def ask(self):
        for path, wbits in self.paths:
            check(get(self.port, path, wbits) == TEXT, 'another text')


class Load(threading.Thread):
    """Sends requests to one service all the time. All must be answered; the
    first failure is raised when the result is read."""

    def __init__(self, service):
        super().__init__(daemon=True)
        self.service = service
        self.turn = threading.Condition()
        self.answered, self.error = 0, None
        self.paused = self.asking = self.ended = False
        self.start()

    def run(self):
        while True:
            with self.turn:
                self.asking = False
                self.turn.notify_all()
                self.turn.wait_for(lambda: not self.paused or self.ended)
                if self.ended:
                    return
                self.asking = True
            try:
                self.service.ask()
            except Exception as error:
                with self.turn:
                    self.error, self.asking = error, False
                    self.turn.notify_all()
                return
            self.answered += 1

    def look(self):
        if self.error is not None:
            raise harness.Failure(f'{self.service.name} failed: '
                                  f'{self.error!r}') from self.error
        return self.answered

    def pause(self):
        """Stops sending requests."""
        with self.turn:
            self.paused = True
            self.turn.wait_for(lambda: not self.asking)
        self.look()

    def resume(self):
        with self.turn:
            self.paused = False
            self.turn.notify_all()

    def stop(self):
        with self.turn:
            self.ended = True
            self.turn.notify_all()
        self.join()
