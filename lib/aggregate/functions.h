/*
 * Sums the time by function over all processes, and writes the table of the sums that sentry-profd
 * --pid prints at its end. A function is a name in a file: all symbols of a file with the same
 * demangled name are one function. All code of a file for which there is no name is also one
 * function, "[libfoo.so]".
 *
 * lib/aggregate/aggregate.c adds the times of a chunk when the chunk is closed, and the times of
 * the open chunk in aggregate_update_table(). sentry-profctl convert and compare use the module,
 * too. The sums and names are copies: they stay when the stacks of the chunk are freed.
 */
#ifndef LIB_AGGREGATE_FUNCTIONS_H
#define LIB_AGGREGATE_FUNCTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "lib/aggregate/programs.h"
#include "lib/aggregate/stacks.h"
#include "lib/base/table.h"
#include "lib/base/string_pool.h"
#include "lib/base/util.h"
#include "proto/profile.h"

/*
 * If there are more functions or symbols than this, the next functions_add() first merges rows: it
 * keeps the FUNCTIONS_MAX / 2 functions with the most time, and one sum of all others. So the rows
 * take one or two megabytes between two chunks.
 */
#define FUNCTIONS_MAX 4096

/* The most columns of a short name in the table. Reason: names can have thousands of bytes. */
#define FUNCTIONS_NAME_COLUMNS 160

struct functions_row {
	const char *name;    /* demangled */
	const char *module;  /* the file's path; "": the code is in no file */
	uint64_t self_ns;    /* running time in the function itself: it is the leaf */
	uint64_t total_ns;   /* running time of stacks that contain the function */
	uint64_t ready_ns;   /* time in the function itself, runnable without a processor */
	uint64_t waiting_ns; /* time in the function itself, blocked */
	uint64_t stamp;	     /* number of the last stack that was added to total_ns, so that a
				recursive function gets the time of a stack once */
};

/* A symbol that has been demangled, and the index of its row. */
struct functions_symbol {
	const char *symbol, *module;
	uint32_t row;
};

struct functions {
	struct string_pool text;
	struct functions_row *rows;
	size_t n, cap;
	struct table by_name; /* hash of name and module to index in rows */
	struct functions_symbol *symbols;
	size_t n_symbols, cap_symbols;
	struct table by_symbol; /* hash of symbol and module to index in symbols */
	uint64_t n_stacks;	/* number of stacks added so far (functions_row.stamp) */
	/* Sums and number of the functions whose rows were not kept. */
	uint64_t others_self_ns, others_ready_ns, others_waiting_ns;
	uint64_t n_others;
	/* The same times by program; the caller adds them (programs_add()). */
	struct programs programs;
	/*
	 * The caller sets it if waiting times contain ready times (import_chunk.hides_ready): the
	 * lines above the table then say so.
	 */
	bool hides_ready;
};

/* Initialises an empty table. Does not allocate. */
void functions_init(struct functions *f, uint64_t hash_seed);
/* Frees everything and empties the table. f may be NULL. */
void functions_fini(struct functions *f);

/*
 * Moves the times of the stacks s into the table: afterwards they are 0 in s. frames has the names
 * of the frames of s, by index. For the open chunk that is lookup.frames, after lookup_update() and
 * before lookup_finish(), which names some frames by their addresses: in the table each of them
 * would be a function. Copies the strings. Returns 0, or -ENOMEM: times that were not moved stay in
 * s.
 */
must_check int functions_add(struct functions *f, struct stacks *s,
			     const struct profile_frame *frames);

/*
 * As functions_add(), with a row for each inlined function, too. inlined has the n_inlined inlined
 * functions of all frames. lines[i] is the range of frame i in inlined, innermost first. If
 * functions are inlined at the leaf, the innermost of them gets the leaf's time as self time.
 */
must_check int functions_add_inlined(struct functions *f, struct stacks *s,
				     const struct profile_frame *frames,
				     const struct profile_lines *lines,
				     const struct profile_frame *inlined, size_t n_inlined);

/*
 * Writes a table of programs, if there are several processes (programs_write()), and a table of
 * functions. Each has at most max_rows rows, and one more for all others. In the table of
 * functions:
 * - The rows are sorted by self time, then ready, waiting and total time, largest first.
 * - If there are more than max_rows functions, one quarter of the rows is kept for those with the
 *   most ready and waiting time. The others have the most self time.
 * - The column of ready times is left out if their sum would be shown as 0.00 s.
 * - Without full_names C++ and Rust names are short (functions_label()).
 * - A hint follows the table if at least half of the running time is in code without a file and a
 *   name, or in the interpreter of a language.
 * Returns 0; -ENOMEM; or -EIO if writing to out fails.
 */
must_check int functions_write(const struct functions *f, size_t max_rows, bool full_names,
			       FILE *out);

/*
 * Writes a name that a target chose, in a form that is safe for a terminal: as escape_write() does,
 * but a byte that is not UTF-8 becomes \xNN. As soon as at least max_columns columns are written,
 * "..." follows in place of the rest of the name; the dots come on top of max_columns. Returns the
 * number of columns written: one for each character of the output, with the dots. The caller checks
 * out for errors (ferror(3)).
 */
size_t functions_write_name(const char *s, size_t max_columns, FILE *out);

/* A name as a row of a table shows it. */
struct functions_label {
	const char *name;
	size_t max_columns; /* for functions_write_name() */
};

/*
 * Makes the labels of the n names of a table, in ret. With is_full a label is the name itself,
 * which stays the caller's, and max_columns is SIZE_MAX: no limit. Otherwise a label is the short
 * name (lib/base/short_names.h), which belongs to text. The max_columns of a short name is
 * FUNCTIONS_NAME_COLUMNS, or SIZE_MAX if another label would otherwise look the same. Returns 0 or
 * -ENOMEM.
 */
must_check int functions_label(const char *const *names, size_t n, bool is_full,
			       struct string_pool *text, struct functions_label *ret);

#endif
