#include "lib/capture/rest.h"

#include "lib/capture/memory.h"
#include "lib/capture/status.h"
#include "lib/capture/syscalls.h"

/*
 * A part that brings nothing is run again where an interrupt may have been the
 * reason; a signal that is there shows itself before. This often: interrupts
 * come a tick apart, and no call that is known goes on like this without one.
 */
#define IN_VAIN_MAX 1000

/* Sends the thread into the next part. False: there is none. */
static bool run_next(struct rest *r)
{
	const struct partial *p = &r->partial;
	struct user_regs_struct regs;
	struct partial_call call;
	uint64_t sp_pc[ARCH_REGS];
	uint8_t before[2];

	arch_to_dwarf(&p->regs, sp_pc);
	if (!partial_next(p, &call) ||
	    memory_read(p->pagemap_fd, NULL, (int32_t)p->tid,
			sp_pc[ARCH_PC] - sizeof(before), before, sizeof(before),
			0) != (ssize_t)sizeof(before) ||
	    !arch_call_again(&p->regs, before, call.nr, call.arguments,
			     &regs) ||
	    arch_set_regs(p->tid, &regs) < 0)
		return false;
	r->state = REST_AHEAD;
	r->counts = call.counts;
	return true;
}

/*
 * Under a seccomp filter nothing is run: a filter may look at the arguments,
 * and kill. Syscall user dispatch is no matter: the same instruction was let
 * through a moment ago.
 */
bool rest_begin(struct rest *r, uint32_t tid, int pagemap_fd,
		const struct user_regs_struct *regs, int signal)
{
	struct partial *p = &r->partial;

	p->tid = tid;
	p->pagemap_fd = pagemap_fd;
	p->regs = *regs;
	if (!partial_find(p) || status_is_filtered(tid) ||
	    (signal != 0 && !status_goes_unnoticed(tid, signal)))
		return false;
	r->in_vain = 0;
	return run_next(r);
}

/* It goes on behind the call. ESRCH: killed while it was stopped. */
static void end(struct rest *r)
{
	r->state = REST_NONE;
	(void)!arch_set_regs(r->partial.tid, &r->partial.regs);
}

/*
 * At the end of a part. If that was a part only, the next one shows whether
 * there is more: nobody can tell whether we were the reason.
 */
static void add(struct rest *r, bool goes_on,
		const struct user_regs_struct *regs)
{
	struct partial *p = &r->partial;
	long nr, result;
	bool again;

	if (!arch_interrupted_call(regs, &nr, &result))
		result = 0;
	if (result > 0 && r->counts) {
		p->done += (uint64_t)result;
		r->in_vain = 0;
		arch_with_result(&p->regs, p->done);
		again = true;
	} else {
		again = syscall_was_waiting(result) &&
			++r->in_vain < IN_VAIN_MAX;
	}
	if (!goes_on || !again || !run_next(r))
		end(r);
}

void rest_stopped(struct rest *r, bool at_call, bool goes_on,
		  struct user_regs_struct *regs)
{
	switch (r->state) {
	case REST_NONE:
		return;
	case REST_AHEAD:
		if (at_call)
			r->state = REST_INSIDE;
		else if (!goes_on)
			end(r);
		break;
	case REST_INSIDE:
		add(r, goes_on, regs);
		break;
	}
	*regs = r->partial.regs;
}
