#!/usr/bin/python3
"""The systemd units are valid, are hardened as docs/SECURITY.md says, and name
the accounts and paths that the daemon uses.
"""

import re
import shutil
import subprocess

import harness
from harness import ROOT, Skip, check

UNIT = ROOT / 'systemd/sentry-profd.service'
METRICS_UNIT = ROOT / 'systemd/sentry-profd-metrics.service'
UNITS = (UNIT, METRICS_UNIT)


def analyze(*args):
    if not shutil.which('systemd-analyze'):
        raise Skip('there is no systemd-analyze')
    return subprocess.run(['systemd-analyze', *map(str, args)], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          check=False)


def installed(box):
    """Makes a root directory with the units and the executables that they
    name."""
    root = box.make_dir('root')
    for path in ('usr/sbin/sentry-profd', 'usr/sbin/sentry-profd-metrics',
                 'usr/bin/sentry-profctl'):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(harness.BUILD / path.split('/')[-1], root / path)
    (root / 'etc/systemd/system').mkdir(parents=True)
    for unit in UNITS:
        shutil.copy(unit, root / 'etc/systemd/system')
    return root


def test_verify(box):
    said = analyze('verify', '--man=no', '--recursive-errors=no',
                   f'--root={installed(box)}', *(u.name for u in UNITS))
    check(said.returncode == 0 and not said.stdout, said.stdout)


def test_verify_finds_faults(box):
    """The verification reports a faulty unit."""
    root = installed(box)
    unit = root / 'etc/systemd/system/sentry-profd.service'
    unit.write_text(UNIT.read_text().replace('RestrictNamespaces=yes',
                                             'RestrictNamespace=yes'))
    said = analyze('verify', '--man=no', '--recursive-errors=no',
                   f'--root={root}', 'sentry-profd.service')
    check('RestrictNamespace' in said.stdout, said.stdout)


def test_score(_box):
    text = (ROOT / 'docs/SECURITY.md').read_text()
    for unit in UNITS:
        said = analyze('security', '--offline=true', unit).stdout
        found = re.search(rf'level for {unit.name}: ([\d.]+)', said)
        stated = re.search(rf'/{unit.name}\).*?exposure of\n\n +([\d.]+)\n',
                           text, re.S)
        check(found and stated, f'{unit}: {said}')
        check(float(found[1]) <= float(stated[1]), f'{unit} has {found[1]}, '
              f'docs/SECURITY.md says {stated[1]}')


def test_capabilities(_box):
    """The capabilities are those of docs/ARCHITECTURE.md, and the one to limit
    the bounding set."""
    text = (ROOT / 'docs/ARCHITECTURE.md').read_text()
    table = re.findall(r'^\| `sentry-profd(?:-capture)?` \|.*$', text, re.M)
    needed = set(re.findall('CAP_[A-Z_]+', ''.join(table)))
    lines = re.findall('^CapabilityBoundingSet=(.*)$', UNIT.read_text(), re.M)
    given = set(' '.join(lines).split())
    check(len(needed) > 5, table)
    # The table need not have the capability that only the proc connector
    # needs.
    check(needed | {'CAP_SETPCAP', 'CAP_NET_ADMIN'} == given,
          f'{sorted(needed)} are needed, {sorted(given)} given')


def test_groups(_box):
    """The groups that the daemon looks up are created. The metrics unit is in
    the group of viewers only."""
    made = re.findall(r'^g (\S+)',
                      (ROOT / 'systemd/sentry-profd.sysusers').read_text(),
                      re.M)
    known = re.findall(r'#define PEER_\w+ +"(.*)"',
                       (ROOT / 'daemon/process/peer.h').read_text())
    check(made == known and len(made) == 2, f'{made} {known}')
    check(re.findall('^SupplementaryGroups=(.*)$', METRICS_UNIT.read_text(),
                     re.M) == [known[1]], 'of the metrics')


def test_accounts(_box):
    """The accounts that the broker looks up are those that are created."""
    made = re.findall(r'^u (\S+)',
                      (ROOT / 'systemd/sentry-profd.sysusers').read_text(),
                      re.M)
    known = re.findall(r'\{"(sentry-profd-\w+)", \d+\}',
                       (ROOT / 'daemon/config/accounts.c').read_text())
    check(sorted(made) == sorted(known) and len(made) == 3, f'{made} {known}')


if __name__ == '__main__':
    harness.main(globals())
