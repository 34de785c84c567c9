/*
 * Numbers strings and functions from 0, in the order of first use, for formats that have tables
 * of them (firefox.c, pprof.c). For files of proto/export/ only.
 */
#ifndef PROTO_EXPORT_NUMBERING_H
#define PROTO_EXPORT_NUMBERING_H

#include "lib/base/table.h"
#include "proto/export/merge.h"

/*
 * A numbered list of strings, which stay the caller's. Strings are compared by address. Equal
 * strings of a merge have one address, and so one number; equal string constants may have several.
 */
struct export_strings {
	struct table numbers;
	const char **strings; /* by number */
	size_t n, cap;
	int error; /* 0; or -ENOMEM: the numbers that were returned since are wrong */
};

void export_strings_init(struct export_strings *s, uint64_t hash_seed);
void export_strings_fini(struct export_strings *s);

/* Returns the number of text; adds text if it is new. If memory is short, sets s->error. */
uint32_t export_strings_number(struct export_strings *s, const char *text);

/* Numbered functions. A function is all frames with the same name, module and source file. */
struct export_functions {
	uint32_t *of_frame;    /* by frame: the number of its function */
	uint32_t *first_frame; /* by function: the index of its first frame in merge.frames */
	size_t n;
};

/*
 * Numbers the functions of all frames of m. Returns 0 or -ENOMEM. Call
 * export_functions_fini() in both cases.
 */
must_check int export_functions_init(struct export_functions *f, const struct merge *m);
void export_functions_fini(struct export_functions *f);

#endif
