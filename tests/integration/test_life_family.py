#!/usr/bin/python3
"""Children and threads of a profiled process, made in every way, behave as
without the profiler, in any namespace.
"""

import subprocess

import harness
import life
from harness import BUILD, Skip

harness.filters_kill()


def test_children_of_every_kind(box):
    life.compare(box, 'life_family', 40)


def in_namespaces(box, *options):
    """Runs the same in namespaces of its own, in which the target's pids
    differ from capture's."""
    probe = subprocess.run(['unshare', *options, 'true'], check=False,
                           stderr=subprocess.DEVNULL)
    if probe.returncode != 0:
        raise Skip(f'unshare {" ".join(options)} is refused')
    shell = box.start(['unshare', *options, BUILD / 'targets/life_family', 40],
                      stdin=subprocess.PIPE)
    shell.wait_line(r'ready \d+')
    target = shell.pid
    while harness.exe_name(target) != 'life_family':
        target, = harness.children(target)
    profd = box.profd([target], '--rate', 1000).wait_attached()
    life.begin(shell)
    lines = life.transcript(shell)
    life.check_profd(profd)
    harness.check(lines == ['rounds 40'], f'{lines}')


def test_in_a_pid_namespace(box):
    in_namespaces(box, '--pid', '--fork', '--mount-proc')


def test_in_nested_pid_namespaces(box):
    in_namespaces(box, '--pid', '--fork', '--mount-proc', 'unshare', '--pid',
                  '--fork', '--mount-proc')


def test_in_a_user_namespace(box):
    in_namespaces(box, '--user', '--map-root-user', '--pid', '--fork',
                  '--mount-proc')


def test_in_a_mount_namespace(box):
    in_namespaces(box, '--mount', '--uts', '--ipc', '--net')


def test_with_small_limits(box):
    """Profiling uses up no limit of the target."""
    program = box.start(['bash', '-c', f'ulimit -n 24; ulimit -i 16; ulimit -l 0;'
                         f' exec {BUILD}/targets/life_family 40'],
                        stdin=subprocess.PIPE)
    program.wait_line(r'ready \d+')
    life.profiled(box, program, 1000)


if __name__ == '__main__':
    harness.main(globals())
