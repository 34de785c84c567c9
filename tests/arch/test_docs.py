#!/usr/bin/env python3
"""What the documents say of options, messages and files is so."""

import glob
import json
import os
import re
import subprocess
import tempfile
import unittest

import rules

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
BUILD = os.path.abspath(os.environ.get("BUILD", "build"))


def read(path):
    return rules.read(os.path.join(ROOT, path))


class Documents(unittest.TestCase):
    def test_manual_pages_are_well_formed(self):
        # Not style: it complains of references to pages not installed here.
        for page in glob.glob(f"{ROOT}/docs/*.[58]"):
            lint = subprocess.run(["mandoc", "-T", "lint", "-W", "warning", page],
                                  capture_output=True, text=True)
            self.assertEqual(lint.stdout + lint.stderr, "")

    def test_every_page_has_examples(self):
        """With what they do, and commands or a file."""
        for page in glob.glob(f"{ROOT}/docs/*.[58]"):
            self.assertTrue(".Sh EXAMPLES\n" in rules.read(page), page)
            section = rules.read(page).split(".Sh EXAMPLES\n")[1].split("\n.Sh ")[0]
            self.assertRegex(section, r"(?m)^\.(Dl [$#] |Bd -literal$)", page)

    def test_help_fits_a_screen(self):
        """It names options and commands that there are, and ends with examples."""
        for program, least in ("sentry-profd", 8), ("sentry-profctl", 10):
            text = rules.run(f"{BUILD}/{program}", "--help")
            whole = rules.run(f"{BUILD}/{program}", "--help-all")
            lines = text.splitlines()
            self.assertLessEqual(len(lines), 24, program)
            for line in lines + whole.splitlines():
                self.assertLessEqual(len(line), 80, line)
            self.assertEqual(lines[-4], "examples:")
            self.assertEqual({line.split()[0] for line in lines[-3:]}, {program})
            self.assertTrue(text.startswith(f"usage: {program} "))
            named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", text))
            self.assertLessEqual(named, set(re.findall(r"--[a-z][a-z-]+", whole)))
            about = text.split("\nexamples:")[0].splitlines()[1:]
            heads = [line for line in about if re.match(r"  \S", line)]
            self.assertGreater(len(heads), least)
            if program == "sentry-profctl":
                known = set(re.findall(r"^([a-z][a-z-]*) ", whole, re.M)) - {"usage"}
                found = {word for line in heads for word in
                         re.findall(r"[a-z][a-z-]+", line[2:].split("  ")[0])}
                self.assertEqual(found, known | {"help-all"})

    def test_headings_are_words(self):
        """ "In", for one, would be a macro, which puts the next in brackets."""
        for page in glob.glob(f"{ROOT}/docs/*.[58]"):
            for heading in re.findall(r"^\.S[hs] (.*)$", rules.read(page), re.M):
                self.assertNotRegex(heading, r"\b(?<!&)[A-Z][a-z]\b", page)

    def test_the_manual_page_and_help_have_the_same_options(self):
        text = rules.run(f"{BUILD}/sentry-profd", "--help-all")
        known = set(re.findall(r"^  --([\w-]+)", text, re.MULTILINE))
        page = read("docs/sentry-profd.8")
        described = set(re.findall(r"^\.It Fl -([\w-]+)", page, re.MULTILINE))
        synopsis = set(re.findall(r"Fl -([\w-]+)", page.split(".Sh DESC")[0]))
        self.assertGreater(len(known), 10)
        self.assertEqual(described, known)
        self.assertEqual(synopsis, known)

    def test_the_manual_page_and_the_configuration_have_the_same_keys(self):
        page = read("docs/sentry-profd.conf.5")
        known = {section: set() for section in ("SENTRY", "PROFILER", "TARGET")}
        for section, key in re.findall(r'^\t(SENTRY|PROFILER|TARGET)\(\w+,\s*'
                                       r'(?:"|CONFIG_KEY_)(\w+)',
                                       read("daemon/config/config_keys.c"), re.M):
            known[section].add(key.lower())
        self.assertGreater(len(known["TARGET"]), 10)
        for part in page.split("\n.Ss [")[1:]:
            lines = re.findall(r"^\.It Cm (.*)$", part.split("\n.Sh")[0], re.M)
            described = set(re.findall(r"\w+", re.sub(" Ar NAME", "", " ".join(lines))))
            section = re.match(r"\w+", part)[0].upper()
            self.assertEqual(described, known.pop(section), section)
        self.assertEqual(known, {})

    def test_the_operator_s_page_and_help_have_the_same(self):
        """Commands and options of sentry-profctl."""
        text = rules.run(f"{BUILD}/sentry-profctl", "--help-all")
        page = read("docs/sentry-profctl.8")
        commands = set(re.findall(r"^([a-z][a-z-]+) (?!sentry)", text, re.M))
        commands -= {"usage"}
        synopsis = page.split(".Sh SYNOPSIS")[1].split(".Sh ")[0]
        described = set(re.findall(r"[a-z][a-z-]+", " ".join(
            re.findall(r"^\.Cm (.*)$", synopsis, re.M))))
        self.assertGreater(len(commands), 8)
        self.assertEqual(described, commands)
        options = set(re.findall(r"--([a-z][a-z-]+)", text))
        self.assertEqual(set(re.findall(r"Fl -([a-z][a-z-]+)", page))
                         - {"pid", "stats", "check-config", "servers"}, options)

    def test_the_pages_have_the_defaults(self):
        """Numbers and words, as they are without a configuration."""
        with tempfile.NamedTemporaryFile() as empty:
            text = rules.run(f"{BUILD}/sentry-profd", "--check-config",
                             "--config", empty.name)
        options = dict((key, name) for name, key in re.findall(
            r'"--([\w-]+)", "\w+", KEY\("(\w+)"\)',
            read("daemon/broker/state/options_keys.c")))
        keys = read("docs/sentry-profd.conf.5").split(".Ss [target")[0]
        page = read("docs/sentry-profd.8").split(".Sh SIGNALS")[0]
        compared = 0
        for key, value in re.findall(r"^(\w+) = (\w+)$", text, re.M):
            if value in ("yes", "no"):
                continue
            if key == "spool_max_bytes":
                value = f"{int(value) >> 20}M"
            about = [part for part in keys.split("\n.It Cm ")[1:]
                     if key in part.split("\n")[0].split()]
            if key in options:
                about += re.findall(rf"^\.It Fl -{options[key]}\b.*?(?=^\.It )",
                                    page, re.M | re.S)
            self.assertRegex("\n".join(about), rf"\b{value}\b", key)
            compared += 1
        self.assertGreater(compared, 8)

    def test_the_manual_page_describes_every_figure(self):
        page = read("docs/sentry-profd.8")
        section = page.split(".Sh STATISTICS")[1].split(".Sh ")[0]
        described = set(re.findall(r"\b[a-z]\w+", section))

        def names(value):
            if isinstance(value, list):
                for item in value:
                    yield from names(item)
            elif isinstance(value, dict):
                for key, item in value.items():
                    yield key
                    yield from names(item)

        target = subprocess.Popen(["sleep", "1000"])
        try:
            with tempfile.TemporaryDirectory() as directory:
                rules.run(f"{BUILD}/sentry-profd", "--pid", str(target.pid),
                          "--duration", "0.1", "--output", f"{directory}/out",
                          "--stats", f"{directory}/stats")
                found = set(names(json.loads(rules.read(f"{directory}/stats"))))
        finally:
            target.kill()
            target.wait()
        self.assertGreater(len(found), 30)
        self.assertEqual(found - described, {"pid"})

    def test_every_message_is_in_the_table(self):
        names = set(re.findall(r"\bX\(MSG_(\w+),", read("daemon/msg/msg.h")))
        document = read("docs/ARCHITECTURE.md")
        section = document.split("## Messages")[1].split("## ")[0]
        self.assertGreater(len(names), 10)
        self.assertEqual(set(re.findall(r"\b[A-Z]{2,}(?:_[A-Z]+)*\b", section))
                         - {"MSG", "DSN"}, names - {"DSN"})

    def test_the_first_screen_says_for_whom_it_is(self):
        """Where it runs, whose functions it shows, and what it costs, as high as
        a terminal."""
        lines = read("README.md").splitlines()[:24]
        first = "\n".join(lines)
        for words in ("Linux 5.10", "x86_64", "Go", "does not show", "Python",
                      "Ruby", "Java", "--cpu-budget"):
            self.assertIn(words, first)
        budget = re.search(r"most (\d+) %", first)[1]
        text = rules.run(f"{BUILD}/sentry-profd", "--help-all")
        self.assertRegex(text, rf"\(default: {budget}; 0: no limit\)")

    def test_links_lead_somewhere(self):
        for path in ["README.md"] + [os.path.relpath(p, ROOT) for p in
                                     glob.glob(f"{ROOT}/docs/*.md")]:
            for link in re.findall(r"\]\(([^)#]+)", read(path)):
                if "://" not in link:
                    place = os.path.join(ROOT, os.path.dirname(path), link)
                    self.assertTrue(os.path.exists(place), f"{path}: {link}")


if __name__ == "__main__":
    unittest.main()
