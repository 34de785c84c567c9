#!/usr/bin/python3
"""Fills the spool with SPOOLED (10,000) chunks, as fast as a hundred targets make them while
the server is down; then empties it with the usual pauses, in a quarter of an hour. No chunk
may be lost or arrive twice, and ship may have at most 32 MB of memory.

The last line is JSON.
"""

import json
import os
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / 'integration'))

import harness
from account import Account, spooled_ids
from harness import check, wait_for
from test_delivery_answers import sleepers

SPOOLED = int(os.environ.get('SPOOLED') or 10000)
TARGETS = 100
RSS_MAX_BYTES = 32 << 20

# 100 ms between two chunks, and as much again for a busy machine.
DRAIN_S = 60 + SPOOLED * 0.2


def start(box, targets, server, seconds, **options):
    return box.profd(targets, '--chunk-seconds', seconds, '--dsn', server.dsn,
                     '--spool', box.dir / 'spool', env=server.env, **options)


def check_rss(profd):
    used = profd.stats['rss_peak_bytes']['ship']
    check(used < RSS_MAX_BYTES, f'ship had {used} bytes')
    return used


def test_in_and_out(box):
    server = box.server()
    server.down()
    spool = box.dir / 'spool'
    began = time.monotonic()
    filling = start(box, sleepers(box, TARGETS), server, 1)
    wait_for(lambda: len(spooled_ids(spool)) >= SPOOLED, 'all of them are in',
             10 * harness.PATIENCE_S)
    filling.interrupt()
    seconds = {'in': time.monotonic() - began}
    server.up()
    began = time.monotonic()
    # When the server has answered its first chunk, the chunks in the spool are due.
    draining = start(box, sleepers(box, 1), server, 1)
    wait_for(lambda: not spooled_ids(spool), 'all of them are out',
             DRAIN_S + harness.PATIENCE_S)
    draining.interrupt()
    seconds['out'] = time.monotonic() - began
    rss = [check_rss(profd) for profd in (filling, draining)]
    a = Account([filling, draining], [server], spool)
    check(a.taken == a.made and not a.discarded and a.again == 0,
          f'{len(a.made)} were made, {len(a.taken)} taken')
    print(json.dumps({
        'through the spool': filling.stats['spool']['waiting'],
        'seconds in': round(seconds['in']),
        'seconds out': round(seconds['out']),
        'ship MB in': round(rss[0] / 2**20, 1),
        'ship MB out': round(rss[1] / 2**20, 1)}))


if __name__ == '__main__':
    harness.main(globals())
