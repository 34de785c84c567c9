#!/usr/bin/env python3
"""circles.py finds the circles of a small tree, and no others."""

import os
import subprocess
import tempfile
import unittest

import circles

# b calls c, c calls a, and a includes b's header: a circle of three.
TREE = {
    "lib/one/a.h": "void a(void);\n",
    "lib/one/a.c": '#include "lib/one/a.h"\n#include "lib/one/b.h"\nvoid a(void) {}\n',
    "lib/one/b.h": "void b(void);\n",
    "lib/one/b.c": "void c(void); void b(void); void b(void) { c(); }\n",
    "lib/two/c.c": "void a(void); void c(void); void c(void) { a(); }\n",
    "proto/d.c": '#include "lib/one/a.h"\nint main(void); int main(void) { a(); }\n',
    "lib/e.c": "int main(void); int main(void) { return 0; }\n",
}
CIRCLE = ["lib/one/a", "lib/one/b", "lib/two/c"]


class Circles(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.root = directory.name
        for path, text in TREE.items():
            path = os.path.join(self.root, path)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        for path in TREE:
            if path.endswith(".c"):
                out = os.path.join(self.root, "build/obj", path[:-1] + "o")
                os.makedirs(os.path.dirname(out), exist_ok=True)
                subprocess.run(["gcc", "-I.", "-c", "-o", out, path],
                               check=True, cwd=self.root)
        self.edges = circles.module_edges(self.root, f"{self.root}/build")

    def test_includes_and_calls_are_edges(self):
        self.assertEqual(self.edges, {
            "lib/one/a": {"lib/one/b"}, "lib/one/b": {"lib/two/c"},
            "lib/two/c": {"lib/one/a"}, "proto/d": {"lib/one/a"}, "lib/e": set()})

    def test_a_circle_that_is_too_large(self):
        self.assertEqual(circles.circles(self.edges), [CIRCLE])
        self.assertEqual(circles.check_circles(self.edges, 2), [
            "3 modules need each other: " + " ".join(CIRCLE),
            "folders need each other: lib/one lib/two"])

    def test_folders_count_however_small_the_circle_is(self):
        self.assertEqual(circles.check_circles(self.edges, 3),
                         ["folders need each other: lib/one lib/two"])

    def test_no_circle(self):
        self.edges["lib/two/c"] = set()
        self.assertEqual(circles.check_circles(self.edges, 1), [])


if __name__ == "__main__":
    unittest.main()
