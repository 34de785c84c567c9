/*
 * Functions on a thread that only the comparisons of this folder need, in addition to
 * daemon/oracle/thread_copy.h: single steps, and copies without a stop.
 */
#ifndef TESTS_ORACLE_THREAD_H
#define TESTS_ORACLE_THREAD_H

#include "daemon/oracle/thread_copy.h"

/*
 * Lets a stopped thread execute one instruction and stop again. If the instruction is a system
 * call that blocks, this function blocks, too. Returns 0, or -ESRCH if the thread has exited.
 */
must_check int thread_step(struct thread_stop *stop);

/*
 * Copies a thread that is blocked in a system call to record, without stopping it. Only the
 * registers sp and pc are valid in the copy. second is as in thread_copy_stopped(). Returns 0
 * with the size of the record in bytes; -ESRCH if the thread has exited; -EBUSY if it is not
 * blocked, or has run during the copy.
 */
must_check int thread_copy_blocked(const struct live *l, int32_t tid, uint64_t second,
				   struct record_sample *record, size_t *ret_size);

#endif
