#!/usr/bin/env python3
"""make bench works: its output has the right form. Does not check the speed.
"""

import collections
import json
import re
import signal
import sys

import harness
from harness import BUILD, ROOT, check

FRAMES = 30
RATE_HZ = 101


def part(text, name):
    """Returns the part of the output about one scenario."""
    return re.search(rf'\(`T={name}`\)\n(.*?)(?=^###|\Z)', text, re.M | re.S)[1]


def check_unwind(text):
    found = re.findall(r'^\| (walk|reading|chunk)\b.* \| ([\d,]+) \|$', text, re.M)
    check(len(found) == 9 and '30 frames' in text, text)
    check(int(found[0][1].replace(',', '')) > 0, 'a walk takes no time')
    # The number of equal walks varies: libunwind cannot unwind out of the
    # vDSO.
    n, = re.search(r'Walks of (\d+) ', text).groups()
    check(int(n) > 0, text)
    beside = re.findall(r'^\| (sentry-profd|lib[-\w]+).* \| [\d,]+ \| [\d,]+ \|$', text, re.M)
    check(beside == ['sentry-profd', 'libdwfl', 'libunwind', 'libunwind-ptrace'], text)


def check_first(text):
    frames, = re.search(r'^(\d+) frames; ', text, re.M).groups()
    named = re.findall(r'^\| (sentry-profd|lib\w+).* \| [\d,.]+ \| [\d.]+ \| '
                       r'[\d,.]+ \| (\d+) \|$', text, re.M)
    check([n for n, _ in named] == ['sentry-profd', 'libdwfl', 'libunwind'], text)
    # All frames but those of the C library, which may have no debug file.
    check(int(named[0][1]) >= int(frames) - 3 > 0, text)


def check_births(text):
    found = re.findall(r'^\| (min_age_seconds .*?) \| [\d.]+ \| [\d.]+ \| ([\d.]+) '
                       r'\| \2 \| [\d.]+ % \| \d+ \|$', text, re.M)
    check(len(found) == 2, text)


def check_outage(text):
    """Hosts do not come back at once. They are simulated by the daemon's own rules, so the
    result is the same in every run."""
    rows = {name: (int(most), int(late), int(chunks))
            for name, most, late, chunks in re.findall(
                r'^\| (.*) \| (\d+) \| \d+ s \| (\d+) s \| (\d+) \| '
                r'[\d.]+ \| \d+ s \|$',
                text, re.M)}
    # The limit is for 10,000 hosts, and all of them are back within the
    # longest wait.
    for name, limit in (('1 min', 1000), ('10 min', 100), ('60 min', 100)):
        most, late, _ = rows[f'{name}, as in sentry-profd']
        check(most < limit and late <= 300, f'{name}: {rows}')
    check(rows['as in sentry-profd'][0] < 300, f'{rows}')
    name = '60 min, retry every second, spool sent without pauses'
    check(rows[name][0] == 10000, f'{rows}')


def test_all_of_it(box):
    env = harness.environment(BENCH_SMOKE='1')
    bench = box.start([sys.executable, ROOT / 'tests/bench/bench.py'], env=env)
    # The benchmark runs a dozen programs one after the other.
    check(bench.wait(3 * harness.PATIENCE_S) == 0, bench.stderr)
    text = bench.stdout
    for scenario in ('busy-2', 'mixed', 'fleet', 'waits', 'unwind',
                     'first', 'births', 'servers', 'sizes', 'convert', 'truth'):
        check(f'(`T={scenario}`)' in text, f'no table of {scenario}: {text}')
    rows = re.findall(r'^\| (.*) \| (ok|NOT OK) \|$', text, re.M)
    asked = collections.Counter(re.split(r' p[59]|[,:]| \|', what)[0]
                                for what, _ in rows)
    # Throughput and p99 of redis-server, and of the servers that are installed.
    check(asked.pop('server', 0) in (2, 4, 6), f'no servers: {rows}')
    # Running time and the sum of all; ready time only if the machine was busy.
    check(asked.pop('true', 0) in (2, 3), f'no true times: {rows}')
    check(asked == {'pause': 2, 'stopped': 2, 'CPU per sample': 1,
                    'completeness': 1, 'work lost': 1, 'CPU': 2,
                    'stack of 30 frames': 1, 'the same stack by libdwfl': 1,
                    'the same stack by libunwind-ptrace': 1,
                    'first stack': 1, 'waits of 20 ms in epoll_wait': 2,
                    'waits of 20 ms in nanosleep': 2,
                    'waits of 20 ms in poll': 2, 'short processes': 2,
                    'processor time of convert': 1,
                    'processor time of compare': 1}, f'asked: {asked}')
    for name in ('bare', 'sentry-profd', 'naive'):
        found = re.findall(rf'^\| {name} \| ([\d,.]+) / ([\d,.]+) \|', text, re.M)
        # Beside 1,000 sleeping threads the thread may not have its turn in
        # this short time.
        check(1 <= len(found) <= 2, f'pauses of {name}: {text}')
    check_unwind(part(text, 'unwind'))
    check_first(part(text, 'first'))
    check_births(part(text, 'births'))
    check_outage(part(text, 'outage'))


def test_figures_of_one_scenario_go_into_a_document(box):
    path = box.make_dir('doc') / 'new.md'
    bench = [sys.executable, ROOT / 'tests/bench/bench.py', 'fleet', '--doc']
    env = harness.environment(BENCH_SMOKE='1')
    for above in ('', 'Words.\n'):
        done = box.start([*bench, path], env=env)
        check(done.wait() == 0, done.stderr)
        head, _, figures = path.read_text().partition('<!-- make bench -->\n')
        check(head == above and '(`T=fleet`)' in figures and '(`T=busy' not in figures,
              path.read_text())
        path.write_text('Words.\n<!-- make bench -->\nold\n')
    # These are noticed before anything is measured.
    path.write_text('Words.\n')
    for wrong, why in ((path, 'has no line <!-- make bench -->'),
                       (path.parent / 'none/new.md', 'No such file')):
        done = box.start([*bench, wrong], env=env)
        check(done.wait() == 1 and why in done.stderr, done.stderr)
        check(done.stdout == '', done.stdout)
    check(path.read_text() == 'Words.\n', 'the text is lost')
    done = box.start([*bench[:2], 'none'], env=env)
    check(done.wait() == 1, 'there is a scenario "none"')


class Target:
    def __init__(self, box):
        self.program = box.start([BUILD / 'bench/target', 'busy=2'])
        self.program.wait_line(r'ready \d+')
        self.pid = self.program.pid

    def times(self):
        """Returns the run time and the wait time of all threads."""
        threads = [harness.proc_text(self.pid, f'task/{tid}/schedstat').split()
                   for tid in harness.threads(self.pid)]
        return [sum(int(t[i]) for t in threads) for i in range(2)]

    def account(self):
        n = self.program.stdout.count('\n')
        self.program.signal(signal.SIGUSR1)
        harness.wait_for(lambda: self.program.stdout.count('\n') > n,
                         'the account')
        return json.loads(self.program.stdout.splitlines()[-1])


def test_the_target_sees_each_stop(box):
    target = Target(box)
    check(target.account()['stop']['n'] == 0, 'stops, and nobody traces it')
    for name, *way in (['bare'], ['near', 'poll'], ['near', 'go'],
                       ['near', 'own'], ['naive']):
        before, times = target.account()['stop'], target.times()
        tracer = box.start([BUILD / 'bench' / name, target.pid, RATE_HZ, *way])
        tracer.wait_line('attached')
        harness.wait_for(
            lambda: target.account()['stop']['n'] - before['n'] >= 20,
            f'stops by {name}')
        tracer.signal(signal.SIGTERM)
        check(tracer.wait() == 0, tracer.stderr)
        said = json.loads(tracer.stdout.splitlines()[-1])
        harness.wait_for(lambda: harness.tracer(target.pid) == 0, 'let go')
        seen = target.account()['stop']['n'] - before['n']
        # Two stops count as one gap if the target got no processor between
        # them. The last stop may be due to the tracer's end.
        ran, delayed = (b - a for a, b in zip(times, target.times()))
        share = ran / (ran + delayed)
        check(0.8 * share * said['stops'] - 2 <= seen <= said['stops'] + 2,
              f'{name} stopped {said["stops"]} times, {seen} were seen, and it '
              f'ran {100 * share:.0f} % of the time that it wanted to')
        check(said['stops'] + said['filled'] <= said['expected'] + 2,
              f'more than there are: {said}')
        if name == 'naive':
            # If libc has no debug file, libunwind goes on past the first
            # frame.
            check(FRAMES <= round(said['frames'] / said['stops']) <=
                  FRAMES + 3, f'not {FRAMES} frames: {said}')


def test_stacks_have_30_frames(box):
    target = Target(box)
    profd = box.profile([target], work=0.5)
    chunk = profd.chunks[0]
    busy = {t for t, meta in chunk['profile']['thread_metadata'].items()
            if meta['name'] == f'busy ({t})'}
    depths = collections.Counter(
        len(chunk['profile']['stacks'][s['stack_id']])
        for s in chunk['profile']['samples'] if s['thread_id'] in busy)
    check(len(busy) == 2, f'threads: {chunk["profile"]["thread_metadata"]}')
    check(depths.most_common(1)[0][0] == FRAMES, f'frames: {depths}')


if __name__ == '__main__':
    harness.main(globals())
