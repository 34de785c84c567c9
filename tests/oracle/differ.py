#!/usr/bin/python3
"""Compares our stacks with those of libunwind and libdwfl, at random stops.

usage: differ.py [--total N] [--steps N] [--seed N] [NAME...]

Runs the programs of tests/targets/zoo_* and programs of Debian's packages (REAL),
or those that are named. --total stops are divided among the programs. --steps is
the largest number of single steps after a random stop. Each difference must be
explained by a known fault of the other unwinder (rules.py). Differences without an
explanation are printed, and the exit status is 1. Programs that are not installed
are left out.
"""

import argparse
import collections
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import loops
import rules

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(ROOT, os.environ.get('BUILD', 'build'))

# Programs that run until they are killed. Each uses many functions of its interpreter.
PYTHON = '''
import hashlib, json, re, zlib
def f(n): return n if n < 2 else f(n - 1) + f(n - 2)
i = 0
while True:
    i += 1; f(10); json.dumps({'a': [1, 2, i]})
    sorted([3, 1, i], key=lambda x: -x); re.sub(r'(\\w+) (\\w+)', r'\\2', 'a b')
    zlib.compress(b'x' * 2000); hashlib.sha256(b'y' * 1000).hexdigest()
'''
PERL = '''
sub f { my $n = shift; return $n < 2 ? $n : f($n - 1) + f($n - 2) }
for (my $i = 0;; $i++) { f(8); my @a = sort { $a <=> $b }
  map { ($_ * $i) % 97 } 1..50; my $s = join(",", @a);
  $s =~ s/(\\d+),(\\d+)/$2-$1/g; sprintf("%f %s", $i, $s); }
'''
BASH = '''
f() { local n=$1; if ((n < 2)); then r=$n; return; fi
  f $((n - 1)); local a=$r; f $((n - 2)); r=$((r + a)); }
while :; do f 8; x="abc$r"; x=${x//a/b}; [[ $x =~ ^b(.*)$ ]]; done
'''
NODE = '''
function f(n) { return n < 2 ? n : f(n - 1) + f(n - 2) }
let o = {};
function step() { for (let i = 0; i < 200; i++) {
  o['k' + i % 50] = JSON.stringify({a: i, b: [1, 2, 3]}); f(12);
  [3, 1, 2, i].sort((a, b) => a - b); 'abc def'.replace(/(\\w+) (\\w+)/, '$2');
} setImmediate(step); }
step();
'''
SQLITE = '''with recursive c(x) as (select 1 union all select x + 1 from c)
select max(hex(x) || lower(hex(randomblob(8)))) from c where x % 3 = 0;'''
POSTGRES = '''select max(md5(x::text)) from generate_series(1, 1000000000) x
where x::text ~ '(1+)2*';
'''.replace('\n', ' ')
GO = '''package main
import ("fmt"; "sort"; "strings")
func f(n int) int { if n < 2 { return n }; return f(n-1) + f(n-2) }
func work() { for i := 0; ; i++ { s := fmt.Sprintf("%d-%x", i%1000, i)
  x := make([]int, 50); for j := range x { x[j] = i * j % 97 }
  sort.Slice(x, func(a, b int) bool { return x[a] < x[b] })
  _ = strings.Repeat(s, 3); f(8) } }
func main() { go work(); go work(); select {} }
'''
RUST = '''use std::collections::HashMap;
fn rec(n: u32) -> u64 { if n == 0 { return 1; }
  let v: Vec<u64> = (0..n as u64).collect(); v.iter().sum::<u64>() + rec(n-1) }
fn main() { let mut m: HashMap<String, u64> = HashMap::new(); let mut i = 0u64;
  loop { *m.entry(format!("{:?}-{}", i % 100, i % 7)).or_insert(0) +=
    rec((i % 20) as u32);
  let mut v: Vec<u64> = (0..100).map(|x| (x * i) % 101).collect(); v.sort();
  let _ = std::panic::catch_unwind(|| { if i % 50 == 49 {
    std::panic::resume_unwind(Box::new(1)); } }); i += 1; } }
'''
JAVA = '''import java.util.*;
public class Hot { static int f(int n) { return n < 2 ? n : f(n-1) + f(n-2); }
public static void main(String[] a) { Map<String, Integer> m = new HashMap<>();
for (int i = 0; ; i++) { m.merge("" + (i % 1000), i, Integer::sum); f(12);
List<Integer> l = new ArrayList<>(); for (int j = 0; j < 100; j++)
l.add((j * i) % 97); Collections.sort(l); } } }
'''
CXX = '''#include <map>
#include <regex>
int main() { std::regex r("(a+)(b*)"); std::map<std::string, int> m;
std::smatch s; std::string t = "aab"; return std::regex_match(t, s, r); }
'''


# Time limit in seconds for the end of a program's children after SIGKILL.
END_S = 10


class Runner:
    """Starts programs, and the clients that give them work, in a directory, and
    kills them. Each program and its children are a process group."""

    def __init__(self, directory):
        self.dir = pathlib.Path(directory)
        self.processes = []

    def write(self, name, text):
        (self.dir / name).write_text(text)
        return self.dir / name

    def start(self, *argv, **options):
        options = {'stdin': subprocess.DEVNULL, 'stdout': subprocess.DEVNULL,
                   'stderr': subprocess.DEVNULL, 'cwd': self.dir, **options}
        process = subprocess.Popen([str(a) for a in argv],
                                   start_new_session=True, **options)
        self.processes.append(process)
        return process.pid

    def compile(self, *argv, **options):
        """Runs a command and waits until it exits. Raises CalledProcessError if
        it fails."""
        self.start(*argv, stdin=None, stderr=None,
                   env={**os.environ, 'GOCACHE': str(self.dir / 'go')},
                   **options)
        status = self.processes[-1].wait()
        self.processes.pop()
        if status != 0:
            raise subprocess.CalledProcessError(status, argv)

    def end(self):
        """Kills the programs and their children, and waits for their end."""
        for process in reversed(self.processes):
            if process.returncode is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            if process.stdout:
                process.stdout.close()
        until = time.monotonic() + END_S
        while any(has_group(p.pid) for p in self.processes) and \
                time.monotonic() < until:
            time.sleep(0.01)


def has_group(number):
    """Returns whether a process of this process group exists."""
    try:
        os.killpg(number, 0)
    except ProcessLookupError:
        return False
    return True


def redis(r):
    exe = shutil.copy(shutil.which('redis-server') or
                      shutil.which('redis-check-rdb'), r.dir / 'redis-server')
    socket = r.dir / 'socket'
    pid = r.start(exe, '--port', 0, '--unixsocket', socket, '--save', '')
    while not socket.exists():
        time.sleep(0.01)
    r.start('redis-benchmark', '-s', socket, '-q', '-l', '-n', 100000, '-r',
            1000, 'eval', 'return redis.call("zadd", "z", 1, KEYS[1])', 1,
            '__rand_int__')
    return pid


def xz(r):
    # Random data, of which there is no end.
    with open('/dev/urandom', 'rb') as data:
        return r.start('xz', '-T1', '-6', '-c', stdin=data)


def nginx(r):
    r.write('conf', f'''daemon off; master_process off; pid {r.dir}/pid;
error_log {r.dir}/log; events {{}} http {{ access_log off; gzip on;
gzip_types *; gzip_min_length 1;
client_body_temp_path {r.dir}; proxy_temp_path {r.dir};
fastcgi_temp_path {r.dir}; uwsgi_temp_path {r.dir}; scgi_temp_path {r.dir};
server {{ listen unix:{r.dir}/socket; root {r.dir}; }} }}''')
    r.write('page', 'a page of text ' * 5000)
    pid = r.start('nginx', '-p', r.dir, '-c', r.dir / 'conf')
    while not (r.dir / 'socket').exists():
        time.sleep(0.01)
    r.start('sh', '-c', f'while curl -s --compressed --unix-socket '
            f'{r.dir}/socket http://x/page -o /dev/null; do :; done')
    return pid


def postgres(r):
    bin_dir = sorted(pathlib.Path('/usr/lib/postgresql').glob('*/bin'))[-1]
    r.dir.chmod(0o777)
    # Not with runuser, since the pid would be that of runuser, the parent of postgres.
    user = {'user': 'postgres', 'group': 'postgres', 'extra_groups': ()} \
        if os.geteuid() == 0 else {}
    r.compile(bin_dir / 'initdb', '-D', r.dir / 'db', **user)
    with open(r.write('sql', POSTGRES), 'rb') as sql:
        return r.start(bin_dir / 'postgres', '--single', '-D', r.dir / 'db',
                       'postgres', stdin=sql, **user)


def go(r):
    r.compile('go', 'build', '-o', 'hot', r.write('hot.go', GO))
    return r.start(r.dir / 'hot')


def rust(mangling):
    def start(r):
        # Which of the two manglings is a stable option depends on rustc's version.
        r.compile('env', 'RUSTC_BOOTSTRAP=1', 'rustc', '-O', '-Z',
                  'unstable-options', '-C',
                  f'symbol-mangling-version={mangling}', '-o', 'hot',
                  r.write('hot.rs', RUST))
        return r.start(r.dir / 'hot')
    return start


def gron(r):
    # Debian packages Go's programs without symbols and .debug_frame.
    data = json.dumps([{'name': f'a{i}', 'list': [i, {'x': [i] * 9}]}
                       for i in range(20000)])
    return r.start('gron', r.write('data', data))


def java(r):
    r.write('Hot.java', JAVA)
    r.compile('javac', 'Hot.java')
    return r.start('java', '-Xmx64m', '-cp', r.dir, 'Hot')


def cc1plus(r):
    exe = subprocess.run(['g++', '-print-prog-name=cc1plus'], check=True,
                         capture_output=True, text=True).stdout.strip()
    source = r.write('hot.cc', CXX)
    return r.start(exe, '-quiet', '-O2', '-o', '/dev/null', source)


# {name: (command that has to be installed, function that starts the program)}.
# run() starts a program that ends again.
REAL = {
    'python3': ('/usr/bin/python3',
                lambda r: r.start('/usr/bin/python3', '-c', PYTHON)),
    'perl': ('perl', lambda r: r.start('perl', '-e', PERL)),
    'bash': ('bash', lambda r: r.start('bash', '-c', BASH)),
    'redis': ('redis-check-rdb', redis),
    'xz': ('xz', xz),
    'cc1plus': ('g++', cc1plus),
    'node': ('node', lambda r: r.start('node', '--perf-basic-prof', '-e',
                                       NODE)),
    'sqlite3': ('sqlite3', lambda r: r.start('sqlite3', ':memory:', SQLITE)),
    'nginx': ('nginx', nginx),
    'postgres': ('postgres', postgres),
    'java': ('javac', java),
    'go': ('go', go),
    'gron': ('gron', gron),
    'rust': ('rustc', rust('legacy')),
    'rust_v0': ('rustc', rust('v0')),
    'hexyl': ('hexyl', lambda r: r.start('hexyl', '/dev/urandom')),
}


def zoo(name):
    """Returns the start function of a program of tests/targets/zoo_*."""
    return lambda r: loops.ready(r, BUILD / 'targets' / name, 'work')


def zoo_names():
    found = (BUILD / 'targets').glob('zoo_*')
    # plugins loads and unloads libraries at the same addresses.
    return sorted(p.name for p in found if '.' not in p.name) + ['plugins']


def programs():
    found = {n: (str(BUILD / 'targets' / n), zoo(n)) for n in zoo_names()}
    return {**found, **REAL, **loops.LOOPS, **loops.COROUTINES}


class Sums:
    def __init__(self):
        self.stops = 0
        self.blocked = 0  # stacks without a stop that were compared
        # Stacks without a stop that differ, but have a guessed frame or no root.
        self.marked = []
        self.agree = collections.Counter()
        self.ends = collections.Counter()
        self.early = collections.Counter()
        self.explained = collections.Counter()
        self.unexplained = []  # (what differs, line of differ.c)

    def add(self, line):
        """Adds a line of differ.c."""
        if 'stops' in line:
            self.stops += line['stops']
            self.blocked += line['blocked_compared']
            self.ends.update(line['ends'])
            for oracle in rules.RULES:
                self.agree[oracle] += line[f'{oracle}_agrees']
        elif 'early' in line:
            stack = rules.Stack(line['early'])
            self.early[stack.end, place(stack)] += 1
        elif 'blocked' in line:
            stack = rules.Stack(line['blocked'])
            sure = stack.end == 'root' and \
                not any(f.guessed for f in stack.frames)
            (self.unexplained if sure else self.marked).append(
                ('without a stop', line))
        else:
            for oracle, fault in rules.explain(line).items():
                if fault:
                    self.explained[oracle, fault] += 1
                else:
                    self.unexplained.append((oracle, line))

    def settle(self):
        """Of the stacks without a stop one in a thousand may differ, if it is
        marked as guessed or does not reach the root. More count as unexplained."""
        if len(self.marked) * 1000 > self.blocked:
            self.unexplained += self.marked


def place(stack):
    """Returns the function and the module in which the walk ended."""
    last = stack.frames[-1]
    return f'{last.name or "?"} in ' \
           f'{os.path.basename(last.module) or "memory without a file"}'


def has_memory(pid):
    """False for a process that ends: it may have no memory any more and not be a zombie yet."""
    try:
        return pathlib.Path(f'/proc/{pid}/maps').read_text() != ''
    except (FileNotFoundError, ProcessLookupError):
        return False


def differ(pid, stops, seed, steps):
    """Runs differ.c on a process, and returns its lines. A compiler may have ended before."""
    done = subprocess.run(
        [BUILD / 'oracle/differ', str(pid), str(stops), str(seed), str(steps)],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    if has_memory(pid):
        done.check_returncode()
    return [json.loads(line) for line in done.stdout.splitlines()]


# How often a program that ends, such as a compiler, is started.
RUNS_MAX = 1000


def run(start, stops, seed, steps, n_blocked=0):
    """Compares a program's stacks until there are this many stops, and at least
    n_blocked of them were also compared with a copy without a stop. Returns
    Sums."""
    sums = Sums()
    for i in range(RUNS_MAX):
        with tempfile.TemporaryDirectory(prefix='differ.') as directory:
            runner = Runner(directory)
            try:
                pid = start(runner)
                wanted = max(stops - sums.stops, n_blocked - sums.blocked)
                for line in differ(pid, wanted, seed + i, steps):
                    sums.add(line)
            finally:
                runner.end()
        if sums.stops >= stops and sums.blocked >= n_blocked:
            break
    sums.settle()
    return sums


def report(name, sums):
    agree = ', '.join(f'{o} agrees {n}' for o, n in sorted(sums.agree.items()))
    print(f'{name}: {sums.stops} stops, {agree}; {sums.blocked} compared '
          f'without a stop, of which {len(sums.marked)} differ and are marked; ends '
          f'{dict(sums.ends)}')
    for (oracle, fault), n in sums.explained.most_common():
        print(f'    {n:6} {oracle}: {fault}')
    for (end, where), n in sums.early.most_common(8):
        print(f'    {n:6} {end}: {where}')
    for what, line in sums.unexplained[:3]:
        print(f'  NOT EXPLAINED: {what}\n{rules.describe(line)}')
    if len(sums.unexplained) > 3:
        print(f'  and {len(sums.unexplained) - 3} more not explained')
    sys.stdout.flush()


def installed(names):
    """Returns the names of programs that are installed."""
    known = programs()
    found = [n for n in names if shutil.which(known[n][0])]
    for name in set(names) - set(found):
        print(f'{name}: not installed')
    return found


def compare(names, stops, steps, seed):
    """Compares each program at this many stops. Returns (stops, number of
    unexplained differences, {program: [(end, place)]} of stacks that do not reach
    the root)."""
    total = wrong = 0
    early = {}
    for name in names:
        sums = run(programs()[name][1], stops, seed, steps)
        report(name, sums)
        total += sums.stops
        wrong += len(sums.unexplained)
        if sums.early:
            early[name] = sorted(sums.early)
    return total, wrong, early


def end_by_signals():
    """Makes SIGTERM and SIGHUP raise KeyboardInterrupt, so that run() kills its
    programs. (SystemExit would not end unittest.)"""
    for number in signal.SIGTERM, signal.SIGHUP:
        signal.signal(number, signal.default_int_handler)


def main():
    end_by_signals()
    parser = argparse.ArgumentParser()
    parser.add_argument('--total', type=int, default=20000)
    parser.add_argument('--steps', type=int, default=50)
    parser.add_argument('--seed', type=int, default=time.time_ns() % 10**6)
    parser.add_argument('names', nargs='*')
    args = parser.parse_args()
    names = installed(args.names or programs())
    print(f'seed {args.seed}')
    total, wrong, _ = compare(names, -(-args.total // len(names)), args.steps,
                              args.seed)
    print(f'{total} stops, {wrong} differences not explained')
    return 1 if wrong or total < args.total else 0


if __name__ == '__main__':
    sys.exit(main())
