/*
 * What comparisons do with a thread beside daemon/oracle/thread_copy.h: single
 * steps, and copies without a stop.
 */
#ifndef TESTS_ORACLE_THREAD_H
#define TESTS_ORACLE_THREAD_H

#include "daemon/oracle/thread_copy.h"

/*
 * Lets a stopped thread execute one instruction and stop again: a call that
 * waits is waited for. Returns 0, or -ESRCH if the thread has died.
 */
must_check int thread_step(struct thread_stop *stop);

/*
 * Copies a thread that is blocked in a call, without stopping it: of its
 * registers sp and pc are known. Returns 0 with the bytes used; -ESRCH if the
 * thread is gone, -EBUSY if it is not blocked, or has run meanwhile.
 */
must_check int thread_copy_blocked(const struct live *l, int32_t tid, uint64_t second,
				   struct record_sample *record, size_t *ret_size);

#endif
