#!/usr/bin/python3
"""Tests the Debian packages in a Debian of its own, which systemd boots. Installs the main
package, starts the service, and checks that a process is found and profiled and its profile
arrives at a server. Stops processes of sentry-profd, which the broker or systemd's watchdog
must restart. Upgrades and purges the package, after which no file may be left.

Makes the Debian once, by debootstrap, in $BUILD/package/debian, and boots it by
systemd-nspawn with all changes in memory. Needs root, and the packages that
make check-package builds: $BUILD/package/*.deb, the second one newer, and
$BUILD/sentry-profd-oracle_*.deb of the same versions.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys

TESTS = pathlib.Path(__file__).resolve().parents[1] / 'integration'
sys.path.insert(0, str(TESTS))

import harness  # noqa: E402
from harness import BUILD, Skip, check, children, exe_name, wait_for  # noqa: E402

MIRROR = 'http://deb.debian.org/debian'
DEBIAN = BUILD / 'package/debian'

# Packages besides the dependencies of ours.
INCLUDE = ('systemd', 'systemd-sysv', 'dbus', 'procps')

UNIT = 'sentry-profd.service'
NAMES = ('sentry-profd-capture', 'sentry-profd-unwind', 'sentry-profd-ship')

# System calls that the service needs and systemd-nspawn's filter forbids.
CALLS = ('ptrace process_vm_readv pidfd_getfd landlock_create_ruleset '
         'landlock_add_rule landlock_restrict_self')

CONFIG = '''
[target "shares"]
exe = /usr/local/bin/shares
autostart = yes
profile_session_sample_rate = 1.0
'''


def packages():
    """Returns the paths of our main packages, the older one first."""
    return sorted((BUILD / 'package').glob('*.deb'))


def oracle_of(deb):
    """Returns the path of the package sentry-profd-oracle of the same version."""
    return BUILD / deb.name.replace('sentry-profd_', 'sentry-profd-oracle_')


def field(deb, name):
    return subprocess.run(['dpkg-deb', '-f', deb, name], check=True,
                          stdout=subprocess.PIPE, text=True).stdout.strip()


def depends(deb):
    return {text.split()[0] for text in field(deb, 'Depends').split(',')}


def dependencies():
    """Returns the names of the packages on which ours depend."""
    return set().union(*(depends(path) for deb in packages()
                         for path in (deb, oracle_of(deb)))) - {'sentry-profd'}


def debian():
    """Returns the directory of a Debian that has the dependencies of our packages. Makes
    it if it does not exist, or was made for other dependencies."""
    include = ','.join([*INCLUDE, *sorted(dependencies())])
    made_with = DEBIAN.with_suffix('.packages')
    if made_with.exists() and made_with.read_text() == include:
        return DEBIAN
    for path in (made_with, DEBIAN):
        if path.exists():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    subprocess.run(['debootstrap', '--variant=minbase', f'--include={include}',
                    'bookworm', DEBIAN, MIRROR], check=True,
                   stdout=subprocess.DEVNULL)
    made_with.write_text(include)
    return DEBIAN


class Machine:
    """The booted Debian. It ends with the test."""

    def __init__(self, box):
        self.share = box.make_dir('share')
        for path in packages():
            shutil.copy(path, self.share)
            shutil.copy(oracle_of(path), self.share)
        shutil.copy(BUILD / 'targets/shares', self.share)
        self.program = box.start(
            ['systemd-nspawn', '--quiet', '--boot', '--register=no',
             '--keep-unit', '--volatile=overlay', '--console=pipe',
             '--machine=profd-package',
             '--capability=CAP_CHECKPOINT_RESTORE,CAP_NET_ADMIN',
             f'--system-call-filter={CALLS}', f'--bind-ro={self.share}:/mnt',
             '-D', debian()])
        self.leader = 0
        wait_for(self.has_booted, 'systemd has booted')

    def has_booted(self):
        check(self.program.running(), 'systemd-nspawn ended')
        # systemd-nspawn starts systemd by two forks.
        found = [pid for pid in children(self.program.pid)
                 if exe_name(pid) == 'systemd']
        self.leader = found[0] if found else 0
        return self.leader and \
            self.say('systemctl', 'is-system-running') in ('running',
                                                           'degraded')

    def run(self, *argv, ok=True):
        """Runs a command in the Debian. Returns its output."""
        done = subprocess.run(
            ['nsenter', '-t', str(self.leader), '-m', '-u', '-i', '-n', '-p',
             *map(str, argv)], stdin=subprocess.DEVNULL, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        if ok:
            check(done.returncode == 0, f'{argv}: {done.stdout}'
                  f'{self.say("journalctl", "-n40", "--no-pager")}')
        return done.stdout

    def say(self, *argv):
        return self.run(*argv, ok=False).strip()

    def write(self, path, text, mode='600'):
        self.run('sh', '-c', f"mkdir -p {os.path.dirname(path)} && "
                 f"printf %s '{text}' >{path} && chmod {mode} {path}")

    def show(self, name):
        return self.say('systemctl', 'show', '-P', name, UNIT)

    def pids(self, name):
        """Returns the pids of the processes with this executable."""
        text = self.say('sh', '-c', 'for p in /proc/[0-9]*; do '
                        'echo ${p#/proc/} $(readlink $p/exe); done')
        return [int(line.split()[0]) for line in text.splitlines()
                if line.endswith('/' + name)]

    def files(self):
        """Returns all paths, except those that a boot or dpkg itself writes."""
        text = self.run('find', '/', '-xdev', '(', '-path', '/proc', '-o',
                        '-path', '/sys', '-o', '-path', '/var/log', '-o',
                        '-path', '/var/cache', '-o', '-path', '/mnt', '-o',
                        '-path', '/tmp', '-o', '-path', '/var/tmp', '-o',
                        '-path', '/var/lib/systemd', '-o', '-path', '/run',
                        ')', '-prune', '-o', '-print')
        return {line for line in text.splitlines()
                if not re.search(r'^/var/lib/dpkg/|^/etc/\S+-$|^/dev/|'
                                 r'/__pycache__', line)}

    def accounts(self):
        return self.run('cat', '/etc/passwd') + self.run('cat', '/etc/group')

    def end(self):
        self.program.process.terminate()
        self.program.wait()


def wait_chunks(server, n=1):
    n += len(server.chunks)
    wait_for(lambda: len(server.chunks) >= n, f'{n} chunks at the server')
    return server.chunks[-1]


def functions(chunk):
    return {f.get('function') for f in chunk['profile']['frames']}


def check_service(m):
    check(m.show('ActiveState') == 'active', m.say('systemctl', 'status', UNIT))
    wait_for(lambda: all(m.pids(name) for name in NAMES), 'all processes')
    for name in NAMES:
        for pid in m.pids(name):
            status = m.run('cat', f'/proc/{pid}/status')
            own = m.run('id', '-u', name).strip()
            check(re.search(rf'^Uid:\s+{own}\s', status, re.M), status)
            check(re.search(r'^NoNewPrivs:\s+1$', status, re.M), status)
            # CAP_SYS_NICE is effective in capture only: the broker passes it on.
            found = int(re.search(r'^CapEff:\s+(\w+)$', status, re.M)[1], 16)
            check(bool(found >> 23 & 1) == name.endswith('capture'), status)


def configure(m, server):
    m.write('/etc/sentry-profd/dsn', server.dsn)
    m.write('/etc/sentry-profd/targets.d/shares.conf', CONFIG)
    m.run('sh', '-c', "printf '[sentry]\\ndsn_file = "
          f"/run/credentials/{UNIT}/dsn\\n[profiler]\\nchunk_seconds = 1\\n' "
          '>/etc/sentry-profd/sentry-profd.conf')
    m.run('sentry-profd', '--check-config')
    # systemd loads the credential when the service starts.
    m.run('systemctl', 'restart', UNIT)


def check_profiled(m, server):
    m.run('cp', '/mnt/shares', '/usr/local/bin/shares')
    m.run('systemd-run', '--quiet', '--unit=shares', '/usr/local/bin/shares')
    chunk = wait_chunks(server, 2)
    check({'busy_seventy', 'busy_thirty'} <= functions(chunk),
          functions(chunk))
    check('profiled' in m.show('StatusText'), m.show('StatusText'))


def check_reload(m, server):
    """A valid configuration applies at once. An invalid one is refused as a whole."""
    path = '/etc/sentry-profd/targets.d/shares.conf'
    m.write(path, CONFIG + 'environment = reloaded\n')
    m.run('systemctl', 'reload', UNIT)
    wait_for(lambda: wait_chunks(server)['environment'] == 'reloaded',
             'the new environment')
    m.write(path, CONFIG + 'no_such_key = 1\n')
    m.run('sh', '-c', f'! systemctl reload {UNIT}')
    check('no_such_key' in m.run('journalctl', '-u', UNIT), 'the journal')
    check(wait_chunks(server)['environment'] == 'reloaded', 'it is changed')
    m.write(path, CONFIG)


def check_sampler_is_replaced(m, server):
    """The broker replaces a capture that is stopped."""
    old, = m.pids('sentry-profd-capture')
    m.run('kill', '-STOP', old)
    wait_for(lambda: m.pids('sentry-profd-capture') not in ([], [old]),
             'another sampler')
    wait_chunks(server, 2)
    check(m.show('NRestarts') == '0', 'systemd started it again')


def check_watchdog(m, server):
    """systemd restarts the service if the broker and capture are stopped."""
    broker = m.show('MainPID')
    m.run('kill', '-STOP', broker, *m.pids('sentry-profd-capture'))
    wait_for(lambda: m.show('NRestarts') == '1', 'the watchdog')
    wait_for(lambda: m.show('ActiveState') == 'active', 'the service')
    check('Watchdog timeout' in m.run('journalctl', '-u', UNIT), 'the journal')
    wait_chunks(server, 2)
    check(m.show('MainPID') != broker, 'the same broker')


def check_upgrade(m, server, package):
    version = m.run('dpkg-deb', '-f', package, 'Version').strip()
    before = m.show('MainPID')
    m.run('dpkg', '-i', package)
    check(m.run('sentry-profd', '--version').split()[1] == version, version)
    check_service(m)
    check(m.show('MainPID') != before, 'the old one runs on')
    check('chunk_seconds = 1' in
          m.run('cat', '/etc/sentry-profd/sentry-profd.conf'), 'configuration')
    wait_chunks(server, 2)


def check_scripts(m):
    """The maintainer scripts may run twice. A removal keeps accounts, configuration and
    spool."""
    configuration = m.run('sha256sum', '/etc/sentry-profd/sentry-profd.conf',
                          '/etc/sentry-profd/targets.d/shares.conf')
    before = m.accounts()
    info = '/var/lib/dpkg/info/sentry-profd'
    version = m.run('dpkg-query', '-W', '-f', '${Version}', 'sentry-profd')
    for _ in range(2):
        m.run(f'{info}.postinst', 'configure', version)
    check(m.accounts() == before, m.accounts())
    check(m.show('ActiveState') == 'active', m.say('systemctl', 'status', UNIT))
    m.run('dpkg', '--remove', 'sentry-profd')
    m.run(f'{info}.postrm', 'remove')
    check(not any(m.pids(name) for name in NAMES), 'it runs on')
    check(m.accounts() == before, 'the accounts go with purge')
    check(m.run('sha256sum', '/etc/sentry-profd/sentry-profd.conf',
                '/etc/sentry-profd/targets.d/shares.conf') == configuration,
          'the configuration stays')
    m.run('test', '-d', '/var/lib/sentry-profd/spool')


def check_changelog(deb):
    """dpkg can parse the changelog, which has the package's version."""
    path = './usr/share/doc/sentry-profd/changelog.gz'
    text = subprocess.run(['sh', '-c', f'dpkg-deb --fsys-tarfile "$0" | '
                           f'tar -xO {path} | zcat', deb], check=True,
                          capture_output=True).stdout
    said = subprocess.run(['dpkg-parsechangelog', '-l', '-'], input=text,
                          check=True, capture_output=True, text=False)
    version = field(deb, 'Version')
    check(f'\nVersion: {version}\n' in said.stdout.decode() and
          not said.stderr, f'{said.stdout} {said.stderr}')
    # Debian's machine-readable format.
    subprocess.run(['sh', '-c', 'dpkg-deb --fsys-tarfile "$0" | tar -xO '
                    './usr/share/doc/sentry-profd/copyright | grep -q ^Format:',
                    deb], check=True)


def check_lint(deb):
    """lintian finds nothing but what systemd/deb/sentry-profd.lintian-overrides lists."""
    done = subprocess.run(['lintian', '--fail-on', 'error,warning,info', '--display-info',
                           '--allow-root', deb, oracle_of(deb)], check=False, capture_output=True, text=True)
    check(done.returncode == 0, done.stdout + done.stderr)


def check_packages(deb):
    """A host with the main package has one program that traces, and not libunwind."""
    check(not any('libunwind' in name for name in depends(deb)), field(deb, 'Depends'))
    found = {}
    for path in (deb, oracle_of(deb)):
        text = subprocess.run(['dpkg-deb', '-c', path], check=True, capture_output=True,
                              text=True).stdout
        found[path] = re.findall(r'^-rwx.*/(sentry-prof[\w-]+)$', text, re.M)
    check(sorted(found[deb]) == ['sentry-profctl', 'sentry-profd', 'sentry-profd-capture',
                                 'sentry-profd-metrics', 'sentry-profd-ship',
                                 'sentry-profd-unwind'] and
          found[oracle_of(deb)] == ['sentry-profd-oracle'], f'{found}')


def check_oracle(m, deb):
    """stack --oracle works with its package only, which is installed beside that of the same
    version."""
    m.run('systemd-run', '--quiet', '--unit=compared', 'sleep', '10000')
    pid = m.say('systemctl', 'show', '-P', 'MainPID', 'compared')
    compare = ('sentry-profctl', 'stack', '--oracle', pid)
    check('package' in m.say(*compare), m.say(*compare))
    m.run('dpkg', '-i', f'/mnt/{oracle_of(deb).name}')
    check('libunwind: the same' in m.run(*compare), m.say(*compare))
    m.run('dpkg', '--purge', 'sentry-profd-oracle')
    m.run('systemctl', 'stop', 'compared')


def check_purged(m, files, accounts):
    m.run('cp', '/var/lib/dpkg/info/sentry-profd.postrm', '/tmp/postrm')
    target = m.say('systemctl', 'show', '-P', 'MainPID', 'shares')
    m.run('dpkg', '--purge', 'sentry-profd')
    left = {f for f in m.files() - files if f != '/usr/local/bin/shares'}
    check(not left, f'left: {sorted(left)}')
    m.run('/tmp/postrm', 'purge')
    check(m.accounts() == accounts, m.accounts())
    check(m.show('LoadState') == 'not-found', m.show('LoadState'))
    check('TracerPid:\t0' in m.run('cat', f'/proc/{target}/status'), 'traced')
    check(m.say('systemctl', 'is-active', 'shares') == 'active', 'the target')


def check_idle(m):
    check(m.show('ActiveState') == 'active',
          m.say('systemctl', 'status', '--no-pager', UNIT))
    check(m.say('systemctl', 'is-enabled', UNIT) == 'enabled', 'enabled')
    check(m.show('StatusText').startswith('0 processes'), m.show('StatusText'))
    m.run('sentry-profctl', 'status')


def step(function, *args):
    print(f'      {function.__name__}', flush=True)
    function(*args)


def test_package(box):
    if os.geteuid() != 0:
        raise Skip('only root can boot a machine')
    debs = packages()
    check(len(debs) == 2, f'{debs}: make check-package builds two')
    for deb in debs:
        check_changelog(deb)
        check_packages(deb)
        check_lint(deb)
    server = box.server(tls=False)
    m = Machine(box)
    try:
        files, accounts = m.files(), m.accounts()
        m.run('dpkg', '-i', f'/mnt/{debs[0].name}')
        # The package's configuration has no target and no DSN.
        step(check_idle, m)
        step(check_oracle, m, debs[0])
        step(configure, m, server)
        step(check_profiled, m, server)
        step(check_service, m)
        step(check_reload, m, server)
        step(check_sampler_is_replaced, m, server)
        step(check_watchdog, m, server)
        step(check_upgrade, m, server, f'/mnt/{debs[1].name}')
        step(check_scripts, m)
        m.run('dpkg', '-i', f'/mnt/{debs[1].name}')
        wait_chunks(server, 2)
        step(check_purged, m, files, accounts)
        # After a purge the package can be installed again.
        m.run('dpkg', '-i', f'/mnt/{debs[1].name}')
        step(check_idle, m)
        server.check_requests()
    except Exception:
        print(m.say('journalctl', '-u', UNIT, '--no-pager', '-n', '60'))
        raise
    finally:
        m.end()


if __name__ == '__main__':
    harness.main(globals())
