#!/usr/bin/env python3
"""No function of lib/capture/restart/, and no ptrace(2), is called on the way of a sample by perf
events: from the functions of observe.h, along all calls in the objects of lib/capture."""

import collections
import glob
import os
import re
import unittest

import rules

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("BUILD", f"{ROOT}/build")
OBJECTS = f"{BUILD}/obj/lib/capture"
# They begin a scan, which stops at the switch in attach.c, or end an exec.
BEFORE_THE_SWITCH = {"attach_scan", "attach_check"}


def calls(objects):
    """{function: functions that it calls or jumps to}. The compiler may have put static functions
    into their callers, and parts of a function into NAME.cold and the like."""
    found = collections.defaultdict(set)
    for path in objects:
        name = None
        for line in rules.run("objdump", "-dr", "--no-show-raw-insn", path).splitlines():
            if m := re.match(r"^[0-9a-f]+ <([\w.]+)>:$", line):
                name = m[1].split(".")[0]
            elif m := re.search(r"R_\w+_(?:PLT32|PC32|CALL26|JUMP26)\s+([A-Za-z_]\w*)", line):
                found[name].add(m[1])
            elif m := re.search(r"\b(?:call|jmp|bl?)\s+[0-9a-f]+ <([A-Za-z_]\w*)", line):
                found[name].add(m[1])
    return found


def reached(edges, first):
    seen, todo = set(), list(first)
    while todo:
        name = todo.pop()
        if name not in seen and name not in BEFORE_THE_SWITCH:
            seen.add(name)
            todo += edges[name]
    return seen


def functions(pattern):
    return {name for path in glob.glob(pattern)
            for name in rules.exported_functions(rules.read(path))}


class PerfPath(unittest.TestCase):
    def setUp(self):
        self.edges = calls(glob.glob(f"{OBJECTS}/*.o") + glob.glob(f"{OBJECTS}/*/*.o"))
        self.restart = functions(f"{ROOT}/lib/capture/restart/*.h")
        self.assertGreater(len(self.restart), 10)

    def test_no_restart_and_no_ptrace(self):
        seen = reached(self.edges, functions(f"{ROOT}/lib/capture/observe.h"))
        self.assertIn("record_write_sample", seen)
        self.assertIn("look_sample_blocked", seen)
        self.assertEqual(seen & (self.restart | {"ptrace"}), set())

    def test_the_way_of_ptrace_has_both(self):
        """Else the other test would prove nothing."""
        seen = reached(self.edges, {"look_at_thread", "stop_handle"})
        self.assertIn("ptrace", seen)
        self.assertNotEqual(seen & self.restart, set())


if __name__ == "__main__":
    unittest.main()
