"""A strict reader of OpenMetrics and of Prometheus' text format, as far as
sentry-profd uses them. Finds at least the faults that promtool check metrics
finds.
"""

import re

SUFFIXES = {'counter': ('_total',), 'gauge': ('',), 'info': ('_info',),
            'histogram': ('_bucket',)}
# In Prometheus' format the families have the names of their samples.
PLAIN_SUFFIXES = {'counter': ('',), 'gauge': ('',), 'histogram': ('_bucket',)}
NAME = r'[a-zA-Z_:][a-zA-Z0-9_:]*'
SAMPLE = re.compile(rf'({NAME})(?:\{{(.*)\}})? (\S+)')
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\n"])*)"(,|$)')


class Fault(Exception):
    pass


def need(condition, text):
    if not condition:
        raise Fault(text)


def labels(text):
    found, at = {}, 0
    while at < len(text):
        m = LABEL.match(text, at)
        need(m, f'labels: {text}')
        need(m[1] not in found, f'twice: {m[1]}')
        found[m[1]] = m[2]
        at = m.end()
    need(not text.endswith(','), text)
    return found


def read(text, plain=False):
    """Returns {(name, ((label, value), ...)): number}; raises Fault. plain:
    Prometheus' text format, which needs no end and no units."""
    end = '' if plain else '# EOF\n'
    need(text.endswith('\n' + end), 'no end')
    suffixes = PLAIN_SUFFIXES if plain else SUFFIXES
    keywords = 'TYPE|HELP' if plain else 'TYPE|UNIT|HELP'
    found, families, family = {}, set(), None
    for line in text[:len(text) - len(end)].splitlines():
        if line.startswith('#'):
            m = re.fullmatch(rf'# ({keywords}) ({NAME}) (.+)', line)
            need(m, line)
            if m[1] == 'TYPE':
                need(m[2] not in families, f'twice: {line}')
                need(m[3] in suffixes, line)
                families.add(m[2])
                family, kind = m[2], m[3]
            need(m[2] == family, f'of another family: {line}')
            if m[1] == 'UNIT':
                need(family.endswith('_' + m[3]), line)
            continue
        m = SAMPLE.fullmatch(line)
        need(m, line)
        need(m[1] in [family + s for s in suffixes[kind]],
             f'no sample of {family}, a {kind}: {line}')
        key = m[1], tuple(sorted(labels(m[2] or '').items()))
        need(key not in found, f'twice: {line}')
        found[key] = float(m[3])
        need(kind == 'gauge' or found[key] >= 0, line)
        need(kind != 'counter' or m[1].endswith('_total'), line)
    check_histograms(found)
    return found


def check_histograms(found):
    """Checks that buckets are ascending, both in their bounds and in their
    counts, up to +Inf."""
    for name in {n for n, _ in found if n.endswith('_bucket')}:
        last = (float('-inf'), 0)
        for (n, of), value in found.items():
            if n == name:
                bound = float(dict(of)['le'])
                need(bound > last[0] and value >= last[1], f'{name} {of}')
                last = (bound, value)
        need(last[0] == float('inf'), f'{name}: no +Inf')


def total(found, name, **wanted):
    return sum(v for (n, of), v in found.items() if n == 'sentry_profd_' + name
               and wanted.items() <= dict(of).items())
