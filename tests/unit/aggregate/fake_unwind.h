/*
 * The part of lib/unwind that lib/aggregate calls, made of tables: so that its
 * tests know every name and image, and need no ELF file.
 */
#ifndef TESTS_UNIT_AGGREGATE_FAKE_UNWIND_H
#define TESTS_UNIT_AGGREGATE_FAKE_UNWIND_H

#include "lib/unwind/unwind.h"

struct fake_image {
	uint64_t start, end; /* where it is found */
	struct unwind_image image;
};

struct fake_symbol {
	uint64_t start, end;
	const char *name;
};

/* Those that call frame information knows. */
struct fake_function {
	uint64_t start, end;
};

struct fake_lines {
	uint64_t start, end;
	size_t n;
	struct unwind_line lines[UNWIND_LINES_MAX];
};

struct unwind_space {
	const struct fake_image *images;
	size_t n_images;
	const struct fake_symbol *symbols;
	size_t n_symbols;
	const struct fake_function *functions;
	size_t n_functions;
	size_t lookups; /* of symbols */
	bool in_use;	/* what they gave is being gone through */
	const struct fake_lines *lines;
	size_t n_lines;
};

#endif
