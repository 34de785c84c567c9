#!/usr/bin/python3
"""The life of a service: nginx, redis-server and a web application in Python
are found, sampled as their sections say, profiled, reconfigured, restarted,
detached from while the server accepts no profiles, and released at the end.
Meanwhile requests are sent to them all the time, and each is answered.
"""

import collections
import contextlib
import signal

import harness
import session
from account import check_counts
from control import Control, listens
from harness import check, threads, tracer, wait_for
from services import Load, Nginx, Redis, Web

FIRST = {'redis': 0.0, 'nginx': 0.5, 'web': 1.0}
THEN = {'redis': 1.0, 'nginx': 1.0, 'web': 1.0}

# Functions that one stack has when the services work.
EXPECTED = {
    'nginx': {'ngx_process_events_and_timers', 'deflate'},
    'redis': {'aeMain', 'sortCommandGeneric'},
    'web': {'_PyEval_EvalFrameDefault', 'deflate'},
}
# How long the server accepts nothing: long enough to be seen.
LIMITS_S = (3, 10, 30, 60)


class Day:
    def __init__(self, box):
        self.box = box
        self.server = box.server()
        web = Web(box)
        self.services = {s.name: s for s in (Redis(box), web, Nginx(box, web))}
        self.loads = {n: Load(s) for n, s in self.services.items()}
        self.dir = box.make_dir('daemon')
        self.config = self.dir / 'profd.conf'
        # Of all past sessions: the pids of their processes and the ids of
        # their threads. A chunk need not have been about the first session.
        self.sampled = set()
        self.threads = set()
        self.read = 0
        self.chunks = []

    def configure(self, rates):
        self.rates = rates
        text = (f'[sentry]\ndsn = {self.server.dsn}\n'
                f'ca_certs = {self.server.ca}\n'
                '[profiler]\nchunk_seconds = 1\n')
        for name, rate in rates.items():
            text += (f'[target "{name}"]\n{self.services[name].rule}\n'
                     f'profile_session_sample_rate = {rate}\n'
                     'autostart = yes\nmin_age_seconds = 0\n'
                     f'release = {name}@1\n')
        self.config.write_text(text)
        self.config.chmod(0o600)

    def start(self):
        socket = self.dir / 'socket'
        self.profd = self.box.profd([], '--config', self.config, '--socket',
                                    socket, '--debug', output=None)
        self.control = Control(self.box, socket)
        wait_for(lambda: listens(socket) or not self.profd.running(),
                 'a socket')

    def stop(self):
        self.profd.interrupt(signal.SIGTERM)
        check(not self.traced(), 'the daemon has gone, and traces')

    def traced(self):
        return [pid for s in self.services.values() for pid in s.pids()
                if any(tracer(tid) for tid in threads(pid))]

    def decided(self):
        """Returns {pid: (section, state)} as it must be."""
        return {pid: (name, 'profiling' if session.is_sampled(
            pid, self.rates[name]) else 'unsampled')
            for name, service in self.services.items()
            for pid in service.pids()}

    def status(self):
        return {t['pid']: t for t in self.control.status()['targets']}

    def settle(self, over=()):
        """Waits until the daemon knows exactly these processes, and treats
        each by its sampling decision, with new profilers. Returns {pid:
        profiler_id}."""
        def look():
            self.look_at_loads()
            status = self.status()
            found = {pid: (t['name'], t['state']) for pid, t in status.items()}
            # Between two profilers a target has none.
            between = [t for t in status.values() if t['state'] == 'profiling'
                       and t['profiler_id'] in (None, *over)]
            return found == self.decided() and not between and status
        status = wait_for(look, f'{self.decided()}')
        ids = {pid: t['profiler_id'] for pid, t in status.items()
               if t['state'] == 'profiling'}
        self.sampled |= set(ids)
        # The process has many threads, and the last one may be attached to a
        # moment later.
        wait_for(lambda: set(self.traced()) == set(ids),
                 f'{set(ids)} are traced')
        self.threads.update(tid for pid in ids for tid in threads(pid))
        check(all(t['session_sampled'] == (pid in ids)
                  for pid, t in status.items()), f'{status}')
        check(len(set(ids.values())) == len(ids), f'{ids}')
        return ids

    def look_at_loads(self):
        return [load.look() for load in self.loads.values()]

    def answer(self, n=3):
        """Waits until each service has answered this many more requests."""
        goals = [a + n for a in self.look_at_loads()]
        wait_for(lambda: all(a >= goal for a, goal in
                             zip(self.look_at_loads(), goals)), 'answers')

    def receive(self):
        """Checks the chunks that the server has received since."""
        received = self.server.received
        for r in received[self.read:]:
            check(r['problems'] == [], f'request {r["n"]}: {r["problems"]}')
            envelope = harness.Envelope(
                (self.server.dir / r['envelope']).read_bytes(), r['envelope'])
            if envelope.chunk:
                self.chunks.append(envelope.chunk)
        self.read = len(received)

    def await_work(self, ids, names=frozenset(EXPECTED)):
        """Waits for a chunk of each of these profilers, and for the expected
        stacks of the sections in names."""
        missing = set(ids.values()) | names

        def look():
            self.look_at_loads()
            at = len(self.chunks)
            self.receive()
            for chunk in self.chunks[at:]:
                name = chunk['release'].split('@')[0]
                if chunk['profiler_id'] in ids.values() and \
                        has_stack(chunk, EXPECTED[name]):
                    missing.discard(name)
                missing.discard(chunk['profiler_id'])
            return not missing
        # Reports the sections that are still missing.
        wait_for(look, missing)

    def reload(self, rates):
        said = 'the configuration has been reloaded'
        n = self.profd.stderr.count(said)
        self.configure(rates)
        self.profd.signal(signal.SIGHUP)
        wait_for(lambda: self.profd.stderr.count(said) > n, said)

    @contextlib.contextmanager
    def asked_nothing(self, name):
        self.loads[name].pause()
        yield
        self.loads[name].resume()

    def end(self):
        for load in self.loads.values():
            load.stop()
        self.look_at_loads()


def has_stack(chunk, functions):
    profile = chunk['profile']
    names = [f.get('function') for f in profile['frames']]
    return any(functions <= {names[i] for i in stack}
               for stack in profile['stacks'])


def sessions(day):
    """Sampling rates of 0, 0.5 and 1. Another daemon makes the same decisions.
    """
    day.configure(FIRST)
    day.start()
    nginx = day.services['nginx']
    seen = set()
    while True:
        ids = day.settle()
        seen |= {session.is_sampled(pid, 0.5) for pid in nginx.pids()}
        # By chance, all are the same once in 256 times.
        if len(seen) == 2:
            break
        nginx.restart()
    check(set(day.services['web'].pids()) <= set(ids) and
          not set(day.services['redis'].pids()) & set(ids), f'{ids}')
    # A sampled worker of nginx may have no work.
    day.await_work(ids, {'web'})
    day.stop()
    day.answer()
    day.start()
    again = day.settle()
    check(set(again) == set(ids), 'other decisions by the next daemon')
    check(not set(again.values()) & set(ids.values()), 'the same profilers')
    return again


def restarts(day):
    """New processes are found, ended ones forgotten."""
    ids = day.settle()
    day.services['nginx'].restart()
    redis, web = day.services['redis'], day.services['web']
    with day.asked_nothing('redis'):
        redis.restart()
    # nginx is the proxy in front of it.
    with day.asked_nothing('nginx'), day.asked_nothing('web'):
        web.restart()
    now = day.settle()
    master = {day.services['nginx'].program.pid}
    check(set(now) & set(ids) == master, f'{ids} {now}')
    check({now[pid] for pid in master} == {ids[pid] for pid in master},
          'the master has gone on')
    day.await_work(now)


def limit(day):
    """While the server accepts nothing, no process is traced; afterwards new
    profilers run."""
    ids = day.settle()

    def let_go():
        day.look_at_loads()
        states = collections.Counter(
            t['state'] for t in day.status().values())
        return set(states) == {'limited'} and not day.traced()
    over = 'the server takes profiles again'
    for seconds in LIMITS_S:
        n = day.profd.stderr.count(over)
        header = f'{seconds}:profile_chunk:key'
        day.server.tell(script=[{'headers':
                                 {'X-Sentry-Rate-Limits': header}}])
        seen = wait_for(lambda: let_go() and 'let go' or
                        day.profd.stderr.count(over) > n and 'over', 'a limit')
        if seen == 'let go':
            break
    check(seen == 'let go', 'none was seen to be let go')
    day.answer()
    now = day.settle()
    check(set(now) == set(ids), f'{ids} {now}')
    check(not set(now.values()) & set(ids.values()), 'the same profilers')
    day.await_work(now)


def test_a_day(box):
    day = Day(box)
    try:
        day.answer()
        ids = sessions(day)
        web, = day.services['web'].pids()
        day.reload(THEN)
        now = day.settle(over=set(ids.values()) - {ids[web]})
        check(now[web] == ids[web], 'what had not changed was disturbed')
        day.await_work(now)
        restarts(day)
        limit(day)
        day.stop()
        day.answer()
        day.receive()
        # All chunks are of sampled processes.
        for chunk in day.chunks:
            tids = set(map(int, chunk['profile']['thread_metadata']))
            check(tids & day.threads, f'{chunk["release"]}: {tids}')
        check_counts(day.profd)
        check(not any(word in day.profd.stderr for word in
                      ('starting it again', 'is replaced')),
              'a part of the daemon was replaced')
        print(f'{len(day.sampled)} sessions, {len(day.chunks)} chunks, '
              f'{sum(day.look_at_loads())} answers')
    finally:
        day.end()


if __name__ == '__main__':
    harness.main(globals())
