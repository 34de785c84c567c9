"""Bad servers: answers of every kind, good and bad, while chunks flow.

Each of four servers (bad_lanes.py) gets chunks of some processes, and draws how
it answers. The configuration is read again and again, which lets ship try a
server at once that did not answer, and gives a DSN whose server takes no profiles
for long another address.

At the end all servers are honest. Then what waited is sent, and the accounts must
agree: chunks that were made, that arrived, that wait, and that are lost by the
daemon's own count. No client may have connected to a place that the configuration
does not name, and no server or proxy may have seen what is not meant for it. A
process of another user, with a server of its own, is profiled all the time. The
memory and the descriptors of the broker and of its ships are as before.
"""

import collections
import contextlib
import json
import os
import resource
import signal
import time

import bad_lanes
import harness
import sanitized
import stranger
from account import check_sums
from envelopes import KEY
from harness import BUILD, Failure, check, wait_for
from upkeep import (Log, Watch, check_restarts, operator, replace_config,
                    resident_mb, wait_flat)

# The short form does not wait until what waited for a bad server is sent.
SHORT_S = 4

LANES = ('plain', 'tls', 'h2', 'proxied')
PROCESSES = 3
RATE_HZ = 101
# Two threads that work a little.
BYSTANDER = ('naps', 2, 300, 9700)
THREADS = 2

# SIGHUP comes so often; a server that is limited for longer than LIMITED_S gets
# another DSN, as long as there are not too many ships.
RELOAD_S = 1.0
LIMITED_S = 3.0
SHIPS = 18

# The sanitizer keeps what was freed: up to 256 MB (quarantine_size_mb).
MEMORY_MB = 400 if sanitized.is_sanitized() else 24
DESCRIPTORS = 12


class Storm:
    def __init__(self, box, rng, seconds):
        self.box, self.rng, self.seconds = box, rng, seconds
        self.figures = collections.Counter()
        self.dir = box.make_dir('storm')
        self.dir.chmod(0o755)
        self.path, self.socket = self.dir / 'profd.conf', self.dir / 'socket'
        self.spool = self.dir / 'spool'
        self.servers = bad_lanes.Servers(box, rng, seconds)
        self.honest = box.server(tls=False)
        self.numbers = collections.Counter()
        self.write()
        self.start()

    # The configuration and the processes.

    def exe(self, name, program):
        path = self.dir / name
        if not path.exists():
            path.write_bytes((BUILD / 'targets' / program).read_bytes())
            path.chmod(0o755)
        return path

    def release(self, name):
        return f'{name}@{self.numbers[name]}'

    def write(self):
        """Writes the configuration: a section for each server and one for the
        bystander. A release is the number of a DSN, so that its chunks tell
        them apart."""
        text = (f'[sentry]\ndsn = {self.honest.dsn}\n'
                f'ca_certs = {self.servers.certificates.bundle}\n'
                f'https_proxy = {self.servers.proxy_url()}\n'
                f'no_proxy = 127.0.0.0/16,localhost\n'
                f'[profiler]\nchunk_seconds = 1\nrate_hz = {RATE_HZ}\n')
        for name in LANES + ('bystander',):
            program = BYSTANDER[0] if name == 'bystander' else 'unw_o2'
            text += (f'[target "{name}"]\nexe = {self.exe(name, program)}\n'
                     'autostart = yes\nprofile_session_sample_rate = 1\n'
                     'min_age_seconds = 0\nmax_instances = 8\n'
                     f'release = {self.release(name)}\n')
            if name in LANES:
                text += f'dsn = {self.servers.dsn(name, self.numbers[name])}\n'
        replace_config(self.path, text)

    def start(self):
        self.profd = self.box.profd([], '--config', self.path, '--socket',
                                    self.socket, '--spool', self.spool)
        self.control = operator(self.box, self.profd, self.socket)
        self.log = Log(self.profd)
        for name in LANES:
            for _ in range(PROCESSES):
                self.box.start([self.dir / name, 'nanosleep'])
        self.bystander = self.box.start([self.dir / 'bystander', *BYSTANDER[1:]],
                                        **stranger.options())
        self.bystander.wait_line('ready.*')
        self.control.wait_state(self.bystander.pid, 'profiling')

    def hangup(self):
        self.figures['reloads'] += 1
        self.profd.signal(signal.SIGHUP)

    def limited(self):
        """Returns the servers that take no profiles for long."""
        found = self.control.status()['daemon']['servers']
        labels = {s['server'] for s in found if s['rate_limited_s'] > LIMITED_S}
        return [n for n in LANES if self.servers.dsn(n, self.numbers[n])
                .split('@')[1] in labels]

    def reload(self, most_ships=SHIPS):
        if len(self.profd.helpers()['ship']) < most_ships:
            for name in self.limited():
                self.numbers[name] += 1
                self.figures['DSNs left for a limit'] += 1
        self.write()
        self.hangup()

    # What has to hold.

    def check_health(self):
        new = self.log.read()
        check(KEY.encode() not in new, 'the log has the key')
        bad = [c for c in new if c < 32 and c not in b'\n\t' or c == 127]
        check(not bad, f'the log has control characters: {new}')
        ledger = self.servers.ledger
        self.servers.bait.check_file()
        check(not ledger.problems, f'{ledger.problems[:5]}')

    def wait_for(self, condition, what):
        def looked():
            self.check_health()
            return condition()
        return wait_for(looked, what)

    def use(self):
        """Returns the memory in MB and the descriptors of the broker, and the
        greatest of those of a ship."""
        use = {}
        ships = self.profd.helpers()['ship']
        for kind, pids in (('broker', [self.profd.pid]), ('ship', ships)):
            use[f'{kind}, MB'] = max((resident_mb(p) for p in pids), default=0)
            numbers = [0]
            for pid in pids:
                with contextlib.suppress(OSError):
                    numbers.append(len(os.listdir(f'/proc/{pid}/fd')))
            use[f'{kind}, descriptors'] = max(numbers)
        # The broker has a socket and a pidfd of each ship.
        use['broker, descriptors'] -= 2 * len(ships)
        return use

    def note_use(self, when):
        use = self.use()
        for what, n in use.items():
            self.figures[f'{when}: {what}'] = round(n, 1)
        self.figures[f'{when}: ships'] = len(self.profd.helpers()['ship'])
        return use

    # Honest servers.

    def waiting(self):
        """Returns {id of a chunk in the spool: its release}."""
        ids = [p.name.split('-')[1] for p in self.spool.rglob('*.gz')
               if not p.name.startswith('.')]
        found = {}
        for i in ids:
            for path in self.profd.output.glob(f'*-{i}.envelope'):
                found[i] = harness.Envelope(path.read_bytes(), path.name).chunk[
                    'release']
        return found

    def calm(self):
        """All servers are honest from now on: waits until each of them has got
        chunks, and what waited for it."""
        ledger = self.servers.ledger
        self.servers.calm.set()
        ledger.honest.clear()
        self.reload(most_ships=99)
        began = at = time.monotonic()

        def answered():
            nonlocal at
            if time.monotonic() > at + RELOAD_S:
                at = time.monotonic()
                self.reload(most_ships=99)
            return all(ledger.honest[n] >= 2 for n in LANES)

        def drained():
            current = {self.release(n) for n in LANES}
            self.left = [i for i, r in self.waiting().items() if r in current]
            return not self.left
        self.left = []
        try:
            self.wait_for(answered, 'each honest server gets chunks')
            if self.seconds > SHORT_S:
                self.wait_for(drained, 'nothing waits for an honest server')
        except Failure as e:
            raise Failure(f'{e}: {ledger.honest}, {len(self.left)} wait, '
                          f'DSNs: {dict(self.numbers)}') from None
        self.figures['seconds until the honest servers had what waited'] = \
            round(time.monotonic() - began)

    def storm(self, seconds):
        self.servers.calm.clear()
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            time.sleep(self.rng.uniform(0.5, 1) * RELOAD_S)
            self.check_health()
            self.reload()
            check_restarts(self.control)

    def end(self):
        self.profd.interrupt(signal.SIGTERM)
        self.servers.close()
        self.check_accounts()

    def check_accounts(self):
        ledger, stats = self.servers.ledger, self.profd.stats
        chunks, spool = check_sums(stats), stats['spool']
        made = {p.name.split('-')[1].split('.')[0]
                for p in self.profd.output.glob('*.envelope')}
        check(len(made) == chunks['made'] == chunks['written'],
              f'{len(made)} files: {chunks}')
        arrived = ledger.arrived | {e.chunk['chunk_id']
                                    for e in self.honest.envelopes}
        check(arrived <= made, f'a chunk came that was not made: {arrived - made}')
        waiting = set(self.waiting())
        # Chunks for a DSN that was left wait, too, and have no ship that counts them.
        check(len(waiting) >= spool['waiting'], f'{len(waiting)} wait: {spool}')
        lost = sum(n for of in (chunks['discarded'], spool)
                   for r, n in of.items() if r in (
                       'ratelimit_backoff', 'queue_overflow', 'network_error',
                       'cache_overflow', 'send_error'))
        nowhere = made - arrived - waiting
        check(len(nowhere) <= lost, f'{len(nowhere)} chunks are nowhere, and {lost} '
              f'are counted as lost: {stats}')
        taken = sum(200 <= s < 300 for s in ledger.settled.values())
        refused = sum(s >= 300 and s != 429 for s in ledger.settled.values())
        check(chunks['sent'] + spool['sent'] >= taken, f'{taken} were taken: {stats}')
        check(chunks['discarded'].get('send_error', 0) + spool.get('send_error', 0) >=
              refused, f'{refused} were refused: {stats}')
        for key in ('made', 'sent', 'spooled'):
            self.figures[f'chunks {key}'] = chunks[key]
        for reason, n in chunks['discarded'].items():
            self.figures[f'chunks discarded, {reason}'] = n
        self.figures['chunks sent from the spool'] = spool['sent']
        self.figures['chunks that wait'] = len(waiting)

    def add_figures(self):
        ledger = self.servers.ledger
        self.figures['lines of the log'] = self.log.lines
        self.figures['modes drawn'] = ledger.modes.total()
        self.figures['different modes'] = len(ledger.modes)
        self.figures['modes not drawn'] = ', '.join(
            sorted(self.servers.modes() - set(ledger.modes))) or 'none'
        self.figures['byte positions of an answer that was cut off'] = \
            len(ledger.positions)
        self.figures.update(ledger.counts)
        drawn = sorted(ledger.modes.items(), key=lambda m: -m[1])
        self.figures['modes'] = ', '.join(f'{n} {m}' for m, n in drawn)


def run(box, seconds, rng):
    stranger.need_root()
    # A thread of this process has a descriptor for each connection.
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(4096, hard), hard))
    storm = Storm(box, rng, seconds)
    try:
        storm.calm()
        before = storm.note_use('start')
        watch = Watch(storm.control, storm.bystander.pid, RATE_HZ, THREADS)
        storm.storm(seconds / 2)
        storm.note_use('middle')
        storm.storm(seconds / 2)
        storm.calm()
        storm.note_use('end')
        wait_flat(storm, before, MEMORY_MB, DESCRIPTORS)
        watch.check_complete(storm.figures)
        check_restarts(storm.control)
        storm.end()
        storm.add_figures()
    except (Failure, OSError, json.JSONDecodeError) as e:
        storm.add_figures()
        raise Failure(f'{type(e).__name__}: {e}; after {dict(storm.figures)}; last '
                      f'{list(storm.servers.ledger.recent)}') from e
    finally:
        storm.servers.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return storm.figures
