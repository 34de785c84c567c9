/*
 * Thread keys: the numbers by which an aggregate (lib/aggregate/aggregate.h) tells a target's
 * threads apart. Each series (daemon/unwind/series.h) has one struct thread_keys.
 *
 * With thread_id_format = tid in the configuration, a thread's key is its tid. With
 * thread_id_format = pthread, threads are shown by their thread pointer (the value of
 * pthread_self(3)), and the keys are numbers that this module counts up from 1. Reason: a new
 * thread can get the memory of a thread that has ended, and then has the same pointer and another
 * tid. The new thread continues the key of the ended thread, so that a chunk never has two threads
 * with the same id.
 *
 * Functions that allocate return 0 or -ENOMEM.
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
	bool is_old;  /* the thread had ended when the open chunk began */
	uint32_t key;
	uint64_t pointer; /* the thread pointer; 0: unknown */
};

struct thread_keys {
	bool shows_pointers;	 /* thread_id_format = pthread; false: the list stays empty */
	struct thread_key *list; /* threads of the open chunk and of the chunk before */
	size_t n, cap;
	struct table by_tid, by_pointer; /* from tid, and from thread pointer, to index in list */
	uint32_t last;			 /* the newest key; 0: none */
};

/* Initialises an empty list. Does not allocate. seed: random, for the hash tables. */
void thread_keys_init(struct thread_keys *k, bool shows_pointers, uint64_t seed);
/* Frees the list; k is as after thread_keys_init(). k may be NULL. */
void thread_keys_fini(struct thread_keys *k);

/* Initialises k with a copy of from. Call thread_keys_fini() also after an error. */
must_check int thread_keys_copy(struct thread_keys *k, const struct thread_keys *from);

struct thread_key_change {
	uint32_t key;	  /* the thread's key from now on */
	uint32_t old_key; /* the key that the thread had until now and that ends; 0: none */
	/*
	 * The id to show for the thread: its pointer, or its tid if the pointer is unknown. 0
	 * without shows_pointers: show the key, which is the tid.
	 */
	uint64_t id;
};

/*
 * Gives a live thread a key, or returns the key that the thread has. pointer: the thread pointer;
 * 0: unknown. A thread is shown by its tid until a call has passed its pointer.
 *
 * The key changes in one case: the list has another thread with this pointer. The function marks
 * the other thread as ended, because live threads have different pointers. This thread continues
 * the other thread's key. If this thread had a key until now, that key ends: it is ret->old_key,
 * and the caller ends it in the aggregate.
 */
must_check int thread_keys_assign(struct thread_keys *k, uint32_t tid, uint64_t pointer,
				  struct thread_key_change *ret);

/*
 * Returns the key of a thread; 0 if the thread has no key, has ended, or another thread continues
 * its key. Without shows_pointers it is always the tid.
 */
uint32_t thread_keys_of(const struct thread_keys *k, uint32_t tid);

/*
 * Record that a thread, or every thread, has ended. Until the end of the next chunk a new thread
 * with the same pointer can continue the key.
 */
void thread_keys_end(struct thread_keys *k, uint32_t tid);
void thread_keys_end_all(struct thread_keys *k);

/*
 * Begins the next chunk. Removes the threads that had ended when the previous chunk began. On
 * -ENOMEM removes all threads: thread_keys_assign() then gives them new keys.
 */
must_check int thread_keys_next(struct thread_keys *k);

#endif
