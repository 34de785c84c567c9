/*
 * The threads of a target: what each does now, and what of it stands in the
 * open chunk. Plain state: aggregate.c changes it.
 */
#ifndef LIB_AGGREGATE_THREADS_H
#define LIB_AGGREGATE_THREADS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/aggregate/names.h"
#include "lib/base/table.h"
#include "lib/base/util.h"

struct thread {
	uint32_t tid;
	uint64_t id; /* what the profile calls it; 0: by tid */
	char name[THREAD_NAME_SIZE];

	/* Now. */
	uint32_t node; /* its stack, PROFILE_NONE: not known, or gone */
	/* If node is not PROFILE_NONE: its frames, and unwind_stack.id. */
	size_t depth;
	uint64_t stack_id;
	bool running;
	uint64_t since_ns; /* up to here its time is accounted for */
	uint64_t seen_ns;  /* last time a record confirmed the stack */

	/* In the open chunk. */
	uint32_t last; /* its newest sample's index, or PROFILE_NONE */
	bool exited;
	uint64_t exit_us;   /* if exited: Unix time, as samples have it */
	uint64_t before_us; /* the tick before that; 0: it has a sample there */

	/* Set by the close of the chunk. */
	uint32_t carry;	  /* its stack where the chunk ends */
	bool carry_waits; /* it waits there */
	bool ahead;	  /* it has samples behind the end */
	bool ends;	  /* its stack ends there: only the closing copy is left */
};

struct threads {
	struct thread *list;
	size_t n, cap;
	struct table by_tid;
};

/* Empty. Allocates nothing. */
void threads_init(struct threads *t, uint64_t hash_seed);
/* Frees everything; t is as after threads_init. Takes NULL. */
void threads_fini(struct threads *t);

/*
 * *ret is the thread, added without a name if it was not there; valid until
 * the next is added. Returns 0 or -ENOMEM.
 */
must_check int threads_get(struct threads *t, uint32_t tid, struct thread **ret);

/* The thread, or NULL. */
struct thread *threads_find(const struct threads *t, uint32_t tid);

/* Removes those that exited and have nothing ahead. Returns 0 or -ENOMEM. */
must_check int threads_drop_exited(struct threads *t);

#endif
