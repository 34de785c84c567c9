"""The fate of each chunk, from three sources that must agree: the files of
--output (the chunks that were made), the requests that the servers received
together with the spool's directory, and the daemon's own statistics.
"""

import collections

from envelopes import KEY
from harness import check


def spooled_ids(spool):
    """Returns the ids of the chunks in the spool, by the names of their files."""
    return {p.name.split('-')[1] for p in spool.glob('*.gz')} \
        if spool else set()


def of(profd):
    """Returns the ids of the chunks that a run has made."""
    return [e.chunk['chunk_id'] for e in profd.envelopes]


def check_sums(stats, arrived='sent'):
    """Checks the sums of a run's statistics, its own and those of each process: each
    expected sample was taken or is counted as missed; each chunk has arrived, is in
    the spool, or is counted as lost. arrived: 'sent', or 'written' if there is no
    server. Returns the counts of the run's chunks."""
    for of in (stats, *stats['targets']):
        check(of['samples_expected'] == of['samples_taken'] +
              sum(of['missed'].values()),
              f'expected is not taken and missed: {of}')
        check(of['samples_taken'] == of['captured'] + of['repeated'] +
              of['filled'], f'taken is not the sum of its parts: {of}')
        chunks = of['chunks']
        check(chunks['made'] == chunks[arrived] + chunks['spooled'] +
              sum(chunks['discarded'].values()), f'chunks got lost: {chunks}')
    return stats['chunks']


def check_counts(profd):
    """Checks the sums of a run that has made a chunk."""
    chunks = check_sums(profd.stats)
    check(chunks['made'] > 0, 'no chunk was made')
    return chunks


def arrivals(servers):
    """Returns {chunk id: [(status or None, settled)]} in the order of arrival.

    settled: the client has read the answer. A client sends one request at a time, so this
    is certain if another request on the same connection followed.
    """
    found = collections.defaultdict(list)
    for server in servers:
        last = {r['connection']: r['n'] for r in server.requests if 'n' in r}
        for r, e in zip(server.received, server.all_envelopes()):
            check(r['problems'] == [], f'request {r["n"]}: {r["problems"]}')
            if e.chunk:
                found[e.chunk['chunk_id']].append(
                    (r['status'], r['n'] < last[r['connection']]))
    return found


# After these a chunk waits, and is sent again: the DSN is refused, or a proxy has no server.
COMES_AGAIN = (None, 401, 403, 502, 503, 504)


def check_once(found, sure):
    """Checks that no chunk comes again after its answer.

    sure: the client has read every answer with a status, since the server was never down
    and ship was not killed.
    """
    for chunk, times in found.items():
        for status, settled in times[:-1]:
            check(status in COMES_AGAIN or not (sure or settled),
                  f'{chunk} came again after its answer: {times}')


class Account:
    """The accounts of runs that have ended, with one spool or none."""

    def __init__(self, profds, servers, spool=None, sure=True):
        self.made = {i for p in profds for i in of(p)}
        found = arrivals(servers)
        check_once(found, sure)
        self.again = sum(len(times) - 1 for times in found.values())
        last = {i: times[-1][0] for i, times in found.items()}
        self.taken = {i for i, s in last.items() if s and 200 <= s < 300}
        self.limited = {i for i, s in last.items() if s == 429}
        self.refused = {i for i, s in last.items() if s} - self.taken - \
            self.limited
        self.waiting = spooled_ids(spool)
        self.nowhere = self.made - self.taken - self.refused - \
            self.limited - self.waiting
        check(set(last) <= self.made, 'a chunk arrived that was not made')
        self.twice = self.waiting & (self.taken | self.limited | self.refused)
        if sure:
            check(not self.twice, f'answered, and waiting: {self.twice}')
        for profd in profds:
            check(KEY not in profd.stderr + profd.stdout, 'the key is shown')
        self.discarded = collections.Counter()
        self.add_up([p.stats for p in profds], sure)

    def add_up(self, stats, sure):
        sums = collections.Counter()
        spool = collections.Counter()
        for one in stats:
            chunks = check_sums(one)
            self.discarded.update(chunks['discarded'])
            sums.update({k: chunks[k] for k in ('made', 'sent', 'spooled', 'unwritten')})
            spool.update(one['spool'])
        no_file = sums['unwritten'] + self.discarded['unwind_died']
        check(sums['made'] == len(self.made) + no_file, f'made: {sums}')
        limited = self.discarded['ratelimit_backoff'] + \
            spool['ratelimit_backoff']
        check(limited >= len(self.limited), f'429: {stats}')
        if not sure:
            return
        check(sums['sent'] + spool['sent'] == len(self.taken),
              f'{len(self.taken)} were taken: {stats}')
        check(self.discarded['send_error'] + spool['send_error'] ==
              len(self.refused), f'{len(self.refused)} were refused: {stats}')
        check(stats[-1]['spool']['waiting'] == len(self.waiting),
              f'{len(self.waiting)} wait: {stats}')
        check(len(self.nowhere) == sum(self.discarded.values()) -
              self.discarded['send_error'] +
              spool['ratelimit_backoff'] - len(self.limited),
              f'{len(self.nowhere)} are nowhere: {stats}')
