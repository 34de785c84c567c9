#!/usr/bin/python3
"""A server that does not answer, in all ways: no chunk is lost, none is sent
again after its answer, and nothing blocks.
"""

import harness
from account import Account, of, spooled_ids
from harness import check, tracer, wait_for
from test_delivery_answers import Play, sleepers

harness.filters_kill()

# Without a status the server may or may not have the chunk.
NO_ANSWER = ('close', 'reset', 'reset_body', 'reset_head', 'garbage',
             'endless', 'page')


def wait_empty(spool):
    wait_for(lambda: not spooled_ids(spool), 'nothing waits')


def drain(box, play):
    """Sends the waiting chunks by another run, with a server that answers."""
    profd = box.profd(play.targets[:1], '--chunk-seconds', '1', '--dsn',
                      play.server.dsn, '--spool', play.spool,
                      env=play.server.env)
    play.runs.append(profd)
    wait_empty(play.spool)
    profd.interrupt()


def test_no_answer(box):
    play = Play(box)
    for what in NO_ANSWER:
        before = spooled_ids(play.spool)
        profd, _ = play.run([{'do': what}], '--debug')
        check(profd.stderr.count('does not answer') >= 1,
              f'{what} is an answer: {profd.stderr}')
        new = spooled_ids(play.spool) - before
        # The second chunk may have been sent after a short wait.
        check(of(profd)[0] in new, f'{what}: {new}')
    a = play.account()
    check(not a.refused and not a.nowhere and not a.discarded, f'{vars(a)}')
    check(len(a.waiting) >= len(NO_ANSWER), f'{vars(a)}')
    drain(box, play)
    a = play.account()
    check(a.taken == a.made, f'{vars(a)}')


def check_kept_back(box, server, env, why):
    """Checks that no chunk is sent to that server. All chunks wait, and are
    sent to another server in its place, which has the right certificate."""
    spool = box.make_dir('kept') / 'spool'
    targets = sleepers(box, 2)
    profd = box.profd(targets, '--chunk-seconds', '1', '--dsn', server.dsn,
                      '--spool', spool, '--shutdown-timeout', '0.1', env=env)
    wait_for(lambda: 'does not answer' in profd.stderr, 'it is told')
    check(why in profd.stderr, f'not {why}: {profd.stderr}')
    profd.wait_chunks(2)
    profd.interrupt()
    check(not server.received, f'it was sent {server.received}')
    a = Account([profd], [server], spool)
    check(a.waiting == a.made and not a.discarded, f'{vars(a)}')
    server.program.end()
    right = box.server(tls=server.ca is not None, port=server.port)
    again = box.profd(targets[:1], '--chunk-seconds', '1', '--dsn', right.dsn,
                      '--spool', spool, env=right.env if right.ca else None)
    wait_empty(spool)
    again.interrupt()
    a = Account([profd, again], [server, right], spool)
    check(a.taken == a.made and not a.discarded, f'{vars(a)}')


def test_nobody_listens(box):
    server = box.server(tls=False)
    server.down()
    check_kept_back(box, server, None, 'connect')


def test_certificate_of_a_stranger(box):
    check_kept_back(box, box.server(), box.server().env, 'certificate')


def test_no_answer_and_no_spool(box):
    """The chunks stay in memory, and are sent when a server is there again."""
    server = box.server(script=[{'do': 'reset'}, {'do': 'garbage'}])
    profd = box.profile(sleepers(box, 3), '--dsn', server.dsn, env=server.env)
    check(profd.stderr.count('does not answer') == 2 and
          profd.stderr.count('answers again') == 1, f'two reasons: {profd.stderr}')
    a = Account([profd], [server])
    check(a.taken == a.made and len(a.made) == 3, f'{vars(a)}')


class Stall:
    """Two chunks a second, of which the server has received the first."""

    def __init__(self, box, mode, *args):
        self.spool = box.make_dir('stall') / 'spool'
        self.server = box.server()
        if mode == 'mute':
            self.server.tell(do='mute')
        else:
            self.server.tell(script=[{'do': mode}])
        self.targets = sleepers(box, 2)
        self.profd = box.profd(self.targets, '--chunk-seconds', '1', '--dsn',
                               self.server.dsn, '--spool', self.spool,
                               '--debug', *args, env=self.server.env)
        self.profd.wait_chunks()
        if mode != 'mute':
            wait_for(lambda: self.server.received, 'a chunk arrives')

    def waits(self):
        """ship still waits: it gives up after 30 s, or after 10 s for a
        connection."""
        return 'does not answer' not in self.profd.stderr


def check_nobody_waits(box, mode):
    stalls = []

    def turn():
        stall = Stall(box, mode)
        stalls.append(stall)
        profd = stall.profd
        # These chunks are made, written and counted while the first is being
        # sent.
        profd.wait_chunks(3)
        profd.wait_looks()
        capture, = profd.helpers()['capture']
        check(all(tracer(t.pid) == capture for t in stall.targets),
              'it is not sampled any more')
        if stall.waits():
            return []
        stall.server.tell(do='up', script=[])
        profd.interrupt()
        return ['the time was up before']
    harness.in_turns(turn)
    stall = stalls[-1]
    stall.server.tell(do='up', script=[])
    wait_for(lambda: not stall.waits(), 'the end of the stall is seen')
    wait_for(lambda: 'answers again' in stall.profd.stderr, 'it goes on')
    wait_empty(stall.spool)
    stall.profd.interrupt()
    a = Account([stall.profd], [stall.server], stall.spool)
    check(a.taken == a.made and not a.discarded, f'{vars(a)}')


def test_stall_after_the_request(box):
    check_nobody_waits(box, 'stall')


def test_stall_in_the_handshake(box):
    check_nobody_waits(box, 'mute')


def test_end_while_the_server_stalls(box):
    """The daemon ends nevertheless; the waiting chunks are in the spool."""
    stall = Stall(box, 'stall', '--shutdown-timeout', '0.1')
    stall.profd.interrupt()
    a = Account([stall.profd], [stall.server], stall.spool)
    check(a.waiting == a.made and not a.taken, f'{vars(a)}')


def test_end_while_the_server_stalls_and_no_spool(box):
    stall = Stall(box, 'stall', '--shutdown-timeout', '0.1', '--spool', 'none')
    stall.profd.interrupt()
    a = Account([stall.profd], [stall.server])
    check(set(a.discarded) == {'network_error'} and not a.taken, f'{vars(a)}')


def test_away_and_back(box):
    """The server goes away and comes back repeatedly; the answer to a chunk
    may get lost each time."""
    play = Play(box, targets=2)
    profd = box.profd(play.targets, '--chunk-seconds', '1', '--dsn',
                      play.server.dsn, '--spool', play.spool,
                      env=play.server.env)
    play.runs.append(profd)
    for _ in range(2):
        n = len(play.server.requests)
        wait_for(lambda: len(play.server.requests) > n, 'a chunk arrives')
        play.server.down()
        wait_for(lambda: spooled_ids(play.spool), 'a chunk waits')
        play.server.up()
        wait_empty(play.spool)
    profd.interrupt()
    a = Account(play.runs, [play.server], play.spool, sure=False)
    check(a.taken == a.made and not a.discarded, f'{vars(a)}')
    check(profd.stderr.count('does not answer') ==
          profd.stderr.count('answers again') >= 2, profd.stderr)


if __name__ == '__main__':
    harness.main(globals())
