/*
 * The times that `sentry-profctl top` shows of a process: of its functions, its threads, and
 * the callers of a function, both in the last chunk and since the start. Chunks are added as
 * they arrive from a recording (daemon/ctl/common/recording.h).
 *
 * Two functions with the same name and module are one, as in proto/export/merge.h.
 *
 * Memory is bounded: if there are more than TOP_FUNCTIONS_MAX functions, TOP_THREADS_MAX threads
 * or TOP_CELLS_MAX sums before a chunk is added, the model keeps only half as many of that kind:
 * those with the most time since the start. The row TOP_OTHERS of a list has the time that no
 * other row has.
 */
#ifndef DAEMON_CTL_TOP_TOP_MODEL_H
#define DAEMON_CTL_TOP_TOP_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/table.h"
#include "lib/base/text.h"
#include "lib/base/util.h"
#include "proto/export/merge.h"
#include "proto/import/chunk.h"

/* More than a user reads; about 20 MB in total. */
#define TOP_FUNCTIONS_MAX 8192u
#define TOP_THREADS_MAX	  2048u
#define TOP_CELLS_MAX	  131072u

/*
 * Special values of the members of struct top_cell. They fit the 22 bits that a function has in
 * the key of a cell.
 */
#define TOP_ANY	  UINT32_C(0x3fffff)
#define TOP_ROOT  UINT32_C(0x3ffffe)
#define TOP_WHOLE UINT32_C(0x3ffffd)

/* The thread index that stands for all threads together. */
#define TOP_ALL 0u
/* The index of the row that has the time of everything that is not listed. */
#define TOP_OTHERS UINT32_MAX

/*
 * The time of a function in the stacks of a thread, or the time of a whole thread. A stack in
 * which a function occurs several times (recursion) counts once for each value.
 */
struct top_time {
	/* Running time of the stacks with the function as the leaf, and with it anywhere. */
	uint64_t self_ns, total_ns;
	/* The ready time, and the waiting time, of these two kinds of stacks. */
	uint64_t ready_ns, ready_total_ns;
	uint64_t waiting_ns, waiting_total_ns;
};

struct top_function {
	const char *name; /* NULL: an unused element */
	const char *module;
};

struct top_thread {
	const char *id; /* NULL: an unused element */
	const char *name;
};

/*
 * A sum of times. thread is an index, or TOP_ALL. function is an index, or TOP_WHOLE: the sum is of
 * the thread as a whole, and caller is TOP_ANY. caller is the index of the function that called
 * this function; TOP_ROOT: the stacks begin with this function; TOP_ANY: the sum is over all
 * callers.
 */
struct top_cell {
	uint32_t thread, function, caller;
	uint64_t stamp; /* n_stacks of the model when the last stack was added to this cell */
	struct top_time now, all; /* in the last chunk, and since the start */
};

struct top_model {
	merge_demangle *demangle;
	uint64_t hash_seed;
	struct text text; /* owns the strings of functions and threads */
	/* n: elements of the array, cap: its room, used: elements that are in use. */
	struct top_function *functions;
	size_t n_functions, cap_functions, used_functions;
	struct top_thread *threads; /* the first is TOP_ALL */
	size_t n_threads, cap_threads, used_threads;
	struct top_cell *cells;
	size_t n_cells, cap_cells;
	struct table by_function, by_thread, by_cell;
	uint64_t n_stacks; /* stacks added so far; a stack is added for TOP_ALL and its thread */

	/* The duration of the last chunk, and of all chunks. */
	uint64_t now_ns, all_ns;
	size_t n_chunks;
	/* The waiting time of some chunk may be ready time (import_chunk.hides_ready). */
	bool hides_ready;
	/*
	 * The caller sets these two to the thread and the function on the screen. The model does
	 * not drop this thread and this function, so that their indices stay valid. TOP_ALL and
	 * TOP_OTHERS: none.
	 */
	uint32_t shown_thread, shown_function;
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

enum top_column {
	TOP_SELF,
	TOP_TOTAL,
	TOP_READY,
	TOP_WAITING,
};

struct top_order {
	enum top_column column;
	bool since_start; /* by the time since the start; false: by the time in the last chunk */
};

struct top_row {
	uint32_t index; /* of the function or thread; TOP_OTHERS for "(others)" and "(root)" */
	/* Valid until the next top_model_add(). */
	const char *name;
	const char *detail; /* the module of a function; the id of a thread */
	struct top_time now, all;
};

struct top_rows {
	struct top_row *v;
	size_t n, cap;
};

/*
 * The next three functions write a list to *ret, the row with the most time first. If TOP_OTHERS
 * has time, it is the last row. *ret is zeros or an older list, whose memory the functions use
 * again. They return 0 or -ENOMEM.
 */

/*
 * Lists the functions of a thread, or of TOP_ALL, that ran, or that were the leaf while the thread
 * was ready or waiting.
 */
must_check int top_model_functions(const struct top_model *m, uint32_t thread,
				   struct top_order order, struct top_rows *ret);
/* Lists the threads. self_ns and total_ns of a thread are its running time. */
must_check int top_model_threads(const struct top_model *m, struct top_order order,
				 struct top_rows *ret);

/*
 * Lists the callers of a function: each row has the time of the function when this caller
 * called it. The row "(root)" is for stacks that begin with the function. Ready and waiting
 * time is sorted by ready_total_ns and waiting_total_ns.
 */
must_check int top_model_callers(const struct top_model *m, uint32_t thread, uint32_t function,
				 struct top_order order, struct top_rows *ret);
void top_rows_fini(struct top_rows *r);

/* Returns the time of a thread or of TOP_ALL. */
void top_model_thread_time(const struct top_model *m, uint32_t thread, struct top_time *ret_now,
			   struct top_time *ret_all);

#endif
