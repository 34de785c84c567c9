"""The rules of docs/ARCHITECTURE.md, as functions that return what breaks them.

Each takes what it looks at as an argument and returns a list of lines, empty
if all is well: test_tree.py applies them to the project, test_rules.py to
inputs that are wrong on purpose.
"""

import os
import re
import subprocess

# Headers in <> that belong to a library; all others are libc's or the kernel's.
LIBRARY_HEADERS = {
    "jansson": r"jansson\.h",
    "elfutils": r"elfutils/.*|dwarf\.h|gelf\.h|libelf\.h",
    "curl": r"curl/.*",
    "zlib": r"zlib\.h",
    "lzma": r"lzma\.h",
    "zstd": r"zstd.*\.h",
    "libiberty": r"libiberty/.*",
    "seccomp": r"seccomp\.h",
    "libunwind": r"libunwind.*",
    "protobuf-c": r"protobuf-c/.*|.*\.pb-c\.h",
    "ncurses": r"n?curses\.h",
    "microhttpd": r"microhttpd\.h",
    "check": r"check\.h",
    "openssl": r"openssl/.*",
    "systemd": r"systemd/.*",
}

TOP_LEVEL = {
    ".ci", ".clang-format", ".clang-tidy", ".commit", ".editorconfig", ".gitignore", "LICENSE",
    "Makefile", "README.md", "daemon", "docs", "lib", "proto", "systemd", "tests",
}

# Programs that are profiled, as others write them.
OTHERS = ("tests/targets/", "docs/examples/")

# Calls that nobody makes: no bound, no error, or a shell.
BANNED = {
    "strcpy", "strcat", "sprintf", "vsprintf", "gets", "strtok", "atoi",
    "system", "popen", "alloca", "rand",
}

# What lib/ and proto/ leave to daemon/: to log, exit, and read the environment
# and the clock.
DAEMONS_OWN = {
    "printf", "puts", "putchar", "perror", "stdout", "stderr", "syslog",
    "exit", "_exit", "_Exit", "quick_exit", "getenv", "secure_getenv",
    "environ", "clock_gettime", "gettimeofday", "time",
}


def read(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def run(*command):
    return subprocess.run(command, check=True, capture_output=True,
                          text=True, errors="replace").stdout


def project_files(root):
    """Paths that git knows of, or without git all but what is built."""
    if os.path.exists(os.path.join(root, ".git")):
        names = run("git", "-C", root, "ls-files", "-z", "--cached",
                    "--others", "--exclude-standard").split("\0")
        return sorted(n for n in names
                      if n and os.path.isfile(os.path.join(root, n)))
    found = []
    for directory, subdirectories, names in os.walk(root):
        if directory == root:
            subdirectories[:] = [d for d in subdirectories if d != "build"]
        for name in names:
            found.append(os.path.relpath(os.path.join(directory, name), root))
    return sorted(found)


# Names

def exported_functions(text):
    """The functions that a header declares, but those that stand in it whole."""
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S).replace("\n\t", " ")
    return re.findall(r"^(?!static|extern|typedef|#)\w[\w *]*?\b(\w+)\([^;{]*\);", text, re.M)


def check_names(root):
    """The name of an exported function begins with the name of its file or its folder (also in
    the singular), of the first word of the file's name, or of a struct or enum that the file has."""
    bad = []
    for path in project_files(root):
        if not re.match(r"(daemon|lib|proto)/.*\.h$", path):
            continue
        text = read(os.path.join(root, path))
        parts = path[:-2].split("/")
        prefixes = {parts[-1].split("_")[0]} | set(re.findall(r"^(?:struct|enum) (\w+)[ ;]", text, re.M))
        for part in parts:
            prefixes |= {part, part.rstrip("s")}
        for name in exported_functions(text):
            if not any(name == p or name.startswith(p + "_") for p in prefixes):
                bad.append(f"{path}: {name}() has another prefix than its file, folder or struct")
    return bad


# The include rule

def include_rules(document):
    """{directory: [what it may include]}, longest directory first."""
    rules = {}
    for line in document.splitlines():
        m = re.fullmatch(r"    (\S+/) *->(.*)", line)
        if m:
            rules[m[1]] = [m[1]] + [x.strip() for x in m[2].split(",")
                                    if x.strip()]
    return rules


def may_include(allowed, target):
    return any(target == a or (a.endswith("/") and target.startswith(a))
               for a in allowed)


def library_of(header):
    for library, pattern in LIBRARY_HEADERS.items():
        if re.fullmatch(pattern, header):
            return f"<{library}>"
    return None


def check_includes(root, rules):
    bad = []
    for path in project_files(root):
        if not re.search(r"\.(c|h)$", path) or path.startswith(OTHERS):
            continue
        found = [d for d in rules if path.startswith(d)]
        if not found:
            bad.append(f"{path}: no line of the include rule is about it")
            continue
        allowed = rules[max(found, key=len)]
        includes = re.findall(r'^\s*#\s*include\s*(["<])([^">]+)[">]',
                              read(os.path.join(root, path)), re.MULTILINE)
        for kind, name in includes:
            if kind == '"' and not os.path.isfile(os.path.join(root, name)):
                bad.append(f'{path}: "{name}" is not a path from the root')
            target = name if kind == '"' else library_of(name)
            if target and not may_include(allowed, target):
                bad.append(f"{path}: may not include {name}")
        own = re.sub(r"\.c$", ".h", path)
        if own != path and os.path.isfile(os.path.join(root, own)) \
                and (not includes or includes[0] != ('"', own)):
            bad.append(f"{path}: its own header is not the first")
    return bad


# What is called

def without_comments_and_strings(text):
    def blank(m):
        return re.sub(r"[^\n]", " ", m[0])
    return re.sub(r'/\*.*?\*/|//[^\n]*|"(\\.|[^"\\\n])*"|'
                  r"'(\\.|[^'\\\n])*'", blank, text, flags=re.DOTALL)


def check_calls(root):
    """In the sources: with optimization atoi, alloca or strcpy leave no name."""
    bad = []
    pattern = re.compile(r"(?<![\w.>])(" + "|".join(BANNED) + r")\s*\(")
    for path in project_files(root):
        if not re.search(r"\.(c|h)$", path) or path.startswith(OTHERS):
            continue
        text = without_comments_and_strings(read(os.path.join(root, path)))
        for number, line in enumerate(text.splitlines(), 1):
            for m in pattern.finditer(line):
                bad.append(f"{path}:{number}: calls {m[1]}")
    return bad


def symbols(paths):
    """{path of an object: [(global name, nm's letter of its kind)]}"""
    found = {path: [] for path in paths}
    if not found:
        return found
    for line in run("nm", "-A", "--format=posix", "--extern-only", *found).splitlines():
        path, name, kind = line.split()[:3]
        found[path.removesuffix(":")].append((name, kind))
    return found


def undefined(names):
    """Names that an object takes from elsewhere, without fortify's changes."""
    for name, kind in names:
        if kind in "Uw":
            m = re.fullmatch(r"__(\w+)_chk", name.split("@")[0])
            yield m[1] if m else name.split("@")[0]


def check_objects(paths, quiet):
    """quiet: they are of lib/ or proto/."""
    forbidden = BANNED | (DAEMONS_OWN if quiet else set())
    return [f"{path}: needs {name}" for path, names in symbols(paths).items()
            for name in undefined(names) if name in forbidden]


# How it is linked

def link_rules(document):
    """{executable: [libraries that it may need]}"""
    rules = {}
    for line in document.splitlines():
        m = re.fullmatch(r"\| `(sentry-prof\S+)` \| (libc\b[^|]*) \|", line)
        if m:
            rules[m[1]] = [x.strip() for x in m[2].split(",")]
    return rules


def needed(path):
    return re.findall(r"\(NEEDED\)\s+Shared library: \[(.*?)\]",
                      run("readelf", "--dynamic", "--wide", path))


def check_links(path, allowed):
    """libc is one library in several files; libunwind's parts go together."""
    of_libc = r"(libc|libm|ld-linux[\w-]*)\.so\.\d+"
    bad = []
    for soname in needed(path):
        name = re.sub(r"[.-]so\..*|\.so$", "", soname)
        if "libunwind" in allowed and name.startswith("libunwind"):
            continue
        if not re.fullmatch(of_libc, soname) and name not in allowed:
            bad.append(f"{path}: links {soname}")
    return bad


def check_exports(path, header):
    """A library's users see the functions of its header, and nothing else."""
    declared = set(re.findall(r"\b(sentry_profd_\w+)\(", without_comments_and_strings(
        read(header))))
    dynamic = ["--dynamic"] if path.endswith(".so") else []
    seen = set(re.findall(r"^(\w+)(?:@\S*)? [TDBRVW] ",
                          run("nm", *dynamic, "--defined-only", "--extern-only",
                              "--format=posix", path), re.MULTILINE))
    return ([f"{path}: shows {name}" for name in sorted(seen - declared)] +
            [f"{path}: has no {name}" for name in sorted(declared - seen)])


def check_hardening(path):
    bad = []
    header = run("readelf", "--file-header", "--wide", path)
    segments = run("readelf", "--program-headers", "--wide", path)
    dynamic = run("readelf", "--dynamic", "--wide", path)
    if not re.search(r"Type:\s+DYN", header) or "INTERP" not in segments:
        bad.append("is not position-independent")
    if "GNU_RELRO" not in segments or not re.search(
            r"\(FLAGS_1\).*\bNOW\b|\(BIND_NOW\)", dynamic):
        bad.append("its relocations stay writable")
    stack = re.search(r"GNU_STACK.*", segments)
    if not stack or "E" in stack[0].replace("GNU_STACK", ""):
        bad.append("its stack is executable")
    if re.search(r"\((RPATH|RUNPATH)\)", dynamic):
        bad.append("has a search path of its own")
    if re.search(r"\(TEXTREL\)", dynamic):
        bad.append("its code is written to")
    if "__stack_chk_fail" not in set(undefined_symbols_dynamic(path)):
        bad.append("has no stack protector")
    return [f"{path}: {what}" for what in bad]


def undefined_symbols_dynamic(path):
    for line in run("nm", "--dynamic", "--undefined-only",
                    "--format=posix", path).splitlines():
        yield line.split(" ")[0].split("@")[0]


# What lies about

def check_top_level(root):
    names = {path.split("/")[0] for path in project_files(root)}
    return [f"{name}: does not belong there" for name in sorted(names - TOP_LEVEL)]


def check_paths(root, machine_paths):
    """No file names a place that is on one machine only."""
    bad = []
    for path in project_files(root):
        text = read(os.path.join(root, path))
        for place in machine_paths:
            if place in text:
                bad.append(f"{path}: mentions {place}")
    return bad
