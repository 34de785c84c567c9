#!/usr/bin/python3
"""The completions of bash, zsh and fish are the options that --help-all lists.
"""

import os
import pathlib
import re
import shutil
import subprocess

import harness
from harness import BUILD, Skip, check

FILES = pathlib.Path(__file__).resolve().parents[2] / \
    'daemon/ctl/completion'

# Each command prints the completions of the last arguments' words, one a line.
SHELLS = {
    'bash': ['bash', '--norc', '-c', '''
        . "$0" && COMP_WORDS=("$@") && COMP_CWORD=$(($# - 1)) && _sentry_profd
        printf '%s\\n' "${COMPREPLY[@]}"'''],
    # The functions of zsh use the words that zsh has read; here they are
    # printed.
    'zsh': ['zsh', '-f', '-c', '''
        compadd() { shift; print -l -- "$@" }
        _pids() { print -l /proc/[0-9]*(:t) }
        _files() { }
        f=$0; words=("$@"); CURRENT=$#
        run() { source $f }
        run'''],
    'fish': ['fish', '--no-config', '-c', '''
        source $argv[1]
        complete -C (string join ' ' -- $argv[2..])'''],
}


def completions(shell, *words, cwd=None):
    if not shutil.which(shell):
        raise Skip(f'no {shell}')
    found = subprocess.run(
        [*SHELLS[shell], FILES / f'sentry-profd.{shell}', *words],
        env={**os.environ, 'PATH': f'{BUILD.resolve()}:{os.environ["PATH"]}'},
        capture_output=True, text=True, check=True, cwd=cwd)
    check(found.stderr == '', found.stderr)
    return {line.split('\t')[0] for line in found.stdout.splitlines()
            if line.startswith(words[-1])}


def listed(program, pattern):
    text = subprocess.run([BUILD / program, '--help-all'], check=True,
                          capture_output=True, text=True).stdout
    return set(re.findall(pattern, text, re.MULTILINE))


def check_no_other_program_runs(box, shell):
    """A program of that name in the current directory is not executed."""
    directory = box.make_dir(shell)
    program = directory / 'sentry-profctl'
    program.write_text('#!/bin/sh\necho "  --evil"\ntouch has_run\n')
    program.chmod(0o755)
    found = completions(shell, './sentry-profctl', '--', cwd=directory)
    check(not (directory / 'has_run').exists() and '--evil' not in found, f'{found}')


def check_shell(shell):
    for program in 'sentry-profd', 'sentry-profctl':
        wanted = listed(program, r'^  (--[a-z0-9-]+)')
        found = completions(shell, program, '--')
        check(found == wanted, f'{program}: {found ^ wanted}')
    wanted = listed('sentry-profctl', r'^([a-z][a-z-]*) ') - {'usage'}
    found = completions(shell, 'sentry-profctl', 's')
    check(found == {w for w in wanted if w.startswith('s')}, f'{found}')
    pid = str(os.getpid())
    for words in (['sentry-profd', '--pid'], ['sentry-profctl', 'attach'],
                  ['sentry-profctl', 'top'],
                  ['sentry-profctl', 'detach', '--for', '60']):
        found = completions(shell, *words, pid)
        check(pid in found, f'{words}: {found}')


def test_bash(box):
    check_shell('bash')
    check_no_other_program_runs(box, 'bash')
    # The words after -- are a command.
    found = completions('bash', 'sentry-profd', '--', 'sor')
    check('sort' in found, f'{found}')


def test_zsh(box):
    check_shell('zsh')
    check_no_other_program_runs(box, 'zsh')


def test_fish(box):
    check_shell('fish')


if __name__ == '__main__':
    harness.main(globals())
