#!/usr/bin/python3
"""Events that the root process must survive: reloads while runs end, rates
that a reload raises, more DSNs in its life than processes at a time, and a
machine without free descriptors.
"""

import os
import resource
import signal

import harness
from control import Control
from harness import check, wait_for
from service import Service


def test_a_section_changes_and_goes_while_its_run_ends(box):
    """Two reloads in immediate succession."""
    for _ in range(5):
        service = Service(box, {'a': {}})
        programs = [service.start('a') for _ in range(8)]
        service.wait_profiled(*(p.pid for p in programs))
        service.reload({'a': {'release': 'a@2'}})
        service.reload({})
        service.wait_left(*(p.pid for p in programs))
        service.reload({'a': {'release': 'a@3'}})
        service.wait_profiled(*(p.pid for p in programs))
        service.stop()
        for program in programs:
            program.end()


def test_a_rate_that_a_reload_raises(box):
    """The timer keeps its rate, which also applies to a process that is
    attached by hand, as to all others."""
    service = Service(box, {'a': {}})
    ctl = Control(box, service.dir / 'socket')
    first = service.start('a')
    service.wait_profiled(first.pid)
    service.path.write_text(service.path.read_text().replace(
        '[profiler]', '[profiler]\nrate_hz = 997'))
    service.profd.signal(signal.SIGHUP)
    wait_for(lambda: 'the configuration has been reloaded' in service.profd.stderr,
             'a reload')
    other = box.target('shares')
    capture = service.profd.helpers()['capture']
    ctl.run('attach', other.pid)
    service.wait_profiled(first.pid, other.pid)
    service.profd.wait_looks()
    check(service.profd.helpers()['capture'] == capture,
          'capture was replaced')
    service.stop()
    check(sum(service.profd.stats['missed'].values()) <
          service.profd.stats['samples_taken'], f'{service.profd.stats}')


def test_more_dsns_in_a_life_than_processes(box):
    """Twelve DSNs, three times: the processes of earlier DSNs end, after they
    have sent their chunks."""
    names = [f's{n}' for n in range(12)]

    def sections(turn):
        return {name: {'dsn': f'http://key{turn}{name}@127.0.0.1:9/1'}
                for name in names}
    service = Service(box, sections(0), '--shutdown-timeout', '1')
    programs = [service.start(name) for name in names]
    pids = [p.pid for p in programs]
    service.wait_profiled(*pids)
    for turn in (1, 2, 3):
        service.reload(sections(turn))
        service.wait_profiled(*pids)
        wait_for(lambda: len(service.profd.helpers()['ship']) ==
                 len(names) + 1, 'the old ones end')
    service.stop()
    check(all(not v for v in service.profd.stats.get('restarts', {}).values()),
          f'{service.profd.stats}')


def set_limit(pid, soft):
    _, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (soft, hard))


def test_no_descriptors(box):
    """No child is killed for the lack, and all work goes on when there are
    descriptors again."""
    service = Service(box, {'a': {}})
    profd = service.profd
    before = service.start('a')
    service.wait_profiled(before.pid)
    profd.wait_chunks()
    helpers = profd.helpers()
    limit = resource.prlimit(profd.pid, resource.RLIMIT_NOFILE)
    # The limit is what is open now, so no further descriptor is available.
    set_limit(profd.pid, 3)
    meanwhile = [service.start('a') for _ in range(4)]
    wait_for(lambda: 'Too many open files' in profd.stderr, 'a lack')
    os.kill(helpers['capture'][0], signal.SIGKILL)
    wait_for(lambda: profd.stderr.count('cannot be started') >= 1,
             'it cannot be started')
    late = [service.start('a') for _ in range(4)]
    resource.prlimit(profd.pid, resource.RLIMIT_NOFILE, limit)
    service.wait_profiled(before.pid, *(p.pid for p in meanwhile + late))
    check(profd.helpers()['unwind'] == helpers['unwind'] and
          profd.helpers()['ship'] == helpers['ship'],
          f'{helpers}, now {profd.helpers()}: {profd.stderr}')
    service.stop()
    check(profd.stats['resource_shortages'] > 0, f'{profd.stats}')


if __name__ == '__main__':
    harness.main(globals())
