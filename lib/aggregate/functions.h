/*
 * Time by function over a whole session, and the table of it that sentry-profd
 * --pid prints at the end. A function is a symbol in a file. All code of a file
 * without symbols counts as one function, "[libfoo.so]".
 *
 * Each chunk adds its times when it is closed, so the sums live longer than the
 * chunk's stacks and names.
 */
#ifndef LIB_AGGREGATE_FUNCTIONS_H
#define LIB_AGGREGATE_FUNCTIONS_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "lib/aggregate/stacks.h"
#include "lib/base/text.h"
#include "lib/base/table.h"
#include "lib/base/util.h"
#include "proto/profile.h"

/*
 * Limit of the functions that are kept between two chunks: less than a megabyte
 * for each target. When there are more, the half with less time is summed up in
 * the row of the others.
 */
#define FUNCTIONS_MAX 4096

struct functions_row {
	const char *name;
	const char *module;  /* the file's path; "": none */
	uint64_t self_ns;    /* running, as the leaf */
	uint64_t total_ns;   /* running, anywhere in the stack; recursion counts once */
	uint64_t waiting_ns; /* waiting, as the leaf */
	uint64_t stamp;	     /* number of the last stack that was added to total_ns */
};

struct functions {
	struct text text;
	struct functions_row *rows;
	size_t n, cap;
	struct table by_name; /* hash of name and module to row */
	uint64_t n_stacks;    /* added to the table so far; the source of functions_row.stamp */
	uint64_t others_self_ns, others_waiting_ns; /* of rows not kept */
	uint64_t n_others;
};

/* Initialises an empty table. Does not allocate. */
void functions_init(struct functions *f, uint64_t hash_seed);
/* Frees everything and empties the table. f may be NULL. */
void functions_fini(struct functions *f);

/*
 * Moves the times of s into the table: they are 0 in s afterwards. frames are
 * the frames of s, by index, after lookup_update() and before lookup_finish().
 * Returns 0, or -ENOMEM: times that were not moved stay in s.
 */
must_check int functions_add(struct functions *f, struct stacks *s,
			     const struct profile_frame *frames);

/*
 * Writes the table: at most max_rows functions and a row for all others, sorted
 * by self time, then waiting time, then total time, largest first. Returns 0,
 * -ENOMEM or -EIO.
 */
must_check int functions_write(const struct functions *f, size_t max_rows, FILE *out);

/*
 * Writes a name that a target chose, safe for a terminal: control characters,
 * also those of C1, are written as \xNN. A long name is cut. Returns the number
 * of columns, one for each character.
 */
size_t functions_write_name(const char *s, FILE *out);

#endif
