#!/usr/bin/env python3
"""clang-format has nothing to change in the project's C code.

Programs that are profiled are written as others write theirs, and left out.
"""

import os
import re
import shutil
import subprocess
import sys

import rules

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
# Another version breaks some lines elsewhere.
VERSION = "14"


def main():
    if shutil.which("clang-format") is None:
        print("there is no clang-format")
        return 77
    version = re.search(r"version (\d+)", rules.run("clang-format", "--version"))
    if version is None or version[1] != VERSION:
        print(f"clang-format is not of version {VERSION}")
        return 77
    files = [path for path in rules.project_files(ROOT)
             if re.search(r"\.[ch]$", path) and not path.startswith(rules.OTHERS)]
    return subprocess.run(["clang-format", "--dry-run", "-Werror", *files],
                          cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
