/*
 * The times that `sentry-profctl top` shows of a process, as three lists of sums: the functions,
 * the threads, and a chosen list: the functions of one thread or the callers of one function. Each
 * chunk of a recording (daemon/ctl/common/recording.h) is added to all three as it arrives.
 *
 * The chosen list begins anew with each choice. It has the last chunk, which the model keeps for
 * this, and the chunks after it; so a choice needs no sums of all threads, functions and callers.
 *
 * Two functions with the same name and module are one, as in proto/export/merge.h.
 *
 * Memory is bounded: if a list has more than TOP_ROWS_MAX rows before a chunk is added, the list
 * keeps only half as many: those with the most time. The last row that the user sees, "(others)",
 * has the time that no other row has.
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

/* The key of "(others)" and "(root)", which are neither a function nor a thread. */
#define TOP_NO_KEY 0u

/*
 * The time of stacks: of those with a function, or of all stacks of a thread. A stack in which a
 * function occurs several times (recursion) counts once for each value.
 */
struct top_time {
	/* Running time of the stacks with the function as the leaf, and with it anywhere. */
	uint64_t self_ns, total_ns;
	/* Of the stacks with the function as the leaf; in TOP_CALLERS, with it anywhere. */
	uint64_t ready_ns, waiting_ns;
};

/* A function, thread or caller with its times. */
struct top_row {
	uint64_t key; /* a hash of the function's name and module, or of the thread's id */
	const char *name;
	const char *detail;	  /* the module of a function; the id of a thread */
	struct top_time now, all; /* in the last chunk, and in all chunks of the list */
	uint64_t stamp;		  /* top_sums.n_stacks when a stack was last added to the row */
	char *text;		  /* the memory of name and detail, which the list owns */
};

enum top_kind {
	TOP_FUNCTIONS,
	TOP_THREADS, /* self_ns and total_ns of a thread are its running time */
	/*
	 * Each row has the time of the chosen function when this caller called it. The row "(root)"
	 * is for stacks that begin with the function.
	 */
	TOP_CALLERS,
};

struct top_sums {
	enum top_kind kind;
	struct top_row *v; /* in no order; some rows have no time */
	size_t n, cap;
	struct table by_key;
	struct top_row whole; /* the time of all stacks that have been added */
	uint64_t n_stacks;
};

struct top_model {
	merge_demangle *demangle;
	uint64_t hash_seed;
	struct top_sums functions, threads, chosen;
	struct merge last; /* the last chunk; zeros: none yet */
	/* The keys of the choice; TOP_NO_KEY: all threads, and no function. */
	uint64_t chosen_thread, chosen_function;
	bool is_chosen_counted; /* chosen has the last chunk */

	/* The duration of the last chunk, and of all chunks. */
	uint64_t now_ns, all_ns;
	size_t n_chunks;
	/* The waiting time of some chunk may be ready time (import_chunk.hides_ready). */
	bool hides_ready;
};

/* demangle is for struct merge_options; may be NULL. Does not allocate. */
void top_model_init(struct top_model *m, merge_demangle *demangle, uint64_t hash_seed);
/* Frees everything. Safe on a zero-initialised struct. */
void top_model_fini(struct top_model *m);

/*
 * Adds a chunk of the process, which becomes the last chunk. Returns 0 or -ENOMEM; after an
 * error only top_model_fini() may be called.
 */
must_check int top_model_add(struct top_model *m, const struct import_chunk *c);

/*
 * Makes m->chosen the list of the callers of a function or, without one (TOP_NO_KEY), of the
 * functions; both in a thread or, for TOP_NO_KEY, in all threads.
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
	bool since_start; /* by the time in all chunks; false: by the time in the last chunk */
};

struct top_rows {
	struct top_row *v;
	size_t n, cap;
};

/*
 * Writes the rows of sums, a member of m, that have time to *ret, the row with the most time first;
 * "(others)", if it has time, is the last row. Names are valid until the next top_model_add() or
 * top_model_choose(). *ret is zeros or an older list, whose memory the function uses again. Returns
 * 0 or -ENOMEM.
 */
must_check int top_model_rows(struct top_model *m, const struct top_sums *sums,
			      struct top_order order, struct top_rows *ret);
void top_rows_fini(struct top_rows *r);

#endif
