#!/usr/bin/python3
"""Running processes are selected by common properties: --name, --unit and
--container, by the rules of the configuration."""

import os
import shutil

import harness
import stranger
from harness import BUILD, check, wait_for


def program(box, name):
    path = box.make_dir('bin') / name
    shutil.copy2(BUILD / 'targets/shares', path)
    path.chmod(0o755)
    return path


def start(box, path, **options):
    target = box.start([path], **options)
    target.wait_line('ready.*')
    return target


def run(box, targets, *args, **options):
    """Profiles until all of these are traced; returns which others were, by
    the statistics."""
    profd = box.profd([], *args, **options)
    profd.pids = [t.pid for t in targets]
    profd.wait_attached()
    profd.wait_looks()
    profd.interrupt()
    return sorted(t['pid'] for t in profd.stats['targets'])


def test_by_name(box):
    one, other = program(box, f'run{os.getpid()}a'), \
        program(box, f'run{os.getpid()}b')
    first, second, third = start(box, one), start(box, one), start(box, other)
    found = run(box, [first, second], '--name', one.name)
    check(found == sorted([first.pid, second.pid]), f'{found}')
    found = run(box, [first, second, third], '--name', f'run{os.getpid()}?')
    check(found == sorted([first.pid, second.pid, third.pid]), f'{found}')
    # Combined with other options, each process is profiled once.
    found = run(box, [first, second, third], '--name', one.name, '--name',
                f'{one.name[:-1]}[!b]', '--pid', first.pid, '--pid', third.pid)
    check(found == sorted([first.pid, second.pid, third.pid]), f'{found}')


def test_none_matches(box):
    profd = box.profd([], '--name', f'none{os.getpid()}').finish(1)
    check('no running process matches --name, --unit or --container' in
          profd.stderr, profd.stderr)
    for option, value, line in (
            ('--name', 'longer-than-fifteen-bytes', 'matches no name'),
            ('--unit', 'a/b', 'matches no unit'),
            ('--container', 'NOT-HEX', 'matches no container'),
            ('--name', '', 'empty')):
        profd = box.profd([], option, value).finish(2)
        check(f'{option}: ' in profd.stderr and line in profd.stderr,
              profd.stderr)


def in_group(box, name):
    """Starts a process in a control group of this name; skips the test if
    there can be none."""
    base = next((b for b in ('/sys/fs/cgroup/systemd', '/sys/fs/cgroup',
                             '/sys/fs/cgroup/unified')
                 if os.path.exists(f'{b}/cgroup.procs')), None)
    if base is None or os.geteuid() != 0:
        raise harness.Skip('no control group can be made')
    target = start(box, BUILD / 'targets/shares')
    path = f'{base}/{name}'
    try:
        os.mkdir(path)
        with open(f'{path}/cgroup.procs', 'w') as f:
            f.write(str(target.pid))
    except OSError as e:
        raise harness.Skip(f'no control group can be made: {e}') from None
    return target, path


def end_group(target, path):
    target.end()
    wait_for(lambda: not open(f'{path}/cgroup.procs').read(), 'its end')
    os.rmdir(path)


def test_by_unit(box):
    name = f'run{os.getpid()}'
    target, path = in_group(box, f'{name}.service')
    try:
        found = run(box, [target], '--unit', name)
        check(found == [target.pid], f'{found}')
    finally:
        end_group(target, path)


def test_by_container(box):
    digits = f'{os.getpid():064x}'
    digits = f'abc{digits[3:]}'
    target, path = in_group(box, f'docker-{digits}.scope')
    try:
        found = run(box, [target], '--container', digits)
        check(found == [target.pid], f'{found}')
    finally:
        end_group(target, path)


def test_an_ordinary_user(box):
    """An ordinary user gets only his own among the matching processes."""
    stranger.need_root()
    path = program(box, f'run{os.getpid()}c')
    own, roots = start(box, path, **stranger.options()), start(box, path)
    profd = stranger.profd(box, [], '--name', path.name)
    profd.pids = [own.pid]
    profd.wait_attached()
    profd.wait_looks().interrupt()
    check([t['pid'] for t in profd.stats['targets']] == [own.pid], 'others')
    check('1 processes of other users match' in profd.stderr, profd.stderr)
    check(roots.running(), 'it has ended')


if __name__ == '__main__':
    harness.main(globals())
