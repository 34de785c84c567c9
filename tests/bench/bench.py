#!/usr/bin/env python3
"""make bench: what profiling costs the target and the machine.

    bench.py [--seconds S] [--doc FILE] [PATTERN]

Runs the scenarios whose names contain PATTERN. In each scenario the variants (see
variants.py) take turns on the same target, so figures of one run can be compared. Prints
Markdown; --doc also writes it to FILE, in place of the text below the line
"<!-- make bench -->". A FILE that does not exist is made, with this line.

Everything runs on two processors and, if that is permitted, at nice -15 (also for the
scheduler's group of the session, if the kernel has such groups). BENCH_SMOKE=1 makes all
targets small and all runs short, to test this program.
"""

import argparse
import contextlib
import dataclasses
import os
import pathlib
import signal
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / 'tests/integration'))

import births  # noqa: E402
import conversions  # noqa: E402
import first  # noqa: E402
import harness  # noqa: E402
import measure  # noqa: E402
import replay  # noqa: E402
import report  # noqa: E402
import servers  # noqa: E402
import sizes  # noqa: E402
import truth  # noqa: E402
import variants  # noqa: E402
import ways  # noqa: E402

CPUS = 2
NICE = -15
RATE_HZ = 101
REPEATS = 9
# Seconds of the short run (measure.Run.set_costs). Most functions occur in this time.
SHORT_S = 0.25
# The simulation (outage.c).
OUTAGE = 'outage'
MARK = '<!-- make bench -->\n'
SMOKE = os.environ.get('BENCH_SMOKE') == '1'

# Measurements of their own, beside the scenarios: modules with NAME, run(box, smoke),
# wanted(figures) and text(figures).
PARTS = (ways, replay, first, births, servers, sizes, conversions, truth)

# The variants of each repetition, and those of the first repetition only.
OFTEN = (variants.Nothing, variants.Bare, variants.Ours, variants.OursPerf)
ONCE = (variants.Naive, variants.Perf, variants.Bpftrace)


@dataclasses.dataclass
class Scenario:
    name: str
    options: dict
    often: tuple = OFTEN
    once: tuple = ()
    processes: int = 1
    rates: tuple = (RATE_HZ,)
    repeats: int = REPEATS
    # The length of its runs, as a multiple of --seconds: start and end cost much.
    longer: int = 1
    # {(class, rate): [measure.Run]}, {class: why it did not run}
    runs: dict = dataclasses.field(default_factory=dict)
    unable: dict = dataclasses.field(default_factory=dict)

    @property
    def busy(self):
        return self.options.get('busy', 0)


def scenarios():
    """Returns the scenarios. perf and bpftrace do not see sleeping threads."""
    if SMOKE:
        return [
            Scenario('busy-2', {'busy': 2}, once=ONCE[:1]),
            Scenario('mixed', {'busy': 2, 'sleepers': 20}, once=ONCE[:1]),
            Scenario('fleet', {'sleepers': 3, 'tickers': 1}, processes=3,
                     often=(variants.Ours,)),
            Scenario('waits', {'waiters': 1}, rates=(RATE_HZ, 1000),
                     often=(variants.Nothing, variants.Ours)),
        ]
    return [
        *(Scenario(f'busy-{n}', {'busy': n}, once=ONCE)
          for n in (1, 2, 8, 64)),
        *(Scenario(f'sleeping-{n}', {'sleepers': n}, often=OFTEN[1:],
                   once=ONCE[:1], repeats=2) for n in (10, 100, 1000)),
        Scenario('mixed', {'busy': 2, 'sleepers': 1000}, once=ONCE,
                 repeats=3),
        # Each process: a main thread, 18 threads that wait for ever, and one that works
        # for a moment once a second.
        Scenario('fleet', {'sleepers': 18, 'tickers': 1}, processes=100,
                 often=(variants.Ours, variants.OursPerf), repeats=2, longer=5),
        # 3 x 20 threads: more than 1,000 waits of each kind in 1.5 s.
        Scenario('waits', {'waiters': 20}, rates=(RATE_HZ, 1000), repeats=3,
                 often=(variants.Nothing, variants.Ours)),
    ]


def say(text):
    if sys.stderr.isatty():
        print(f'\r\x1b[K{text}', end='', file=sys.stderr, flush=True)


def run(scenario, box, seconds):
    target = measure.Target(box, scenario.processes, **scenario.options)
    short = {}
    for repeat in range(1 if SMOKE else scenario.repeats):
        # In alternating order: a machine that gets slower affects all variants equally.
        often = scenario.often[::-1 if repeat % 2 else 1]
        for cls in often + (scenario.once if repeat == 0 else ()):
            rates = (RATE_HZ,) if cls is variants.Nothing else scenario.rates
            for rate in rates:
                say(f'{scenario.name} {repeat + 1}: {cls.name}')
                try:
                    if cls.has_end and cls not in short:
                        short[cls] = None
                        # A run this short may have no sample.
                        with contextlib.suppress(variants.Unable):
                            short[cls] = measure.measure(
                                cls, box, target, min(SHORT_S, seconds / 2),
                                rate)
                    one = measure.measure(cls, box, target,
                                          scenario.longer * seconds, rate)
                except (variants.Unable, harness.Failure) as e:
                    scenario.unable[cls] = str(e).splitlines()[0]
                    continue
                one.set_costs(short.get(cls))
                scenario.runs.setdefault((cls, rate), []).append(one)
    say('')


def go_first():
    # A new session is a group of its own for the scheduler (sched(7), autogroup). The
    # terminal's SIGINT does not reach the session, so it ends when make ends.
    harness.libc.prctl(harness.PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    with contextlib.suppress(OSError):
        os.setsid()
        pathlib.Path('/proc/self/autogroup').write_text(str(NICE))
    with contextlib.suppress(OSError):
        os.nice(NICE)


@contextlib.contextmanager
def new_box(name):
    box = harness.Box()
    try:
        yield box
    finally:
        left = box.end()
        box.remove()
    if left:
        sys.exit(f'{name}: left behind: {left}')


def open_document(path):
    """Returns the text of the document above the figures. Exits if the figures could not
    be written later."""
    try:
        with open(path, 'a+', encoding='utf-8') as f:
            f.seek(0)
            text = f.read()
    except (OSError, UnicodeDecodeError) as e:
        sys.exit(f'--doc {path}: {e}')
    above, mark, _ = text.partition(MARK)
    if text and not mark:
        sys.exit(f'--doc {path}: the file has no line {MARK.strip()}')
    return above


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--seconds', type=float, default=1.5)
    parser.add_argument('--doc')
    parser.add_argument('pattern', nargs='?', default='')
    args = parser.parse_args()
    above = open_document(args.doc) if args.doc else ''
    signal.signal(signal.SIGTERM, lambda n, _: sys.exit(128 + n))
    harness.libc.prctl(harness.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:CPUS])
    go_first()
    done, found = [], {}
    for scenario in scenarios():
        if args.pattern not in scenario.name:
            continue
        with new_box(scenario.name) as box:
            run(scenario, box, 0.2 if SMOKE else args.seconds)
            done.append(scenario)
    for part in PARTS:
        if args.pattern in part.NAME:
            say(part.NAME)
            with new_box(part.NAME) as box:
                found[part] = part.run(box, SMOKE)
            say('')
    meeting = args.pattern in OUTAGE
    if not (done or found or meeting):
        sys.exit(f'no scenario has "{args.pattern}" in its name')
    text = report.text(done, [row for part, figures in found.items()
                              for row in part.wanted(figures)])
    for part, figures in found.items():
        text += '\n' + part.text(figures)
    if meeting:
        text += f'\n### 10,000 hosts and their server (`T={OUTAGE}`)\n\n'
        text += subprocess.run([harness.BUILD / 'bench/outage'], check=True,
                               capture_output=True, text=True).stdout
    print(text)
    if args.doc:
        pathlib.Path(args.doc).write_text(f'{above}{MARK}\n{text}\n')


if __name__ == '__main__':
    main()
