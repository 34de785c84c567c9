#!/usr/bin/env python3
"""The project keeps to the rules of docs/ARCHITECTURE.md (see rules.py)."""

import glob
import os
import sys

import circles
import rules

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
BUILD = os.path.abspath(os.environ.get("BUILD", "build"))


def main():
    document = rules.read(os.path.join(ROOT, "docs/ARCHITECTURE.md"))
    includes = rules.include_rules(document)
    links = rules.link_rules(document)
    bad = []
    if len(includes) < 8 or len(links) != 7:
        bad.append("docs/ARCHITECTURE.md: the tables are not found")

    bad += rules.check_includes(ROOT, includes)
    bad += rules.check_calls(ROOT)
    bad += rules.check_names(ROOT)
    bad += rules.check_top_level(ROOT)
    bad += circles.check_circles(circles.module_edges(ROOT, BUILD), most=3)
    # In two parts, so that this file does not break its own rule. A checkout
    # in /src says nothing about who writes of /src/main.c.
    own = [ROOT + "/"] if ROOT.count("/") > 1 else []
    bad += rules.check_paths(ROOT, own + ["/wo" + "rk/", "/ro" + "ot/",
                                          "sha" + "red/"])

    objects = glob.glob(f"{BUILD}/obj/**/*.o", recursive=True)
    if not objects:
        bad.append(f"{BUILD}: no objects")
    # In another's process there is no daemon/ to leave it to.
    ours = [p for p in objects if not p.startswith(f"{BUILD}/obj/tests/")]
    quiet = [p for p in ours if p.startswith((f"{BUILD}/obj/lib/", f"{BUILD}/obj/proto/")) and
             not p.startswith(f"{BUILD}/obj/lib/client/")]
    bad += rules.check_objects(sorted(set(ours) - set(quiet)), False)
    bad += rules.check_objects(sorted(quiet), True)
    bad += rules.check_links(f"{BUILD}/libsentry_profd.so", ["libc"])
    bad += rules.check_exports(f"{BUILD}/libsentry_profd.so",
                               f"{ROOT}/lib/client/sentry_profd.h")
    bad += rules.check_exports(f"{BUILD}/libsentry_profd.a",
                               f"{ROOT}/lib/client/sentry_profd.h")
    for name, allowed in links.items():
        bad += rules.check_links(f"{BUILD}/{name}", allowed)
        bad += rules.check_hardening(f"{BUILD}/{name}")

    print("\n".join(bad))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
