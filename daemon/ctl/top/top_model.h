/*
 * Sums up the times that `sentry-profctl top` shows of a process. The caller adds each chunk of a
 * recording (daemon/ctl/common/recording.h) as it arrives. There are three lists: the functions,
 * the threads, and the chosen list. The chosen list has all functions, or the callers of one
 * function, in all stacks or in those of one thread.
 *
 * top_model_choose() sets what the chosen list has, and empties the list. The next top_model_rows()
 * for the list adds the last chunk; the model keeps no earlier one. From then on top_model_add()
 * adds each new chunk to the chosen list, too.
 *
 * Two functions with the same name and module are one row, even if their source files differ.
 *
 * Memory is bounded: if a list has more than TOP_ROWS_MAX rows when a chunk is added, the rows with
 * the least time (of all states) are dropped, until TOP_ROWS_MAX / 2 are left. A last row,
 * "(others)", has the times of the dropped rows: the times of all stacks minus the times of the
 * rows that are left. In a list of functions the row's total_ns is 0: a stack counts in the totals
 * of all its functions, so the subtraction has no meaning.
 */
#ifndef DAEMON_CTL_TOP_TOP_MODEL_H
#define DAEMON_CTL_TOP_TOP_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/table.h"
#include "lib/base/util.h"
#include "proto/export/merge.h"
#include "proto/import/chunk.h"

/* More than a user reads; about 5 MB in total. */
#define TOP_ROWS_MAX 8192u

/* The key of the rows "(others)" and "(root)", which are neither a function nor a thread. */
#define TOP_NO_KEY 0u

/*
 * The times of a row, summed over stacks. The members refer to a function f. For TOP_FUNCTIONS f is
 * the function of the row. For TOP_CALLERS f is the chosen function, and only stacks in which the
 * row's function calls f count. For TOP_THREADS all stacks of the thread count, as if f were their
 * leaf. A stack that contains f several times (recursion) counts only once. Example: main has
 * called f, f has called g, and this stack ran for 10 ms. g has 10 ms of self_ns and total_ns; f
 * and main have 10 ms of total_ns.
 */
struct top_time {
	/* Running time of the stacks whose leaf is f, and of the stacks that contain f. */
	uint64_t self_ns, total_ns;
	/*
	 * Ready and waiting time of the stacks whose leaf is f; for TOP_CALLERS of all stacks that
	 * contain f.
	 */
	uint64_t ready_ns, waiting_ns;
};

/* A function, thread or caller with its times. */
struct top_row {
	uint64_t key; /* a hash of the function's name and module, or of the thread's id */
	const char *name;
	const char *detail;	  /* the module of a function; the id of a thread */
	struct top_time now, all; /* in the last chunk, and in all chunks that the list has */
	uint64_t stamp;		  /* top_sums.n_stacks when a stack was last added to the row */
	char *text;		  /* the memory of name and detail, which the list owns */
};

enum top_kind {
	TOP_FUNCTIONS,
	TOP_THREADS,
	/* A row is a caller; the row "(root)" is for stacks whose root is the chosen function. */
	TOP_CALLERS,
};

struct top_sums {
	enum top_kind kind;
	struct top_row *v; /* in no order; some rows have no time */
	size_t n, cap;
	struct table by_key;  /* the index in v of each key */
	struct top_row whole; /* the time of all stacks that have been added */
	uint64_t n_stacks;    /* how many stacks have been added */
};

struct top_model {
	merge_demangle *demangle;
	uint64_t hash_seed;
	struct top_sums functions, threads, chosen;
	struct merge last; /* the last chunk; zeros: none yet */
	/* The keys of the choice; TOP_NO_KEY: all threads, or no function. */
	uint64_t chosen_thread, chosen_function;
	bool is_chosen_counted; /* the last chunk has been added to chosen */

	/* The duration of the last chunk, and of all chunks. */
	uint64_t now_ns, all_ns;
	size_t n_chunks;
	/* Some chunk counts ready time as waiting time (import_chunk.hides_ready). */
	bool hides_ready;
};

/* Initialises a model without chunks. demangle: as in struct merge_options, or NULL. */
void top_model_init(struct top_model *m, merge_demangle *demangle, uint64_t hash_seed);
/* Frees everything. Safe on a zero-initialised struct. */
void top_model_fini(struct top_model *m);

/*
 * Adds a chunk of the process to the lists; it becomes the last chunk. The caller keeps c. Returns
 * 0 or -ENOMEM. After an error only top_model_fini() may be called.
 */
must_check int top_model_add(struct top_model *m, const struct import_chunk *c);

/*
 * Chooses what m->chosen lists, and empties the list. function is the key of a function, whose
 * callers are listed; TOP_NO_KEY: the functions are listed. thread is the key of the thread whose
 * stacks count; TOP_NO_KEY: the stacks of all threads count.
 */
void top_model_choose(struct top_model *m, uint64_t thread, uint64_t function);

enum top_column {
	TOP_SELF,
	TOP_TOTAL,
	TOP_READY,
	TOP_WAITING,
};

struct top_order {
	enum top_column column;
	bool since_start; /* true: by top_row.all; false: by top_row.now */
};

struct top_rows {
	struct top_row *v;
	size_t n, cap;
};

/*
 * Writes the rows of sums to *ret, the row with the most time by order first. sums is
 * &m->functions, &m->threads or &m->chosen. Leaves out rows without time. The last row is
 * "(others)", if it has time. The texts of the rows are valid until the next top_model_add() or
 * top_model_choose(). *ret is zeros before the first call; each call replaces the rows in it.
 * Returns 0 or -ENOMEM.
 */
must_check int top_model_rows(struct top_model *m, const struct top_sums *sums,
			      struct top_order order, struct top_rows *ret);
void top_rows_fini(struct top_rows *r);

#endif
