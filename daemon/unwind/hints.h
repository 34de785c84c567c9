/*
 * Stack hints: the unwind process tells capture, per thread, which bytes of the stack the
 * walk of the last sample needed, if the sample had too few or far too many. capture then
 * copies these bytes at the thread's next sample.
 *
 * Each sample contains what capture knew when it was taken (struct sample_known).
 * The hint depends only on that and on the unwound stack; unwind does not remember
 * the content of the hints that it has sent, only the time of each thread's last one
 * (struct hints). So nothing is stale when a thread ends, its tid is used again, the
 * process executes another program, or capture is replaced.
 */
#ifndef DAEMON_UNWIND_HINTS_H
#define DAEMON_UNWIND_HINTS_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/msg/msg_capture.h"
#include "lib/unwind/unwind.h"

/*
 * The time of the last hint of each thread. A sample that was taken before a hint was sent
 * would cause the same hint again, and up to half a second of samples waits in the ring. So a
 * sample that is older than the thread's last hint causes no hint. Initialise to zeros.
 *
 * A thread's slot is its tid modulo HINTS_SLOTS. If two threads share a slot, some
 * hints are sent twice, which does no harm. kept and dropped count the samples of all threads that
 * have shared the slot.
 */
#define HINTS_SLOTS 256

struct hints {
	struct {
		uint32_t tid;
		uint64_t sent_ns;
		uint64_t kept, dropped; /* hints_must_drop() */
	} last[HINTS_SLOTS];
};

/*
 * Makes the hint for a sample from its unwound stack. target: the broker's number. Returns false if
 * no hint is needed:
 * - the sample had the bytes that the walk needed, and not far more,
 * - capture had this hint already when it took the sample (sample->known), or
 * - capture does not copy the missing bytes, because they are too far from the stack pointer
 *   and not on the thread's own stack.
 */
bool hints_make(uint32_t target, const struct unwind_sample *sample,
		const struct unwind_stack *stack, struct msg_stack_hint *ret);

/*
 * Makes the request for the registers of a blocked thread. Returns false if the walk did not lack
 * them (unwind_lacks_return_address()).
 */
bool hints_want_registers(uint32_t target, const struct unwind_sample *sample,
			  const struct unwind_stack *stack, struct msg_want_registers *ret);

/*
 * Returns true if a hint for a sample of thread tid, taken at time_ns, may be sent at
 * now_ns (both CLOCK_MONOTONIC). If so, records now_ns as the time of the last hint.
 */
bool hints_may_send(struct hints *h, uint32_t tid, uint64_t time_ns, uint64_t now_ns);

/*
 * Returns true if the sample came from another stack than the thread's own, such as that of a
 * signal handler, and lacked the bytes at which the walk continues on the thread's own stack, and
 * capture will copy these bytes at the next sample (the hint of hints_make() asks for them). The
 * stack then ends where it has left the other stack, as if that were the root.
 */
bool hints_lacks_own_stack(const struct unwind_sample *sample, const struct unwind_stack *stack);

/*
 * Counts a sample of thread tid. Returns true if the sample is to be dropped: lacks is the result
 * of hints_lacks_own_stack(), and few samples were dropped so far. So a thread for which hints have
 * no effect keeps its samples, and their stacks end where the thread left the other stack.
 */
bool hints_must_drop(struct hints *h, uint32_t tid, bool lacks);

/*
 * The samples of a slot that may be dropped: those that wait in the ring before the first hint, and
 * one of so many later ones.
 */
#define HINTS_DROPS_FIRST 64
#define HINTS_DROPS_SHARE 64

#endif
