/*
 * What records say of threads, told to the open chunk under the numbers that
 * these have there (daemon/thread_keys.h). Errors are those of aggregate_*.
 */
#ifndef DAEMON_CHUNK_THREADS_H
#define DAEMON_CHUNK_THREADS_H

#include "daemon/thread_keys.h"
#include "lib/aggregate/aggregate.h"
#include "lib/capture/sample.h"

/* RECORD_THREAD. It may go on as one that has ended, at time_ns. */
must_check int chunk_threads_take(struct thread_keys *k, struct aggregate *a,
				  const struct record_thread *record,
				  uint64_t time_ns);

/* The number of one that has a sample; one without a RECORD_THREAD gets one. */
must_check int chunk_threads_find(struct thread_keys *k, struct aggregate *a,
				  uint32_t tid, uint64_t time_ns,
				  uint32_t *ret_key);

/* RECORD_MISSED or RECORD_EXIT. */
must_check int chunk_threads_lose(struct thread_keys *k, struct aggregate *a,
				  const struct record *record);

/* RECORD_WAITING; in a profile of processor time it has no stack then. */
must_check int chunk_threads_wait(struct thread_keys *k, struct aggregate *a,
				  const struct record *record, bool cpu_only);

/* All are gone. */
must_check int chunk_threads_exit(struct thread_keys *k, struct aggregate *a,
				  uint64_t time_ns);

#endif
