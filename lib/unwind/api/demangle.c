#include "lib/unwind/unwind.h"

#include <ctype.h>
#include <libiberty/demangle.h>
#include <setjmp.h>
#include <stdbool.h>
#include <string.h>

/*
 * A name is a tree whose branches may be references to other branches ("S1_", "T_", "B5_"). With
 * n references it expands to at most 3^(n/3) leaves: 130,000 for this limit, which takes some
 * milliseconds. Of 56,564 C++ names that LLVM, clang and libstdc++ export, three have more
 * references.
 */
#define REFERENCES_MAX 32

/* Digits of the number of lifetimes: some thousand lifetimes are allowed. */
#define BINDER_DIGITS_MAX 2

struct output {
	char *bytes;
	size_t size; /* room, NUL included */
	size_t used;
	bool is_rust;
	bool overflown;
	jmp_buf full;
};

/* Returns true for the characters of identifiers. */
static bool is_of_identifier(char c)
{
	return isalnum((unsigned char)c) || c == '_' || (unsigned char)c > 127;
}

/*
 * The callback of libiberty. libiberty has no way to stop it, so at the limit this function
 * leaves it with longjmp(3). For C++ libiberty holds no memory then. For Rust it may hold an
 * identifier with letters beyond ASCII, which it frees after printing: the function drops the
 * rest of the identifier and leaves at the next text that is none.
 */
static void take(const char *text, size_t n, void *opaque)
{
	struct output *o = opaque;

	/* libiberty also passes NULL with n = 0. */
	if (n == 0)
		return;
	o->overflown |= n >= o->size - o->used;
	if (o->overflown) {
		if (!o->is_rust || !is_of_identifier(text[0]))
			longjmp(o->full, 1);
		return;
	}
	memcpy(o->bytes + o->used, text, n);
	o->used += n;
}

/* Counts references into the name: a letter, base-36 or base-62 digits, "_". */
static size_t count_references(const char *name)
{
	size_t n = 0;

	for (const char *at = name; *at != '\0'; at++) {
		const char *end = at + 1;

		if (*at != 'S' && *at != 'T' && *at != 'B')
			continue;
		while (isalnum((unsigned char)*end))
			end++;
		n += *end == '_';
	}
	return n;
}

/*
 * Returns true if a function type or "dyn" binds too many lifetimes. Rust's v0 gives their number
 * in base 62; libiberty counts up to it one by one, even if it prints none.
 */
static bool binds_many(const char *raw)
{
	for (const char *at = raw; *at != '\0'; at++) {
		size_t digits = 0;

		if ((at[0] != 'F' && at[0] != 'D') || at[1] != 'G')
			continue;
		while (isalnum((unsigned char)at[2 + digits]))
			digits++;
		if (digits > BINDER_DIGITS_MAX && at[2 + digits] == '_')
			return true;
	}
	return false;
}

static bool is_mangled(const char *raw)
{
	return (raw[0] == '_' && (raw[1] == 'Z' || raw[1] == 'R')) &&
	       strnlen(raw, UNWIND_DEMANGLE_MAX + 1) <= UNWIND_DEMANGLE_MAX &&
	       count_references(raw) <= REFERENCES_MAX && !(raw[1] == 'R' && binds_many(raw));
}

static bool demangle(const char *raw, int options, struct output *o)
{
	if (setjmp(o->full) != 0)
		return false;
	/* Legacy Rust names are valid C++ names with a hash at the end, so Rust is tried first. */
	o->is_rust = true;
	if (rust_demangle_callback(raw, options, take, o))
		return !o->overflown;
	o->is_rust = false;
	o->overflown = false;
	o->used = 0;
	return cplus_demangle_v3_callback(raw, options, take, o) != 0;
}

bool unwind_demangle(const char *raw, bool with_parameters, char *out, size_t size)
{
	struct output o = {.bytes = out, .size = size};
	int options = with_parameters ? DMGL_PARAMS | DMGL_ANSI | DMGL_RET_DROP : DMGL_NO_OPTS;

	if (!is_mangled(raw) || !demangle(raw, options, &o) || o.used == 0)
		return false;
	out[o.used] = '\0';
	return true;
}
