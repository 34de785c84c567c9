#!/usr/bin/env python3
"""Counts lines of C code without blank lines and comments. Usage: lines.py [FOLDER]..."""

import pathlib
import re
import sys

TOKEN = re.compile(r"""//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'""",
                   re.DOTALL)


def without_comment(token):
    text = token[0]
    return text if text[0] in '"\'' else ' ' + '\n' * text.count('\n')


def code_lines(path):
    code = TOKEN.sub(without_comment, path.read_text())
    return sum(bool(line.strip()) for line in code.splitlines())


def main(folders):
    for folder in folders:
        files = sorted(pathlib.Path(folder).rglob('*.[ch]'))
        print(f'{folder}: {sum(map(code_lines, files))} lines of C code in '
              f'{len(files)} files')


main(sys.argv[1:] or ['daemon', 'lib', 'proto', 'tests'])
