"""Who needs whom in the product's sources, and the circles in that.

A module is a .c file and the header of the same name. It needs another one if
one of its files includes the other's header, or if it calls a function or reads
a variable that the other defines. A folder needs what its files need.
"""

import collections
import os
import re

import rules

PRODUCT = ("daemon/", "lib/", "proto/")

# The kinds of nm for what an object defines.
DEFINED = "TDBRVWC"

# Functions of libc that a program replaces for itself and its libraries
# (daemon/unwind/main.c). Callers in other programs call libc's.
REPLACED = {"fstat"}


def include_edges(root, files):
    """{module: modules whose headers its files include}"""
    modules = {os.path.splitext(path)[0] for path in files}
    edges = collections.defaultdict(set)
    for path in files:
        text = rules.read(os.path.join(root, path))
        for name in re.findall(r'^\s*#\s*include\s*"([^"]+)"', text, re.MULTILINE):
            edges[os.path.splitext(path)[0]].add(os.path.splitext(name)[0])
    return {m: (edges[m] & modules) - {m} for m in modules}


def add_calls(edges, objects):
    """objects: {module: path of its object}. A name that several modules define
    belongs to those whose header the caller includes."""
    owners, taken = collections.defaultdict(set), {}
    symbols = rules.symbols(objects.values())
    for module, path in objects.items():
        defined = {name for name, kind in symbols[path] if kind in DEFINED}
        taken[module] = {name for name, kind in symbols[path] if kind == "U"} - defined
        for name in defined - REPLACED:
            owners[name].add(module)
    for module, names in taken.items():
        for name in names:
            found = owners[name] - {module}
            edges[module] |= found if len(found) == 1 else found & edges[module]


def circles(edges):
    """The sets of more than one node that reach each other (Tarjan)."""
    number, low, stack, found = {}, {}, [], []

    def visit(node):
        number[node] = low[node] = len(number)
        stack.append(node)
        for other in sorted(edges[node]):
            if other not in number:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], number[other])
        if low[node] == number[node]:
            circle = stack[stack.index(node):]
            del stack[stack.index(node):]
            if len(circle) > 1:
                found.append(sorted(circle))

    for node in sorted(edges):
        if node not in number:
            visit(node)
    return sorted(found)


def folder_edges(edges):
    folders = collections.defaultdict(set)
    for module, others in edges.items():
        own = os.path.dirname(module)
        folders[own] |= {os.path.dirname(other) for other in others} - {own}
    return folders


def module_edges(root, build):
    files = [path for path in rules.project_files(root)
             if path.startswith(PRODUCT) and path.endswith((".c", ".h"))]
    edges = include_edges(root, files)
    objects = {m: f"{build}/obj/{m}.o" for m in edges
               if os.path.isfile(f"{build}/obj/{m}.o")}
    add_calls(edges, objects)
    return edges


def check_circles(edges, most):
    """most: of modules in one circle."""
    bad = [f"{len(c)} modules need each other: {' '.join(c)}"
           for c in circles(edges) if len(c) > most]
    return bad + [f"folders need each other: {' '.join(c)}"
                  for c in circles(folder_edges(edges))]
