"""Operators: what goes wrong around a service, in an order that is drawn. The server is away, answers
by a firewall's page or by its proxy, refuses the key, has an expired certificate; the disk of the
spool is full; nobody reads the log; the spool belongs to a former account; the executables are
replaced while the service runs.

Each state that makes a promise void is told when it begins and taken back when it ends, and after
each fault the service works again. At the end every chunk has arrived, or the statistics have it.
"""

import contextlib
import os
import signal
import threading
import time

import stranger
from account import Account, spooled_ids
from control import Control
from harness import Failure, check, wait_for
from service import Service
from test_degraded import give_away
from test_log import fill
from test_spool import small_disk
from test_versions import make_other

SHORT_S = 20
DISK_BYTES = 4 << 20


class Storm:
    def __init__(self, box, disk, rng):
        self.box, self.disk, self.rng = box, disk, rng
        # Only root can have put a spool there (spool_owner.h).
        disk.chmod(0o755)
        self.spool = disk / 'spool'
        self.server = box.server()
        self.directory = stranger.copy(box, stranger.EXECUTABLES)
        self.profds = []
        self.may_lose = False
        self.serve()
        # What this machine lacks.
        self.always = self.degraded()

    def serve(self, **options):
        self.service = Service(self.box, {'a': {}}, '--dsn', self.server.dsn, '--spool',
                               self.spool, exe=self.directory / 'sentry-profd',
                               env=self.server.env, **options)
        self.control = Control(self.box, self.service.dir / 'socket')
        self.target = self.service.start('a')
        self.profds.append(self.service.profd)

    def stop(self):
        self.target.end()
        self.service.stop()

    def degraded(self):
        return {row['kind'] for row in self.control.status()['daemon']['degraded']}

    def told(self, kind):
        wait_for(lambda: kind in self.degraded(), f'"{kind}" is told')

    def works(self):
        """Waits until nothing is degraded, nothing waits, and new chunks arrive."""
        wait_for(lambda: self.degraded() == self.always, 'all states are taken back')
        wait_for(lambda: not spooled_ids(self.spool), 'the spool is empty')
        n = len(self.server.received)
        wait_for(lambda: len(self.server.received) > n, 'a chunk arrives')

    def a_chunk_waits(self):
        wait_for(lambda: spooled_ids(self.spool), 'a chunk waits')

    def answers(self, answer):
        self.server.tell(script=[answer] * 9999 if answer else [])

    def repair_server(self):
        self.answers(None)
        # An operator does not wait for the next try.
        self.control.run('reload')

    def server_is_away(self):
        self.server.tell(do='down')
        self.a_chunk_waits()
        self.server.tell(do='up')

    def page_of_a_firewall(self):
        self.answers({'do': 'page'})
        self.a_chunk_waits()
        self.repair_server()

    def proxy_has_no_server(self):
        self.answers({'status': self.rng.choice((502, 503, 504))})
        self.a_chunk_waits()
        self.repair_server()

    def wrong_key(self):
        self.answers({'status': self.rng.choice((401, 403)), 'body': '{"detail": "no such key"}'})
        self.told('server')
        self.a_chunk_waits()
        self.repair_server()

    def expired_certificate(self):
        n = self.service.profd.stderr.count('expired')
        self.server.tell(days=-1)
        wait_for(lambda: self.service.profd.stderr.count('expired') > n, 'the reason is told')
        self.a_chunk_waits()
        self.server.tell(days=2)
        self.repair_server()

    def full_disk(self):
        file = self.disk / 'file'
        with open(file, 'wb', buffering=0) as f, contextlib.suppress(OSError):
            while f.write(bytes(4096)):
                pass
        self.server.tell(do='down')
        self.told('spool')
        file.unlink()
        self.server.tell(do='up')

    def nobody_reads_the_log(self):
        self.stop()
        reader, writer = os.pipe()
        fill(writer)
        self.serve(wrapper=['bash', '-c', f'exec "$@" 2>&{writer}', 'bash'],
                   pass_fds=[writer])
        self.told('log')
        self.service.profd.wait_chunks()
        # With this name harness.py finds the lines of a process that has died.
        log = self.service.dir / 'log.stderr'
        copy = threading.Thread(target=copy_log, args=(reader, log))
        copy.start()
        self.works()
        self.stop()
        os.close(writer)
        copy.join()
        check('missing here' in log.read_text(), log.read_text())
        self.serve()

    def spool_of_a_former_account(self):
        # An empty directory at a configured path could be anybody's.
        self.server.tell(do='down')
        self.a_chunk_waits()
        self.stop()
        give_away(self.spool)
        self.server.tell(do='up')
        self.serve()
        check('belonged to uid' in self.service.profd.stderr, self.service.profd.stderr)

    def upgrade(self):
        """The next process of one kind cannot be used, until the service is started again."""
        kind = self.rng.choice(('capture', 'unwind', 'ship'))
        path = self.directory / f'sentry-profd-{kind}'
        # A chunk that ship has not sent is lost at the end.
        self.may_lose |= kind == 'ship'
        old = path.read_bytes()
        make_other(path)
        os.kill(self.service.profd.children_of(kind)[0], signal.SIGKILL)
        self.told('version')
        path.unlink()
        path.write_bytes(old)
        path.chmod(0o755)
        self.stop()
        self.serve()

    FAULTS = (server_is_away, page_of_a_firewall, proxy_has_no_server, wrong_key,
              expired_certificate, full_disk, nobody_reads_the_log, spool_of_a_former_account,
              upgrade)

    def check_end(self):
        self.stop()
        a = Account(self.profds, [self.server], self.spool, sure=False)
        lost = a.made - a.taken - a.waiting
        n_lost = sum(a.discarded.values())
        check(len(lost) <= n_lost and (self.may_lose or not lost),
              f'lost: {lost}, counted: {a.discarded}')
        return {'chunks': len(a.made), 'of these lost, and counted': len(lost),
                'of these came again': a.again}


def copy_log(reader, path):
    with open(reader, 'rb', buffering=0) as log, open(path, 'wb', buffering=0) as f:
        while data := log.read(1 << 16):
            f.write(data)


def run(box, seconds, rng):
    end = time.monotonic() + seconds
    figures = {}
    faults = []
    with small_disk(box.dir / 'disk', DISK_BYTES) as disk:
        storm = Storm(box, disk, rng)
        storm.works()
        while time.monotonic() < end:
            if not faults:
                faults = list(Storm.FAULTS)
                rng.shuffle(faults)
            fault = faults.pop()
            name = fault.__name__.replace('_', ' ')
            figures[name] = figures.get(name, 0) + 1
            try:
                fault(storm)
                storm.works()
            except Failure as e:
                raise Failure(f'{name}: {e}; after {figures}') from e
        return figures | storm.check_end()
