#!/usr/bin/python3
"""What users who are no operators may have done with their own processes: user_attach in
[sentry]. A process of which a section, the command line or an operator decides is not
concerned."""

import re
import subprocess

import control
import harness
import openmetrics
import stranger
from harness import check, wait_for
from test_control import configured, listening, section, with_subuid
from test_record import LEFT_OUT, stranger_recording, wait_samples

UID = stranger.UID


def own(box, uid=UID):
    """A process of a user that no section matches."""
    return stranger.target(box, 'unw_o2', 'spin', uid=uid)


def matched(box, *lines, rate=0):
    """A process of a user that the section "s" matches, and the section."""
    exe = stranger.copy(box, ['targets/unw_o2']) / 'unw_o2'
    target = box.start([exe, 'spin'], **stranger.options())
    target.wait_line('ready.*')
    text = section('s', exe, *lines).replace('rate = 1', f'rate = {rate}')
    return target, text


def setting(value, text=''):
    return f'[sentry]\nuser_attach = {value}\n{text}'


def is_refused(ctl, value, *args):
    said = ctl.run(*args, uid=UID, status=1).stderr
    check(f'user_attach = {value} in [sentry]: only operators may' in said, said)


def records(ctl, pid, uid=UID, function='spin'):
    table = ctl.run('record', pid, '-d', '1', '--to', 'summary', uid=uid).stdout
    check(function in table, table)


def test_record_is_the_default(box):
    """Users record their processes, and send nothing."""
    stranger.need_root()
    target = own(box)
    profd, ctl, _ = configured(box, '')
    is_refused(ctl, 'record', 'attach', target.pid)
    check(ctl.target(target.pid) is None, 'it is no target')
    recording = stranger_recording(ctl.path, target.pid)
    check(isinstance(recording.next(), dict), 'a chunk')
    check(ctl.target(target.pid)['attached_by'] == UID, 'who records it')
    # It does not become one that is sent.
    is_refused(ctl, 'record', 'attach', target.pid)
    check('no target' in ctl.run('start', target.pid, uid=UID, status=1).stderr, 'start')
    check(isinstance(recording.next(), dict), 'another')
    recording.close()
    records(ctl, target.pid)
    stack = ctl.run('stack', target.pid, uid=UID).stdout
    check('spin' in stack, stack)
    profd.interrupt()
    check(profd.chunks == [], f'{profd.chunks}')


def test_send(box):
    stranger.need_root()
    target = own(box)
    profd, ctl, _ = configured(box, setting('send'))
    ctl.run('attach', target.pid, uid=UID)
    ctl.wait_state(target.pid, 'profiling')
    check(ctl.target(target.pid)['attached_by'] == UID, 'who attached it')
    check(ctl.target(target.pid, uid=UID + 1)['attached_by'] is None, 'others do not see')
    check(f' {UID}  ' in ctl.run('status').stdout.splitlines()[-1], 'the table')
    line = f'process {target.pid} (uid {UID}) is to be profiled: requested by uid {UID} (pid '
    check(re.search(f'info: {re.escape(line)}\\d+\\)\n', profd.stderr), profd.stderr)
    wait_samples(ctl, target.pid, 20)
    profd.interrupt()
    check(len(profd.chunks) == 1, 'its chunk')


def test_no(box):
    """Only what a section matches is profiled."""
    stranger.need_root()
    target = own(box)
    theirs, text = matched(box)
    profd, ctl, _ = configured(box, setting('no', text))
    is_refused(ctl, 'no', 'attach', target.pid)
    is_refused(ctl, 'no', 'record', target.pid, '-d', '1', '--to', 'json')
    wait_for(lambda: ctl.target(theirs.pid), 'a process of the section')
    records(ctl, theirs.pid)
    records(ctl, target.pid, uid=None)
    profd.interrupt()


def test_a_process_that_a_section_matches(box):
    """The administrator has decided to send it, so its user may attach it."""
    stranger.need_root()
    target, text = matched(box)
    profd, ctl, _ = configured(box, text)
    wait_for(lambda: ctl.target(target.pid), 'the section matches it')
    check(ctl.target(target.pid)['attached_by'] is None, 'nobody has')
    ctl.run('attach', target.pid, uid=UID)
    ctl.wait_state(target.pid, 'profiling')
    check(ctl.target(target.pid)['attached_by'] == UID, 'who attached it')
    wait_samples(ctl, target.pid, 20)
    profd.interrupt()
    check(len(profd.chunks) == 1, 'its chunk')


def test_a_section_that_is_removed(box):
    """The section was the reason why the user might attach the process."""
    stranger.need_root()
    target, text = matched(box)
    profd, ctl, path = configured(box, text)

    def reload(text):
        path.write_text(text)
        ctl.run('reload')
    wait_for(lambda: ctl.target(target.pid), 'the section matches it')
    ctl.run('attach', target.pid, uid=UID)
    ctl.wait_state(target.pid, 'profiling')
    reload('')
    wait_for(lambda: ctl.target(target.pid) is None, 'it is no target')
    is_refused(ctl, 'record', 'attach', target.pid)
    reload(text)
    wait_for(lambda: ctl.target(target.pid), 'the section matches it')
    ctl.run('detach', target.pid, uid=UID)
    reload('')
    wait_for(lambda: ctl.target(target.pid)['name'] == 'pid', 'it is of no section')
    is_refused(ctl, 'record', 'attach', target.pid)
    reload('')
    check(ctl.target(target.pid)['state'] == 'left_out', 'it stays detached')
    ctl.run('attach', target.pid)
    ctl.wait_state(target.pid, 'profiling')
    profd.interrupt()


def test_what_an_operator_attached(box):
    """Its user may stop, start and record it. A process that the user records is sent if an
    operator attaches it."""
    stranger.need_root()
    target = own(box)
    profd, ctl, _ = configured(box, setting('no'))
    ctl.run('attach', target.pid)
    ctl.wait_state(target.pid, 'profiling')
    check(ctl.target(target.pid)['attached_by'] == 0, 'who attached it')
    check(', an operator\n' in profd.stderr, profd.stderr)
    records(ctl, target.pid)
    ctl.run('stop', target.pid, uid=UID)
    ctl.run('start', target.pid, uid=UID)
    profd.interrupt()
    profd, ctl, _ = configured(box, '')
    recording = stranger_recording(ctl.path, target.pid)
    check(isinstance(recording.next(), dict), 'a chunk')
    ctl.run('attach', target.pid)
    ctl.wait_state(target.pid, 'profiling')
    wait_for(lambda: ctl.target(target.pid)['profiler_id'], 'a run that is sent')
    check(isinstance(recording.next(), dict), 'another')
    check(ctl.target(target.pid)['attached_by'] == 0, 'who attached it')
    wait_samples(ctl, target.pid, 20)
    profd.interrupt()
    check(len(profd.chunks) == 1, 'its chunk')


def test_a_reload(box):
    """Applies to the processes that users have added before."""
    stranger.need_root()
    target, other, third = own(box), own(box), own(box)
    profd, ctl, path = configured(box, setting('send'))
    ctl.run('attach', target.pid, uid=UID)
    ctl.run('attach', third.pid)
    recording = stranger_recording(ctl.path, other.pid)
    check(isinstance(recording.next(), dict), 'a chunk')
    path.write_text(setting('record'))
    ctl.run('reload')
    wait_for(lambda: ctl.target(target.pid) is None, 'it is no target')
    check(isinstance(recording.next(), dict), 'the recording goes on')
    path.write_text(setting('no'))
    ctl.run('reload')
    check(recording.rest()[1] == LEFT_OUT, 'the recording ends')
    wait_for(lambda: ctl.target(other.pid) is None, 'it is no target')
    check(ctl.wait_state(third.pid, 'profiling'), 'the operator\'s stays')
    profd.interrupt()


def test_the_environment_of_a_process(box):
    """A section takes release and environment from processes of root, of its user, or of all
    if it trusts their environment."""
    stranger.need_root()
    exe = stranger.copy(box, ['targets/unw_o2']) / 'unw_o2'
    env = harness.environment(SENTRY_RELEASE='shop@4.2.0', SENTRY_ENVIRONMENT='shop')
    for user, of_section, trusted in ((UID, (), False), (None, (), True),
                                      (UID, (f'user = {UID}',), True),
                                      (UID, ('trust_environment = yes',), True),
                                      (UID, ('trust_environment = no',), False)):
        target = box.start([exe, 'spin'], env=env,
                           **(stranger.options() if user else {}))
        target.wait_line('ready.*')
        profd, ctl, _ = configured(box, section('s', exe, 'autostart = yes', *of_section))
        ctl.wait_state(target.pid, 'profiling')
        wait_samples(ctl, target.pid, 20)
        profd.interrupt()
        target.end()
        found = profd.chunks[0]['release'], profd.chunks[0]['environment']
        check((found == ('shop@4.2.0', 'shop')) == trusted and
              (trusted or (found[0].startswith('unw_o2@') and found[1] == 'production')),
              f'{user} {of_section}: {found}')


def test_another_user_at_the_same_process(box):
    """A process of root becomes one of a user who chooses its environment."""
    stranger.need_root()
    exe = stranger.copy(box, ['targets/unw_o2']) / 'unw_o2'
    target = box.start(
        ['sh', '-c', f'echo first; read x; exec setpriv --reuid {UID} --clear-groups '
         f'env SENTRY_RELEASE=theirs@1 {exe} spin'], stdin=subprocess.PIPE,
        env=harness.environment(SENTRY_RELEASE='roots@1'))
    target.wait_line('first')
    text = section('s', '/usr/bin/dash', 'autostart = yes').replace(
        'exe = /usr/bin/dash', f'pid_file = {box.dir}/pid')
    (box.dir / 'pid').write_text(f'{target.pid}\n')
    profd, ctl, _ = configured(box, text)
    ctl.wait_state(target.pid, 'profiling')
    wait_samples(ctl, target.pid, 20)
    target.process.stdin.write(b'\n')
    target.process.stdin.flush()
    target.wait_line('ready.*')
    # By the kernel's word, or by that of the next second.
    wait_for(lambda: openmetrics.total(ctl.metrics(), 'rights_changes_total') == 1, 'another run')
    wait_samples(ctl, target.pid, 20)
    profd.interrupt()
    releases = {c['release'] for c in profd.chunks}
    check('roots@1' in releases and 'theirs@1' not in releases, f'{releases}')
    check(any(r.startswith('unw_o2@') for r in releases), f'{releases}')


def attach(ctl, uid, pid):
    """Returns why a user may not attach a process; "": it is attached."""
    return subprocess.run(
        [ctl.exe, 'attach', str(pid)], text=True, capture_output=True, check=False, cwd='/',
        env=harness.environment(SENTRY_PROFD_SOCKET=str(ctl.path)),
        **stranger.options(uid)).stderr


OF_USER = '8 processes of this user are attached or recorded'
OF_ALL = 'all users together have 64 attached or recorded'


def sleepers(box, uid, n):
    exe = stranger.copy(box, ['targets/unw_o2']) / 'unw_o2'
    found = [box.start([exe, 'nanosleep'], **stranger.options(uid)) for _ in range(n)]
    for target in found:
        target.wait_line('ready.*')
    return found


def test_all_users_together(box):
    """Have 64 of the 256 processes that can be profiled, and each user 8."""
    stranger.need_root()
    users = range(UID, UID + 9)
    targets = {uid: sleepers(box, uid, 9 if uid == UID else 8) for uid in users[:8]}
    last, = sleepers(box, users[8], 1)
    profd, ctl, _ = configured(box, setting('send'))
    for n in range(8):
        for uid in users[:8]:
            check(attach(ctl, uid, targets[uid][n].pid) == '', f'{uid}: {n}')
    for _ in range(2):
        check(OF_USER in attach(ctl, UID, targets[UID][8].pid), 'the ninth')
        check(OF_ALL in attach(ctl, users[8], last.pid), 'the ninth user')
    check(profd.stderr.count(f'uid {UID} has 8 attached or recorded processes') == 1 and
          profd.stderr.count('users have 64 attached or recorded processes') == 1, profd.stderr)
    # Operators have no such limit.
    records(ctl, targets[UID][8].pid, uid=None, function='nanosleep')
    ctl.run('attach', last.pid)
    ctl.run('detach', last.pid)
    wait_for(lambda: ctl.target(last.pid) is None, 'it is let go')
    # A process that ends makes room, for one.
    targets[UID][0].end()
    wait_for(lambda: attach(ctl, users[8], last.pid) == '', 'room')
    check(OF_ALL in attach(ctl, UID, targets[UID][8].pid), 'no more')
    check(profd.stderr.count('users have 64 attached or recorded processes') == 2, profd.stderr)
    profd.interrupt()


def test_recordings_of_a_section(box):
    """Count if the section does not want the processes."""
    stranger.need_root()
    exe = stranger.copy(box, ['targets/unw_o2']) / 'unw_o2'
    targets = [box.start([exe, 'nanosleep'], **stranger.options()) for _ in range(9)]
    profd, ctl, _ = configured(box, section('s', exe).replace('rate = 1', 'rate = 0'))
    for target in targets:
        wait_for(lambda t=target: ctl.target(t.pid), 'the section matches it')
    recorders = [box.start([ctl.exe, 'record', '--to', 'folded', '--socket', ctl.path, t.pid],
                           **stranger.options()) for t in targets[:8]]
    for target in targets[:8]:
        wait_for(lambda t=target: harness.tracer(t.pid), 'it is recorded')
    said = ctl.run('record', targets[8].pid, '-d', '1', '--to', 'json', uid=UID, status=1).stderr
    check(OF_USER in said, said)
    said = ctl.run('attach', targets[8].pid, uid=UID, status=1).stderr
    check(OF_USER in said, said)
    recorders[0].end()
    wait_for(lambda: not harness.tracer(targets[0].pid), 'the recording has ended')
    ctl.run('attach', targets[8].pid, uid=UID)
    profd.interrupt()


def test_uids_of_a_range(box):
    """Count as one user."""
    first = 200000
    wrapper = with_subuid(box, f'{UID}:{first}:65536\n')
    uids = [first + n for n in range(8)] + [UID]
    targets = [sleepers(box, uid, 1)[0] for uid in uids]
    path = box.make_dir('etc') / 'profd.conf'
    path.write_text(setting('send'))
    profd, ctl = listening(box, [], '--config', path, wrapper=wrapper)
    for uid, target in zip(uids[:8], targets):
        check(attach(ctl, uid, target.pid) == '', f'{uid}')
    check(OF_USER in attach(ctl, UID, targets[8].pid), 'the owner')
    profd.interrupt()


def test_children(box):
    """With --children the children of a process that a user adds would be sent."""
    stranger.need_root()
    target = own(box)
    profd, ctl = listening(box, [box.napper()], '--children')
    profd.wait_attached()
    said = ctl.run('record', target.pid, '-d', '1', '--to', 'json', uid=UID, status=1).stderr
    check('--children: only operators' in said, said)
    profd.interrupt()


def test_the_daemon_of_a_user(box):
    """That user is its operator."""
    stranger.need_root()
    stranger.need_ptrace()
    target, other = own(box), own(box)
    path = stranger.make_dir(box, 'run') / 'profd.sock'
    profd = stranger.profd(box, [other], '--socket', path)
    wait_for(lambda: control.listens(path) or not profd.running(), 'a socket')
    ctl = control.Control(box, path)
    ctl.run('attach', target.pid, uid=UID)
    ctl.wait_state(target.pid, 'profiling')
    profd.interrupt()


if __name__ == '__main__':
    harness.main(globals())
