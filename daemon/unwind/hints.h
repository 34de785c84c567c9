/*
 * Stack hints: what unwind tells capture, per thread, when a walk needed other
 * bytes than its sample has: more, or far fewer.
 *
 * Each sample says what capture knew for it (struct sample_known). Comparing it
 * with the walk is all that decides about a hint: unwind keeps no record of
 * what it has told capture. So nothing is stale when a thread ends, its number
 * is used again, a program executes another one, or capture is replaced.
 */
#ifndef DAEMON_UNWIND_HINTS_H
#define DAEMON_UNWIND_HINTS_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/msg/msg_capture.h"
#include "lib/unwind/unwind.h"

/*
 * Samples that were taken before a hint was sent ask for it again: up to half a
 * second of them waits in the ring. So a thread gets no hint for a sample that
 * is older than the last hint. By the lower bits of a thread's number; where
 * two threads share a place some hints are sent twice, which does no harm.
 */
#define HINTS_PLACES 256

struct hints {
	struct {
		uint32_t tid;
		uint64_t sent_ns;
	} last[HINTS_PLACES];
};

/*
 * What the walk of a sample asks of capture, as it is sent. False if capture
 * knows it, or cannot help.
 */
bool hint_wanted(uint32_t target, const struct unwind_sample *sample,
		 const struct unwind_stack *stack, struct msg_stack_hint *ret);

/*
 * True if a hint for a sample of thread tid, taken at time_ns, is to be sent
 * now, at now_ns (both CLOCK_MONOTONIC): it counts as sent then.
 */
bool hints_begin(struct hints *h, uint32_t tid, uint64_t time_ns, uint64_t now_ns);

#endif
