/*
 * The functions of lib/unwind that lib/aggregate calls, with tables in place of ELF files. So the
 * tests know every name and image.
 */
#ifndef TESTS_UNIT_AGGREGATE_FAKE_UNWIND_H
#define TESTS_UNIT_AGGREGATE_FAKE_UNWIND_H

#include "lib/unwind/unwind.h"

struct fake_image {
	uint64_t start, end; /* the addresses at which unwind_image_at() finds the image */
	struct unwind_image image;
};

struct fake_symbol {
	uint64_t start, end;
	const char *name;
};

/* A function that has call frame information. */
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
	size_t lookups; /* number of symbol lookups */
	bool in_use;	/* unwind_names_done() has not been called since the last lookup */
	const struct fake_lines *lines;
	size_t n_lines;
};

#endif
