#include "lib/capture/restart/resume.h"

#include <errno.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "lib/base/clock.h"
#include "lib/capture/proc/descriptor.h"
#include "lib/capture/proc/memory.h"
#include "lib/capture/proc/status.h"
#include "lib/capture/restart/repair.h"
#include "lib/capture/restart/syscalls.h"

/*
 * How often in a row an interrupted part is entered again without progress. A pending signal shows
 * itself before the part begins. Interrupts are a tick apart, and no known call continues like this
 * without an interrupt.
 */
#define FRUITLESS_MAX 1000

/* Sets *ret to the same call with the same arguments. */
static void unchanged_call(const struct partial *p, struct partial_call *ret)
{
	ret->nr = p->nr;
	for (unsigned int i = 0; i < ARCH_ARGUMENTS; i++)
		ret->arguments[i] = arch_argument(&p->regs, i);
	ret->asked = 0;
}

static bool next_call(const struct resumed_call *r, struct partial_call *ret)
{
	if (!r->same_call)
		return partial_next(&r->partial, ret);
	unchanged_call(&r->partial, ret);
	return true;
}

/*
 * Reads the instruction before pc that made the call, once for all parts: its page may leave memory
 * while the thread is in the call.
 */
static bool read_instruction(struct resumed_call *r, uint64_t pc)
{
	const size_t size = sizeof(r->instruction);

	return r->call_pc != 0 || memory_read(r->partial.pagemap_fd, NULL, (int32_t)r->partial.tid,
					      pc - size, r->instruction, size, 0) == (ssize_t)size;
}

/*
 * Sends the thread into the next part. Returns false if there is none, or if the registers cannot
 * be set.
 */
static bool run_next(struct resumed_call *r)
{
	const struct partial *p = &r->partial;
	struct arch_regs regs;
	struct partial_call call;
	uint64_t sp_pc[ARCH_REGS];

	arch_to_dwarf(&p->regs, sp_pc);
	if (!next_call(r, &call) || !read_instruction(r, sp_pc[ARCH_PC]) ||
	    !arch_call_again(&p->regs, r->instruction, call.nr, call.arguments, &regs) ||
	    arch_set_regs(p->tid, &regs) < 0)
		return false;
	arch_to_dwarf(&regs, sp_pc);
	r->call_pc = sp_pc[ARCH_PC];
	r->state = RESUME_ENTERING;
	r->interrupted = false;
	r->asked = call.asked;
	return true;
}

static void begin(struct resumed_call *r, const struct resume_stop *stop, bool same_call)
{
	r->same_call = same_call;
	r->undisturbed = false;
	r->fruitless = 0;
	r->call_pc = 0;
	r->since_ns = stop->since_ns;
	r->until_ns = RESUME_NO_LIMIT;
	r->late = stop->since_ns < stop->now_ns;
	r->partial.tid = stop->tid;
	r->partial.pagemap_fd = stop->pagemap_fd;
	r->partial.regs = *stop->regs;
}

/*
 * Sets the timeout of a wait, and the call's result at its end. Returns false if the call has no
 * timeout.
 */
static bool set_timeout(struct resumed_call *r, const struct resume_stop *stop)
{
	const struct timeout_call c = {stop->pid, stop->tid, stop->pagemap_fd, stop->regs};

	if (!timeout_find(&c, &r->timeout))
		return false;
	r->until_ns = (r->timeout.is_rest ? stop->now_ns : r->since_ns) + r->timeout.ns;
	return true;
}

/*
 * Does the same for a partial transfer. Returns false if the timeout is over, or if it is not known
 * whether there is one: such a call is not resumed, because it might go on for ever.
 */
static bool set_timeout_of_partial(struct resumed_call *r, const struct resume_stop *stop)
{
	const struct timeout_call c = {stop->pid, stop->tid, stop->pagemap_fd, stop->regs};
	int has;

	if (!partial_may_have_timed_out(&r->partial))
		return !set_timeout(r, stop) || stop->now_ns < r->until_ns;
	has = timeout_of_socket(&c, &r->timeout);
	if (has <= 0)
		return has == 0;
	r->until_ns = (r->timeout.by_piece ? stop->now_ns : r->since_ns) + r->timeout.ns;
	return stop->now_ns < r->until_ns;
}

/* Returns true if no signal handler runs at this stop. A handler would have to see EINTR. */
static bool is_unnoticed(const struct resume_stop *stop)
{
	return stop->signal == 0 || status_goes_unnoticed(stop->tid, stop->signal);
}

/*
 * Returns true for the signals that the kernel sends to a thread whose call cannot go on
 * (fs/pipe.c, net/core/stream.c, fs/read_write.c). A part with such a signal is final: the rest
 * would fail and cause the next signal, without end.
 */
static bool means_the_call_failed(int signal)
{
	return signal == SIGPIPE || signal == SIGXFSZ;
}

/*
 * Returns true if the call has reached urgent data. Such data end a call that has received
 * something, however much was asked for, and the next call reads past the mark
 * (tcp_recvmsg_locked(), net/ipv4/tcp.c).
 */
static bool is_at_mark(const struct resumed_call *r, int32_t pid)
{
	const struct partial *p = &r->partial;
	struct descriptor_socket s;

	return syscall_rule(p->nr)->wanted == MSG_WAITALL &&
	       descriptor_socket(pid, p->tid, arch_argument(&p->regs, 0), &s) == 0 && s.at_mark;
}

/*
 * Under a seccomp filter no other system call is made: the filter may refuse the call, and kill the
 * thread. Syscall user dispatch is harmless, because it has let the same instruction through a
 * moment ago.
 */
bool resume_partial(struct resumed_call *r, const struct resume_stop *stop)
{
	struct partial *p = &r->partial;

	begin(r, stop, false);
	if (means_the_call_failed(stop->signal) || !partial_find(p) ||
	    (!partial_changes_only_buffer(p) && status_is_filtered(stop->tid)) ||
	    !is_unnoticed(stop))
		return false;
	partial_files(stop->tid, stop->regs, p->nr, &r->files);
	return !is_at_mark(r, stop->pid) && set_timeout_of_partial(r, stop) && run_next(r);
}

/*
 * Ends the resumed call: the thread goes on after its instruction. ESRCH: the thread was killed
 * while it was stopped.
 */
static void end_call(struct resumed_call *r)
{
	r->state = RESUME_NONE;
	(void)!arch_set_regs(r->partial.tid, &r->partial.regs);
}

static void end_with_result(struct resumed_call *r, long result)
{
	arch_regs_set_result(&r->partial.regs, (uint64_t)result);
	end_call(r);
}

bool resume_wait(struct resumed_call *r, const struct resume_stop *stop)
{
	const bool undisturbed = repair_needs_undisturbed(stop->regs);
	long nr, result;

	if (!arch_interrupted_call(stop->regs, &nr, &result) ||
	    (!undisturbed && !repair_is_due(stop->tid, stop->regs, stop->signal)))
		return false;
	begin(r, stop, true);
	r->partial.nr = nr;
	r->undisturbed = undisturbed;
	/* Where the kernel does not restart the call, the thread enters it again in any case. */
	return (undisturbed || set_timeout(r, stop) || !ARCH_RESULT_RESTARTS) &&
	       is_unnoticed(stop) && run_next(r);
}

/*
 * Returns true if capture may have cut the part short. A signal that interrupted the part, noticed
 * or not, shows itself on the way into the next part, and ends that one.
 */
static bool was_cut_short(const struct resumed_call *r, const struct resume_stop *stop)
{
	return r->interrupted || stop->interrupted || status_has_pending(stop->tid);
}

/* Adds the result of a part that has ended. Returns true if a further part may follow. */
static bool add_result(struct resumed_call *r, const struct resume_stop *stop, long result)
{
	struct partial *p = &r->partial;
	bool over = stop->now_ns >= r->until_ns;

	if (syscall_was_waiting(result))
		return !over && ++r->fruitless < FRUITLESS_MAX;
	if (result <= 0)
		return false;
	r->fruitless = 0;
	p->done += (uint64_t)result;
	arch_regs_set_result(&p->regs, p->done);
	if (r->timeout.by_piece && r->until_ns != RESUME_NO_LIMIT) {
		r->until_ns = stop->now_ns + r->timeout.ns;
		over = false;
	}
	if (over || p->done == p->whole)
		return false;
	return (uint64_t)result == r->asked || was_cut_short(r, stop);
}

static bool is_on_its_files(const struct resumed_call *r)
{
	const struct partial *p = &r->partial;

	return partial_has_files(&r->files, p->tid, &p->regs, p->nr);
}

static void part_ended(struct resumed_call *r, const struct resume_stop *stop, long result)
{
	const bool again = add_result(r, stop, result);

	r->late = true;
	if (!stop->goes_on || !again || !is_on_its_files(r) || is_at_mark(r, stop->pid) ||
	    !run_next(r))
		end_call(r);
}

/* A connect(2) that is entered again reports that the connection is already being made. */
bool resume_corrects_result(const struct resumed_call *r)
{
	return r->state != RESUME_NONE && r->same_call && r->partial.nr == SYS_connect;
}

/*
 * Handles the end of a wait. If the wait was interrupted by something other than capture, a stop to
 * come shows the cause. If capture's interrupt was the cause, no stop may come, and the thread must
 * not see the result.
 */
static void wait_ended(struct resumed_call *r, const struct resume_stop *stop, long result)
{
	if (resume_corrects_result(r) && result == -EALREADY)
		result = syscall_rule(r->partial.nr)->timeout.result;
	if (!syscall_was_waiting(result)) {
		end_with_result(r, result);
		return;
	}
	/* A seccomp filter, or the server of a file, returns this each time. */
	if (r->undisturbed && result == -EINTR && !was_cut_short(r, stop)) {
		end_with_result(r, result);
		return;
	}
	if (stop->now_ns >= r->until_ns) {
		end_with_result(r, r->timeout.result);
		return;
	}
	arch_regs_set_result(&r->partial.regs, (uint64_t)result);
	r->late = true;
	if (!run_next(r))
		end_call(r);
}

/*
 * Returns false if a thread that was sent back to its call runs something else: a handler that was
 * installed after capture had checked for one. The registers of the call are wrong for a thread in
 * a handler. A thread on its way is at the call's instruction, or after it, at the stop where the
 * call begins or where a filter or a dispatcher refuses it.
 */
static bool is_on_its_way(const struct resumed_call *r, const struct resume_stop *stop)
{
	uint64_t here[ARCH_REGS], there[ARCH_REGS];

	arch_to_dwarf(stop->regs, here);
	arch_to_dwarf(&r->partial.regs, there);
	return here[ARCH_SP] == there[ARCH_SP] &&
	       (here[ARCH_PC] == there[ARCH_PC] || (!stop->at_call && here[ARCH_PC] == r->call_pc));
}

/*
 * The thread enters the call. An interrupt that was sent after the thread had stopped here is still
 * under way.
 */
static void begin_inside(struct resumed_call *r, const struct resume_stop *stop)
{
	r->state = RESUME_INSIDE;
	r->interrupted = stop->interrupted;
}

static void stopped_inside(struct resumed_call *r, const struct resume_stop *stop)
{
	const long result = arch_result_at_end(stop->regs);

	if (r->same_call)
		wait_ended(r, stop, result);
	else
		part_ended(r, stop, result);
}

void resume_stopped(struct resumed_call *r, const struct resume_stop *stop, struct arch_regs *regs)
{
	if (r->state == RESUME_NONE)
		return;
	if (r->state == RESUME_ENTERING && !is_on_its_way(r, stop)) {
		r->state = RESUME_NONE;
		return;
	}
	if (stop->at_call && r->state == RESUME_ENTERING)
		begin_inside(r, stop);
	else if (stop->at_call)
		stopped_inside(r, stop);
	else if (!stop->goes_on)
		end_call(r);
	*regs = r->partial.regs;
}
