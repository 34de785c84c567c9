#!/usr/bin/python3
"""Root in a container: the default capabilities and SYS_PTRACE are sufficient
for processes of root and of other users. A missing capability is reported with
its effect."""

import re

import harness
import stranger
from container_rights import DEFAULTS, Container, refusing
from control import Control
from harness import check, proc_status, tracer, wait_for

# Capabilities that both lists lack, and the effect of each.
SAID = {
    'CAP_CHECKPOINT_RESTORE': 'deleted or replaced',
    'CAP_SYS_NICE': 'samples come late',
}
NO_ONE_ELSES = 'only processes of root are profiled'

DAC_OVERRIDE, DAC_READ_SEARCH = 1 << 1, 1 << 2

# The number is the same on all architectures.
PIDFD_GETFD = 438

SECTION = '''[profiler]
chunk_seconds = 1
[target "own"]
pid_file = {own}
autostart = yes
profile_session_sample_rate = 1
min_age_seconds = 0
[target "other"]
pid_file = {other}
autostart = yes
profile_session_sample_rate = 1
min_age_seconds = 0
'''


def missing(profd):
    """Returns {name: effect} from the warnings."""
    return dict(re.findall(r'^sentry-profd: warning: degraded: no ([^:,]+): (.*)$',
                           profd.stderr, re.M))


def as_line(one):
    """Returns an element of `degraded` in the status as the log has it."""
    because = f', because {one["reason"]}' if one['reason'] else ''
    return f'degraded: {one["what"]}{because}: {one["effect"]} ({one["remedy"]})'


def check_said(profd, names, own_users):
    """Checks that each missing capability of SAID is reported once, with its
    effect."""
    found = missing(profd)
    # In a user namespace these capabilities have no effect.
    expected = {n for n in SAID
                if own_users or n[len('CAP_'):].lower() not in names}
    check({n for n in found if n.startswith('CAP_')} == expected,
          f'{found}, not {expected}: {profd.stderr}')
    for name in expected:
        check(SAID[name] in found[name], f'{name}: {found[name]}')


def check_stacks(profd, targets):
    """Checks that all frames of each target have a name, up to its start."""
    for target in targets:
        chunks = [c for c in profd.chunks if str(target.pid) in
                  c['profile']['thread_metadata']]
        check(chunks, f'no chunk of {target.pid}')
        names = {f.get('function') for c in chunks
                 for f in c['profile']['frames']}
        check({'busy_seventy', 'busy_thirty', 'main', '_start',
               'sleeper'} <= names, f'{target.pid}: {names}')
        check(None not in names, f'{target.pid}: frames without a name')
        for image in (i for c in chunks for i in c['debug_meta']['images']):
            check(image['debug_id'].strip('0-'), f'{image}')


def check_powers(profd, names):
    """Checks that capture has one capability to read, and the broker none to
    write."""
    capture, = profd.helpers()['capture']
    reads = DAC_READ_SEARCH if 'dac_read_search' in names else DAC_OVERRIDE
    for pid, expected in ((capture, reads),
                          (profd.pid, reads & DAC_READ_SEARCH)):
        found = int(proc_status(pid, 'CapEff'), 16)
        check(found & (DAC_OVERRIDE | DAC_READ_SEARCH) == expected,
              f'{pid}: {found:x}')


def profile(box, names, own_users=False):
    """Profiles by --pid and by a configuration."""
    names = names | {'sys_ptrace'}
    container = Container(box, names, own_users)
    targets = [container.target(0), container.target(stranger.UID)]
    for target in targets:
        profd = container.profd([target])
        profd.wait_attached().wait_looks()
        check_powers(profd, names)
        profd.interrupt()
        check_said(profd, names, own_users)
        check_stacks(profd, [target])
    pid_files = {name: container.file(f'{name}.pid', f'{target.pid}\n')
                 for name, target in zip(('own', 'other'), targets)}
    config = container.file('profd.conf', SECTION.format(**pid_files))
    profd = container.profd([], '--config', config, '--socket',
                            config.with_name('socket'))
    wait_for(lambda: all(tracer(t.pid) for t in targets), 'both are profiled')
    profd.wait_chunks(4)
    check_powers(profd, names)
    told = container.status(config.with_name('socket'))['daemon']['degraded']
    profd.interrupt()
    check_said(profd, names, own_users)
    told = [as_line(one) for one in told]
    check(told == [line.partition(': warning: ')[2]
                   for line in profd.stderr.splitlines()
                   if ': warning: degraded: ' in line],
          f'{told}: {profd.stderr}')
    check_stacks(profd, targets)


def test_default_capabilities(box):
    for names in DEFAULTS.values():
        profile(box, names)


def test_in_a_user_namespace(box):
    for names in DEFAULTS.values():
        profile(box, names, own_users=True)


def test_a_filter_that_refuses_a_call(box):
    """A filter such as that of systemd-nspawn: its effect is reported once to
    the user who starts the daemon, and in the status."""
    kind, name, wrapper = 'pidfd_getfd', 'pidfd_getfd(2)', refusing(PIDFD_GETFD)
    stranger.need_ptrace()
    for is_root in (True, False):
        target = stranger.target(box, 'shares')
        if is_root:
            socket = box.make_dir('socket') / 'socket'
            profd = box.profd([target], '--socket', socket, wrapper=wrapper)
        else:
            socket = stranger.make_dir(box, 'socket') / 'socket'
            profd = stranger.profd(box, [target], '--socket', socket,
                                   wrapper=wrapper)
        profd.wait_attached().wait_looks()
        told = Control(box, socket).status()['daemon']['degraded']
        health = Control(box, socket).run('healthy', status=1)
        profd.interrupt()
        found = missing(profd)
        check('sockets' in found[name], profd.stderr)
        check(is_root or set(found) == {name}, profd.stderr)
        check(all(one['breaks_promise'] == (one['kind'] == kind) for one in told), f'{told}')
        fault, = (as_line(one) for one in told if one['kind'] == kind)
        check(health.stdout == '' and
              f'degraded: {health.stderr}' == f'{fault}\n'.replace(
                  'degraded: ', 'degraded: sentry-profctl: ', 1), f'{health}')
        told = [as_line(one) for one in told]
        check(told == [f'degraded: no {n}: {cost}' for n, cost in found.items()],
              f'{told}: {profd.stderr}')


def test_with_nothing_but_the_right_to_trace(box):
    """Root's own processes are profiled. For processes of other users the
    reason is reported, and none of their threads is stopped."""
    container = Container(box, {'sys_ptrace'})
    own, other = container.target(0), container.target(stranger.UID)
    profd = container.profd([own])
    profd.wait_attached().wait_looks()
    profd.interrupt()
    check(NO_ONE_ELSES in missing(profd)['CAP_DAC_READ_SEARCH'], profd.stderr)
    check_stacks(profd, [own])
    profd = container.profd([other]).finish(1)
    check(re.search(rf'not permitted to read .* process {other.pid}, .*uid '
                    rf'{stranger.UID}: .* CAP_DAC_READ_SEARCH', profd.stderr),
          profd.stderr)
    check('traced by' not in profd.stderr, profd.stderr)
    # Even if it may change to another user, capture stays the user who can
    # read.
    container = Container(box, {'sys_ptrace', 'setuid', 'setgid'})
    profd = container.profd([own])
    profd.wait_attached().wait_looks()
    profd.interrupt()
    check_stacks(profd, [own])


if __name__ == '__main__':
    harness.main(globals())
