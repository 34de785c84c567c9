#!/usr/bin/env python3
"""Each rule of rules.py finds what is wrong, and only that."""

import os
import subprocess
import tempfile
import unittest

import rules

DOCUMENT = """
    proto/     -> <jansson>
    lib/       -> proto/model.h
    lib/base/  ->

| executable | may need |
|---|---|
| `sentry-profd` | libc |
| `sentry-profd-ship` | libc, libz |
"""


class Case(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.root = directory.name

    def write(self, path, text):
        path = os.path.join(self.root, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def compile(self, text, *flags, name="out"):
        source = self.write("source.c", text)
        output = os.path.join(self.root, name)
        subprocess.run(["gcc", "-O2", "-o", output, source, *flags], check=True)
        return output


class Names(Case):
    def test_prefixes_of_file_folder_and_struct(self):
        self.write("lib/base/ring_list.h", "struct node {\n};\n"
                   "int ring_list_open(void);\nint ring_close(void);\nint base_init(void);\n"
                   "must_check int node_free(struct node *n,\n\t\tint x);\n"
                   "static inline int any(void)\n{\n\treturn 0;\n}\n")
        self.assertEqual(rules.check_names(self.root), [])

    def test_another_prefix(self):
        self.write("lib/base/rings.h", "/* int comment(void); */\nint ring_open(void);\n"
                   "struct node *other_open(void);\n")
        self.assertEqual(rules.check_names(self.root), [
            "lib/base/rings.h: other_open() has another prefix than its file, folder or struct"])


class Includes(Case):
    def check(self):
        return rules.check_includes(self.root, rules.include_rules(DOCUMENT))

    def setUp(self):
        super().setUp()
        self.write("proto/model.h", "#include <stdint.h>\n")
        self.write("proto/other.h", "#include <jansson.h>\n")
        self.write("lib/base/x.h", "")
        self.write("lib/base/x.c", '#include "lib/base/x.h"\n'
                   "#include <stdio.h>\n")
        self.write("lib/y.c", '#include "proto/model.h"\n')

    def test_a_tree_that_keeps_the_rule(self):
        self.assertEqual(self.check(), [])

    def test_a_header_of_another_directory(self):
        self.write("lib/z.c", ' # include "proto/other.h"\n')
        self.assertEqual(self.check(), ["lib/z.c: may not include proto/other.h"])

    def test_the_longest_directory_counts(self):
        self.write("lib/base/z.c", '#include "proto/model.h"\n')
        self.assertEqual(self.check(),
                         ["lib/base/z.c: may not include proto/model.h"])

    def test_a_library(self):
        self.write("lib/z.c", "#include <jansson.h>\n")
        self.assertEqual(self.check(), ["lib/z.c: may not include jansson.h"])

    def test_a_path_that_is_not_from_the_root(self):
        self.write("lib/base/z.c", '#include "x.h"\n')
        self.assertIn('lib/base/z.c: "x.h" is not a path from the root',
                      self.check())

    def test_own_header_not_first(self):
        self.write("lib/base/x.c", "#include <stdio.h>\n"
                   '#include "lib/base/x.h"\n')
        self.assertEqual(self.check(),
                         ["lib/base/x.c: its own header is not the first"])

    def test_a_directory_that_no_rule_is_about(self):
        self.write("new/x.c", "")
        self.assertEqual(self.check(),
                         ["new/x.c: no line of the include rule is about it"])


class Calls(Case):
    def test_a_banned_call(self):
        for name in rules.BANNED:
            self.write("lib/x.c", f"int f(void)\n{{\n\treturn {name} (1);\n}}\n")
            self.assertEqual(rules.check_calls(self.root),
                             [f"lib/x.c:3: calls {name}"])

    def test_what_only_looks_like_one(self):
        self.write("lib/x.c", '/* sprintf(x) */ // system(1)\n'
                   'char *s = "rand(1)"; int c = \'"\'; int my_rand(int);\n'
                   "int n = a.system(1) + b->rand(2) + snprintf(s, 1, s);\n")
        self.assertEqual(rules.check_calls(self.root), [])

    def object(self, text):
        return self.compile(text, "-c", "-D_FORTIFY_SOURCE=2", name="x.o")

    def test_a_banned_symbol_also_when_fortified(self):
        path = self.object("#include <stdio.h>\nextern char b[8], *f;\n"
                           "void g(void);\nvoid g(void) { sprintf(b, f); }\n")
        self.assertEqual(rules.check_objects([path], False),
                         [f"{path}: needs sprintf"])

    def test_what_only_the_daemon_may(self):
        path = self.object("#include <stdlib.h>\nvoid g(void);\n"
                           'void g(void) { if (!getenv("X")) exit(1); }\n')
        self.assertEqual(rules.check_objects([path], False), [])
        self.assertEqual(sorted(rules.check_objects([path], True)),
                         [f"{path}: needs exit", f"{path}: needs getenv"])


class Exports(Case):
    def test_what_a_library_shows_is_what_its_header_declares(self):
        header = self.write("own.h", """int sentry_profd_one(void);
            void sentry_profd_two(int); /* sentry_profd_three() */""")
        library = self.compile("int sentry_profd_one(void) { return 1; }\n"
                               "int other;\n", "-shared", "-fPIC",
                               name="own.so")
        self.assertEqual(rules.check_exports(library, header),
                         [f"{library}: shows other",
                          f"{library}: has no sentry_profd_two"])


class Links(Case):
    GOOD = "int main(void) { volatile char c[99]; c[0] = 0; return c[0]; }\n"
    HARD = ("-fPIE", "-pie", "-Wl,-z,relro,-z,now", "-Wl,-z,noexecstack",
            "-fstack-protector-all")

    def test_the_table(self):
        self.assertEqual(rules.link_rules(DOCUMENT), {
            "sentry-profd": ["libc"], "sentry-profd-ship": ["libc", "libz"]})

    def test_a_library_that_is_not_in_the_table(self):
        path = self.compile(self.GOOD, "-Wl,--no-as-needed", "-lz")
        self.assertEqual(rules.check_links(path, ["libc"]),
                         [f"{path}: links libz.so.1"])
        self.assertEqual(rules.check_links(path, ["libc", "libz"]), [])

    def test_a_hardened_executable(self):
        self.assertEqual(
            rules.check_hardening(self.compile(self.GOOD, *self.HARD)), [])

    def test_what_is_missing_is_found(self):
        for flags, message in (
                (("-fno-pie", "-no-pie"), "is not position-independent"),
                (("-Wl,-z,lazy",), "its relocations stay writable"),
                (("-Wl,-z,norelro",), "its relocations stay writable"),
                (("-Wl,-z,execstack",), "its stack is executable"),
                (("-Wl,-rpath,/x",), "has a search path of its own"),
                (("-fno-stack-protector",), "has no stack protector")):
            path = self.compile(self.GOOD, *self.HARD, *flags)
            self.assertEqual(rules.check_hardening(path),
                             [f"{path}: {message}"])


class Places(Case):
    def test_a_file_that_does_not_belong(self):
        self.write("lib/x.c", "")
        self.write("notes.txt", "")
        self.assertEqual(rules.check_top_level(self.root),
                         ["notes.txt: does not belong there"])

    def test_a_path_of_one_machine(self):
        self.write("docs/x.md", "see /somewhere/only/here\n")
        self.assertEqual(rules.check_paths(self.root, ["/somewhere/"]),
                         ["docs/x.md: mentions /somewhere/"])
        self.assertEqual(rules.check_paths(self.root, ["/elsewhere/"]), [])


if __name__ == "__main__":
    unittest.main()
