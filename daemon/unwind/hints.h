/*
 * Stack hints: unwind tells capture, per thread, which bytes of the stack the walk of the last
 * sample needed, if the sample had too few or far too many. capture then copies these bytes at the
 * thread's next sample. stream.c calls this module after each walk.
 *
 * A sample has the bytes from the stack pointer on and, if needed, a second range of the thread's
 * own stack. The thread may be on another stack at that time, such as that of a signal handler.
 *
 * Each sample contains the hint that capture had when it took the sample (struct sample_known).
 * unwind makes a new hint from this struct and the unwound stack only. So unwind stores no hints,
 * only the time of each thread's last one (struct hints). Nothing becomes stale when a thread ends,
 * its tid is used again, the process executes another program, or capture is replaced.
 */
#ifndef DAEMON_UNWIND_HINTS_H
#define DAEMON_UNWIND_HINTS_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/msg/msg_capture.h"
#include "lib/unwind/unwind.h"

/*
 * The time of each thread's last hint. A sample that was taken before a hint was sent would cause
 * the same hint again, and up to half a second of samples waits in the ring. So a sample that is
 * older than the thread's last hint causes no hint. Initialise to zeros.
 *
 * A thread's slot is its tid modulo HINTS_SLOTS. If two threads share a slot, some hints are sent
 * twice, which does no harm.
 */
#define HINTS_SLOTS 256

struct hints {
	struct {
		uint32_t tid;
		uint64_t sent_ns; /* CLOCK_MONOTONIC */
		/* Samples that hints_must_drop() kept and dropped, of all threads of the slot. */
		uint64_t kept, dropped;
	} last[HINTS_SLOTS];
};

/*
 * Makes the hint for a sample from its unwound stack. target: the broker's number. Returns false if
 * no hint is needed, for one of three reasons:
 * - The sample had the bytes that the walk needed, and not far more.
 * - capture had this hint already when it took the sample (sample->known).
 * - capture would not copy the missing bytes, because they are too far from the stack pointer
 *   and not on the thread's own stack.
 */
bool hints_make(uint32_t target, const struct unwind_sample *sample,
		const struct unwind_stack *stack, struct msg_stack_hint *ret);

/*
 * Makes a request that capture stops the sample's thread, which is blocked, to read its registers.
 * target: the broker's number. Returns false if the sample does not lack the register with the
 * return address (unwind_lacks_return_address()).
 */
bool hints_want_registers(uint32_t target, const struct unwind_sample *sample,
			  const struct unwind_stack *stack, struct msg_want_registers *ret);

/*
 * Returns true if a hint for a sample of thread tid, taken at time_ns, may be sent now, at now_ns:
 * no hint for the thread was sent since time_ns. If it returns true, it has recorded now_ns as the
 * time of the thread's last hint, so the caller sends the hint. Times are CLOCK_MONOTONIC.
 * stream.c has a second struct hints for the requests for registers.
 */
bool hints_may_send(struct hints *h, uint32_t tid, uint64_t time_ns, uint64_t now_ns);

/*
 * Returns true if all three hold:
 * - The thread ran on another stack than its own, or capture did not know where its own stack ends.
 * - The walk reached the thread's own stack, of which the sample lacks the bytes.
 * - The hint of hints_make() asks for these bytes, so that the next sample has them.
 * The unwound stack is then incomplete: it lacks the callers on the thread's own stack.
 */
bool hints_lacks_own_stack(const struct unwind_sample *sample, const struct unwind_stack *stack);

/*
 * Counts a sample of thread tid. lacks: the result of hints_lacks_own_stack(). Returns true if the
 * caller drops the sample: lacks is true, and the slot may drop one more sample (see below). By
 * this limit a thread for which hints have no effect keeps most samples, with incomplete stacks.
 */
bool hints_must_drop(struct hints *h, uint32_t tid, bool lacks);

/*
 * A slot may drop HINTS_DROPS_FIRST samples, since so many wait in the ring before the first hint
 * has an effect. It may drop one more for each HINTS_DROPS_SHARE samples that it keeps. Example:
 * with 640 kept samples 74 in all.
 */
#define HINTS_DROPS_FIRST 64
#define HINTS_DROPS_SHARE 64

#endif
