#!/usr/bin/python3
"""sentry-profctl and the running daemon: its requests, their effects, and who
may make them."""

import contextlib
import os
import signal
import stat
import subprocess
import sys

import control
import harness
import openmetrics
import status_schema
import stranger
import test_32bit
from harness import BUILD, check, wait_for


# Results, as in lib/client/protocol.h.
OK, DENIED = 0, 6


def listening(box, targets, *args, **options):
    """A daemon with a socket, and its operator."""
    path = box.make_dir('run') / 'sub' / 'profd.sock'
    profd = box.profd(targets, '--socket', path, *args, **options)
    wait_for(lambda: control.listens(path) or not profd.running(), 'a socket')
    check(profd.running(), profd.stderr)
    return profd, control.Control(box, path)


def sleeper(box):
    return box.target('unw_o2', 'nanosleep')


def test_status(box):
    target = box.target('unw_o2', 'spin')
    profd, ctl = listening(box, [target], '--rate', '97')
    profd.wait_attached().wait_looks()
    status = ctl.status()
    daemon, found = status['daemon'], ctl.target(target.pid)
    check(daemon['pid'] == profd.pid and daemon['profiling'] == 1 and
          daemon['capture_pid'] in profd.helpers()['capture'] and
          daemon['uptime_s'] > 0, f'{daemon}')
    check(found['name'] == 'pid' and found['state'] == 'profiling' and
          found['session_sampled'] is True and found['rate_hz'] == 97 and
          found['lifecycle'] == 'manual' and found['threads'] == 1 and
          found['samples_taken'] > 0 and found['pause_us_p99'] > 0 and
          found['last_error'] is None, f'{found}')
    wait_for(lambda: any(ctl.status()['daemon']['polls'].values()),
             'capture has polled for stops')
    table = ctl.run('status').stdout.splitlines()
    check(f'pid {profd.pid}' in table[0] and table[1].startswith('NAME') and
          len(table) == 3 and str(target.pid) in table[2], f'{table}')
    profd.interrupt()
    check(any(profd.stats['polls'].values()), f'{profd.stats}')
    chunk, = profd.chunks
    check(chunk['profiler_id'] == found['profiler_id'], 'its profiler')
    check(not ctl.path.exists(), 'the socket is taken away')
    gone = ctl.run('status', status=1).stderr
    check('does not run' in gone, gone)


def with_server(box):
    """A daemon with a server, a section with a process, and one without."""
    server = box.server(tls=False)
    path = box.make_dir('etc') / 'profd.conf'
    pid_file = path.with_name('pid')
    pid_file.write_text(f'{sleeper(box).pid}\n')
    section = ('pid_file = {}\nautostart = yes\nmin_age_seconds = 0\n'
               'profile_session_sample_rate = 1\n')
    path.write_text('[profiler]\nchunk_seconds = 1\n[target "some"]\n' +
                    section.format(pid_file) +
                    '[target "none"]\n' + section.format('/nowhere'))
    path.chmod(0o600)
    return listening(box, [], '--config', path, '--dsn', server.dsn, output=None)


def test_members_of_the_status(box):
    """Each member that the manual page lists is there. Control.status() checks their types, and
    that there are no others."""
    profd, ctl = with_server(box)
    ctl.run('attach', sleeper(box).pid)
    # Other tests have these: test_left_out_files, test_containers, test_rate_limit, test_discovery.
    absent = ('daemon.files_left_out[].', 'daemon.degraded[].', 'targets[].last_error',
              'daemon.servers[].refusal', 'daemon.sections[].defect')

    def missing():
        return [m for m in set(status_schema.MEMBERS) - status_schema.seen(ctl.status())
                if not m.startswith(absent)]
    wait_for(lambda: not missing(), 'a value for each member')
    profd.interrupt()


def test_stop_and_start(box):
    target = sleeper(box)
    profd, ctl = listening(box, [target])
    profd.wait_attached().wait_looks()
    first = ctl.run('profiler-id', target.pid).stdout.strip()
    check('stopped' in ctl.run('stop', target.pid).stdout, 'it says so')
    wait_for(lambda: not harness.tracer(target.pid), 'it is let go')
    wait_for(lambda: ctl.target(target.pid)['chunks_sent'] == 1, 'its chunk')
    found = ctl.wait_state(target.pid, 'stopped')
    check(found['profiler_id'] is None and found['threads'] == 0, f'{found}')
    check('not profiled' in ctl.run('stop', target.pid).stdout, 'a no-op')
    check('not profiled' in
          ctl.run('profiler-id', target.pid, status=1).stderr, 'no id')
    started = ctl.run('start', target.pid).stdout
    second = ctl.run('profiler-id', target.pid).stdout.strip()
    check(second != first and second in started, f'{first} {started}')
    check('already' in ctl.run('start', target.pid).stdout, 'a no-op')
    profd.wait_attached().wait_looks()
    # All processes of a section.
    check(ctl.run('stop', 'pid').stdout == 'pid: 1 stopped\n', 'by name')
    check('no process' in ctl.run('stop', 'other', status=1).stderr, 'none')
    profd.interrupt()
    check([c['profiler_id'] for c in profd.chunks] == [first, second],
          'a chunk of each')


def test_attach_and_detach(box):
    given, other, brief = sleeper(box), sleeper(box), sleeper(box)
    profd, ctl = listening(box, [given, brief])
    brief.end()
    wait_for(lambda: ctl.target(brief.pid) is None, 'it is not shown')
    profd.pids.remove(brief.pid)
    check('no target' in ctl.run('start', other.pid, status=1).stderr, 'none')
    text = ctl.run('attach', other.pid).stdout
    check('attached' in text, text)
    wait_for(lambda: harness.tracer(other.pid) in
             profd.helpers()['capture'], 'it is profiled')
    profd.wait_looks()
    check(ctl.target(other.pid)['profiler_id'] in text, 'its profiler')
    ctl.run('detach', other.pid)
    wait_for(lambda: not harness.tracer(other.pid) and
             ctl.target(other.pid) is None, 'it is let go and forgotten')
    # A process that --pid names stays known, and is excluded.
    profd.wait_attached()
    ctl.run('detach', given.pid)
    wait_for(lambda: not harness.tracer(given.pid), 'it is let go')
    check(ctl.wait_state(given.pid, 'left_out')['last_error'] == 'detached',
          'why')
    check('left out' in ctl.run('start', given.pid, status=1).stderr, '')
    ctl.run('attach', given.pid)
    profd.wait_attached()
    # A process that has ended is no target any more; the run goes on.
    ctl.run('attach', other.pid)
    other.end()
    wait_for(lambda: ctl.target(other.pid) is None, 'it is forgotten')
    profd.interrupt()


def test_what_is_no_process(box):
    profd, ctl = listening(box, [sleeper(box)])
    for pid, why in ((2, 'kernel thread'), (profd.pid, 'sentry-profd itself'),
                     (2 ** 30, 'no such process')):
        check(why in ctl.run('attach', pid, status=1).stderr, why)
    old = test_32bit.start(box, [test_32bit.program(box)])
    check('32-bit' in ctl.run('attach', old.pid, status=1).stderr, 'a 32-bit program')
    found = ctl.wait_state(old.pid, 'left_out')
    check('32-bit' in found['last_error'], f'{found}')
    worker = box.target('threads', '3')
    tid = next(t for t in harness.threads(worker.pid) if t != worker.pid)
    check(f'thread of process {worker.pid}' in
          ctl.run('attach', tid, status=1).stderr, 'a thread')
    check('no configuration' in ctl.run('reload', status=1).stderr, 'reload')
    for args in (('stop',), ('stop', '1', '2'), ('attach', 'x'),
                 ('start', '--json', '1'), ('status', '--watch=x'),
                 ('status', '1'), ('stop', 'x' * 64)):
        check(ctl.run(*args, status=2).stdout == '', f'{args}')


def test_what_is_no_command(_box):
    for args, why in (
            (['sattus'], "no such command: 'sattus': did you mean status?"),
            (['nothing'], "no such command: 'nothing' ("),
            (['--json', 'status'], 'before the command: --json: not known'),
            (['--sokcet', '/x', 'status'], 'did you mean --socket?'),
            (['--socket'], 'before the command: --socket: needs a value'),
            (['--socket', '/x', 'view', '1'], 'view: --socket: not known'),
            (['status', '--jsno'], 'status: --jsno: not known: did you mean '
             '--json?'),
            (['status', '--json=x'], 'status: --json: takes no value'),
            (['status', '--watch=x'], 'status: --watch=x: not a number of seconds'),
            (['stop', '--json', '1'], 'stop: --json is not an option of this command'),
            (['stack', '--orcale', '1'], 'did you mean --oracle?'),
            (['doctor', '--confg', 'x'], 'did you mean --config?')):
        done = subprocess.run([BUILD / 'sentry-profctl', *args], text=True,
                              capture_output=True, check=False)
        check(done.returncode == 2 and why in done.stderr and
              done.stderr.count('\n') == 1, f'{args}: {done.stderr}')


def test_options_before_the_command(box):
    """Options before the command count as options after it."""
    target = sleeper(box)
    profd, ctl = listening(box, [target])
    other = control.Control(box, '/nowhere')
    for before in (['--socket', ctl.path], [f'--socket={ctl.path}']):
        other.run(*before, 'stop', target.pid)
        ctl.wait_state(target.pid, 'stopped')
        other.run(*before, 'start', target.pid)
    for option in '-h', '--help':
        check(ctl.run(option).stdout.startswith(
            'usage: sentry-profctl [--socket PATH] COMMAND'), option)
    profd.wait_attached().wait_looks().interrupt()


def configured(box, text):
    """Starts the daemon of a service, whose configuration is then changed."""
    path = box.make_dir('etc') / 'profd.conf'
    path.write_text(text)
    profd, ctl = listening(box, [], '--config', path)
    return profd, ctl, path


def section(name, exe, *lines):
    return '\n'.join([f'[target "{name}"]', f'exe = {exe}',
                      'profile_session_sample_rate = 1',
                      'min_age_seconds = 0', *lines, ''])


def test_sections_and_reload(box):
    exe = stranger.copy(box, ['targets/unw_o2']) / 'unw_o2'
    targets = [box.start([exe, 'nanosleep']) for _ in range(3)]
    profd, ctl, path = configured(box, section('sleepers', exe))
    for target in targets:
        found = ctl.wait_state(target.pid, 'stopped')
        check(found['name'] == 'sleepers' and found['session_sampled'] and
              found['profiler_id'] is None, f'{found}')
    check(ctl.run('start', 'sleepers').stdout == 'sleepers: 3 started\n', '')
    for target in targets:
        wait_for(lambda t=target: harness.tracer(t.pid), 'it is profiled')
    check(ctl.run('start', 'sleepers').stdout ==
          'sleepers: 0 started; 3 profiled already\n', '')
    ctl.run('detach', targets[0].pid)
    ctl.wait_state(targets[0].pid, 'left_out')
    # A fault: its line is shown, and the daemon goes on unchanged.
    good = path.read_text()
    path.write_text(good + 'rate_hz = nonsense\n')
    done = ctl.run('reload', status=1)
    check(f'{path}:5: ' in done.stderr and 'nonsense' in done.stderr and
          'the old configuration stays in use' in done.stderr, done.stderr)
    ids = [ctl.target(t.pid)['profiler_id'] for t in targets[1:]]
    # Changes that a running daemon does not apply are reported.
    path.write_text('[profiler]\nspool_max_chunks = 77\n' + good)
    done = ctl.run('reload')
    check('spool_max_chunks' in done.stderr and 'reloaded' in done.stdout,
          done.stdout + done.stderr)
    check([ctl.target(t.pid)['profiler_id'] for t in targets[1:]] == ids,
          'they go on undisturbed')
    check(ctl.target(targets[0].pid)['state'] == 'left_out', 'as before')
    path.write_text('[profiler]\nspool_max_chunks = 77\n')
    check(ctl.run('reload').stderr == '', 'nothing to be said')
    # The first stays detached.
    wait_for(lambda: [(t['pid'], t['state']) for t in ctl.status()['targets']] ==
             [(targets[0].pid, 'left_out')], 'the others are none any more')
    for target in targets:
        wait_for(lambda t=target: not harness.tracer(t.pid), 'let go')
    profd.interrupt()


def test_a_reload_reaches_attached_processes(box):
    """They have the values of [sentry] and [profiler]."""
    target = sleeper(box)
    profd, ctl, path = configured(box, '[profiler]\nrate_hz = 50\n')
    ctl.run('attach', target.pid)
    before = ctl.wait_state(target.pid, 'profiling')
    check(before['rate_hz'] == 50, f'{before}')
    path.write_text('[profiler]\nrate_hz = 50\nchunk_seconds = 2\n')
    ctl.run('reload')
    check(ctl.target(target.pid)['profiler_id'] == before['profiler_id'],
          'nothing that a run takes from the configuration has changed')
    path.write_text('[profiler]\nrate_hz = 20\n')
    ctl.run('reload')
    wait_for(lambda: ctl.wait_state(target.pid, 'profiling')['rate_hz'] == 20, 'the new rate')
    check(ctl.target(target.pid)['profiler_id'] != before['profiler_id'], 'another run')
    profd.interrupt()


def test_who_waits_for_a_limit(box):
    exe = stranger.copy(box, ['targets/unw_o2']) / 'unw_o2'
    pids = {box.start([exe, 'nanosleep']).pid for _ in range(2)}
    profd, ctl, _ = configured(
        box, section('one', exe, 'max_instances = 1', 'autostart = yes'))

    def in_state(state):
        return [t for t in ctl.status()['targets'] if t['state'] == state]
    waiting, = wait_for(lambda: in_state('profiling') and in_state('waiting'), 'one waits')
    check('max_instances' in waiting['last_error'], f'{waiting}')
    ctl.run('stop', waiting['pid'])
    stopped = ctl.wait_state(waiting['pid'], 'stopped')
    check(stopped['last_error'] is None, f'{stopped}')
    ctl.run('start', waiting['pid'])
    ctl.wait_state(waiting['pid'], 'waiting')
    other, = pids - {waiting['pid']}
    ctl.run('stop', other)
    found = ctl.wait_state(waiting['pid'], 'profiling')
    check(found['last_error'] is None, f'{found}')
    profd.interrupt()


def test_a_path_that_is_not_ascii(box):
    for name, shown in ((b'gr\xc3\xb6\xc3\x9fe"\\', 'größe"\\'),
                        (b'\xc3(\x1b\xc2\x9b', '?(??')):
        path = os.fsencode(box.make_dir('etc')) + b'/' + name
        with open(path, 'wb') as f:
            f.write(b'[sentry]\n')
        profd, ctl = listening(box, [], '--config', os.fsdecode(path))
        found = ctl.status()['daemon']['config']
        check(found.endswith('/' + shown), found)
        profd.interrupt()


def test_a_section_that_matches_nothing(box):
    """The section's exe is a link, as that of redis-server is on Debian, so it
    matches no process."""
    exe = stranger.copy(box, ['targets/unw_o2']) / 'unw_o2'
    link, gone = exe.parent / 'link', exe.parent / 'gone'
    link.symlink_to(exe)
    target = box.start([exe, 'nanosleep'])
    text = section('link', link) + section('gone', gone) + section('real', exe)
    profd, ctl, path = configured(box, text)
    ctl.wait_state(target.pid, 'stopped')
    sections = wait_for(lambda: [
        s for s in ctl.status()['daemon']['sections'] if s['instances']] and
        ctl.status()['daemon']['sections'], 'a section with a process')
    check([(s['name'], s['instances'], s['empty_s'] is None) for s in sections]
          == [('link', 0, False), ('gone', 0, False), ('real', 1, True)],
          f'{sections}')
    table = ctl.run('status').stdout
    for name in 'link', 'gone', 'real':
        check((f'[target "{name}"] has matched no process for' in table) ==
              (name != 'real'), table)
    check(openmetrics.total(ctl.metrics(), 'section_processes',
                            section='link') == 0 and
          openmetrics.total(ctl.metrics(), 'section_processes',
                            section='real') == 1, 'the metrics')
    ctl.run('start', 'real')
    wait_for(lambda: openmetrics.total(
        ctl.metrics(), 'section_samples_total', section='real',
        outcome='taken') > 0, 'samples of a section')
    check(openmetrics.total(ctl.metrics(), 'section_samples_total',
                            section='link') == 0, 'of another')
    target.end()
    wait_for(lambda: openmetrics.total(
        ctl.metrics(), 'section_chunks_total', section='real') > 0,
             'what is told of those that ended')
    profd.interrupt()
    done = box.start([BUILD / 'sentry-profd', '--check-config', '--config', path])
    check(done.wait() == 0, done.report())
    lines = [line for line in done.stderr.splitlines() if ': exe: ' in line]
    check(len(lines) == 2 and
          lines[0].endswith(f'exe: {link}: is a symbolic link and matches no '
                            f'process; use exe = {exe}') and
          f'exe: {gone}: no such file' in lines[1], f'{lines}')


def test_a_section_of_which_none_starts(box):
    """start by name reports for each process why it does not start."""
    exe = stranger.copy(box, ['targets/unw_o2']) / 'unw_o2'
    lines = section('s', exe).replace('rate = 1', 'rate = {}')
    targets = [box.start([exe, 'nanosleep']) for _ in range(2)]
    profd, ctl, path = configured(box, lines.format('0'))
    for target in targets:
        ctl.wait_state(target.pid, 'unsampled')
    check(ctl.run('start', 's').stdout ==
          's: 0 started; 2 not sampled (profile_session_sample_rate)\n', 'rate')
    ctl.run('detach', targets[0].pid)
    check(ctl.run('start', 's').stdout ==
          's: 0 started; 1 not sampled (profile_session_sample_rate), 1 left '
          'out (detached, or made the profiler hang)\n', 'detached')
    profd.interrupt()
    path.write_text(lines.format('1') + 'profile_lifecycle = trace\n')
    profd, ctl = listening(box, [], '--config', path)
    for target in targets:
        ctl.wait_state(target.pid, 'stopped')
    for command in 'start', 'stop':
        check(ctl.run(command, 's').stdout.split('; ')[1] ==
              '2 left to their root spans (profile_lifecycle = trace)\n', command)
    profd.interrupt()


def test_faults_of_a_reload_are_in_the_journal_once(box):
    """The daemon logs the faults. systemctl reload calls sentry-profctl, whose
    stderr is the journal, too, so it must not print them again."""
    profd, ctl, path = configured(box, section('s', '/nowhere'))
    path.write_text('[target "s"]\nexe = nowhere\n')
    journal = box.dir / 'journal'
    with open(journal, 'wb') as out:
        st = os.fstat(out.fileno())
        done = subprocess.run([ctl.exe, 'reload'], stderr=out, check=False,
                              env=harness.environment(
                                  SENTRY_PROFD_SOCKET=str(ctl.path),
                                  JOURNAL_STREAM=f'{st.st_dev}:{st.st_ino}'))
    check(done.returncode == 1 and journal.read_bytes() == b'' and
          f'{path}:2: exe: ' in profd.stderr,
          f'{done} {journal.read_text()} {profd.stderr}')
    # To a terminal or a file the faults are printed nevertheless, and so are
    # faults that the daemon does not log.
    check(f'{path}:2: exe: ' in ctl.run('reload', status=1).stderr, 'a file')
    profd.interrupt()


def test_a_word_outlives_a_reload(box):
    """The effect of start, stop and attach lasts after a reload, even if
    another section then matches."""
    exe = stranger.copy(box, ['targets/unw_o2']) / 'unw_o2'
    names = 'started', 'stopped', 'attached', 'untold'
    targets = {n: box.start([exe, 'nanosleep']) for n in names}
    keys = {'started': 'autostart = no', 'stopped': 'autostart = yes',
            'attached': 'profile_lifecycle = trace',
            'untold': 'autostart = no'}

    def sections(release, **more):
        text = ''
        for name, target in targets.items():
            pid_file = box.dir / f'{name}.pid'
            pid_file.write_text(f'{target.pid}\n')
            part = section(name, exe, f'pid_file = {pid_file}',
                           f'release = {release}', more.get(name, keys[name]))
            text += part.replace('rate = 1', 'rate = 0') \
                if name == 'attached' else part
        return text
    profd, ctl, path = configured(box, sections('a@1'))
    ctl.wait_state(targets['stopped'].pid, 'profiling')
    for name in names:
        wait_for(lambda n=name: ctl.target(targets[n].pid), f'{name} is known')
    for command, name in (('start', 'started'), ('stop', 'stopped'),
                          ('attach', 'attached')):
        ctl.run(command, targets[name].pid)
    ids = {n: ctl.wait_state(targets[n].pid, 'profiling')['profiler_id']
           for n in ('started', 'attached')}
    # A process without a request by hand follows its section.
    path.write_text(sections('b@1', untold='autostart = yes'))
    ctl.run('reload')
    ctl.wait_state(targets['untold'].pid, 'profiling')
    for name, old in ids.items():
        wait_for(lambda n=name, i=old: ctl.wait_state(
            targets[n].pid, 'profiling')['profiler_id'] not in (None, i),
            f'{name} goes on, by another profiler')
    check(ctl.wait_state(targets['stopped'].pid, 'stopped'), 'it was told to')
    profd.interrupt()


def test_an_unsampled_session(box):
    exe = stranger.copy(box, ['targets/unw_o2']) / 'unw_o2'
    target = box.start([exe, 'nanosleep'])
    text = section('s', exe).replace('rate = 1', 'rate = 0')
    profd, ctl, _ = configured(box, text + 'autostart = yes\n')
    found = ctl.wait_state(target.pid, 'unsampled')
    check(found['session_sampled'] is False, f'{found}')
    check('not sampled' in ctl.run('start', target.pid, status=1).stderr, '')
    ctl.run('attach', target.pid)
    wait_for(lambda: harness.tracer(target.pid), 'attach takes it')
    ctl.wait_state(target.pid, 'profiling')
    profd.interrupt()


def test_who_is_traced_by_another(box):
    """The state shows the other tracer; when that detaches, the process is
    profiled."""
    exe = stranger.copy(box, ['targets/unw_o2']) / 'unw_o2'
    target = box.start([exe, 'nanosleep'])
    target.wait_line('ready.*')
    tracer = box.target('tracer', target.pid)
    profd, ctl, _ = configured(box, section('s', exe) + 'autostart = yes\n')
    found = ctl.wait_state(target.pid, 'traced_by_other')
    check(found['session_sampled'] is True and found['threads'] == 0,
          f'{found}')
    tracer.end()
    ctl.wait_state(target.pid, 'profiling')
    profd.interrupt()


def test_trace_mode(box):
    exe = stranger.copy(box, ['targets/unw_o2']) / 'unw_o2'
    target = box.start([exe, 'nanosleep'])
    profd, ctl, _ = configured(
        box, section('s', exe, 'profile_lifecycle = trace'))
    check(ctl.wait_state(target.pid, 'stopped')['lifecycle'] == 'trace', '')
    for command in ('start', 'stop'):
        done = ctl.run(command, target.pid, status=1)
        check('root spans' in done.stderr, done.stderr)
    profd.interrupt()


def test_watch(box):
    profd, ctl = listening(box, [sleeper(box)])
    watch = box.start([BUILD / 'sentry-profctl', 'status', '--watch=1',
                       '--socket', ctl.path])
    wait_for(lambda: watch.stdout.count('NAME') >= 2, 'it is shown again')
    profd.interrupt()
    check(watch.wait() == 1, 'it ends with the daemon')


def test_strangers(box):
    stranger.need_root()
    own = stranger.target(box, 'unw_o2', 'nanosleep')
    theirs, roots = sleeper(box), sleeper(box)
    path = box.make_dir('etc') / 'profd.conf'
    path.write_text('[sentry]\nuser_attach = send\n')
    profd, ctl = listening(box, [theirs], '--config', path)
    profd.wait_attached()
    uid = stranger.UID
    # Other users see that the process exists, but no statistics.
    seen = ctl.target(theirs.pid, uid=uid)
    check(seen['state'] == 'profiling' and seen['rate_hz'] == 101, f'{seen}')
    check({k for k, v in seen.items() if v is not None} ==
          {'name', 'pid', 'state', 'session_sampled', 'lifecycle', 'on_crash', 'leak_check',
           'rate_hz'}, f'{seen}')
    for args in (('stop', theirs.pid), ('detach', theirs.pid),
                 ('profiler-id', theirs.pid), ('stop', 'pid'),
                 ('attach', roots.pid), ('reload',)):
        done = ctl.run(*args, uid=uid, status=1)
        check('not permitted' in done.stderr, f'{args}: {done.stderr}')
    check(harness.tracer(theirs.pid), 'nothing has changed')
    # Users may control their own processes.
    ctl.run('attach', own.pid, uid=uid)
    found = ctl.wait_state(own.pid, 'profiling')
    check(ctl.target(own.pid, uid=uid)['profiler_id'] ==
          found['profiler_id'], 'figures')
    check(ctl.run('stop', 'pid', uid=uid).stdout == 'pid: 1 stopped\n', '')
    check(ctl.target(theirs.pid)['state'] == 'profiling', 'theirs runs on')
    ctl.run('start', own.pid, uid=uid)
    ctl.run('detach', own.pid, uid=uid)
    # A process of the user that the kernel would not let the user trace.
    other_group = box.start([stranger.copy(box, ['targets/unw_o2']) / 'unw_o2', 'nanosleep'],
                            user=uid, group=uid + 1, extra_groups=())
    wait_for(lambda: harness.exe_name(other_group.pid) == 'unw_o2', 'it runs')
    check('not permitted' in
          ctl.run('attach', other_group.pid, uid=uid, status=1).stderr, 'another group')
    # Another user has no rights on them.
    ctl.run('attach', own.pid)
    check('not permitted' in
          ctl.run('stop', own.pid, uid=uid + 1, status=1).stderr, 'another')


def test_root_of_a_container(box):
    """uid 0 without the rights of the daemon's root is a user like others."""
    stranger.need_root()
    target = sleeper(box)
    profd, ctl = listening(box, [target])
    profd.wait_attached()
    env = harness.environment(SENTRY_PROFD_SOCKET=str(ctl.path))
    for container in (('setpriv', '--bounding-set=-all', '--inh-caps=-all'),
                      ('unshare', '--pid', '--fork'),
                      ('unshare', '--user', '--map-root-user')):
        done = subprocess.run([*container, ctl.exe, 'stop', str(target.pid)], env=env,
                              capture_output=True, text=True, check=False)
        check(done.returncode == 1 and 'not permitted' in done.stderr, f'{container}: {done}')
    ctl.run('stop', target.pid)


# Connects, and executes a program. A child, which inherits the connection, sends the messages of
# its standard input, and prints the result of each answer.
HEIR = '''
import os, socket, struct, sys
path, program, hello = sys.argv[1], sys.argv[2:4], sys.argv[4:]
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
s.connect(path)
def ask(line):
    s.send(bytes.fromhex(line))
    return struct.unpack_from('=I', s.recv(4096), 12)[0]
for line in hello:
    ask(line)
if os.fork():
    os.execv(program[0], program)
for n, line in enumerate(sys.stdin):
    print('answer', n, ask(line), flush=True)
'''


class Heir:
    def __init__(self, box, ctl, exe, *hello):
        self.program = box.start(
            ['/usr/bin/python3', '-c', HEIR, ctl.path, exe, 'nanosleep', *(m.hex() for m in hello)],
            stdin=subprocess.PIPE, **stranger.options())
        self.pid = self.program.pid
        self.n = 0

    def ask(self, message):
        self.program.process.stdin.write(message.hex().encode() + b'\n')
        self.program.process.stdin.flush()
        found = self.program.wait_line(rf'answer {self.n} (\d+)')
        self.n += 1
        return int(found[1])

    def ask_all(self):
        """The results of requests about itself."""
        return [self.ask(message) for message in (
            control.request(control.START), control.request(control.STOP),
            control.request(control.PROFILER_ID), control.request(control.SPANS_OPEN),
            control.request(control.START, self.pid), control.request(control.RELEASE),
            control.request(control.ATTACH, self.pid), control.request(control.RECORD, self.pid))]


def test_an_exec_by_the_peer(box):
    """A connection does not speak for a program with other rights that its process
    executes, nor if the daemon accepts it after that."""
    stranger.need_root()
    exes = []
    for mode in 0o755, 0o4755, 0o2755, 0o711:
        exes.append(stranger.copy(box, ['targets/unw_o2']) / 'unw_o2')
        exes[-1].chmod(mode)
    profd, ctl, _ = configured(box, '\n'.join(
        section(f's{n}', exe) for n, exe in enumerate(exes)))
    greeting = control.hello(6)
    plain = Heir(box, ctl, exes[0], greeting)
    ctl.wait_state(plain.pid, 'stopped')
    check(plain.ask(control.request(control.START)) == OK, 'it has the same rights')
    ctl.wait_state(plain.pid, 'profiling')
    for exe in exes[1:]:
        heir = Heir(box, ctl, exe, greeting)
        ctl.wait_state(heir.pid, 'stopped')
        check(heir.ask_all() == [DENIED] * 8, f'{exe}')
        check(ctl.target(heir.pid)['state'] == 'stopped', 'nothing has changed')
        check(heir.ask(control.request(control.STATUS)) == OK, 'which every user may see')
    for exe in exes[1:3]:
        profd.signal(signal.SIGSTOP)
        heir = Heir(box, ctl, exe)
        heir.program.wait_line('ready.*')
        profd.signal(signal.SIGCONT)
        ctl.wait_state(heir.pid, 'stopped')
        heir.ask(greeting)
        check(heir.ask_all() == [DENIED] * 8, f'{exe}')
        check(ctl.target(heir.pid)['state'] == 'stopped', 'nothing has changed')


# Is not dumpable, and asks as Heir does, about itself.
SERVICE = HEIR.replace('if os.fork():', '''import ctypes
ctypes.CDLL(None).prctl(4, 0)
print("ready", flush=True)
if False:''')


def test_a_service_with_capabilities(box):
    """It needs no right to trace itself."""
    stranger.need_root()
    _, ctl = listening(box, [sleeper(box)])
    service = box.start(
        ['setpriv', f'--reuid={stranger.UID}', f'--regid={stranger.UID}', '--clear-groups',
         '--inh-caps=+net_bind_service', '--ambient-caps=+net_bind_service', '/usr/bin/python3',
         '-c', SERVICE, ctl.path, '-', '-', control.hello(6).hex()], stdin=subprocess.PIPE)
    service.wait_line('ready')
    check(os.stat(f'/proc/{service.pid}/stat').st_uid == 0, 'it is not dumpable')
    ctl.run('attach', service.pid)
    ctl.wait_state(service.pid, 'profiling')
    asked = [control.request(kind, pid) for pid in (0, service.pid)
             for kind in (control.STOP, control.START, control.PROFILER_ID)]
    asked.append(control.request(control.RELEASE, service.pid))
    for n, message in enumerate(asked):
        service.process.stdin.write(message.hex().encode() + b'\n')
        service.process.stdin.flush()
        found = service.wait_line(rf'answer {n} (\d+)')
        check(int(found[1]) == OK, f'{n}: {found}')
    check('released' in ctl.target(service.pid)['last_error'], 'by itself')


def test_the_group(box):
    """Members of the group sentry-profd may do everything, through any of
    their groups; members of the viewers' group see as much."""
    stranger.need_root()
    if subprocess.run(['unshare', '--mount', 'true'], check=False,
                      capture_output=True).returncode != 0:
        raise harness.Skip('no mount namespace can be made here')
    gid, target = 60777, sleeper(box)
    groups = box.make_dir('etc') / 'group'
    groups.write_text(f'root:x:0:\nsentry-profd:x:{gid}:\n'
                      f'sentry-profd-view:x:{gid + 7}:\n')
    groups.chmod(0o644)
    # The machine's own group file may have another group, or none.
    wrapper = ('unshare', '--mount', 'sh', '-c',
               'mount --bind "$0" /etc/group && exec "$@"', groups)
    _, ctl = listening(box, [target], wrapper=wrapper)
    check(ctl.target(target.pid, uid=stranger.UID)['samples_taken'] is None,
          'who is in none sees no figure')
    done = ctl.run('stop', target.pid, uid=stranger.UID, status=1)
    check('not permitted' in done.stderr, done.stderr)
    member = {'uid': stranger.UID, 'groups': (gid - 1, gid, gid + 1)}
    check(ctl.target(target.pid, **member)['samples_taken'] is not None,
          'a member sees them')
    # A viewer may see all and do nothing.
    viewer = {'uid': stranger.UID, 'groups': (gid + 7,)}
    shown = ctl.status(**viewer)
    check(shown['targets'][0]['samples_taken'] is not None and
          shown['daemon']['restarts'] is not None, f'{shown}')
    check('sentry_profd_restarts_total' in
          {name for name, _ in ctl.metrics(**viewer)}, 'the metrics')
    for what in ('stop', target.pid), ('attach', target.pid), ('reload',):
        ctl.run(*what, status=1, **viewer)
    # The daemon's rights count, and not those of the member.
    ctl.exe = stranger.copy(box, ['sentry-profctl', 'sentry-profd-unwind']) / 'sentry-profctl'
    done = ctl.run('doctor', target.pid, status=3, **member)
    check(f'process {target.pid} of uid 0, but the daemon may\n' in done.stdout and
          'fault ' not in done.stdout and
          'map of the process: Permission denied; run this as root\n' in done.stdout, done.stdout)
    ctl.run('stop', target.pid, **member)


def test_rights_that_were_changed(box):
    """A process does not belong to its user if its files in /proc do not."""
    stranger.need_root()
    roots = sleeper(box)
    _, ctl = listening(box, [roots])
    # Such as a set-user-ID program, or one whose file the user may not read.
    hidden = box.start(
        ['/usr/bin/python3', '-c', 'import ctypes, time\n'
         'ctypes.CDLL(None).prctl(4, 0)\n'
         'print("ready", flush=True)\ntime.sleep(1000)'],
        **stranger.options())
    hidden.wait_line('ready')
    check(os.stat(f'/proc/{hidden.pid}/stat').st_uid == 0, 'it is not dumpable')
    check('not permitted' in
          ctl.run('attach', hidden.pid, uid=stranger.UID, status=1).stderr,
          'not his own')


def test_one_daemon_for_a_socket(box):
    target = sleeper(box)
    profd, ctl = listening(box, [target])
    check(stat.S_IMODE(ctl.path.stat().st_mode) ==
          (0o666 if os.geteuid() == 0 else 0o600), 'its mode')
    second = box.profd([sleeper(box)], '--socket', ctl.path)
    check(second.wait() == 1 and 'another sentry-profd' in second.stderr,
          second.stderr)
    ctl.run('status')
    # A daemon that is killed leaves its socket behind; the next one replaces
    # it.
    profd.signal(signal.SIGKILL)
    profd.wait()
    check(ctl.path.exists(), 'a socket that nobody listens at')
    check('does not run' in ctl.run('status', status=1).stderr, 'says so')
    third = box.profd([sleeper(box)], '--socket', ctl.path)
    third.wait_attached()
    ctl.run('status')
    third.interrupt()
    open_to_all = box.make_dir('open')
    open_to_all.chmod(0o777)
    fourth = box.profd([target], '--socket', open_to_all / 's')
    check(fourth.wait() == 1 and 'may write to it' in fourth.stderr,
          fourth.stderr)


def test_who_breaks_the_rules(box):
    """A client that breaks the rules loses its connection; no other client is
    affected."""
    target = sleeper(box)
    profd, ctl = listening(box, [target])
    profd.wait_attached()
    good = control.dial(ctl.path)
    good.send(control.hello())
    check(control.answer(good)[0] == 0, 'hello')
    for wrong in (b'x', control.request(control.STATUS), bytes(24),
                  control.hello(version=0), bytes(5000)):
        bad = control.dial(ctl.path)
        bad.send(wrong)
        check(control.is_closed(bad), f'{wrong}')
    for wrong in (control.hello(), control.request(control.START, -1),
                  control.request(control.START, 0, b'x' * 64),
                  control.request(control.ANSWER), b'y' * 80):
        bad = control.dial(ctl.path)
        bad.send(control.hello())
        control.answer(bad)
        bad.send(wrong)
        check(control.is_closed(bad), f'{wrong}')
    good.send(control.request(control.PROFILER_ID, target.pid))
    check(control.answer(good)[2] ==
          ctl.run('profiler-id', target.pid).stdout.strip(), 'goes on')
    profd.interrupt()


def test_a_flood(box):
    """A flood of messages whose answers the client does not read, and of
    connections. Meanwhile the daemon answers other clients, and samples."""
    target = sleeper(box)
    profd, ctl = listening(box, [target])
    profd.wait_attached()
    flood = control.dial(ctl.path)
    flood.send(control.hello())
    flood.setblocking(False)
    idle = [control.dial(ctl.path) for _ in range(7)]
    with contextlib.suppress(BlockingIOError, BrokenPipeError,
                             ConnectionResetError):
        while True:
            flood.send(control.request(control.STATUS))
    # The daemon closes the flood's connection when it cannot send an answer.
    idle.append(control.dial(ctl.path))
    tenth = control.dial(ctl.path)
    check(control.is_closed(tenth), 'eight connections are enough')
    check(ctl.target(target.pid)['state'] == 'profiling', 'it is answered')
    for s in [flood, *idle]:
        s.close()
    profd.wait_looks()
    ctl.run('status')
    profd.interrupt()


# Connects as seven users, and keeps the connections.
MANY_USERS = '''
import os, socket, sys
kept = []
for uid in range(int(sys.argv[2]), int(sys.argv[2]) + 7):
    os.seteuid(0)
    os.seteuid(uid)
    kept.append(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET))
    kept[-1].connect(sys.argv[1])
print('connected', flush=True)
sys.stdin.read()
'''


def test_a_user_with_many_uids(box):
    """As a user of rootless containers has: 259, three more than can be
    connected. Operators are."""
    stranger.need_root()
    profd, ctl = listening(box, [sleeper(box)])
    first = 200000
    users = [box.start([sys.executable, '-c', MANY_USERS, ctl.path, uid], stdin=subprocess.PIPE)
             for uid in range(first, first + 259, 7)]
    for program in users:
        program.wait_line('connected')
    check(ctl.run('status', uid=first + 300, status=1).stderr, 'another user is refused')
    ctl.run('status')
    ctl.run('reload', status=1)  # it has no configuration
    check(profd.stderr.count('users have too many connections') == 1, profd.stderr)
    for program in users:
        program.end()

    def has_room():
        with contextlib.suppress(harness.Failure):
            return ctl.run('status', uid=first + 300)
    wait_for(has_room, 'room')


def with_subuid(box, text):
    """A wrapper of the daemon, whose /etc/subuid has this text."""
    stranger.need_root()
    if subprocess.run(['unshare', '--mount', 'true'], check=False,
                      capture_output=True).returncode != 0:
        raise harness.Skip('no mount namespace can be made here')
    if not os.path.exists('/etc/subuid'):
        raise harness.Skip('there is no /etc/subuid to mount over')
    path = box.make_dir('etc') / 'subuid'
    path.write_text(text)
    path.chmod(0o644)
    return ('unshare', '--mount', 'sh', '-c',
            'mount --bind "$0" /etc/subuid && exec "$@"', path)


def test_subordinate_uids(box):
    """All uids of a range count as its owner: no other user is refused."""
    first = 200000
    wrapper = with_subuid(box, f'{stranger.UID}:{first}:65536\n')
    profd, ctl = listening(box, [sleeper(box)], wrapper=wrapper)
    users = [box.start([sys.executable, '-c', MANY_USERS, ctl.path, uid], stdin=subprocess.PIPE)
             for uid in range(first, first + 259, 7)]
    for program in users:
        program.wait_line('connected')
    ctl.run('status', uid=stranger.UID + 1)
    check('are refused' not in profd.stderr, profd.stderr)


if __name__ == '__main__':
    harness.main(globals())
