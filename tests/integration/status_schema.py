"""The members of `sentry-profctl status --json`, as the manual page lists them:
a line `.It Li PATH : TYPE` each. Words in capitals stand for any name.
"""

import re

from harness import ROOT

LINE = re.compile(r'^\.It Li (\S+) : (\w+)( or null)?$', re.MULTILINE)
TYPES = {'object': (dict,), 'array': (list,), 'string': (str,),
         'boolean': (bool,), 'integer': (int,), 'number': (int, float)}


def documented():
    """Returns {path: (types, may be null)}."""
    page = (ROOT / 'docs/sentry-profctl.8').read_text()
    section = page.split('.Ss The status as JSON\n')[1].split('\n.Sh ')[0]
    return {path: (TYPES[kind], bool(null))
            for path, kind, null in LINE.findall(section)}


MEMBERS = documented()
OF_KIND = {'PROCESS': 'capture|unwind|ship', 'REASON': '[a-z]+'}


def name_of(path):
    """Returns the documented path of a path in an answer; None: there is none."""
    for name in MEMBERS:
        pattern = re.escape(name)
        for word, names in OF_KIND.items():
            pattern = pattern.replace(word, f'(?:{names})')
        if re.fullmatch(pattern, path):
            return name
    return None


def faults(value, path=''):
    """Returns what of an answer differs from the page. Members that an object
    lacks are faults, too."""
    found = []
    if path and not path.endswith('[]'):
        name = name_of(path)
        if name is None:
            return [f'{path} is not documented']
        types, may_be_null = MEMBERS[name]
        if value is None:
            return [] if may_be_null else [f'{path} is null']
        if type(value) not in types:
            return [f'{path} is {value!r}']
    if isinstance(value, dict):
        before = path + '.' if path else ''
        names = set()
        for key, member in value.items():
            found += faults(member, before + key)
            names.add(name_of(before + key))
        found += [f'{name} is missing' for name in children(name_of(path) or path)
                  - names]
    if isinstance(value, list):
        for member in value:
            found += faults(member, path + '[]')
    return found


def children(path):
    """Returns the documented members of an object."""
    before = path + '.' if path else ''
    return {name for name in MEMBERS if name.startswith(before) and
            re.fullmatch(r'\w+', name[len(before):])}


def seen(value, path=''):
    """Returns the documented members that are in an answer with a value."""
    found = set()
    if path and not path.endswith('[]') and value is not None:
        found.add(name_of(path))
    if isinstance(value, dict):
        for key, member in value.items():
            found |= seen(member, (path + '.' if path else '') + key)
    if isinstance(value, list):
        for member in value:
            found |= seen(member, path + '[]')
    return found
