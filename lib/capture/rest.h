/*
 * Running the rest of a call that came back with a part because of us.
 *
 * The thread is sent back to its syscall instruction with the arguments of
 * lib/capture/partial.h, under PTRACE_SYSCALL: it stops where the call begins
 * and where it ends, results are added, and it goes on with the registers that
 * it would have had without us. A signal that it handles, a group-stop, or an
 * error ends that: it gets the sum so far, as it would from the kernel, which
 * shows the error at the next call.
 *
 * Beware: a tracer that is killed in between leaves the thread with the result
 * of the last part alone (docs/SAFETY.md).
 */
#ifndef LIB_CAPTURE_REST_H
#define LIB_CAPTURE_REST_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/capture/arch.h"
#include "lib/capture/partial.h"

enum rest_state {
	REST_NONE,
	REST_AHEAD,  /* on its way into the call */
	REST_INSIDE, /* in it */
};

struct rest {
	enum rest_state state;
	unsigned int in_vain; /* parts in a row that brought nothing */
	bool counts;	      /* what the part under way brings */
	struct partial partial;
};

/*
 * For a thread in a stop that may have cut its call short; signal: that of a
 * signal-delivery-stop, else 0. Returns true if a rest is to be run: the thread
 * has to be continued by PTRACE_SYSCALL as long as state is not REST_NONE.
 */
bool rest_begin(struct rest *r, uint32_t tid, int pagemap_fd,
		const struct user_regs_struct *regs, int signal);

/*
 * A stop of a thread with a rest; at_call: at the begin or end of a call, else
 * any other kind. goes_on: it may still go on after this stop: it is no
 * group-stop, no signal, and we are not about to leave. regs are its registers;
 * they become those that it would have without us.
 */
void rest_stopped(struct rest *r, bool at_call, bool goes_on,
		  struct user_regs_struct *regs);

#endif
