"""Makes the Markdown tables of docs/BENCHMARKS.md from the runs of the scenarios."""

import collections
import os
import platform
import re
from statistics import mean, median

import harness
import measure
import variants

# The limit of sentry-profd's figures, as a multiple of bare's.
RATIO_MAX = 1.5
# In percent of the target's speed. If the lost work of the repetitions differs by
# more than this, the machine is too noisy to measure it: then loss_max() is compared
# with the limit.
NOISY = 1
# Variants that sample by an interrupt and stop no thread.
PERF_LIKE = (variants.Perf, variants.Bpftrace)
# Without a stop that the target could see.
BY_INTERRUPT = (*PERF_LIKE, variants.OursPerf)


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
    """The figures of one variant in one scenario."""

    def __init__(self, scenario, cls, rate):
        self.scenario, self.cls = scenario, cls
        self.runs = scenario.runs[cls, rate]
        self.nothing = next((r for (c, _), r in scenario.runs.items()
                             if c is variants.Nothing), [])
        self.windows = [r.window for r in self.runs]
        self.results = [r.result for r in self.runs]

    @property
    def crowded(self):
        return self.scenario.busy > measure.processors()

    def base(self, window):
        """Returns the gaps by interrupts without a profiler, as a Counter of buckets,
        and the length of window as a multiple of the time in which they occurred."""
        gaps = sum((r.window.gaps['other'] for r in self.nothing),
                   collections.Counter())
        seconds = sum(r.window.seconds for r in self.nothing)
        return gaps, window.seconds / seconds

    def pause_by_interrupt(self, run, share):
        """Returns the percentile share of the pauses, in us, of a variant that samples
        by an interrupt. The target cannot distinguish such an interrupt from others.
        So the longest interrupts count as samples, minus as many of each length as
        occur without a profiler."""
        w = run.window
        base, scale = self.base(w)
        rest = (1 - share) * run.result.samples * w.seconds / run.sampled_s
        for index in sorted(w.gaps['other'], reverse=True):
            rest -= w.gaps['other'][index] - base[index] * scale
            if rest <= 0:
                return measure.bucket_us(index)
        return None

    def pauses_us(self, kind, share):
        """Returns the percentile share of the pauses, in us, for each repetition. Gaps
        of kind "stop" include the wait for a processor, so they are left out if there
        are more busy threads than processors."""
        if not self.scenario.busy or self.cls is variants.Nothing or \
                (kind == 'stop' and self.crowded):
            return []
        if self.cls in BY_INTERRUPT:
            return [self.pause_by_interrupt(r, share) for r in self.runs]
        return [measure.percentile(w.gaps[kind], share) for w in self.windows]

    def pauses(self, kind):
        return ' / '.join(filter(None, (
            number(middle(self.pauses_us(kind, share)))
            for share in (.5, .99))))

    def loss_max(self):
        """Returns, in percent of the target's processors, the time in which its threads
        were stopped or interrupted plus the CPU time of the variant's processes. This
        is an upper bound of what the target loses, since time of a variant that runs
        on the target's processor counts twice. It does not include cold caches."""
        if self.cls is variants.Nothing or not self.scenario.busy:
            return None
        cpus = min(self.scenario.busy, measure.processors())
        values = []
        for run in self.runs:
            w = run.window
            if self.cls in BY_INTERRUPT:
                base = sum(r.window.gap_s['other'] for r in self.nothing) / \
                    sum(r.window.seconds for r in self.nothing)
                stopped_s = max(0, w.gap_s['other'] - base * w.seconds)
            else:
                stopped_s = w.gap_s['stop_net']
            if self.crowded:
                # While one thread is stopped, another one has its processor.
                stopped_s = 0
            values.append(100 * (stopped_s / w.seconds + run.share) / cpus)
        return median(values)

    def complete(self):
        """Returns the share of the samples that were taken, in percent."""
        if self.cls is variants.Nothing:
            return None
        if self.cls in PERF_LIKE:
            return mean(100 * r.result.samples * w.seconds / r.sampled_s /
                        (w.target_cpu_s * 101)
                        for r, w in zip(self.runs, self.windows))
        return mean(100 * r.complete for r in self.results)

    def samples_us(self):
        """Returns the CPU time per sample, in us, for each repetition."""
        if self.cls is variants.Nothing or not self.scenario.busy:
            return []
        return [1e6 * r.cost_s for r in self.runs]

    def cpu(self):
        """Returns the CPU time of the variant, in percent of a processor."""
        if self.cls is variants.Nothing:
            return None
        return median(100 * r.share for r in self.runs)

    def work_lost(self):
        """Returns how much less work the target did per second than without a profiler,
        in percent, for each repetition."""
        busy = self.scenario.busy
        if not busy or self.cls is variants.Nothing:
            return []
        return [100 * (1 - w.speed(busy) / n.window.speed(busy))
                for w, n in zip(self.windows, self.nothing)]

    def work_lost_text(self):
        values = self.work_lost()
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
                number(self.cpu(), 2, ' %'), number(self.loss_max(), 2, ' %'),
                self.work_lost_text(), self.stop_us(), number(self.frames(), 0),
                number(self.rss_mib(), 1), self.missed()]


HEAD = ['variant', 'pause p50 / p99, us', 'stopped p50 / p99, us', 'complete',
        'CPU per sample, us', 'CPU, of a processor', 'loss, at most',
        'work lost (from, to)', 'stop to continue p50 / p99, us',
        'frames per stack', 'memory, MiB', 'missed']


def title(scenario):
    kinds = {'busy': '{n:,} busy', 'sleepers': '{n:,} sleeping',
             'tickers': '{n:,} working for a moment once a second',
             'waiters': '{all:,} waiting for 20 ms at a time, {n:,} each in '
                        'epoll_wait, nanosleep and poll'}
    text = ', '.join(kinds[k].format(n=n, all=3 * n)
                     for k, n in scenario.options.items())
    if scenario.processes > 1:
        text = f'{scenario.processes} processes, each with threads: {text}'
    else:
        text = f'Threads: {text}'
    return f'{text} (`T={scenario.name}`)'


def one(scenario):
    """Returns the table of a scenario."""
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
    # Empty columns are left out.
    keep = [i for i in range(len(HEAD)) if i == 0 or
            any(row[i] for row in rows)]
    return f'### {title(scenario)}\n\n' + table(
        [HEAD[i] for i in keep], [[row[i] for i in keep] for row in rows]) + \
        ''.join(f'\nsentry-profd warned: {line}\n' for line in said[:3])


def waits(scenario):
    """Returns the table of the lengths of waits (medians of the repetitions' means), and
    the requirements for it, as requirements() does."""
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
    return table(['call', 'variant', 'waits', 'mean, ms', 'longer by (from, to)'],
                 rows), wanted


def requirements(done):
    """Returns [(figure, limit, measured, True if the limit is kept)]."""
    found = []
    figures = {}
    for s in done:
        for (cls, rate) in s.runs:
            figures.setdefault((s.name, cls), Figures(s, cls, rate))

    def ratio(what, name, mine, bare):
        """Adds a requirement. The ratio is the median of the ratios of the repetitions,
        each to the run of bare that followed it or that it followed."""
        ratios = [m / b for m, b in zip(mine, bare) if m and b]
        if ratios:
            found.append((f'{what}, {name}', f'<= {RATIO_MAX} times bare',
                          f'{number(middle(mine))} us, bare '
                          f'{number(middle(bare))} us: ratio {median(ratios):.2f} '
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
            ratio('CPU per sample', name, f.samples_us(), bare.samples_us())
            limit('completeness', name, f.complete(), '>= 99.5 %',
                  lambda v: v >= 99.5)
        if name == 'busy-2':
            lost = f.work_lost()
            found.append((
                f'work lost, {name}', '< 1 %',
                number(median(lost), 2, ' %') +
                f' ({min(lost):.2f} to {max(lost):.2f}), '
                f'loss at most {f.loss_max():.2f} %',
                f.loss_max() < 1 if max(lost) - min(lost) > NOISY else
                median(lost) < 1))
        if name == 'mixed':
            limit('CPU, of a processor', name, f.cpu(), '< 5 %', lambda v: v < 5)
        if name == 'fleet':
            limit('CPU, of a processor', name, f.cpu(), '< 3 %', lambda v: v < 3)
    return found


def machine(done):
    release = re.match(r'[\d.]+', platform.release())[0].rstrip('.')
    system = re.search(r'^PRETTY_NAME="?([^"\n]*)',
                       harness.proc_text('self', 'root/etc/os-release'), re.M)
    cpu = re.search(r'^model name\s*: (.*)$',
                    harness.proc_text('', 'cpuinfo'), re.M)
    virtual = re.search(r'\bhypervisor\b', harness.proc_text('', 'cpuinfo'))
    cpus = measure.processors()
    others = [100 * max(0, cpus - (w.target_cpu_s + w.cpu_s + w.idle_s) /
                        w.seconds)
              for s in done if s.processes == 1
              for runs in s.runs.values() for w in (r.window for r in runs)]
    lines = [
        f'- the benchmark used {cpus} of {os.cpu_count()} processors'
        + (f' ({cpu[1]})' if cpu else '') + ', '
        + ('in a virtual machine' if virtual else 'no virtual machine'),
        f'- Linux {release} {platform.machine()}'
        + (f', {system[1]}' if system else ''),
    ]
    if others:
        lines.append(
            '- during the runs all other programs used '
            f'{median(others):.0f} % of one processor (median; at most '
            f'{max(others):.0f} %)')
    return '\n'.join(lines) + '\n'


def text(done, others):
    """Returns the generated part of the document. others: the requirements of the other
    benchmarks."""
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
        head += '\n## Limits\n\n' + table(
            ['figure', 'limit', 'measured', ''], rows)
    return head + '\n## All figures\n\n' + '\n'.join(parts)
