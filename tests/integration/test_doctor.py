#!/usr/bin/python3
"""sentry-profctl doctor: its findings about known processes and servers, and
its exit status, which is that of the worst finding."""

import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time
from email.utils import formatdate

import control
import cpu_group
import harness
import stranger
import test_32bit
from harness import BUILD, Server, check

WORST = {0: 'ok', 3: 'warning', 1: 'fault'}
FINDING = re.compile(r'(ok|warning|fault) +([^:]+): (.*)')


class Findings:
    def __init__(self, box, *args, env=None, socket=None,
                 exe=BUILD / 'sentry-profctl', wrapper=(), **options):
        # Findings must not depend on the daemon and the configuration of this
        # machine.
        config = box.make_dir('config') / 'profd.conf'
        config.write_text('')
        names = () if '--config' in args or socket else ('--config', config)
        self.done = subprocess.run(
            [*wrapper, exe, 'doctor', '--socket', socket or box.dir / 'no.sock', *names,
             *map(str, args)],
            capture_output=True, text=True, check=False,
            env=env or harness.environment(), **options)
        self.all = []
        for line in self.done.stdout.splitlines():
            m = FINDING.fullmatch(line)
            check(m, f'not a finding: {line!r}')
            self.all.append(m.groups())
        grades = {grade for grade, _, _ in self.all}
        worst = next(g for g in ('fault', 'warning', 'ok') if g in grades)
        check(WORST.get(self.done.returncode) == worst,
              f'{self.done.returncode}: {self.done.stdout}{self.done.stderr}')

    def of(self, subject):
        return [(grade, text) for grade, name, text in self.all
                if name == subject]

    def check(self, subject, grade, pattern):
        check(any(g == grade and re.search(pattern, text)
                  for g, text in self.of(subject)),
              f'{subject}: {grade}, {pattern}: {self.done.stdout}')


def test_the_machine(box):
    found = Findings(box)
    found.check('kernel', 'ok', r'^Linux \d+\.\d+')
    found.check('tracing', 'ok', 'can be traced')
    found.check('samplers', 'ok', 'ptrace')
    found.check('seccomp', 'ok', '')
    found.check('daemon', 'warning', 'does not run')
    found.check('DSN', 'warning', 'none is given')
    check(not found.of('process') and not found.of('files'), 'no process')
    version = (BUILD / 'version').read_text().strip()
    found.check('version', 'ok', f'^sentry-profctl {re.escape(version)}$')
    found.check('version', 'ok', rf'^sentry-profd-unwind {re.escape(version)}, libdw \d+\.\d+$')


def test_a_container_with_its_own_processes(box):
    wrapper = 'unshare', '--pid', '--fork', '--mount-proc'
    if subprocess.run([*wrapper, 'true'], check=False, capture_output=True).returncode != 0:
        raise harness.Skip('no pid namespace can be made here')
    Findings(box, wrapper=wrapper).check('/proc', 'warning', 'only the processes of this pid .*--pid=host')


def test_executables_of_other_builds(box):
    """A sentry-profd-unwind that another build has left beside sentry-profctl, one that
    is another program, one that says nothing, and none."""
    directory = box.make_dir('mixed')
    shutil.copy(BUILD / 'sentry-profctl', directory)
    unwind = directory / 'sentry-profd-unwind'
    for script, grade, text in (
            ('echo sentry-profd-unwind 9.9.9; echo libdw 0.1', 'warning',
             r'^sentry-profd-unwind 9\.9\.9, libdw 0\.1: another build'),
            ('echo hello', 'fault', "another program: it prints 'hello"),
            ('exit 127', 'fault', 'cannot ask .*No data')):
        unwind.write_text(f'#!/bin/sh\n{script}\n')
        unwind.chmod(0o755)
        Findings(box, exe=directory / 'sentry-profctl').check('version', grade, text)
    unwind.chmod(0o644)
    Findings(box, exe=directory / 'sentry-profctl').check(
        'version', 'fault', 'cannot ask .*Permission denied')


def test_where_tracing_is_forbidden(box):
    """root in a container without the capability."""
    if os.geteuid() != 0:
        raise harness.Skip('root alone can give up a capability')
    done = subprocess.run(
        ['setpriv', '--bounding-set=-sys_ptrace', '--inh-caps=-sys_ptrace',
         BUILD / 'sentry-profctl', 'doctor', '--socket', box.dir / 'x'],
        capture_output=True, text=True, check=False,
        env=harness.environment())
    check(done.returncode == 1 and
          'fault    capabilities: no CAP_SYS_PTRACE' in done.stdout,
          done.stdout + done.stderr)


def running(box, *wrapper):
    """Starts a daemon with a configuration; returns its socket and the daemon.
    """
    directory = box.make_dir('etc')
    config, socket = directory / 'profd.conf', directory / 'socket'
    config.write_text('[target "web"]\ncomm = no-such-web\n'
                      'profile_session_sample_rate = 1\n')
    config.chmod(0o600)
    # A relative path, which is no other daemon's.
    profd = box.profd([], '--config', 'profd.conf', '--socket', socket,
                      wrapper=wrapper, cwd=directory, exe=BUILD.resolve() /
                      'sentry-profd')
    harness.wait_for(lambda: control.listens(socket) and
                     profd.helpers()['capture'], 'a daemon')
    return profd, socket, config


def test_the_daemon_that_runs(box):
    """doctor judges the daemon, and not the caller."""
    profd, socket, config = running(box)
    found = Findings(box, socket=socket)
    found.check('configuration', 'ok',
                f"^{re.escape(str(config))}, 1 .target. section.*the daemon's file")
    found.check('daemon', 'ok', f'runs, pid {profd.pid}')
    if os.geteuid() != 0:
        return
    # A container may lack these, but the daemon's root has them.
    found.check('capabilities', 'ok', 'all that are needed: the daemon')
    poor, poor_socket, _ = running(box, 'setpriv', '--bounding-set=-sys_nice',
                                   '--inh-caps=-sys_nice')
    found = Findings(box, socket=poor_socket)
    found.check('daemon', 'warning',
                r'degraded for \d+ s: no CAP_SYS_NICE: samples come late')
    check(found.done.stdout.count('CAP_SYS_NICE:') == 1 and not found.of('capabilities'),
          found.done.stdout)
    capture, = poor.helpers()['capture']
    os.kill(capture, signal.SIGKILL)
    harness.wait_for(lambda: poor.helpers()['capture'] not in ([], [capture]),
                     'another capture')
    Findings(box, socket=poor_socket).check(
        'daemon', 'warning', r'capture was started again 1 times \(signal\)')
    _, few_socket, _ = running(box, 'prlimit', '--nofile=3000:3000')
    Findings(box, socket=few_socket).check('descriptors', 'warning', '^the hard limit is 3000,')
    # A caller who may not operate the daemon gets findings about himself.
    found = Findings(box, '--config', '/dev/null', socket=socket,
                     exe=stranger.copy(box, ['sentry-profctl']) /
                     'sentry-profctl', cwd='/', **stranger.options())
    found.check('capabilities', 'warning', 'you are not root')
    check('degraded' not in found.done.stdout, found.done.stdout)
    found = Findings(box, socket=socket, exe=stranger.copy(box, ['sentry-profctl']) /
                     'sentry-profctl', cwd='/', **stranger.options())
    found.check('daemon', 'warning', 'refuses to check .*: not permitted: .*, so only root and '
                'the group sentry-profd may .* not the group sentry-profd-view; the checks below')


def test_a_cpu_quota(box):
    """Without SCHED_FIFO the quota can stop capture while a thread is stopped,
    so doctor reports the quota."""
    with cpu_group.made() as group:
        check_quota(box, group)


def check_quota(box, group):
    daemons = []

    def told(*wrapper):
        profd, socket, _ = running(box, *cpu_group.inside(group), *wrapper)
        daemons.append(profd)
        harness.wait_for(lambda: control.Control(box, socket).status()
                         ['daemon']['cpu_quota_percent'] == 60, 'its quota')
        return profd, Findings(box, socket=socket)
    try:
        profd, found = told('setpriv', '--bounding-set=-sys_nice',
                            '--inh-caps=-sys_nice')
        found.check('daemon', 'warning', '^CPU quota: .* has 60 % of a core')
        profd.interrupt()
        check('a CPU quota of 60 % of a core' in profd.stderr, profd.stderr)
        # Under SCHED_FIFO the quota does not stop capture.
        profd, found = told()
        is_fifo = not re.search('no (SCHED_FIFO|CAP_SYS_NICE)', found.done.stdout)
        check(('CPU quota' in found.done.stdout) != is_fifo, found.done.stdout)
        profd.interrupt()
        check(('CPU quota' in profd.stderr) != is_fifo, profd.stderr)
        check(profd.stats['cpu_quota_percent'] == 60, f'{profd.stats}')
    finally:
        for profd in daemons:
            profd.end()


def test_what_the_daemon_was_started_with(box):
    """The daemon's DSN and proxy are in its environment only."""
    server = box.server()
    directory = box.make_dir('etc')
    config, socket = directory / 'profd.conf', directory / 'socket'
    config.write_text('')
    profd = box.profd([], '--config', config, '--socket', socket, output=None,
                      env=dict(server.env, SENTRY_DSN=server.dsn))
    harness.wait_for(lambda: control.listens(socket), 'its socket')
    # The caller's environment has another DSN.
    found = answered(box, socket=socket, env=harness.environment(
        SENTRY_DSN='http://key@localhost:1/7'))
    found.check('DSN', 'ok', 'host localhost, project 42')
    found.check('server', 'ok', 'accepts us')
    check(not found.of('environment'), found.done.stdout)
    # A configuration file on the command line is for another daemon.
    found = Findings(box, '--config', config, socket=socket)
    found.check('DSN', 'warning', 'none is given')
    if os.geteuid() == 0:
        # In the caller's pid namespace the daemon's pid belongs to another
        # process.
        script = (f'echo {profd.pid - 1} >/proc/sys/kernel/ns_last_pid; '
                  f'sleep 1000 & [ $! = {profd.pid} ] && "$@"')
        found = Findings(box, profd.pid, socket=socket, wrapper=(
            'unshare', '--pid', '--fork', '--mount-proc',
            'sh', '-c', script, 'sh'))
        found.check('target', 'warning', 'another pid namespace')
        check(len(found.of('target')) == 1, found.done.stdout)
        found.check('daemon', 'ok', f'runs, pid {profd.pid}$')
        # There root is no operator, and is not shown the environment of the other process.
        found.check('daemon', 'warning', 'not permitted')
        found.check('DSN', 'warning', 'none is given')
    profd.signal(signal.SIGTERM)
    profd.finish()


def test_the_daemon_s_command_line(box):
    """The daemon's options take precedence over its file and its environment.
    Paths in them are relative to its directory."""
    server = box.server()
    directory = box.make_dir('etc')
    config, socket = directory / 'profd.conf', directory / 'socket'
    config.write_text('[sentry]\ndsn = http://key@localhost:1/7\n')
    config.chmod(0o600)
    shutil.copy(server.env['SSL_CERT_FILE'], directory / 'ca.pem')
    profd = box.profd([], '--config', 'profd.conf', '--socket', 'socket',
                      '--dsn=' + server.dsn, '--ca-certs', 'ca.pem', '--spool',
                      'spool', '--retry-5xx', output=None, cwd=directory,
                      exe=BUILD.resolve() / 'sentry-profd')
    harness.wait_for(lambda: control.listens(socket), 'its socket')
    found = answered(box, socket=socket)
    found.check('DSN', 'ok', 'host localhost, project 42')
    found.check('server', 'ok', 'accepts us')
    check(not found.of('options') and not found.of('configuration'),
          found.done.stdout)
    # A fault that would prevent the daemon's next start.
    (directory / 'ca.pem').write_text('')
    (directory / 'spool').rename(directory / 'away')
    (directory / 'spool').write_text('')
    found = Findings(box, socket=socket)
    found.check('configuration', 'fault', '--ca-certs: ca.pem: holds no')
    found.check('configuration', 'fault', '--spool: spool: Not a directory')
    profd.signal(signal.SIGTERM)
    profd.finish()


def test_certificates_of_the_daemon_s_environment(box):
    """SSL_CERT_FILE is relative to the directory in which the daemon was
    started, and is judged there."""
    server = box.server()
    directory = box.make_dir('etc')
    socket = directory / 'socket'
    (directory / 'profd.conf').write_text('')
    shutil.copy(server.env['SSL_CERT_FILE'], directory / 'ca.pem')
    profd = box.profd([], '--config', 'profd.conf', '--socket', 'socket',
                      output=None, cwd=directory, exe=BUILD.resolve() /
                      'sentry-profd', env=dict(server.env, SENTRY_DSN=server.dsn,
                                               SSL_CERT_FILE='ca.pem'))
    harness.wait_for(lambda: control.listens(socket), 'its socket')
    answered(box, socket=socket).check('server', 'ok', 'accepts us')
    # The running ship has read the file; the next start would fail.
    (directory / 'ca.pem').unlink()
    found = answered(box, socket=socket)
    found.check('server', 'ok', 'accepts us')
    found.check('configuration', 'warning', 'SSL_CERT_FILE: ca.pem: No such file')
    profd.signal(signal.SIGTERM)
    profd.finish()


def test_where_profiles_go(box):
    """Without a DSN, by the daemon's own rules."""
    _, socket, _ = running(box)
    Findings(box, socket=socket).check('DSN', 'warning', 'go into files only')
    directory = box.make_dir('nowhere')
    config, socket = directory / 'profd.conf', directory / 'socket'
    config.write_text('')
    profd = box.profd([], '--config', config, '--socket', socket, output=None)
    harness.wait_for(lambda: control.listens(socket), 'its socket')
    Findings(box, socket=socket).check('DSN', 'warning', 'profiles are discarded')
    profd.signal(signal.SIGTERM)
    profd.finish()
    check('profiles are discarded' in profd.stderr, profd.stderr)


def test_a_clock_that_differs(box):
    dated = {'headers': {'Date': formatdate(time.time() - 3600, usegmt=True)}}
    server = Server(box, tls=False, script=[dated] * 9)
    found = answered(box, env=harness.environment(SENTRY_DSN=server.dsn))
    found.check('server', 'ok', 'accepts us')
    found.check('clock', 'warning', r'^the clock of this host is 3\d\d\d s ahead of that of http://')


def test_sections_that_do_not_match(box):
    """The failed rule and the process's value: for the running daemon, and for
    a configuration without a daemon."""
    target = box.target('unw_o2', 'nanosleep')
    directory = box.make_dir('sections')
    config, socket = directory / 'profd.conf', directory / 'socket'
    pid_file = directory / 'pid'
    pid_file.write_text('1\n')
    rules = {'name': 'comm = nginx', 'file': 'exe = /usr/sbin/*',
             'words': 'cmdline = *--serve*', 'other': 'user = 12345',
             'number': f'pid_file = {pid_file}', 'ship': 'container = abc'}
    config.write_text(''.join(
        f'[target "{name}"]\n{rule}\nprofile_session_sample_rate = 1\n'
        for name, rule in rules.items()))
    config.chmod(0o600)
    profd = box.profd([], '--config', config, '--socket', socket)
    harness.wait_for(lambda: control.listens(socket) and
                     profd.helpers()['capture'], 'a daemon')

    def see(found):
        for name, rule in rules.items():
            found.check('section', 'warning', rf'^\[target "{name}"\] does not '
                        f'match it: {re.escape(rule)}')
        for has in ('it has unw_o2', r'it has /.*/unw_o2', r'it has \S*unw_o2 nanosleep',
                    f'it has uid {os.geteuid()}', 'names 1', 'it has none'):
            found.check('section', 'warning', has + '$')
    see(Findings(box, target.pid, socket=socket))
    see(Findings(box, '--config', config, target.pid))
    config.write_text(config.read_text() + '[target "one"]\ncomm = unw_o?\n'
                      'profile_session_sample_rate = 1\n')
    found = Findings(box, '--config', config, target.pid)
    found.check('section', 'ok', r'^\[target "one"\] matches it')
    check(all(grade == 'ok' for grade, _ in found.of('section')), found.done.stdout)


def test_a_configuration_that_is_not_in_use_yet(box):
    """It was edited, and not reloaded."""
    _, socket, config = running(box)
    changed = 'it has changed since sentry-profd read it'
    check(changed not in Findings(box, socket=socket).done.stdout, 'nothing has changed')
    config.write_text('[profiler]\nplatform = native\n' + config.read_text() + 'rate_hz = 50\n')
    Findings(box, socket=socket).check('configuration', 'warning', changed)
    control.Control(box, socket).run('reload')
    check(changed not in Findings(box, socket=socket).done.stdout, 'it is in use')


def test_a_section_without_autostart(box):
    target = box.target('unw_o2', 'nanosleep')
    directory = box.make_dir('etc')
    config, socket = directory / 'profd.conf', directory / 'socket'
    (directory / 'pid').write_text(f'{target.pid}\n')
    config.write_text(f'[target "api"]\npid_file = {directory / "pid"}\n'
                      'profile_session_sample_rate = 1\n')
    config.chmod(0o600)
    box.profd([], '--config', config, '--socket', socket)
    harness.wait_for(lambda: control.listens(socket), 'a daemon')
    ctl = control.Control(box, socket)
    ctl.wait_state(target.pid, 'stopped')
    Findings(box, target.pid, socket=socket).check(
        'target', 'warning', r'^it belongs to \[target "api"\], but is not profiled: autostart .*'
        rf'\(sentry-profctl start {target.pid}\)$')
    ctl.run('start', target.pid)
    ctl.wait_state(target.pid, 'profiling')
    Findings(box, target.pid, socket=socket).check('target', 'ok', '"api".: profiling$')
    config.write_text(config.read_text() + 'profile_lifecycle = trace\n')
    ctl.run('stop', target.pid)
    ctl.run('reload')
    ctl.wait_state(target.pid, 'stopped')
    Findings(box, target.pid, socket=socket).check('target', 'ok', 'profile_lifecycle = trace')


def answered(box, *args, **options):
    """doctor waits ten seconds for a server; a busy machine may need more."""
    def ask():
        found = Findings(box, *args, **options)
        return 'does not answer' not in found.done.stdout and found
    return harness.wait_for(ask, 'an answer of the server')


def test_servers(box):
    good = Server(box)
    bad = Server(box, script=[{'status': 403, 'body': '{"detail": "no such key"}'}] * 9)
    down = f'http://k@127.0.0.1:{harness.free_port()}/1'
    env = dict(good.env, SENTRY_DSN=good.dsn)
    answered(box, env=env).check('server', 'ok', 'accepts us')
    good.check_requests()
    check(sum(good.reported.values()) == 0, 'nothing is told to be lost')
    key = re.search('//([^@]+)@', good.dsn)[1]
    found = answered(box, env=dict(bad.env, SENTRY_DSN=bad.dsn))
    found.check('server', 'fault', 'answers 403, no such key: .*key')
    check(key not in found.done.stdout + found.done.stderr, 'the key shows')
    # A proxy whose server is being upgraded, and a server that has moved.
    busy = Server(box, status=502)
    found = answered(box, env=dict(busy.env, SENTRY_DSN=busy.dsn))
    found.check('server', 'fault', 'answers 502: the server is overloaded or being upgraded')
    moved = Server(box, script=[{'status': 302, 'headers': {
        'Location': 'https://other.example/'}}] * 9)
    found = answered(box, env=dict(moved.env, SENTRY_DSN=moved.dsn))
    found.check('server', 'fault', 'answers 302, https://other.example/: redirects')
    page = Server(box, script=[{'do': 'page'}] * 9)
    found = Findings(box, env=dict(page.env, SENTRY_DSN=page.dsn))
    found.check('server', 'fault', 'status 200 with a page.*firewall')
    # The certificate is from an unknown authority.
    found = Findings(box, env=harness.environment(SENTRY_DSN=good.dsn))
    found.check('server', 'fault', 'does not answer.*certificate')
    found = Findings(box, env=harness.environment(SENTRY_DSN=down))
    found.check('server', 'fault', 'does not answer')
    found = Findings(box, env=harness.environment(SENTRY_DSN='https://x/'))
    found.check('configuration', 'fault', 'SENTRY_DSN.*public key')
    check(not found.of('server'), 'nobody to be asked')


def test_configurations(box):
    server = Server(box, tls=False)
    directory = box.make_dir('conf')
    path = directory / 'profd.conf'
    path.write_text('[target "web"]\ncomm = nginx\n'
                    'profile_session_sample_rate = 1\n'
                    f'dsn = {server.dsn}\n')
    path.chmod(0o600)
    found = answered(box, '--config', path)
    found.check('configuration', 'ok', r'1 \[target\] section')
    found.check('DSN of web', 'ok', 'host localhost')
    check(not found.of('DSN'), 'no other is needed')
    found.check('server', 'ok', 'accepts us')
    path.write_text('[target "web"]\nnonsense = 1\n')
    found = Findings(box, '--config', path)
    found.check('configuration', 'fault', r'profd\.conf:2: .*nonsense')
    check(not found.of('DSN'), 'it is not used')
    Findings(box, '--config', directory / 'none').check(
        'configuration', 'fault', 'No such file')


def test_a_check_that_is_killed(box):
    """sentry-profd dies after its first finding: doctor says that findings may
    be missing."""
    directory = box.make_dir('build')
    shutil.copy2(BUILD / 'sentry-profctl', directory)
    fake = directory / 'sentry-profd'
    fake.write_text('#!/bin/sh\n'
                    'echo "ok       configuration: no sections"\n'
                    'kill -SEGV $$\n')
    fake.chmod(0o755)
    found = Findings(box, exe=directory / 'sentry-profctl')
    found.check('configuration', 'ok', 'no sections')
    found.check('configuration', 'fault', 'was killed by signal 11 .*findings '
                'may be missing')


def test_a_good_program(box):
    target = box.target('unw_o2', 'nanosleep')
    found = Findings(box, target.pid)
    found.check('tracer', 'ok', 'no process traces it')
    found.check('permission', 'ok', 'may trace')
    found.check('program', 'ok', '64-bit')
    found.check('names', 'ok', r'targets/unw_o2 \(build-id [0-9a-f]{40}\): '
                'debug information')
    found.check('upload', 'ok', r'^sentry-cli debug-files upload .*unw_o2')
    check(not found.of('stacks') and not found.of('build-id') and
          not found.of('run-time code'), found.done.stdout)


def build(box, name, *flags):
    source = box.dir / f'{name}.c'
    source.write_text('#include <stdio.h>\n#include <unistd.h>\n'
                      'int main(void) { puts("ready"); fflush(stdout);\n'
                      'for (;;) pause(); }\n')
    path = box.dir / name
    subprocess.run(['gcc', '-O2', '-o', path, source, *flags], check=True)
    return path


def start(box, path):
    program = box.start([path])
    program.wait_line('ready')
    return program


def test_what_programs_lack(box):
    stripped = start(box, build(box, 'stripped', '-s'))
    found = Findings(box, stripped.pid)
    found.check('names', 'warning', r'stripped is stripped.*build-id [0-9a-f]{40}:'
                r'.*\(DEBUG-FILES.md says')
    check(not found.of('build-id'), found.done.stdout)
    anonymous = start(box, build(box, 'anonymous', '-Wl,--build-id=none'))
    Findings(box, anonymous.pid).check('build-id', 'warning', 'anonymous has')
    path = build(box, 'bare', '-static', '-fno-asynchronous-unwind-tables')
    subprocess.run(['objcopy', '--remove-section=.eh_frame',
                    '--remove-section=.eh_frame_hdr', path], check=True)
    bare = start(box, path)
    Findings(box, bare.pid).check('stacks', 'warning',
                                  'bare has no call frame information')
    # What the linker adds to it has call frame information.
    code = box.dir / 'code.s'
    code.write_text('.text\n.skip 262144, 0x90\n.section .note.GNU-stack, ""\n')
    almost = start(box, build(box, 'almost', code, '-fno-asynchronous-unwind-tables'))
    Findings(box, almost.pid).check('stacks', 'warning', 'almost has no call frame information')


def executed(program, name):
    harness.wait_for(lambda: os.readlink(f'/proc/{program.pid}/exe').endswith('/' + name), name)


def test_stripped_go(box):
    """Go's table of functions has the names and, on x86-64, the call frames."""
    if not shutil.which('go'):
        raise harness.Skip('no go (Debian: golang-go)')
    directory = box.make_dir('go')
    (directory / 'main.go').write_text('package main\nimport "os"\n'
                                       'func main() { os.Stdin.Read(make([]byte, 1)) }\n')
    subprocess.run(['go', 'build', '-ldflags=-s -w', '-o', 'waits', 'main.go'], cwd=directory,
                   env=dict(os.environ, GO111MODULE='off', CGO_ENABLED='0', GOFLAGS='',
                            GOCACHE=str(directory / 'cache')), check=True)
    program = box.start([directory / 'waits'], stdin=subprocess.PIPE)
    executed(program, 'waits')
    found = Findings(box, program.pid)
    found.check('names', 'ok', r"go/waits \(.*: Go's table of functions, but no lines$")
    check('is stripped' not in found.done.stdout, found.done.stdout)
    found.check('files', 'ok', '^1 with code, 0 of them stripped')
    if os.uname().machine == 'x86_64':
        check(not found.of('stacks'), found.done.stdout)
    else:
        found.check('stacks', 'warning', 'waits has no call .*link it without -s')


def test_a_debug_file_beside_the_program(box):
    path = build(box, 'linked', '-g', '-Wl,--build-id=none')
    debug = box.dir / 'linked.debug'
    for command in (['--only-keep-debug', path, debug],
                    ['--strip-all', f'--add-gnu-debuglink={debug}', path]):
        subprocess.run(['objcopy', *command], check=True)
    found = Findings(box, start(box, path).pid)
    found.check('names', 'ok', rf'linked \(build-id none\): debug file {re.escape(str(debug))}$')
    found.check('upload', 'ok', rf' {re.escape(str(debug))}( |$)')
    check('linked is stripped' not in found.done.stdout, found.done.stdout)
    # That of another build.
    with debug.open('ab') as file:
        file.write(b'?')
    found = Findings(box, start(box, path).pid)
    found.check('names', 'warning', rf'{re.escape(str(debug))} is not used: .*checksum')
    found.check('names', 'warning', 'linked is stripped')
    check(f'upload {debug}' not in found.done.stdout, found.done.stdout)


def test_the_package_of_a_stripped_program(box):
    """A program of the system. In another root the same path is another file."""
    sleep = shutil.which('sleep')
    asked = subprocess.run(['dpkg-query', '-S', sleep.removeprefix('/usr'), sleep],
                           capture_output=True, text=True, check=False) \
        if shutil.which('dpkg-query') else None
    if not asked or not asked.stdout:
        raise harness.Skip('the system has no dpkg-query that knows sleep')
    package = asked.stdout.split(':')[0]
    program = box.start([sleep, '1000'])
    executed(program, 'sleep')
    Findings(box, program.pid).check(
        'names', 'warning', rf'sleep is stripped.*package {re.escape(package)}, whose debug '
        rf'files are in {re.escape(package)}-dbgsym; DEBUG-FILES.md')
    if os.geteuid() != 0:
        return
    elsewhere = box.start(['unshare', '--mount', sleep, '1000'])
    executed(elsewhere, 'sleep')
    found = Findings(box, elsewhere.pid)
    found.check('names', 'warning', r'sleep is stripped.*\(DEBUG-FILES.md')


def test_files_that_cannot_be_opened(box):
    """Without CAP_CHECKPOINT_RESTORE, doctor makes no wrong finding about a
    file without a path: the file is neither reported as stripped nor as
    another format than ELF."""
    if os.geteuid() != 0:
        raise harness.Skip('root alone can give up a capability')
    library = build(box, 'libaway.so', '-shared', '-fPIC', '-g')
    program = box.start([sys.executable, '-c', 'import ctypes, os, sys, time\n'
                         'ctypes.CDLL(sys.argv[1]); os.unlink(sys.argv[1])\n'
                         'print("ready", flush=True); time.sleep(1000)', library])
    program.wait_line('ready')
    found = Findings(box, program.pid)
    found.check('names', 'ok', 'libaway.so .*: debug information')
    check(not any('libaway' in text for _, text in found.of('file')),
          found.done.stdout)
    found = Findings(box, program.pid, wrapper=(
        'setpriv', '--bounding-set=-checkpoint_restore,-sys_admin',
        '--inh-caps=-checkpoint_restore,-sys_admin'))
    found.check('file', 'warning', 'libaway.so cannot be opened.*CHECKPOINT_RESTORE')
    check('ELF' not in found.done.stdout and
          'libaway.so is stripped' not in found.done.stdout, found.done.stdout)


def test_files_that_are_no_elf(box):
    """Files that are mapped as code but are not ELF, and why they give no
    names."""
    for name, head, what in (('text', b'#!/bin/sh\n', 'is not an ELF file'),
                             ('old', b'\x7fELF\x01\x01\x01', 'is a 32-bit ELF file'),
                             ('cut', b'\x7fELF\x02\x01\x01', 'is a damaged ELF file')):
        path = box.dir / name
        path.write_bytes(head.ljust(8192, b'\0'))
        program = box.start([sys.executable, '-c', 'import mmap, sys, time\n'
                             'f = open(sys.argv[1], "r+b")\n'
                             'm = mmap.mmap(f.fileno(), 0, prot=5)\n'
                             'print("ready", flush=True); time.sleep(1000)', path])
        program.wait_line('ready')
        Findings(box, program.pid).check(
            'file', 'warning', f'{name} is mapped as code, but {what}')


def test_run_time_code(box):
    script = ('import mmap, time\n'
              'm = mmap.mmap(-1, 1 << 20, prot=7)\n'
              'print("ready", flush=True)\ntime.sleep(1000)\n')
    program = box.start([sys.executable, '-c', script])
    program.wait_line('ready')
    found = Findings(box, program.pid)
    found.check('run-time code', 'warning', r'10\d\d KB.*perf-PID\.map')
    names = f'/tmp/perf-{program.pid}.map'
    with open(names, 'x', encoding='ascii') as file:
        file.write('1000 10 f\n')
    try:
        found = Findings(box, program.pid)
    finally:
        os.unlink(names)
    found.check('run-time code', 'ok', 'and a perf map')


def test_text_in_other_memory(box):
    """A copy of a file's text at its own place is the file's."""
    program = box.target('moved_text', 'anon')
    program.signal(signal.SIGUSR1)
    program.wait_line('moved')
    found = Findings(box, program.pid)
    found.check('names', 'ok', r'targets/moved_text \(')
    check(not found.of('run-time code'), found.done.stdout)
    copy = box.target('moved_text', 'jit')
    copy.signal(signal.SIGUSR1)
    copy.wait_line('moved')
    Findings(box, copy.pid).check('run-time code', 'warning', 'perf-PID')


def test_names_are_not_obeyed(box):
    program = start(box, build(box, 'a\x1b[2Jb', '-s'))
    found = Findings(box, program.pid)
    check('\x1b' not in found.done.stdout, 'a control byte')
    found.check('names', 'warning', re.escape(r'a\x1b[2Jb is stripped'))


def test_what_cannot_be_profiled(box):
    gone = subprocess.Popen(['true'])
    gone.wait()
    Findings(box, gone.pid).check('process', 'fault', 'nothing runs')
    target = box.target('unw_o2', 'nanosleep')
    box.profd([target]).wait_attached()
    found = Findings(box, target.pid)
    found.check('tracer', 'ok', 'sentry-profd traces it')
    other = box.target('unw_o2', 'nanosleep')
    tracer = box.target('tracer', other.pid)
    Findings(box, other.pid).check(
        'tracer', 'fault', rf'^process {other.pid} is already traced by tracer \(pid {tracer.pid}\)')
    if os.geteuid() == 0:
        Findings(box, other.pid, exe=stranger.copy(box, ['sentry-profctl']) / 'sentry-profctl',
                 cwd='/', **stranger.options()).check(
            'permission', 'fault',
            rf'^not permitted to trace process {other.pid}, which runs as uid 0: only root may')
    old = test_32bit.start(box, [test_32bit.program(box)])
    Findings(box, old.pid).check('program', 'fault', 'it is a 32-bit program')
    for args in (('x',), ('0',), ('1', '2'), ('--nothing',)):
        done = subprocess.run([BUILD / 'sentry-profctl', 'doctor', *args],
                              capture_output=True, text=True, check=False)
        check(done.returncode == 2 and done.stdout == '', f'{args}')


def test_yama(box):
    """For a user, with and without a daemon of root."""
    stranger.need_root()
    wrapper = ('unshare', '--mount', 'sh', '-c',
               'mount -t tmpfs none /proc/sys/kernel && mkdir /proc/sys/kernel/yama && '
               'echo $0 >/proc/sys/kernel/yama/ptrace_scope && exec "$@"')
    user = ('setpriv', f'--reuid={stranger.UID}', '--clear-groups')
    if subprocess.run([*wrapper, '1', 'true'], check=False, capture_output=True).returncode != 0:
        raise harness.Skip('no mount namespace can be made here')
    exe = stranger.copy(box, ['sentry-profctl', 'sentry-profd-unwind']) / 'sentry-profctl'
    _, socket, _ = running(box)
    for scope, grade, text in (('1', 'warning', r'sentry-profd -- COMMAND'),
                               ('2', 'fault', 'only root may trace')):
        Findings(box, exe=exe, wrapper=(*wrapper, scope, *user), cwd='/').check(
            'yama', grade, f'is {scope}: .*{text}')
        Findings(box, exe=exe, wrapper=(*wrapper, scope, *user), cwd='/', socket=socket).check(
            'yama', 'ok', f'is {scope}, which does not restrict')


# A process with a helper that has the name, but not the work, of a crash reporter.
# Arguments: what the helper executes; "connected", or "apart" with sockets that are connected with
# each other; a library.
REPORTED = """
import ctypes, socket, subprocess, sys, time
ours, its = socket.socketpair()
pair = socket.socketpair()
# PR_SET_PDEATHSIG
helper = subprocess.Popen([sys.argv[1], '1000000'],
                          preexec_fn=lambda: ctypes.CDLL(None).prctl(1, 9),
                          pass_fds=[its.fileno()] if sys.argv[2] == 'connected' else
                          [end.fileno() for end in pair])
for end in its, *pair:
    end.close()
ctypes.CDLL(sys.argv[3])
print('ready', helper.pid, flush=True)
sys.stdin.read()
helper.kill()
"""


def reported(box, *, handlers=True, connected=True, library=None):
    """Starts a process and its helper; returns the process and the helper's pid."""
    helper = box.make_dir('helper') / 'crashpad_handler'
    shutil.copy(shutil.which('sleep'), helper)
    program = box.start([sys.executable, *(['-X', 'faulthandler'] if handlers else []),
                         '-c', REPORTED, helper, 'connected' if connected else 'apart',
                         library or BUILD / 'libsentry_profd.so'],
                        stdin=subprocess.PIPE)
    pid = int(program.wait_line('ready (.*)')[1])
    harness.wait_for(lambda: harness.proc_text(pid, 'comm') == 'crashpad_handle\n', 'the helper')
    return program, pid


def finish(program):
    program.process.stdin.close()
    program.wait()
    program.process.stdin = None


def test_a_crash_reporter_at_a_socket(box):
    program, pid = reported(box)
    found = Findings(box, program.pid)
    found.check('crash reports', 'ok',
                '^the process has handlers of SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT: at such a '
                'crash sentry-profd detaches before the handler runs, so its crash reporter '
                rf'crashpad_handle \(pid {pid}\), which holds the other end .* its report$')
    if os.geteuid() == 0:
        # sock_diag answers for its own network namespace.
        Findings(box, program.pid, wrapper=['unshare', '--net']).check(
            'crash reports', 'ok',
            rf'so a crash reporter, perhaps crashpad_handle \(pid {pid}; whether .*: No such')
    finish(program)


def test_a_crash_reporter_of_another_process(box):
    program, _ = reported(box, connected=False)
    Findings(box, program.pid).check('crash reports', 'ok', 'handlers of .*none is seen')
    finish(program)


def test_a_crash_reporter_in_a_library(box):
    library = box.make_dir('lib') / 'libsentry.so.0'
    shutil.copy(BUILD / 'libsentry_profd.so', library)
    program, _ = reported(box, connected=False, library=library)
    Findings(box, program.pid).check('crash reports', 'ok',
                                     rf'so its crash reporter \({re.escape(str(library))}\) can')
    finish(program)


def test_a_daemon_that_stays_at_a_crash(box):
    """on_crash = stay: the reporter cannot do its work."""
    program, pid = reported(box)
    socket = box.dir / 'stay.sock'
    box.profd([program], '--socket', socket, '--on-crash', 'stay').wait_attached()
    found = Findings(box, program.pid, socket=socket)
    found.check('crash reports', 'warning', r'handlers of .*, but with on_crash = stay .*'
                rf'crashpad_handle \(pid {pid}\).* cannot trace the process$')
    finish(program)


def test_no_handler_of_a_crash(box):
    program, pid = reported(box, handlers=False)
    Findings(box, program.pid).check(
        'crash reports', 'warning',
        rf'^the process has no handler .*crashpad_handle \(pid {pid}\).* cannot trace')
    finish(program)
    program, _ = reported(box, handlers=False, connected=False)
    Findings(box, program.pid).check('crash reports', 'ok',
                                     '^the process has no handler .* same core dump')
    finish(program)


if __name__ == '__main__':
    harness.main(globals())
