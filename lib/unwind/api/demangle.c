#include "lib/unwind/unwind.h"

#include <ctype.h>
#include <libiberty/demangle.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdlib.h>
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

/*
 * The limit of work for a name of D, in characters that libiberty reads or copies: some
 * milliseconds. Of the 16,364 names of Phobos, D's library, 233 exceed it.
 */
#define D_WORK_MAX (1u << 20)

/* Added to the name of a PLT stub (elf/plt.h). */
#define STUB_SUFFIX "@plt"

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

/* Returns true if a calling convention of D begins with c, and thus a function's type. */
static bool begins_function(char c)
{
	return c != '\0' && strchr("FUVWRYM", c) != NULL;
}

/* Returns true if text may be the next part of a qualified name of D. */
static bool continues_name(const char *text)
{
	return isdigit((unsigned char)text[0]) || text[0] == '_' || text[0] == 'Q' ||
	       begins_function(text[0]);
}

/* The number of n digits, at most max. */
static size_t number_of(const char *digits, size_t n, size_t max)
{
	size_t number = 0;

	for (size_t i = 0; i < n; i++)
		number = min_size(10 * number + (size_t)(digits[i] - '0'), max);
	return number;
}

/* What libiberty may do for a name of D. */
struct d_work {
	size_t size;	/* of the name */
	size_t copied;	/* bytes that references to identifiers copy */
	size_t doubles; /* log2 of how often libiberty may read a part of the name */
};

/* Adds what n digits at an offset may cause. */
static void add_number(const char *raw, size_t at, size_t n, struct d_work *w)
{
	const size_t end = at + n;
	/* The whole text, and the template behind none or some of the digits. */
	size_t tries = 1 + (raw[end] == '_' || raw[end] == 'Q' ? n : 0);
	bool calls = false;

	for (size_t i = 1; i <= n; i++) {
		const size_t length = number_of(raw + end - i, i, w->size);

		if (length > w->size - end)
			continue;
		tries += i < n && continues_name(raw + end + length);
		calls |= begins_function(raw[end + length]);
	}
	if (at > 0 && raw[at - 1] == 'S')
		while (tries > 1) {
			w->doubles++;
			tries = (tries + 1) / 2;
		}
	w->doubles += calls;
}

/* Adds what a reference at an offset ("Q", digits of base 26) may cause. */
static void add_reference(const char *raw, size_t at, struct d_work *w)
{
	size_t end = at + 1, distance = 0, digits;

	while (isupper((unsigned char)raw[end]))
		distance = min_size(26 * distance + (size_t)(raw[end++] - 'A'), w->size);
	if (!islower((unsigned char)raw[end]))
		return;
	distance = 26 * distance + (size_t)(raw[end++] - 'a');
	if (distance > at)
		return;
	digits = strspn(raw + at - distance, "0123456789");
	w->doubles += digits == 0 || begins_function(raw[end]);
	if (digits > 0)
		w->copied += number_of(raw + at - distance, digits, w->size);
}

/*
 * Returns true if libiberty demangles a name of D within D_WORK_MAX. Its parser reads parts of a
 * name again: at a reference to a type, after an identifier that a function's type may follow, and
 * at a symbol that is an argument of a template, whose length it guesses. Each of these doubles
 * the work for what is nested in it. Letters in identifiers may count, too: the result is an upper
 * bound.
 */
static bool is_cheap_d(const char *raw)
{
	struct d_work w = {.size = strlen(raw)};

	for (size_t at = 0; at < w.size; at++) {
		const size_t n = strspn(raw + at, "0123456789");

		if (n > 0) {
			add_number(raw, at, n, &w);
			at += n - 1;
		} else if (raw[at] == 'Q') {
			add_reference(raw, at, &w);
		} else if (raw[at] == 'Z') {
			w.doubles += begins_function(raw[at + 1]);
		}
	}
	return w.doubles < 20 && (w.size + w.copied) << w.doubles <= D_WORK_MAX;
}

/* Returns true for a name of D: "_D", then the length of the first identifier. */
static bool is_d(const char *raw)
{
	return raw[0] == '_' && raw[1] == 'D' &&
	       (isdigit((unsigned char)raw[2]) || strcmp(raw, "_Dmain") == 0);
}

/*
 * Cuts off the parameters of a function of D, which libiberty always gives. The parentheses of a
 * template's arguments stay: an exclamation mark is before them.
 */
static void cut_parameters(char *name)
{
	char *at = strrchr(name, ')');
	size_t depth = 0;

	for (; at && at > name; at--) {
		depth += *at == ')';
		depth -= *at == '(';
		if (depth == 0)
			break;
	}
	if (at && at > name && at[-1] != '!')
		*at = '\0';
}

static bool demangle_d(const char *raw, bool with_parameters, struct output *o)
{
	char *name = is_cheap_d(raw) ? dlang_demangle(raw, DMGL_NO_OPTS) : NULL;

	if (!name)
		return false;
	if (!with_parameters)
		cut_parameters(name);
	o->used = strlen(name);
	o->overflown = o->used >= o->size;
	if (!o->overflown)
		memcpy(o->bytes, name, o->used);
	free(name);
	return !o->overflown;
}

static bool is_mangled(const char *raw)
{
	return (raw[0] == '_' && (raw[1] == 'Z' || raw[1] == 'R')) &&
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

/* Demangles a name without the suffix of a stub. */
static bool demangle_plain(const char *raw, bool with_parameters, struct output *o)
{
	int options = with_parameters ? DMGL_PARAMS | DMGL_ANSI | DMGL_RET_DROP : DMGL_NO_OPTS;

	if (is_d(raw))
		return demangle_d(raw, with_parameters, o);
	return is_mangled(raw) && demangle(raw, options, o);
}

bool unwind_demangle(const char *raw, bool with_parameters, char *out, size_t size)
{
	const size_t length = strnlen(raw, UNWIND_DEMANGLE_MAX + 1);
	const size_t suffix = strlen(STUB_SUFFIX);
	struct output o = {.bytes = out, .size = size};
	char plain[UNWIND_DEMANGLE_MAX + 1];
	bool is_stub;

	if (length > UNWIND_DEMANGLE_MAX)
		return false;
	is_stub = length > suffix && strcmp(raw + length - suffix, STUB_SUFFIX) == 0;
	if (is_stub) {
		if (size <= suffix)
			return false;
		o.size = size - suffix;
		memcpy(plain, raw, length - suffix);
		plain[length - suffix] = '\0';
		raw = plain;
	}
	if (!demangle_plain(raw, with_parameters, &o) || o.used == 0)
		return false;
	memcpy(out + o.used, STUB_SUFFIX, is_stub ? suffix : 0);
	out[o.used + (is_stub ? suffix : 0)] = '\0';
	return true;
}
