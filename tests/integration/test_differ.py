#!/usr/bin/python3
"""A short run of tests/oracle/differ.py: some thousand random stops."""

import os
import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / 'tests/oracle'))

import differ  # noqa: E402
import rules  # noqa: E402

STOPS = 200
STEPS = 100
SEED = 1

# Programs whose stacks need not end at their root. In musl's code the callers
# are not always found, and there is no CFI for lazy bindings in node's PLT,
# for code that HotSpot compiles, for Go's scheduler, and for Boost's change
# from one coroutine to another.
NO_ROOT = ('zoo_musl', 'zoo_musl_static', 'node', 'java', 'loop_java', 'go',
           'loop_go', 'gron', 'boost', 'boost_fp')

# Stops of waiting threads, which were looked at before.
WAITS = 150


class Differ(unittest.TestCase):
    def compare(self, names, stops=STOPS, steps=STEPS):
        names = differ.installed(names)
        total, wrong, early = differ.compare(names, stops, steps, SEED)
        self.assertEqual(wrong, 0, 'see above')
        self.assertEqual(total, stops * len(names))
        for name in set(early) - set(NO_ROOT):
            # Known differences: a fault of gcc in an epilogue, the first
            # instructions of a process, and libgcc on its way to a handler:
            # docs/UNWINDING.md.
            known = {('bad_cfa', f'with_room in {name}'),
                     ('no_cfi', '_start in ld-linux-x86-64.so.2'),
                     *(('no_cfi', f'_Unwind_{f} in libgcc_s.so.1') for f in
                       ('RaiseException', 'Resume', 'ForcedUnwind'))}
            self.assertEqual(set(early[name]) - known, set(), name)

    def test_the_zoo(self):
        self.compare(differ.zoo_names())

    def test_every_instruction_of_a_way(self):
        """Compares at thousands of consecutive instructions: prologues and
        epilogues, the dynamic linker's binding, signals, jumps."""
        self.compare(['zoo_o0', 'zoo_o2', 'zoo_os', 'zoo_clang_os', 'zoo_cet',
                      'zoo_lazy'], stops=3000, steps=6000)

    def test_real_programs(self):
        # Languages whose compiler is missing here are skipped. differ.py also
        # tests a database.
        self.compare(['python3', 'perl', 'bash', 'redis', 'xz', 'cc1plus',
                      'node', 'gron', 'hexyl', 'go', 'rust', 'rust_v0',
                      'java', *differ.loops.COROUTINES])

    def test_loops_of_events(self):
        """Waiting threads have the same stacks without a stop as with one."""
        names = differ.installed(['nginx', 'redis', *differ.loops.LOOPS])
        for name in names:
            sums = differ.run(differ.programs()[name][1], WAITS, SEED, 0,
                              n_blocked=WAITS)
            differ.report(name, sums)
            self.assertEqual(sums.unexplained, [], name)
            self.assertGreaterEqual(sums.blocked, WAITS, name)


def line(ours, end, theirs, module='/usr/bin/env'):
    def frames(names):
        return [[0x1000 + 16 * i, n, 8, module, 8, False]
                for i, n in enumerate(names.split())]
    return {'ours': {'frames': frames(ours), 'end': end},
            'libunwind': {'frames': frames(theirs), 'end': 'end',
                          'first': len(os.path.commonprefix(
                              [ours.split(), theirs.split()]))}}


class Rules(unittest.TestCase):
    """An unexplained difference is not accepted by chance."""

    def test_a_frame_too_few_and_one_too_many(self):
        for ours, theirs in (('a b', 'a b c'), ('a b c', 'a b'),
                             ('a x c', 'a b c'), ('a', 'a b')):
            self.assertEqual(rules.explain(line(ours, 'root', theirs)),
                             {'libunwind': None}, (ours, theirs))

    def test_the_vdso_explains_only_what_is_above_it(self):
        found = line('a b', 'root', 'a c')
        found['ours']['frames'][0][3] = '[vdso]'
        self.assertEqual(rules.explain(found), {'libunwind': 'vdso'})
        found = line('a b c', 'root', 'a d c')
        found['ours']['frames'][2][3] = '[vdso]'
        self.assertEqual(rules.explain(found), {'libunwind': None})


if __name__ == '__main__':
    differ.end_by_signals()
    unittest.main(verbosity=2)
