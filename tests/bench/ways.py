"""Compares the ways in which a tracer can come to the stop of a thread that runs on another
processor: prototypes (near.c), the bare loop, which sleeps until the stop comes, and the
daemon."""

import dataclasses
from statistics import median

import measure
import report
import variants

NAME = 'ways'
SECONDS, TIMES, RATE_HZ = 1, 9, 101

# {load: options of the target}. A bound thread has a processor of its own; the scheduler may
# move the others, which it does when a thread is continued and its processor is taken.
LOADS = {
    '1 busy thread, bound': {'busy': 1},
    '1 busy thread': {'busy': 1, 'free': 1},
    '2 busy threads, bound': {'busy': 2},
    '2 busy threads': {'busy': 2, 'free': 1},
    '8 busy threads': {'busy': 8},
    '64 busy threads': {'busy': 64},
}
SMOKE_LOADS = {'2 busy threads': {'busy': 2, 'free': 1}}


class Poll(variants.Tracer):
    name, exe, way = 'poll', 'near', ('poll',)


class Go(variants.Tracer):
    name, exe, way = 'go', 'near', ('go',)


class Own(variants.Tracer):
    name, exe, way = 'own', 'near', ('own',)


WAYS = (variants.Bare, Poll, Go, Own, variants.Ours)


@dataclasses.dataclass
class Figures:
    """Of one way under one load, medians of the runs, in us."""
    p50: float
    p99: float
    cost: float


def cost_s(run):
    """Returns the CPU time per sample, without that of the variant's end."""
    share = run.window.cpu_s / run.window.seconds
    return share * run.sampled_s / max(run.result.samples, 1)


def figures_of(runs, kind):
    gaps = [r.window.gaps[kind] for r in runs]
    return Figures(*(median(measure.percentile(g, share) for g in gaps)
                     for share in (.5, .99)),
                   1e6 * median(cost_s(r) for r in runs))


def under(box, options, seconds, times):
    """Returns {way's name: Figures} of the ways that can have so many threads."""
    target = measure.Target(box, **options)
    crowded = options['busy'] > measure.processors()
    runs = {}
    for i in range(times):
        for way in WAYS[::-1 if i % 2 else 1]:
            if way is Go and crowded:
                continue
            runs.setdefault(way.name, []).append(
                measure.measure(way, box, target, seconds, RATE_HZ))
    target.end()
    # With more threads than processors a thread waits for its turn after the stop.
    kind = 'stop_net' if crowded else 'stop'
    return {name: figures_of(of, kind) for name, of in runs.items()}


def run(box, smoke=False):
    """Returns {load: what under() returns}."""
    if smoke:
        return {load: under(box, options, 0.3, 1)
                for load, options in SMOKE_LOADS.items()}
    return {load: under(box, options, SECONDS, TIMES)
            for load, options in LOADS.items()}


def wanted(_figures):
    """No requirements of its own: those of the scenarios contain the daemon's."""
    return []


def text(found):
    rows = [[load, name, f'{f.p50:.1f}', f'{f.p99:.1f}', f'{f.cost:.1f}',
             f'{f.p50 / of[variants.Bare.name].p50:.2f}',
             f'{f.cost / of[variants.Bare.name].cost:.2f}']
            for load, of in found.items() for name, f in of.items()]
    return (f'### Ways to a stop (`T={NAME}`)\n\n' +
            report.table(['load', 'way', 'pause p50, us', 'p99', 'CPU per sample, us',
                          'pause / bare', 'CPU / bare'], rows))
