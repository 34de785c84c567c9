#include "lib/capture/rest.h"

#include "lib/capture/memory.h"
#include "lib/capture/repair.h"
#include "lib/capture/status.h"
#include "lib/capture/syscalls.h"
#include "lib/capture/timeout.h"

/*
 * A part that brings nothing is run again where an interrupt may have been the
 * reason; a signal that is there shows itself before. This often: interrupts
 * come a tick apart, and no call that is known goes on like this without one.
 */
#define IN_VAIN_MAX 1000

/* The call as it was. */
static void all_of_it(const struct partial *p, struct partial_call *ret)
{
	ret->nr = p->nr;
	for (unsigned int i = 0; i < ARCH_ARGUMENTS; i++)
		ret->arguments[i] = arch_argument(&p->regs, i);
	ret->counts = false;
}

static bool next_call(const struct rest *r, struct partial_call *ret)
{
	if (!r->whole)
		return partial_next(&r->partial, ret);
	all_of_it(&r->partial, ret);
	return true;
}

/* Sends the thread into the next part. False: there is none. */
static bool run_next(struct rest *r)
{
	const struct partial *p = &r->partial;
	struct user_regs_struct regs;
	struct partial_call call;
	uint64_t sp_pc[ARCH_REGS];
	uint8_t before[2];

	arch_to_dwarf(&p->regs, sp_pc);
	if (!next_call(r, &call) ||
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

static void take(struct rest *r, const struct rest_stop *stop, bool whole)
{
	r->whole = whole;
	r->in_vain = 0;
	r->since_ns = stop->since_ns;
	r->until_ns = REST_NEVER;
	r->partial.tid = stop->tid;
	r->partial.pagemap_fd = stop->pagemap_fd;
	r->partial.regs = *stop->regs;
}

/* Fills in when its time is over, and what then. False: it has none. */
static bool limit(struct rest *r)
{
	const struct partial *p = &r->partial;
	struct timeout timeout;

	if (!timeout_find(p->tid, p->pagemap_fd, &p->regs, &timeout))
		return false;
	r->until_ns = r->since_ns + timeout.ns;
	r->timed_out = timeout.result;
	return true;
}

/* No handler is run at this stop, which would have to find EINTR. */
static bool is_unnoticed(const struct rest_stop *stop)
{
	return stop->signal == 0 ||
	       status_goes_unnoticed(stop->tid, stop->signal);
}

/*
 * Under a seccomp filter no other call is run: it may lack that one, and kill.
 * Syscall user dispatch is no matter: the same instruction was let through a
 * moment ago.
 */
bool rest_begin(struct rest *r, const struct rest_stop *stop)
{
	struct partial *p = &r->partial;

	take(r, stop, false);
	if (!partial_find(p) ||
	    (!partial_is_alike(p) && status_is_filtered(stop->tid)) ||
	    !is_unnoticed(stop))
		return false;
	(void)limit(r);
	return run_next(r);
}

/* It goes on behind the call. ESRCH: killed while it was stopped. */
static void end(struct rest *r)
{
	r->state = REST_NONE;
	(void)!arch_set_regs(r->partial.tid, &r->partial.regs);
}

static void end_with(struct rest *r, long result)
{
	arch_with_result(&r->partial.regs, (uint64_t)result);
	end(r);
}

bool rest_wait(struct rest *r, const struct rest_stop *stop)
{
	long result;

	take(r, stop, true);
	return arch_interrupted_call(stop->regs, &r->partial.nr, &result) &&
	       repair_is_due(stop->tid, stop->regs, stop->signal) && limit(r) &&
	       is_unnoticed(stop) && run_next(r);
}

/*
 * At the end of a part. If that was a part only, the next one shows whether
 * there is more: nobody can tell whether we were the reason.
 */
static void add(struct rest *r, bool goes_on, bool over, long result)
{
	struct partial *p = &r->partial;
	bool again;

	if (result > 0 && r->counts) {
		p->done += (uint64_t)result;
		r->in_vain = 0;
		arch_with_result(&p->regs, p->done);
		again = true;
	} else {
		again = syscall_was_waiting(result) && !over &&
			++r->in_vain < IN_VAIN_MAX;
	}
	if (!goes_on || !again || !run_next(r))
		end(r);
}

/*
 * At the end of a wait. What took it out of it is shown by a stop to come, or
 * it was an interrupt of ours: then none may come, and it must not see this.
 */
static void came_out(struct rest *r, bool over, long result)
{
	if (!syscall_was_waiting(result)) {
		end_with(r, result);
		return;
	}
	if (over) {
		end_with(r, r->timed_out);
		return;
	}
	arch_with_result(&r->partial.regs, (uint64_t)result);
	if (!run_next(r))
		end(r);
}

/*
 * True where the call begins that the thread was sent to. Else a handler runs,
 * which was installed after the question whether there is one.
 */
static bool is_at_it(const struct rest *r, const struct user_regs_struct *regs)
{
	uint64_t here[ARCH_REGS], there[ARCH_REGS];

	arch_to_dwarf(regs, here);
	arch_to_dwarf(&r->partial.regs, there);
	return here[ARCH_SP] == there[ARCH_SP] &&
	       here[ARCH_PC] == there[ARCH_PC];
}

static void stopped_inside(struct rest *r, bool goes_on, uint64_t now_ns,
			   const struct user_regs_struct *regs)
{
	const bool over = now_ns >= r->until_ns;
	long nr, result;

	if (!arch_interrupted_call(regs, &nr, &result))
		result = 0;
	if (r->whole)
		came_out(r, over, result);
	else
		add(r, goes_on, over, result);
}

void rest_stopped(struct rest *r, bool at_call, bool goes_on, uint64_t now_ns,
		  struct user_regs_struct *regs)
{
	if (r->state == REST_NONE)
		return;
	if (at_call && r->state == REST_AHEAD && !is_at_it(r, regs)) {
		r->state = REST_NONE;
		return;
	}
	if (at_call && r->state == REST_AHEAD)
		r->state = REST_INSIDE;
	else if (at_call)
		stopped_inside(r, goes_on, now_ns, regs);
	else if (!goes_on)
		end(r);
	*regs = r->partial.regs;
}
