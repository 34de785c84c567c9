/*
 * The programs that the profiled processes executed, with the times of their threads.
 * functions_write() shows them above its table of functions. A process that executed two programs
 * counts in both.
 */
#ifndef LIB_AGGREGATE_PROGRAMS_H
#define LIB_AGGREGATE_PROGRAMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "lib/base/string_pool.h"
#include "lib/base/util.h"
#include "proto/profile.h"

/* The most programs with a row of their own: the first that come. All others share one row. */
#define PROGRAMS_MAX 64

struct programs_row {
	const char *name;
	uint64_t n_processes;	     /* that had time in the program */
	uint64_t ns[PROFILE_STATES]; /* by enum profile_state */
};

struct programs {
	struct string_pool text;
	struct programs_row rows[PROGRAMS_MAX];
	size_t n;
	struct programs_row others;
};

/* Initialises an empty list. Does not allocate. */
void programs_init(struct programs *p, uint64_t hash_seed);
/* Frees everything and empties the list. */
void programs_fini(struct programs *p);

/*
 * Adds the times ns, by state, of one process to the program with this name. Does nothing if all
 * times are 0. Copies name. The caller keeps *is_counted for each process and program, false at
 * first. The function sets it when it counts the process in n_processes. Returns 0 or -ENOMEM.
 */
must_check int programs_add(struct programs *p, const char *name, const uint64_t ns[PROFILE_STATES],
			    bool *is_counted);

/*
 * Writes the programs, sorted by running time: at most max_rows, and a row for all others. Writes
 * nothing if the sum of all n_processes is 0 or 1. with_ready: with a column READY. Returns 0 or
 * -ENOMEM. The caller checks out for errors (ferror(3)).
 */
must_check int programs_write(const struct programs *p, size_t max_rows, bool with_ready,
			      FILE *out);

#endif
