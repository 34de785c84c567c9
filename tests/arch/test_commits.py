#!/usr/bin/env python3
"""The subjects of commits have at most 72 characters, and a body begins after an empty line.

Checked are the commit that has added this file and those that descend from it.
"""

import os
import subprocess
import sys
import tempfile
import unittest

import rules

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
OWN = "tests/arch/test_commits.py"
SUBJECT_MAX = 72


def git(root, *args, **options):
    return subprocess.run(["git", f"--git-dir={root}/.git", *args], check=True,
                          capture_output=True, text=True, errors="replace", **options).stdout


def first_commit(root, path=OWN):
    """Returns the commit that has added the file; None if this clone does not have it. The oldest
    commit of a shallow clone seems to add all files."""
    added = git(root, "log", "--diff-filter=A", "--format=%H", "HEAD", "--", path).split()
    shallow = git(root, "rev-parse", "--git-path", "shallow").strip()
    oldest = rules.read(shallow).split() if os.path.exists(shallow) else []
    return added[-1] if added and added[-1] not in oldest else None


def check_message(name, message):
    """message: that of the commit of this name."""
    subject, *body = message.splitlines() or [""]
    bad = []
    if len(subject) > SUBJECT_MAX:
        bad.append(f"{name}: the subject has {len(subject)} characters, more than {SUBJECT_MAX}")
    if body and body[0]:
        bad.append(f"{name}: the second line is not empty")
    return bad


def check_commits(root, first):
    form = "--format=%h %B%x00"
    messages = git(root, "log", form, "--ancestry-path", f"{first}..HEAD") + \
        git(root, "log", "-1", form, first)
    bad = []
    for text in messages.split("\0")[:-1]:
        name, _, message = text.strip().partition(" ")
        bad += check_message(name, message)
    return bad


class Rules(unittest.TestCase):
    """The checks find faults, in a repository that has them."""

    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.root = directory.name
        subprocess.run(["git", "init", "--quiet", self.root], check=True)

    def commit(self, message, *paths):
        for path in paths:
            with open(os.path.join(self.root, path), "a", encoding="utf-8") as file:
                file.write("x")
        git(self.root, f"--work-tree={self.root}", "add", "--all")
        git(self.root, "-c", "user.name=x", "-c", "user.email=x@x", "commit", "--quiet",
            "--allow-empty", "--cleanup=verbatim", "--file=-", input=message)

    def test_faults(self):
        self.commit("x" * 80, "other")
        self.commit("begin: with the file", "own")
        first = first_commit(self.root, "own")
        self.commit("a: change the file\n\nAnd why.\n", "own")
        self.commit("a" * 72 + "\n")
        self.assertEqual(first_commit(self.root, "own"), first)
        self.assertEqual(check_commits(self.root, first), [])
        self.commit("ä" * 73)
        self.commit("b: body\nat once\n\nand more")
        found = "\n".join(check_commits(self.root, first))
        self.assertRegex(found, r"^\w+: the second line is not empty\n"
                                r"\w+: the subject has 73 characters, more than 72$")

    def test_first_is_checked_too(self):
        self.commit("y" * 73, "own")
        self.assertEqual(len(check_commits(self.root, first_commit(self.root, "own"))), 1)

    def test_a_clone_that_begins_later(self):
        self.commit("begin", "own")
        self.commit("more", "own")
        with tempfile.TemporaryDirectory() as clone:
            subprocess.run(["git", "clone", "--quiet", "--depth=1", f"file://{self.root}", clone],
                           check=True)
            self.assertEqual(first_commit(clone, "own"), None)


def main():
    if not os.path.exists(os.path.join(ROOT, ".git")):
        print("there is no git repository")
        return 77
    result = unittest.TextTestRunner().run(unittest.defaultTestLoader.loadTestsFromTestCase(Rules))
    if not result.wasSuccessful():
        return 1
    first = first_commit(ROOT)
    if first is None:
        print(f"this clone does not have the commit that has added {OWN}")
        return 77
    bad = check_commits(ROOT, first)
    print("\n".join(bad))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
