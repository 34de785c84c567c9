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
# Where the repetitions differ by more, in percent of the target's speed, the
# speed shows nothing, and what was taken from it decides.
NOISY = 1
PERF_LIKE = (variants.Perf, variants.Bpftrace)


def number(value, digits=1, unit=''):
    if value is None:
        return ''
    return f'{value:,.{digits}f}{unit}'


def table(head, rows):
    lines = [head, ['---'] * len(head)] + rows
    return '\n'.join('| ' + ' | '.join(line) + ' |' for line in lines) + '\n'


def middle(values):
    values = [v for v in values if v is not None]
    return median(values) if values else None


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
    def crowded(self):
        return self.scenario.busy > len(os.sched_getaffinity(0))

    def base(self, window):
        """Interrupts without a profiler, and how much longer the window is."""
        gaps = sum((r.window.gaps['other'] for r in self.nothing),
                   collections.Counter())
        seconds = sum(r.window.seconds for r in self.nothing)
        return gaps, window.seconds / seconds

    def pause_by_interrupt(self, run, share):
        """A sample by an interrupt cannot be told from any other interrupt:
        these are the longest of all, less those that are as long without a
        profiler."""
        w = run.window
        base, scale = self.base(w)
        rest = (1 - share) * run.result.samples * w.seconds / run.sampled_s
        for index in sorted(w.gaps['other'], reverse=True):
            rest -= w.gaps['other'][index] - base[index] * scale
            if rest <= 0:
                return measure.bucket_us(index)
        return None

    def pauses_us(self, kind, share):
        """One for each repetition. Where threads wait for processors anyway,
        gaps with that wait in them say nothing."""
        if not self.scenario.busy or self.cls is variants.Nothing or \
                (kind == 'stop' and self.crowded):
            return []
        if self.cls in PERF_LIKE:
            return [self.pause_by_interrupt(r, share) for r in self.runs]
        return [measure.percentile(w.gaps[kind], share) for w in self.windows]

    def pauses(self, kind):
        return ' / '.join(filter(None, (
            number(middle(self.pauses_us(kind, share)))
            for share in (.5, .99))))

    def taken(self):
        """In percent of the target's processors: the time for which its
        threads were stopped or interrupted, and that of the variant's
        processes. Both are the same time where a processor of the target's
        does the work, so this is more than it loses by them; what a cold cache
        costs is not in it."""
        if self.cls is variants.Nothing or not self.scenario.busy:
            return None
        cpus = min(self.scenario.busy, len(os.sched_getaffinity(0)))
        values = []
        for run in self.runs:
            w = run.window
            if self.cls in PERF_LIKE:
                base = sum(r.window.gap_s['other'] for r in self.nothing) / \
                    sum(r.window.seconds for r in self.nothing)
                stopped_s = max(0, w.gap_s['other'] - base * w.seconds)
            else:
                stopped_s = w.gap_s['stop_net']
            if self.crowded:
                # The processors are never idle while one is stopped.
                stopped_s = 0
            values.append(100 * (stopped_s / w.seconds + run.share) / cpus)
        return median(values)

    def complete(self):
        """In percent."""
        if self.cls is variants.Nothing:
            return None
        if self.cls in PERF_LIKE:
            return mean(100 * r.result.samples * w.seconds / r.sampled_s /
                        (w.target_cpu_s * 101)
                        for r, w in zip(self.runs, self.windows))
        return mean(100 * r.complete for r in self.results)

    def samples_us(self):
        """CPU of a sample, one for each repetition."""
        if self.cls is variants.Nothing or not self.scenario.busy:
            return []
        return [1e6 * r.cost_s for r in self.runs]

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

    def missed(self):
        shares = collections.Counter()
        for r in self.results:
            for reason, share in r.missed.items():
                shares[reason] += 100 * share / len(self.results)
        return ', '.join(f'{reason} {share:.2f} %'
                         for reason, share in shares.most_common()
                         if share >= 0.005)

    def row(self, name):
        return [name, self.pauses('stop'), self.pauses('stop_net'),
                number(self.complete(), 2, ' %'), number(middle(self.samples_us())),
                number(self.cpu(), 2, ' %'), number(self.taken(), 2, ' %'),
                self.slowdown(), self.stop_us(), number(self.frames(), 0),
                number(self.rss_mib(), 1), self.missed()]


HEAD = ['', 'pause p50 / p99, us', 'stopped p50 / p99, us', 'complete',
        'CPU a sample, us',
        'CPU, of a core', 'taken', 'target slower (from, to)',
        'stop to continue p50 / p99, us', 'frames', 'memory, MiB',
        'missed']


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
    said = sorted({w for runs in scenario.runs.values() for r in runs
                   for w in r.result.warnings})
    # Columns in which nothing stands say nothing.
    keep = [i for i in range(len(HEAD)) if i == 0 or
            any(row[i] for row in rows)]
    return f'### {title(scenario)}\n\n' + table(
        [HEAD[i] for i in keep], [[row[i] for i in keep] for row in rows]) + \
        ''.join(f'\nsentry-profd warned: {line}\n' for line in said[:3])


def waits(scenario):
    """How long waits are, and how much longer: rows, requirements. Medians of
    the repetitions' means."""
    rows, wanted = [], []
    for kind in ('epoll_wait', 'nanosleep', 'poll'):
        base = []
        for (cls, rate), runs in scenario.runs.items():
            n = sum(r.window.waits[kind][0] for r in runs)
            means = [r.window.waits[kind][1] for r in runs
                     if r.window.waits[kind][0]]
            if not means or (base == [] and cls is not variants.Nothing):
                continue
            row = [kind, cls.name, f'{n:,}', number(median(means), 3), '']
            if cls is variants.Nothing:
                base = means
            else:
                grown = [100 * (mine / alone - 1)
                         for mine, alone in zip(means, base)]
                row[1] += f', {rate} Hz'
                row[4] = number(median(grown), 2, ' %') + \
                    f' ({min(grown):.2f} to {max(grown):.2f})'
                wanted.append((f'waits of 20 ms in {kind}, {rate} Hz: longer '
                               'by', '< 1 %', row[4], median(grown) < 1))
            rows.append(row)
    return table(['call', '', 'waits', 'mean, ms', 'longer by (from, to)'],
                 rows), wanted


def requirements(done):
    """[(what, wanted, measured, whether)]"""
    found = []
    figures = {}
    for s in done:
        for (cls, rate) in s.runs:
            figures.setdefault((s.name, cls), Figures(s, cls, rate))

    def ratio(what, name, mine, bare):
        """Each repetition's to the one beside it: the median of these."""
        ratios = [m / b for m, b in zip(mine, bare) if m and b]
        if ratios:
            found.append((f'{what}, {name}', f'<= {RATIO_MAX} of bare',
                          f'{number(middle(mine))} us of '
                          f'{number(middle(bare))} us: {median(ratios):.2f} '
                          f'({min(ratios):.2f} to {max(ratios):.2f})',
                          median(ratios) <= RATIO_MAX))

    def limit(what, name, value, text, ok, digits=2):
        found.append((f'{what}, {name}', text, number(value, digits, ' %'),
                      ok(value)))

    for (name, cls), f in figures.items():
        bare = figures.get((name, variants.Bare))
        if cls is not variants.Ours:
            continue
        if f.scenario.busy and bare and not f.scenario.options.get('sleepers'):
            for kind, what in (('stop', 'pause'), ('stop_net', 'stopped')):
                for share in (.5, .99):
                    ratio(f'{what} p{100 * share:.0f}', name,
                          f.pauses_us(kind, share),
                          bare.pauses_us(kind, share))
            ratio('CPU a sample', name, f.samples_us(), bare.samples_us())
            limit('completeness', name, f.complete(), '>= 99.5 %',
                  lambda v: v >= 99.5)
        if name == 'busy-2':
            slowdowns = f.slowdowns()
            found.append((
                f'target slower, {name}', '< 1 %',
                number(median(slowdowns), 2, ' %') +
                f' ({min(slowdowns):.2f} to {max(slowdowns):.2f}), '
                f'taken {f.taken():.2f} %',
                f.taken() < 1 if max(slowdowns) - min(slowdowns) > NOISY else
                median(slowdowns) < 1))
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


def text(done, others):
    """others: requirements beside those of the scenarios."""
    parts, wanted = [], requirements(done)
    for scenario in done:
        part = one(scenario)
        if 'waiters' in scenario.options:
            more, requirement = waits(scenario)
            part += '\n' + more
            wanted += requirement
        parts.append(part)
    wanted += others
    rows = [[what, want, value, 'ok' if ok else 'NOT OK']
            for what, want, value, ok in wanted]
    head = '## The machine\n\n' + machine(done)
    if rows:
        head += '\n## What is asked for\n\n' + table(
            ['', 'wanted', 'measured', ''], rows)
    return head + '\n## All figures\n\n' + '\n'.join(parts)
