/*
 * Numbers that formats with tables give to strings and to functions, in the
 * order of first use. Inside proto/export/.
 */
#ifndef PROTO_EXPORT_NUMBERING_H
#define PROTO_EXPORT_NUMBERING_H

#include "lib/base/table.h"
#include "proto/export/merge.h"

/*
 * Strings by their addresses: those of a merge are interned, and constants may
 * get more than one number. Zeros and a table with a seed are an empty list.
 */
struct export_strings {
	struct table numbers;
	const char **strings; /* by number */
	size_t n, cap;
	int error; /* 0, or -ENOMEM: numbers are wrong from then on */
};

void export_strings_init(struct export_strings *s, uint64_t hash_seed);
void export_strings_fini(struct export_strings *s);
uint32_t export_strings_number(struct export_strings *s, const char *text);

/* A function: frames with the same name, module and source file. */
struct export_functions {
	uint32_t *of_frame;    /* by frame: its function */
	uint32_t *first_frame; /* by function */
	size_t n;
};

/* Of all frames of m. Returns 0 or -ENOMEM; fini is due in both cases. */
must_check int export_functions_init(struct export_functions *f, const struct merge *m);
void export_functions_fini(struct export_functions *f);

#endif
