#!/usr/bin/python3
"""Each possible answer of a server: which chunks arrive, are counted, or are
kept.
"""

import email.utils
import re
import time

import harness
from account import Account, of, spooled_ids
from envelopes import KEY
from harness import check, wait_for

harness.filters_kill()


def header(text, **more):
    return {'headers': {'X-Sentry-Rate-Limits': text}, **more}


def sleepers(box, n):
    return [box.start(['sleep', 'infinity']) for _ in range(n)]


class Play:
    """A server, and programs that make one chunk in each run."""

    def __init__(self, box, targets=2):
        self.box = box
        self.server = box.server()
        self.targets = sleepers(box, targets)
        self.runs = []
        self.spool = box.dir / 'spool'

    def run(self, script, *args, targets=None):
        """Runs a daemon to its end; returns it, and the requests that had a
        chunk."""
        before = len(self.server.requests)
        self.server.tell(script=script)
        profd = self.box.profd(self.targets[:targets], '--dsn',
                               self.server.dsn, '--spool', self.spool, *args,
                               env=self.server.env)
        # The programs sleep, so each look is a tick. A chunk has two samples.
        profd.wait_attached().wait_looks(20).interrupt()
        self.runs.append(profd)
        return profd, [r for r in self.server.requests[before:]
                       if any(i['type'] == 'profile_chunk'
                              for i in r['items'])]

    def account(self):
        return Account(self.runs, [self.server], self.spool)


def test_what_is_taken_and_what_is_refused(box):
    play = Play(box, targets=9)
    statuses = [200, 400, 405, 413, 500, 503, 202, 404, 502]
    profd, requests = play.run([
        {'status': s, 'headers': {'X-Sentry-Error': f'odd {s}'}}
        for s in statuses], '--debug', '--retry-5xx=no')
    check([r['status'] for r in requests] == statuses, f'{requests}')
    a = play.account()
    check(len(a.taken) == 2 and len(a.refused) == 7 and not a.waiting and
          not a.nowhere, f'{vars(a)}')
    for status in statuses:
        check((f'status {status}' in profd.stderr) == (status >= 400),
              f'{status} is not told: {profd.stderr}')
    check('/42: the server answers with X-Sentry-Error: odd 400' in profd.stderr and
          ' was refused by the server: status 400, odd 400; it is not sent again' in profd.stderr,
          profd.stderr)


def test_5xx_wait_in_a_spool(box):
    """By default 502 to 504 are no answers if there is a spool; without a spool, such a chunk is
    lost."""
    play = Play(box, targets=1)
    for status in 502, 503, 504:
        profd, _ = play.run([{'status': status}] * 99)
        check(f'does not answer: HTTP status {status}' in profd.stderr and
              set(of(profd)) <= spooled_ids(play.spool), profd.stderr)
    play.server.tell(script=[{'status': 503}] * 9)
    profd = box.profile(play.targets, '--dsn', play.server.dsn, env=play.server.env)
    check(profd.stats['chunks']['discarded'] == {'send_error': 1}, f'{profd.stats["chunks"]}')


def test_many_refusals_are_a_few_lines(box):
    play = Play(box, targets=25)
    profd, _ = play.run([{'status': 400}] * 25)
    check(len(play.account().refused) == 25, f'{vars(play.account())}')
    lines = re.findall('was refused by the server: status 400', profd.stderr)
    check('15 lines like this left out: ' in profd.stderr and len(lines) == 11,
          profd.stderr)


def test_an_answer_that_is_cut_off(box):
    """The client has read a status, so the server has the chunk."""
    play = Play(box, targets=6)
    script = [{'do': 'hang_up'}, {'do': 'truncate'}, {'do': 'endless_body'},
              {'do': 'endless_head'}, {'body': '{' + 'x' * 100000}, {}]
    _, requests = play.run(script)
    check(len({r['connection'] for r in requests}) == 6,
          f'a connection that was no good was used again: {requests}')
    a = play.account()
    check(len(a.taken) == 6, f'{vars(a)}')


def test_closes_after_some_requests(box):
    """The server closes the connection with or without Connection: close. The
    next chunks are sent once, on another connection."""
    play = Play(box, targets=9)
    last = {'headers': {'Connection': 'close'}}
    _, requests = play.run([{}, {}, {'do': 'hang_up'}, {}, {}, last] * 2)
    connections = [r['connection'] for r in requests]
    check(len(requests) == 9 and len(set(connections)) == 3 and
          connections == sorted(connections), f'{connections}')
    a = play.account()
    check(len(a.taken) == 9 and not a.waiting and not a.discarded, f'{vars(a)}')


def test_closes_a_connection_that_is_kept(box):
    """The server closes the connection between two requests. The next request
    uses a new one."""
    play = Play(box, targets=1)
    profd = box.profd(play.targets, '--chunk-seconds', '1', '--dsn',
                      play.server.dsn, '--spool', play.spool, '--debug',
                      env=play.server.env)
    play.runs.append(profd)
    for n in 1, 2, 3:
        wait_for(lambda n=n: profd.stderr.count('the server answers 200') >= n,
                 'a chunk is answered')
        play.server.up()
    profd.interrupt()
    check(len({r['connection'] for r in play.server.received}) >= 3,
          'it was not closed')
    a = Account(play.runs, [play.server], play.spool, sure=False)
    check(a.taken == a.made and not a.discarded, f'{vars(a)}')


def test_redirects_are_not_followed(box):
    """A redirect could send the key to any host. The log has no key, wherever the server
    puts it (account.py looks)."""
    other = box.server()
    play = Play(box, targets=5)
    there = f'https://{KEY}@localhost:{other.port}/api/42/envelope/?{KEY}'
    profd, _ = play.run([{'status': s, 'headers': {'Location': there}}
                         for s in (301, 302, 303, 307, 308)])
    a = play.account()
    check(len(a.refused) == 5 and other.requests == [], f'{other.requests}')
    shown = there.replace(KEY, '*' * len(KEY))
    check(f'status 307, a redirect, which is not followed, to {shown}' in profd.stderr,
          profd.stderr)


def check_told(profd, seconds, passed):
    """Checks the length of the limit, less the time that may have passed
    before it was reported."""
    found = re.findall(r'takes no profiles for (\d+) s', profd.stderr)
    told = int(found[0]) if found else 0
    check(len(found) == (seconds > 0) and
          seconds - passed - 1 <= told <= seconds,
          f'{told} s, not {seconds}, {passed} s later: {profd.stderr}')


def check_resource_limits(box, cases):
    """Checks the limit in seconds that each answer sets; 0: none."""
    play = Play(box)
    for answer, seconds in cases:
        began = time.time()
        profd, requests = play.run([answer], '--retry-5xx=no')
        check_told(profd, seconds, time.time() - began)
        check(len(requests) == (1 if seconds else 2),
              f'{answer}: {len(requests)} requests')
        # The chunk of this answer, and the one that waited.
        lost = (answer.get('status') == 429) + (seconds > 0)
        chunks = profd.stats['chunks']
        check(chunks['discarded'] ==
              ({'ratelimit_backoff': lost} if lost else {}) or
              answer.get('status') == 503, f'{answer}: {chunks}')
    a = play.account()
    check(not a.waiting and len(a.nowhere) == sum(1 for _, s in cases if s),
          f'{vars(a)}')


def test_limits(box):
    """Each way to a limit. tests/unit/proto/check_rate_limit has the grammar."""
    check_resource_limits(box, [
        (header(['10:error', '20:profile_chunk:key', '30:span'], status=429), 20),
        # The limit is for other categories, so the 429 applies to chunks.
        (header('60:error;session:key', status=429), 0),
        (header('50:profile_chunk'), 50),
        # Retry-After counts with a 429 only.
        ({'status': 503, 'headers': {'Retry-After': '120'}}, 0),
    ])


def test_a_date_is_a_time_from_now(box):
    play = Play(box)
    began = time.time()
    until = email.utils.formatdate(began + 1000, usegmt=True)
    profd, _ = play.run([{'status': 429, 'headers': {'Retry-After': until}}])
    check_told(profd, 1000, time.time() - began)


if __name__ == '__main__':
    harness.main(globals())
