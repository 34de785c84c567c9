#!/usr/bin/python3
"""The daemon's configuration: one run reports all faults with file and line;
the resulting values are printed; no output has the key of a DSN.
"""

import pathlib
import re
import signal

import control
import harness
from harness import BUILD, check, wait_for
from service import Service

KEY = '0123456789abcdef0123456789abcdef'
DSN = f'https://{KEY}@sentry.example.com:8443/a/42'
SHOWN = 'https://...@sentry.example.com:8443/a/42'
EXAMPLE = pathlib.Path(__file__).parents[2] / 'systemd/sentry-profd.conf'


def write(path, text, mode=0o600):
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    path.chmod(mode)
    return path


def check_config(box, path, *args, **options):
    program = box.start([BUILD / 'sentry-profd', '--check-config', '--config',
                         path, *args], **options)
    status = program.wait()
    check(KEY not in program.stdout + program.stderr,
          f'the key is shown: {program.report()}')
    return status, program.stdout, program.stderr.splitlines()


def test_all_faults(box):
    directory = box.make_dir('etc')
    main = write(directory / 'profd.conf', f'[sentry]\ndsn = {DSN}\n'
                 'speed = 5\n[profiler]\nrate_hz = 0\n', 0o644)
    more = write(directory / 'targets.d/a.conf', '[profiler]\nmode = cpu\n'
                 '[target "x"]\nexe = /usr/bin/x\nautostart = maybe\n'
                 '[target "y"]\nprofile_session_sample_rate = 1\n')
    status, out, lines = check_config(box, main)
    warnings = tuple(f'sentry-profd: warning: {more}:{text}' for text in (
        '3: [target "x"] has no profile_',
        '4: exe: /usr/bin/x: no such file'))
    check(all(any(line.startswith(warning) for line in lines)
              for warning in warnings), f'{lines}')
    lines = [line for line in lines if not line.startswith(warnings)]
    expected = [
        f'{main}: holds a DSN, and others can read it (mode 0644): '
        f'chmod 600 {main}',
        f'{main}:3: unknown key speed',
        f"{main}:5: rate_hz: not a number from 1 to 1000: '0'",
        f'{more}:1: [profiler] belongs in the main file',
        f"{more}:5: autostart: neither yes nor no: 'maybe'",
        f'{more}:6: [target "y"] has no rule (exe, comm, cmdline, user, '
        'cgroup, unit, container, pid_file, env NAME): it would match every '
        'process',
    ]
    check(status == 2 and out == '' and
          lines == ['sentry-profd: ' + line for line in expected],
          f'status {status}: {out} {lines}')
    # The daemon does not start.
    target = box.target('shares')
    program = box.start([BUILD / 'sentry-profd', '--config', main, '--pid',
                         target.pid])
    check(program.wait() == 2 and len(program.stderr.splitlines()) == 7 and
          harness.tracer(target.pid) == 0, program.report())


def test_faults_of_all_kinds(box):
    """Faults of the command line, the environment, files and the files that
    these name are reported at once, in this order and by line."""
    directory = box.make_dir('etc')
    main = write(directory / 'profd.conf', '[target "x"]\nexe = nginx\n'
                 'profile_session_sample_rate = 1\n[profiler]\n'
                 f'spool = {directory}/profd.conf\nmetrics_listen = 127.0.0.1:80\n'
                 f'[sentry]\nca_certs = {directory}\n'
                 'client_key = /nowhere\nhttps_proxy = http://\n')
    status, out, lines = check_config(
        box, main, '--speed', '--duraton=5', '-vq', '--quiet=no', '--rate', 'x',
        'now', '--client-cert', 'none',
        cwd=directory, env=harness.environment(
            SENTRY_DSN=DSN, SENTRY_PROFILE_LIFECYCLE='auto',
            SSL_CERT_FILE='/nowhere', http_proxy='none:'))
    hint = '(--help shows the usage)'
    expected = [
        f'--speed: not known {hint}',
        f'--duraton: not known: did you mean --duration? {hint}',
        f'-v: not known {hint}',
        f'-q: not known {hint}',
        f'--quiet: takes no value {hint}',
        f"--rate: not a number from 1 to 1000: 'x' {hint}",
        f"argument: not expected: 'now' {hint}",
        'SENTRY_PROFILE_LIFECYCLE: neither manual nor trace: \'auto\'',
        '--client-cert: none: No such file or directory',
        f"{main}:2: exe: matches no file: a path begins with / or **, and does "
        "not end with /: 'nginx'",
        f'{main}:5: spool: {directory}/profd.conf: Not a directory',
        f'{main}:6: metrics_listen is no key any more: sentry-profd-metrics '
        '--listen ADDR:PORT serves the metrics, and sentry-profctl metrics '
        'prints them',
        f'{main}:8: ca_certs: {directory}: Is a directory',
        f'{main}:9: client_key: /nowhere: No such file or directory',
        f'{main}:10: https_proxy: no URL of a proxy: it has no host',
    ]
    check(status == 2 and out == '' and
          lines == ['sentry-profd: ' + line for line in expected],
          f'status {status}: {out} ' + '\n'.join(lines))
    # test_http.py tests a start without these files.
    main.write_text(f'[sentry]\nca_certs = {directory}\n')
    status, _, lines = check_config(box, main)
    check(status == 2 and len(lines) == 1, f'status {status}: {lines}')


def test_many_faults(box):
    """All faults are printed: they do not count as repeated lines."""
    path = write(box.make_dir('etc') / 'profd.conf',
                 '[sentry]\n' + ''.join(f'k{n} = 1\n' for n in range(90)))
    status, _, lines = check_config(box, path)
    check(status == 2 and lines == [
        f'sentry-profd: {path}:{n + 2}: unknown key k{n}'
        for n in range(90)], f'{lines}')
    path.write_text('[sentry]\n' + 'x = 1\n' * 200)
    _, _, lines = check_config(box, path)
    check(len(lines) == 101 and lines[-1] ==
          'sentry-profd: 100 more faults of the configuration are not shown',
          f'{lines[-2:]}')


def values(text):
    """Returns {section: {key: value}}."""
    sections = {}
    for line in text.splitlines():
        heading = re.fullmatch(r'\[(.*)\]', line)
        if heading:
            section = sections.setdefault(heading[1], {})
        elif line:
            key, _, value = line.partition(' = ')
            section[key] = value
    return sections


def test_what_holds(box):
    """The command line takes precedence over the file, and the file over the
    environment."""
    path = write(box.make_dir('etc') / 'profd.conf',
                 f'[sentry]\ndsn = {DSN}\nenvironment = file\n[profiler]\n'
                 'rate_hz = 7\nchunk_seconds = 5\n'
                 '[target "x"]\ncomm = x\nprofile_session_sample_rate = 0.5\n'
                 '[target "y"]\ncomm = y\nrate_hz = 9\nrelease = y@1\n')
    status, out, lines = check_config(
        box, path, '--rate', 8, env=harness.environment(
            SENTRY_DSN=DSN + '0', SENTRY_ENVIRONMENT='env',
            SENTRY_PROFILE_SESSION_SAMPLE_RATE='0.25',
            SENTRY_PROFILE_LIFECYCLE='trace'))
    check(status == 0 and lines == [], f'status {status}: {lines}')
    v = values(out)
    x, y = v['target "x"'], v['target "y"']
    check(v['sentry']['dsn'] == x['dsn'] == SHOWN, out)
    check(v['sentry']['environment'] == y['environment'] == 'file', out)
    check(v['profiler']['rate_hz'] == x['rate_hz'] == '8' and
          y['rate_hz'] == '9' and v['profiler']['chunk_seconds'] == '5', out)
    check(x['profile_session_sample_rate'] == '0.5' and
          y['profile_session_sample_rate'] == '0.25' and
          x['profile_lifecycle'] == 'trace', out)
    check(y['release'] == 'y@1' and 'release' not in x, out)


def test_example(box):
    """The example file is valid, also with every key in it uncommented."""
    directory = box.make_dir('etc')
    text = EXAMPLE.read_text()
    path = write(directory / 'a.conf', text, 0o644)
    status, out, lines = check_config(box, path)
    check(status == 0 and lines == [] and 'target' not in out, f'{out} {lines}')
    text = re.sub(r'^#(?=\w+ = |\[target)', '', text, flags=re.M)
    text = re.sub(r'^dsn_file = .*\n', '', text, flags=re.M)
    text = text.replace('https://KEY@HOST/PROJECT', DSN)
    status, out, lines = check_config(box, write(directory / 'a.conf', text))
    # There is no nginx here, which is reported.
    check(status == 0 and 'target "nginx"' in out and
          all('/usr/sbin/nginx: no such file' in line
              for line in lines), f'{out} {lines}')


def test_used(box):
    """The file's values apply to a process that --pid names."""
    target = box.target('shares')
    directory = box.make_dir('etc')
    path = write(directory / 'profd.conf', '[sentry]\nenvironment = file\n'
                 'release = file@1\n[profiler]\nchunk_seconds = 1\n')
    run = box.profile([target], '--config', path)
    chunk = run.envelopes[0].chunk
    check(chunk['environment'] == 'file' and chunk['release'] == 'file@1',
          'the configuration is not used')
    run = box.profile([target], '--config', path, '--release', 'given@1')
    check(run.envelopes[0].chunk['release'] == 'given@1', '--release')


def test_reload_of_what_holds_at_once(box):
    """A DSN, an environment and a platform apply at once to targets that
    inherit them, without a line. A line names each changed key that needs a
    restart."""
    servers = [box.server(tls=False) for _ in range(2)]
    directory = box.make_dir('profd')
    path, pid_file = directory / 'profd.conf', directory / 'pid'
    socket = box.make_dir('run') / 'profd.sock'
    ctl = control.Control(box, socket)
    target = box.target('shares')
    pid_file.write_text(f'{target.pid}\n')

    def configure(server, place, platform, more=''):
        write(path, f'[sentry]\ndsn = {server.dsn}\nenvironment = {place}\n'
              f'[profiler]\nchunk_seconds = 1\nplatform = {platform}\n{more}'
              f'[target "a"]\npid_file = {pid_file}\nautostart = yes\n'
              'profile_session_sample_rate = 1\nmin_age_seconds = 0\n')
    configure(servers[0], 'one', 'rust')
    profd = box.profd([], '--config', path, '--socket', socket, output=None)
    wait_for(lambda: servers[0].chunks, 'a chunk')
    configure(servers[1], 'two', 'native')
    done = ctl.run('reload')
    check(done.stderr == '', done.stderr)
    wait_for(lambda: servers[1].chunks, 'a chunk for the other server')
    for server, place, platform in ((servers[0], 'one', 'rust'),
                                    (servers[1], 'two', 'native')):
        found = {(c['environment'], c['platform']) for c in server.chunks}
        check(found == {(place, platform)}, f'{found}')
    configure(servers[1], 'two', 'native', 'spool_max_chunks = 7\n'
              'socket = /elsewhere\n')
    found = [line for line in ctl.run('reload').stderr.splitlines()
             if 'only after a restart' in line]
    check([re.search(r'(\w+) in \[(\w+)\]', line).groups()
           for line in found] == [('spool_max_chunks', 'profiler')], f'{found}')
    profd.signal(signal.SIGTERM)
    profd.finish()


def test_rates_above_that_of_the_start(box):
    """Such rates are reported once. The next reload does not disturb targets
    that have one."""
    service = Service(box, {'web': {}})
    program = service.start('web')
    service.wait_profiled(program.pid)
    service.profd.wait_chunks(1)
    service.reload({'web': {'rate_hz': 500}})
    line = 'rate_hz of [target "web"] is 500, more than 101,'
    check(service.profd.stderr.count(line) == 1, service.profd.stderr)
    wait_for(lambda: len({c['profiler_id'] for c in service.profd.chunks}) == 2,
             'it begins anew')
    attached = service.profd.stderr.count('attached to process')
    for _ in range(2):
        service.reload({'web': {'rate_hz': 500}})
    service.profd.wait_chunks(len(service.profd.chunks) + 2)
    check(service.profd.stderr.count('attached to process') == attached,
          'it was disturbed')
    check(service.profd.stderr.count(line) == 1, service.profd.stderr)
    service.stop()


if __name__ == '__main__':
    harness.main(globals())
