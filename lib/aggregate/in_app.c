#include "lib/aggregate/in_app.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "lib/aggregate/library_names.h"
#include "lib/aggregate/names.h"
#include "lib/base/glob.h"
#include "lib/base/util.h"
#include "lib/unwind/unwind.h"

/* Limit of nested types in the names of Rust's implementations. */
#define RUST_DEPTH_MAX 8

/* Returns the text after prefix, or NULL if text does not begin with prefix. */
static const char *after_prefix(const char *text, const char *prefix)
{
	size_t n = strlen(prefix);

	return strncmp(text, prefix, n) == 0 ? text + n : NULL;
}

static bool has_prefix(const char *text, const char *const *prefixes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (after_prefix(text, prefixes[i]) != NULL)
			return true;
	return false;
}

static bool is_word(const char *text, size_t size, const char *const *words, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (strlen(words[i]) == size && memcmp(text, words[i], size) == 0)
			return true;
	return false;
}

/* Matches /lib, /lib32, /lib64, /libx32, /libexec, and the same in /usr; not /library. */
static bool is_library_directory(const char *path)
{
	static const char *const abis[] = {"/", "32/", "64/", "x32/", "exec/"};
	const char *rest = after_prefix(path, "/usr");

	rest = after_prefix(rest != NULL ? rest : path, "/lib");
	return rest != NULL && has_prefix(rest, abis, array_size(abis));
}

bool in_app_is_go_library(const char *symbol)
{
	/* First parts of the paths that `go list std` prints, Go 1.25. */
	static const char *const packages[] = {
		"archive",   "arena",	"bufio",    "builtin",	"bytes",   "cmp",     "compress",
		"container", "context", "crypto",   "database", "debug",   "embed",   "encoding",
		"errors",    "expvar",	"flag",	    "fmt",	"go",	   "hash",    "html",
		"image",     "index",	"internal", "io",	"iter",	   "log",     "maps",
		"math",	     "mime",	"net",	    "os",	"path",	   "plugin",  "reflect",
		"regexp",    "runtime", "slices",   "sort",	"strconv", "strings", "structs",
		"sync",	     "syscall", "testing",  "text",	"time",	   "unicode", "unique",
		"unsafe",    "vendor",	"weak",
	};
	/* Symbols of the compiler, and of the runtime's assembly and C. */
	static const char *const without_package[] = {
		"type:",	 "type..",	"go:",	     "_rt0_",	"_cgo_",
		"x_cgo_",	 "crosscall",	"gogo",	     "callRet", "gosave_systemstack_switch",
		"setg_gcc",	 "aeshashbody", "memeqbody", "cmpbody", "indexbody",
		"indexbytebody", "countbody",	"debugCall",
	};
	/* Ends before the types of parameters and receivers, which have paths, too. */
	size_t size = strcspn(symbol, "[("), package = 0;
	const char *dot;

	if (has_prefix(symbol, without_package, array_size(without_package)))
		return true;
	for (size_t i = 0; i < size; i++)
		if (symbol[i] == '/')
			package = i;
	dot = memchr(symbol + package, '.', size - package);
	if (dot == NULL)
		return false;
	size = (size_t)(dot - symbol);
	dot = memchr(symbol, '/', size);
	if (dot != NULL)
		size = (size_t)(dot - symbol);
	return is_word(symbol, size, packages, array_size(packages));
}

/*
 * Returns true for a Rust symbol in either mangling. A name of the older (legacy)
 * mangling ends with a hash: 17h, 16 hex digits and E. Suffixes of the compiler
 * begin with a dot.
 */
static bool is_rust(const char *symbol)
{
	const char *at = symbol;

	if (after_prefix(symbol, "_R") != NULL)
		return true;
	if (after_prefix(symbol, "_ZN") == NULL)
		return false;
	while ((at = strstr(at, "17h")) != NULL) {
		at += 3;
		if (strspn(at, "0123456789abcdef") == 16 && at[16] == 'E' &&
		    (at[17] == '\0' || at[17] == '.'))
			return true;
	}
	return false;
}

enum crate { CRATE_NONE, CRATE_LIBRARY, CRATE_OTHER };

/* Returns the text after the '>' that closes the '<' at text; NULL if none does. */
static const char *after_brackets(const char *text)
{
	size_t depth = 0;

	for (; *text != '\0'; text++) {
		depth += *text == '<';
		/* "->" is the arrow of a function's type. */
		if (*text == '>' && text[-1] != '-' && --depth == 0)
			return text + 1;
	}
	return NULL;
}

/* Finds the " as " at the bracket depth of text, before end. Returns NULL if there is none. */
static const char *find_as(const char *text, const char *end)
{
	size_t depth = 0;

	for (; text < end; text++) {
		depth += *text == '<';
		depth -= *text == '>' && text[-1] != '-' && depth > 0;
		if (depth == 0 && after_prefix(text, " as ") != NULL)
			return text;
	}
	return NULL;
}

/* Skips the references, pointers and qualifiers before a type. */
static const char *after_modifiers(const char *type)
{
	static const char *const modifiers[] = {"*const ", "*mut ", "mut ", "dyn "};

	for (;;) {
		const char *rest = NULL;

		type += strspn(type, "&[( ");
		for (size_t i = 0; i < array_size(modifiers) && rest == NULL; i++)
			rest = after_prefix(type, modifiers[i]);
		if (rest == NULL)
			return type;
		type = rest;
	}
}

/*
 * Returns the kind of crate that text belongs to: a path, a type, or a type in
 * brackets. A primitive type has no crate. depth limits the nesting of brackets.
 */
static enum crate crate_of(const char *text, unsigned int depth)
{
	/* __rustc is the compiler's crate for the allocator. */
	static const char *const libraries[] = {"std", "core", "alloc", "__rustc"};
	enum crate self, trait;
	const char *as, *end;
	size_t size;

	text = after_modifiers(text);
	if (*text == '<') {
		end = after_brackets(text);
		if (end == NULL || depth == 0)
			return CRATE_OTHER;
		as = find_as(text + 1, end);
		self = crate_of(text + 1, depth - 1);
		trait = as == NULL ? CRATE_NONE : crate_of(as + 4, depth - 1);
		return self > trait ? self : trait;
	}
	for (size = 0; isalnum((uint8_t)text[size]) || text[size] == '_';)
		size++;
	if (after_prefix(text + size, "::") == NULL)
		return CRATE_NONE;
	return is_word(text, size, libraries, array_size(libraries)) ? CRATE_LIBRARY : CRATE_OTHER;
}

bool in_app_is_rust_library(const char *name)
{
	/* Methods of primitive types ("<[T]>::sort") belong to the library. */
	return crate_of(name, RUST_DEPTH_MAX) == CRATE_LIBRARY ||
	       (name[0] == '<' && crate_of(name, RUST_DEPTH_MAX) == CRATE_NONE);
}

/* The hash of library_names, as library_names.sh computes it. */
static uint64_t library_names_hash(const char *name, size_t size)
{
	uint32_t a = 5381, b = 2166136261u;

	for (size_t i = 0; i < size; i++) {
		a = a * 65599 + (uint8_t)name[i];
		b = b * 1000003 + (uint8_t)name[i];
	}
	return (uint64_t)a << 32 | b;
}

static int compare_hashes(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/*
 * Returns true if symbol (not demangled) is one of library_names. Suffixes of the compiler
 * (".part.0", ".cold") and of PLT stubs
 * ("@plt") are ignored.
 */
static bool is_library_name(const char *symbol)
{
	const size_t size = strcspn(symbol, ".@");
	const uint64_t hash = library_names_hash(symbol, size);

	return size > 0 &&
	       bsearch(&hash, library_names, library_names_n, sizeof(hash), compare_hashes) != NULL;
}

/* Returns true if a symbol in a file of the application belongs to a library. */
static bool is_library_symbol(const struct in_app_code *code)
{
	/* Symbols of Rust's allocator and panics that are not mangled. */
	static const char *const rust_runtime[] = {"__rust",	 "__rdl_",
						   "__rg_",	 "rust_begin_unwind",
						   "rust_panic", "rust_eh_personality"};
	char demangled[NAME_SIZE];

	if (code->is_go && in_app_is_go_library(code->symbol))
		return true;
	if (has_prefix(code->symbol, rust_runtime, array_size(rust_runtime)))
		return true;
	if (is_rust(code->symbol) &&
	    unwind_demangle(code->symbol, false, demangled, sizeof(demangled)))
		return in_app_is_rust_library(demangled);
	return !code->has_interpreter && strcmp(code->path, code->main_path) == 0 &&
	       is_library_name(code->symbol);
}

bool in_app(const struct in_app_code *code, const struct in_app_rules *rules)
{
	const char *path = code->path;

	if (path == NULL || path[0] != '/')
		return false;
	if (glob_match_any(rules->include, path))
		return true;
	if (glob_match_any(rules->exclude, path))
		return false;
	if (strcmp(path, code->main_path) != 0 && is_library_directory(path))
		return false;
	return code->symbol == NULL || !is_library_symbol(code);
}
