#include "lib/unwind/unwind.h"

#include <ctype.h>
#include <libiberty/demangle.h>
#include <setjmp.h>
#include <stdbool.h>
#include <string.h>

/*
 * A name is a tree whose branches may be references to others ("S1_", "T_",
 * "B5_"). With n of them it has at most 3^(n/3) leaves: 130,000 here, some
 * milliseconds. Of 56,564 C++ names that LLVM, clang and libstdc++ export
 * three have more.
 */
#define REFERENCES_MAX 32

/* Some thousand lifetimes. */
#define BINDER_DIGITS_MAX 2

struct output {
	char *bytes;
	size_t size; /* room, NUL included */
	size_t used;
	bool is_rust;
	bool overflown;
	jmp_buf full;
};

/* Identifiers are of these; what stands between them is not. */
static bool is_of_identifier(char c)
{
	return isalnum((unsigned char)c) || c == '_' || (unsigned char)c > 127;
}

/*
 * libiberty cannot be told to stop, so it is left where it stands. For C++ it
 * has allocated nothing by then; for Rust it may hold an identifier (those with
 * letters beyond ASCII), which it frees once that is printed: what does not fit
 * is dropped, and it is left at the next thing that is no identifier.
 */
static void take(const char *text, size_t n, void *opaque)
{
	struct output *o = opaque;

	/* It also calls with nothing, which may be NULL. */
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

/* References into the name: a letter, base-36 or base-62 digits, "_". */
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
 * Rust's v0 says in base 62 how many lifetimes a function type or "dyn" binds;
 * libiberty counts them one by one, also where it prints none.
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
	/* Rust's older names are valid C++ ones, with a hash at the end. */
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
