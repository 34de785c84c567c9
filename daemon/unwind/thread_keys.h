/*
 * Thread keys: the numbers under which a target's threads are in a chunk.
 *
 * With thread_id_format = tid, a thread's key is its tid. With thread_id_format =
 * pthread, threads are shown by their thread pointer, and the keys are numbers of
 * this module: a thread that begins on the stack of a thread that has ended has the
 * same pointer and another tid. It continues the key of the ended thread, so that
 * a chunk never has two threads that are shown alike.
 *
 * Each series (daemon/unwind/series.h) has one struct thread_keys. Functions that
 * allocate return 0 or -ENOMEM.
 */
#ifndef DAEMON_UNWIND_THREAD_KEYS_H
#define DAEMON_UNWIND_THREAD_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/table.h"
#include "lib/base/util.h"

struct thread_key {
	uint32_t tid; /* 0: the thread has ended */
	bool is_old;  /* the thread had ended before the open chunk began */
	uint32_t key;
	uint64_t pointer; /* the thread pointer; 0: unknown */
};

struct thread_keys {
	bool shows_pointers;	 /* thread_id_format = pthread; else the list is empty */
	struct thread_key *list; /* threads of the open chunk and of the chunk before */
	size_t n, cap;
	struct table by_tid, by_pointer; /* to index in list */
	uint32_t last;			 /* the newest key */
};

/*
 * Initialises an empty list. Does not allocate. seed is for the hash tables. The caller calls
 * thread_keys_fini().
 */
void thread_keys_init(struct thread_keys *k, bool shows_pointers, uint64_t seed);
void thread_keys_fini(struct thread_keys *k); /* k may be NULL */

/* Initialises k with the threads and keys of from. */
must_check int thread_keys_copy(struct thread_keys *k, const struct thread_keys *from);

struct thread_key_change {
	uint32_t key;	  /* the thread's key */
	uint32_t old_key; /* the key that the thread had until now and that ends; 0: none */
	uint64_t id;	  /* the id to show for the thread; 0: show the key */
};

/*
 * Gives a live thread its key; pointer is its thread pointer. 0: the pointer is unknown, and
 * the thread is shown by its tid.
 *
 * A thread keeps its key in later calls, with one exception: if its pointer becomes known, and
 * another thread had that pointer, the other thread has ended, and this thread continues the
 * other thread's key. A key that this thread had before then ends (ret->old_key).
 */
must_check int thread_keys_assign(struct thread_keys *k, uint32_t tid, uint64_t pointer,
				  struct thread_key_change *ret);

/*
 * Returns the key of a thread; 0 if the thread has no key, has ended, or another thread
 * continues its key. Without shows_pointers: the tid.
 */
uint32_t thread_keys_of(const struct thread_keys *k, uint32_t tid);

/* Record that a thread, or every thread, has ended. Another thread may continue its key. */
void thread_keys_end(struct thread_keys *k, uint32_t tid);
void thread_keys_end_all(struct thread_keys *k);

/*
 * Begins the next chunk: removes the threads that had ended before the chunk began that is
 * over now. On -ENOMEM all threads are removed.
 */
must_check int thread_keys_next(struct thread_keys *k);

#endif
