"""Figures out of runs, as Markdown."""

import collections
import os
import platform
import re
from statistics import mean, median

import harness
import measure
import variants

RATIO_MAX = 1.5
PERF_LIKE = (variants.Perf, variants.Bpftrace)


def number(value, digits=1, unit=''):
    if value is None:
        return ''
    return f'{value:,.{digits}f}{unit}'


def table(head, rows):
    lines = [head, ['---'] * len(head)] + rows
    return '\n'.join('| ' + ' | '.join(line) + ' |' for line in lines) + '\n'


class Figures:
    """Of one variant in one scenario."""

    def __init__(self, scenario, cls, rate):
        self.scenario, self.cls = scenario, cls
        self.runs = scenario.runs[cls, rate]
        self.nothing = next((r for (c, _), r in scenario.runs.items()
                             if c is variants.Nothing), [])
        self.windows = [r.window for r in self.runs]
        self.results = [r.result for r in self.runs]

    @property
    def net(self):
        """Where threads wait for processors anyway, that is left out."""
        return self.scenario.busy > len(os.sched_getaffinity(0))

    def pauses(self):
        return sum((w.gaps['stop_net' if self.net else 'stop']
                    for w in self.windows), collections.Counter())

    def pause(self, share):
        """In us. A sample by an interrupt cannot be told from any other
        interrupt: these are the longest of all, less those that are as long
        without a profiler."""
        if not self.scenario.busy or self.cls is variants.Nothing:
            return None
        if self.cls not in PERF_LIKE:
            return measure.percentile(self.pauses(), share)
        seconds = sum(w.seconds for w in self.windows)
        base = sum((r.window.gaps['other'] for r in self.nothing),
                   collections.Counter())
        scale = seconds / sum(r.window.seconds for r in self.nothing)
        gaps = sum((w.gaps['other'] for w in self.windows),
                   collections.Counter())
        rest = (1 - share) * sum(r.result.samples * w.seconds / r.sampled_s
                                 for r, w in zip(self.runs, self.windows))
        for index in sorted(gaps, reverse=True):
            rest -= gaps[index] - base[index] * scale
            if rest <= 0:
                return measure.bucket_us(index)
        return None

    def complete(self):
        """In percent."""
        if self.cls is variants.Nothing:
            return None
        if self.cls in PERF_LIKE:
            return mean(100 * r.result.samples * w.seconds / r.sampled_s /
                        (w.target_cpu_s * 101)
                        for r, w in zip(self.runs, self.windows))
        return mean(100 * r.complete for r in self.results)

    def sample_us(self):
        if self.cls is variants.Nothing or not self.scenario.busy:
            return None
        return median(1e6 * r.cost_s for r in self.runs)

    def cpu(self):
        """In percent of a processor."""
        if self.cls is variants.Nothing:
            return None
        return median(100 * r.share for r in self.runs)

    def slowdowns(self):
        """In percent, one for each repetition."""
        busy = self.scenario.busy
        if not busy or self.cls is variants.Nothing:
            return []
        return [100 * (1 - w.speed(busy) / n.window.speed(busy))
                for w, n in zip(self.windows, self.nothing)]

    def slowdown(self):
        values = self.slowdowns()
        if not values:
            return ''
        text = number(median(values), 2, ' %')
        if len(values) > 1:
            text += f' ({min(values):.2f} to {max(values):.2f})'
        return text

    def rss_mib(self):
        values = [r.rss_bytes for r in self.results if r.rss_bytes]
        return max(values) / 2 ** 20 if values else None

    def stop_us(self):
        values = [r.stop_us for r in self.results if r.stop_us]
        if not values or not self.scenario.busy:
            return ''
        return ' / '.join(number(median(v[k] for v in values), 1)
                          for k in ('p50', 'p99'))

    def frames(self):
        return mean(r.frames for r in self.results) \
            if self.results[0].frames else None

    def row(self, name):
        return [name, number(self.pause(.5)), number(self.pause(.99)),
                number(self.complete(), 2, ' %'), number(self.sample_us()),
                number(self.cpu(), 2, ' %'), self.slowdown(), self.stop_us(),
                number(self.frames(), 0), number(self.rss_mib(), 1)]


HEAD = ['', 'pause p50, us', 'p99, us', 'complete', 'CPU a sample, us',
        'CPU, of a core', 'target slower (from, to)',
        'stop to continue p50 / p99, us', 'frames', 'memory, MiB']


def title(scenario):
    kinds = {'busy': 'busy', 'sleepers': 'sleeping',
             'tickers': 'that works a moment once a second',
             'waiters': 'that waits for 20 ms, of each of three kinds'}
    text = ', '.join(f'{n:,} {kinds[k]}'
                     for k, n in scenario.options.items())
    if scenario.processes > 1:
        text = f'{scenario.processes} processes, each with threads: {text}'
    else:
        text = f'Threads: {text}'
    return f'{text} (`T={scenario.name}`)'


def one(scenario):
    """A scenario's table."""
    rows = []
    for cls, rate in scenario.runs:
        name = cls.name if len(scenario.rates) == 1 or \
            cls is variants.Nothing else f'{cls.name}, {rate} Hz'
        rows.append(Figures(scenario, cls, rate).row(name))
    rows += [[cls.name, 'cannot run: ' + why.replace('|', '\\|')[:100]] +
             [''] * (len(HEAD) - 2)
             for cls, why in scenario.unable.items()]
    # Columns in which nothing stands say nothing.
    keep = [i for i in range(len(HEAD)) if i == 0 or
            any(row[i] for row in rows)]
    return f'### {title(scenario)}\n\n' + table(
        [HEAD[i] for i in keep], [[row[i] for i in keep] for row in rows])


def waits(scenario):
    """Mean waits in ms, and how much longer they are: rows, requirements."""
    rows, wanted = [], []

    def means(runs, kind):
        n = sum(r.window.waits[kind][0] for r in runs)
        ms = sum(r.window.waits[kind][0] * r.window.waits[kind][1]
                 for r in runs if r.window.waits[kind][0])
        return n, ms / n if n else None

    for kind in ('epoll_wait', 'nanosleep', 'poll'):
        base = None
        for (cls, rate), runs in scenario.runs.items():
            n, ms = means(runs, kind)
            name = cls.name
            if cls is variants.Nothing:
                base = ms
            else:
                name += f', {rate} Hz'
            grown = 100 * (ms / base - 1) if ms and base else None
            rows.append([kind, name, f'{n:,}', number(ms, 3),
                         '' if cls is variants.Nothing else
                         number(grown, 2, ' %')])
            if cls is not variants.Nothing:
                wanted.append((f'waits of 20 ms in {kind}, {rate} Hz: longer '
                               'by', '< 1 %', number(grown, 2, ' %'),
                               grown is not None and grown < 1))
    return table(['call', '', 'waits', 'mean, ms', 'longer by'], rows), wanted


def requirements(done):
    """[(what, wanted, measured, whether)]"""
    found = []
    figures = {}
    for s in done:
        for (cls, rate) in s.runs:
            figures.setdefault((s.name, cls), Figures(s, cls, rate))

    def ratio(what, name, mine, bare):
        if mine and bare:
            found.append((f'{what}, {name}', f'<= {RATIO_MAX} of bare',
                          f'{number(mine)} us of {number(bare)} us: '
                          f'{mine / bare:.2f}', mine / bare <= RATIO_MAX))

    def limit(what, name, value, text, ok, digits=2):
        found.append((f'{what}, {name}', text, number(value, digits, ' %'),
                      ok(value)))

    for (name, cls), f in figures.items():
        bare = figures.get((name, variants.Bare))
        if cls is not variants.Ours:
            continue
        if f.scenario.busy and bare and not f.scenario.options.get('sleepers'):
            ratio('pause, p50', name, f.pause(.5), bare.pause(.5))
            ratio('pause, p99', name, f.pause(.99), bare.pause(.99))
            ratio('CPU a sample', name, f.sample_us(), bare.sample_us())
            limit('completeness', name, f.complete(), '>= 99.5 %',
                  lambda v: v >= 99.5)
        if name == 'busy-2':
            limit('target slower', name, median(f.slowdowns()), '< 1 %',
                  lambda v: v < 1)
        if name == 'mixed':
            limit('CPU, of a core', name, f.cpu(), '< 5 %', lambda v: v < 5)
        if name == 'fleet':
            limit('CPU, of a core', name, f.cpu(), '< 3 %', lambda v: v < 3)
    return found


def machine(done):
    release = re.match(r'[\d.]+', platform.release())[0].rstrip('.')
    system = re.search(r'^PRETTY_NAME="?([^"\n]*)',
                       harness.proc_text('self', 'root/etc/os-release'), re.M)
    cpu = re.search(r'^model name\s*: (.*)$',
                    harness.proc_text('', 'cpuinfo'), re.M)
    virtual = re.search(r'\bhypervisor\b', harness.proc_text('', 'cpuinfo'))
    cpus = len(os.sched_getaffinity(0))
    others = [100 * max(0, cpus - (w.target_cpu_s + w.cpu_s + w.idle_s) /
                        w.seconds)
              for s in done if s.processes == 1
              for runs in s.runs.values() for w in (r.window for r in runs)]
    lines = [
        f'- {cpus} of {os.cpu_count()} processors'
        + (f' ({cpu[1]})' if cpu else '') + ', '
        + ('in a virtual machine' if virtual else 'no virtual machine'),
        f'- Linux {release} {platform.machine()}'
        + (f', {system[1]}' if system else ''),
    ]
    if others:
        lines.append(
            '- everything else on these processors took '
            f'{median(others):.0f} % of one meanwhile (median; at most '
            f'{max(others):.0f} %)')
    return '\n'.join(lines) + '\n'


def text(done):
    parts, wanted = [], requirements(done)
    for scenario in done:
        part = one(scenario)
        if 'waiters' in scenario.options:
            more, requirement = waits(scenario)
            part += '\n' + more
            wanted += requirement
        parts.append(part)
    rows = [[what, want, value, 'ok' if ok else 'NOT OK']
            for what, want, value, ok in wanted]
    head = '## The machine\n\n' + machine(done)
    if rows:
        head += '\n## What is asked for\n\n' + table(
            ['', 'wanted', 'measured', ''], rows)
    return head + '\n## All figures\n\n' + '\n'.join(parts)
