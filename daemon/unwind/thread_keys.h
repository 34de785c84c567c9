/*
 * Thread keys: the numbers under which a target's threads are in a chunk.
 *
 * With thread_id_format = tid, a thread's key is its tid. With thread_id_format =
 * pthread, threads are shown by their thread pointer, and the keys are numbers of
 * this module: a thread that begins on the stack of a thread that has ended has the
 * same pointer and another tid. It continues the key of the ended thread, so that
 * a chunk never has two threads that are shown alike.
 *
 * Each series (daemon/unwind/series.h) has one table. Functions that allocate
 * return 0 or -ENOMEM.
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
	bool is_old;  /* the thread had ended before the open chunk */
	uint32_t key;
	uint64_t pointer; /* 0: unknown */
};

struct thread_keys {
	bool by_pointer;	 /* thread_id_format = pthread; else the table is empty */
	struct thread_key *list; /* threads of the open chunk and the one before */
	size_t n, cap;
	struct table by_tid, by_its_pointer; /* to index in list */
	uint32_t last;			     /* the newest key */
};

/* Initialises an empty table. Does not allocate. */
void thread_keys_init(struct thread_keys *k, bool by_pointer, uint64_t seed);
void thread_keys_fini(struct thread_keys *k); /* k may be NULL */

/* Initialises k with the threads and keys of from. */
must_check int thread_keys_copy(struct thread_keys *k, const struct thread_keys *from);

struct thread_key_change {
	uint32_t key;	  /* the thread's key */
	uint32_t old_key; /* the key that it had before, which has ended; 0: none */
	uint64_t id;	  /* the id to show; 0: the key */
};

/*
 * Gives the thread a key, or changes it: the thread lives and has this pointer. 0:
 * the pointer is unknown; the thread is shown by its tid until it is known.
 */
must_check int thread_keys_assign(struct thread_keys *k, uint32_t tid, uint64_t pointer,
				  struct thread_key_change *ret);

/*
 * Returns the thread's key; 0 if it has none, or if another thread has continued
 * its key.
 */
uint32_t thread_keys_of(const struct thread_keys *k, uint32_t tid);

/* The thread has, or all threads have, ended: another thread may continue the key. */
void thread_keys_end(struct thread_keys *k, uint32_t tid);
void thread_keys_end_all(struct thread_keys *k);

/*
 * Begins another chunk: removes the threads that had ended before the last one. On
 * -ENOMEM all threads are removed.
 */
must_check int thread_keys_next(struct thread_keys *k);

#endif
