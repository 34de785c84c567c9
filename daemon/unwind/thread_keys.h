/*
 * Under which number a target's threads stand in its chunk. By tid: that. By
 * thread pointer (thread_id_format = pthread): one of our own, since a thread
 * that begins where another has ended, on its stack, has the same pointer and
 * another tid, and must not be another thread of the chunk with the same name.
 * It goes on as the one that has ended, as one with its tid would.
 */
#ifndef DAEMON_UNWIND_THREAD_KEYS_H
#define DAEMON_UNWIND_THREAD_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/table.h"
#include "lib/base/util.h"

struct thread_key {
	uint32_t tid; /* 0: it has ended, */
	bool is_old;  /* and not in this chunk */
	uint32_t key;
	uint64_t pointer; /* 0: not known */
};

struct thread_keys {
	bool by_pointer;
	struct thread_key *list; /* those of this chunk and the last one */
	size_t n, cap;
	struct table by_tid, by_its_pointer; /* to places in list */
	uint32_t last;			     /* key */
};

/* Empty. Allocates nothing. */
void thread_keys_init(struct thread_keys *k, bool by_pointer, uint64_t seed);
void thread_keys_fini(struct thread_keys *k); /* takes NULL */

/* The same threads with the same numbers. Returns 0 or -ENOMEM. */
must_check int thread_keys_copy(struct thread_keys *k, const struct thread_keys *from);

struct thread_name {
	uint32_t key;  /* its number */
	uint32_t left; /* the one that it had before, which is over; 0: none */
	uint64_t id;   /* what it is called in the chunk; 0: by its number */
};

/*
 * The thread is there, with this pointer; 0: it is not known (any more, or
 * yet). As long as it is not, it is called by its tid. Returns 0 or -ENOMEM.
 */
must_check int thread_keys_take(struct thread_keys *k, uint32_t tid, uint64_t pointer,
				struct thread_name *ret);

/*
 * The number of a thread that was taken; 0: it was not, or another one goes on
 * with its number.
 */
uint32_t thread_keys_of(const struct thread_keys *k, uint32_t tid);

/* The thread has ended: its number may be another's. */
void thread_keys_leave(struct thread_keys *k, uint32_t tid);
void thread_keys_leave_all(struct thread_keys *k);

/*
 * Another chunk: who had ended before the last one is in none any more. Returns
 * 0 or -ENOMEM: all are forgotten.
 */
must_check int thread_keys_next(struct thread_keys *k);

#endif
