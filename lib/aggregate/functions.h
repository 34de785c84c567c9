/*
 * Time by function over a whole session, and the table of it that a person
 * reads. A function is a symbol in a file; code without a symbol counts as one
 * function a file, "[libfoo.so]".
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
 * Functions that are kept between two chunks: more than a person reads, less
 * than a megabyte for each of many targets. When there are more, the colder
 * half goes into the row of the others.
 */
#define FUNCTIONS_MAX 4096

struct functions_row {
	const char *name;
	const char *module;  /* the file's path, "" for none */
	uint64_t self_ns;    /* running, as the leaf */
	uint64_t total_ns;   /* running, anywhere in the stack, recursion once */
	uint64_t waiting_ns; /* blocked, as the leaf */
	uint64_t stamp;	     /* the last stack that was counted in total_ns */
};

struct functions {
	struct text text;
	struct functions_row *rows;
	size_t n, cap;
	struct table by_name;			    /* hash of name and module to row */
	uint64_t stacks;			    /* counted, for the stamps */
	uint64_t others_self_ns, others_waiting_ns; /* of rows not kept */
	uint64_t n_others;
};

/* Empty. Allocates nothing. */
void functions_init(struct functions *f, uint64_t hash_seed);
/* Frees everything; f is as after functions_init. Takes NULL. */
void functions_fini(struct functions *f);

/*
 * Takes over the times of s and sets them to 0. frames are those of s, by
 * index, looked up but not yet named for the root's sake. Returns 0, or
 * -ENOMEM: times that were not taken over stay in s.
 */
must_check int functions_add(struct functions *f, struct stacks *s,
			     const struct profile_frame *frames);

/*
 * Writes the table of at most max_rows functions and a row for all others,
 * hottest first: by self time, then waiting, then total. Returns 0, -ENOMEM or
 * -EIO.
 */
must_check int functions_write(const struct functions *f, size_t max_rows, FILE *out);

/*
 * Writes a name so that the terminal shows it and obeys none of it: control
 * characters, C1 among them, as \xNN; a long one is cut. Returns the columns
 * that it takes, counting one a character.
 */
size_t functions_write_name(const char *s, FILE *out);

#endif
