/*
 * What sentry-profctl top shows of a process: the time of its functions, of
 * its threads, and of the callers of a function, in the last chunk and since
 * the start. Chunks come one by one, as of a recording
 * (daemon/ctl/recording.h). Nothing here knows a terminal.
 *
 * Functions are named as in the merge (proto/export/merge.h): two functions of
 * one name and module are one.
 *
 * The model is bounded. Between two chunks it keeps at most TOP_FUNCTIONS_MAX
 * functions, TOP_THREADS_MAX threads and TOP_CELLS_MAX sums. Where there are
 * more, the half with less time is dropped; each list has its time in a row of
 * its own, TOP_OTHERS.
 */
#ifndef DAEMON_CTL_TOP_MODEL_H
#define DAEMON_CTL_TOP_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/table.h"
#include "lib/base/text.h"
#include "lib/base/util.h"
#include "proto/export/merge.h"
#include "proto/import/chunk.h"

/* More than a person reads. Some 20 MB in all. */
#define TOP_FUNCTIONS_MAX 8192u
#define TOP_THREADS_MAX	  2048u
#define TOP_CELLS_MAX	  131072u

/* A thread: the sum of all of them. */
#define TOP_ALL 0u
/* The index of the row of what is not listed. */
#define TOP_OTHERS UINT32_MAX

struct top_time {
	uint64_t self_ns;    /* running, as the leaf */
	uint64_t total_ns;   /* running, anywhere in the stack, once */
	uint64_t waiting_ns; /* waiting, as the leaf */
	uint64_t below_ns;   /* waiting, anywhere in the stack, once */
};

struct top_function {
	const char *name; /* NULL: a free place */
	const char *module;
};

struct top_thread {
	const char *id; /* NULL: a free place */
	const char *name;
};

/* A sum: of a function, or of a function as a caller calls it. */
struct top_cell {
	uint32_t thread, function, caller;
	uint64_t stamp; /* the last stack that was counted in total or below */
	struct top_time now, all;
};

struct top_model {
	merge_demangle *demangle;
	uint64_t hash_seed;
	struct text text;
	struct top_function *functions;
	size_t n_functions, cap_functions, used_functions;
	struct top_thread *threads; /* the first is TOP_ALL's */
	size_t n_threads, cap_threads, used_threads;
	struct top_cell *cells;
	size_t n_cells, cap_cells;
	struct table by_function, by_thread, by_cell;
	uint64_t n_stacks; /* counted, for the stamps */

	/* The length of the last chunk, and of all together. */
	uint64_t now_ns, all_ns;
	size_t n_chunks;
	/*
	 * What is shown is not dropped: the indices stay good. Set by the
	 * caller, TOP_ALL and TOP_OTHERS for none.
	 */
	uint32_t shown_thread, shown_function;
};

/* demangle: of the merge; may be NULL. Does not allocate. */
void top_model_init(struct top_model *m, merge_demangle *demangle, uint64_t hash_seed);
/* Frees everything. Takes zeros. */
void top_model_fini(struct top_model *m);

/*
 * Adds a chunk of one process: it is the last one now. Returns 0, or -ENOMEM,
 * after which only top_model_fini may follow.
 */
must_check int top_model_add(struct top_model *m, const struct import_chunk *c);

enum top_column {
	TOP_SELF,
	TOP_TOTAL,
	TOP_WAITING,
};

struct top_order {
	enum top_column column;
	bool since_start; /* else the last chunk's time comes first */
};

struct top_row {
	uint32_t index; /* of the function or thread; or TOP_OTHERS */
	/* The model's, until the next top_model_add. */
	const char *name, *module; /* of a thread: name and id */
	struct top_time now, all;
};

struct top_rows {
	struct top_row *v;
	size_t n, cap;
};

/*
 * Lists, most time first, into *ret, which is zeros or has an older list.
 * Functions without any time of their own, and callers without any time below
 * them, are left out. The row of others is the last, if it has time. Return 0
 * or -ENOMEM.
 */
must_check int top_model_functions(const struct top_model *m, uint32_t thread,
				   struct top_order order, struct top_rows *ret);
/* Of a thread self_ns and total_ns are its running time. */
must_check int top_model_threads(const struct top_model *m, struct top_order order,
				 struct top_rows *ret);
/*
 * Each row is the time that the function has when this one calls it; waiting
 * is compared by below_ns. A row "(root)" is of calls from outside all stacks.
 */
must_check int top_model_callers(const struct top_model *m, uint32_t thread, uint32_t function,
				 struct top_order order, struct top_rows *ret);
void top_rows_fini(struct top_rows *r);

/* The time of a thread, or of TOP_ALL. */
void top_model_thread_time(const struct top_model *m, uint32_t thread, struct top_time *ret_now,
			   struct top_time *ret_all);

#endif
