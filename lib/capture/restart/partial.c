#include "lib/capture/restart/partial.h"

#include <fcntl.h>
#include <linux/io_uring.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "lib/capture/proc/memory.h"
#include "lib/capture/restart/pieces.h"
#include "lib/capture/restart/syscalls.h"

/* Flags of io_uring_enter(2), Linux 5.18 and 6.13. */
#define ENTER_REGISTERED_RING (1u << 4)
#define ENTER_EXT_ARG_REG     (1u << 6)

static uint64_t argument(const struct partial *p, unsigned int n)
{
	return arch_argument(&p->regs, n);
}

static bool read_all(const struct partial *p, uint64_t addr, void *to, size_t size)
{
	return memory_read(p->pagemap_fd, NULL, (int32_t)p->tid, addr, to, size, 0) ==
	       (ssize_t)size;
}

static uint64_t sum_of_pieces(const struct partial *p)
{
	struct pieces pieces;

	return pieces_find(p->tid, p->pagemap_fd, &p->regs, &pieces)
		       ? pieces_sum(p->tid, p->pagemap_fd, &pieces)
		       : 0;
}

static bool next_piece(const struct partial *p, struct iovec *ret)
{
	struct pieces pieces;

	return pieces_find(p->tid, p->pagemap_fd, &p->regs, &pieces) &&
	       pieces_at(p->tid, p->pagemap_fd, &pieces, p->done, ret);
}

static bool has_time_left(const struct partial *p)
{
	const unsigned int n = syscall_rule(p->nr)->left;
	struct timespec left;

	return n == 0 || argument(p, n) == 0 ||
	       (read_all(p, argument(p, n), &left, sizeof(left)) &&
		(left.tv_sec != 0 || left.tv_nsec != 0));
}

/* Returns true if the wait may end with fewer completions than asked for (min_wait_usec). */
static bool may_have_fewer(const struct partial *p)
{
	uint32_t min_wait_us; /* before the timeout; padding in older kernels */
	const size_t at = offsetof(struct io_uring_getevents_arg, ts) - sizeof(min_wait_us);

	return (argument(p, 3) & IORING_ENTER_EXT_ARG) != 0 &&
	       (!read_all(p, argument(p, 4) + at, &min_wait_us, sizeof(min_wait_us)) ||
		min_wait_us != 0);
}

/*
 * Returns true if a wait for several completions returned early because of capture. False if that
 * is not known, because registered rings and timeouts, which have a number, cannot be read.
 */
static bool waits_for_more(const struct partial *p)
{
	const uint64_t wanted = argument(p, 2) & UINT32_MAX;

	return wanted == 1 || ((argument(p, 3) & ENTER_REGISTERED_RING) == 0 &&
			       descriptor_uring_lacks(p->tid, argument(p, 0), wanted));
}

/*
 * Returns the result of a complete io_uring_enter(2), or 0 if the call is not resumed. The result
 * is the number of submissions, and does not tell how the wait ended: a wait for several
 * completions that returns 0 has got some of them (io_uring/io_uring.c). So the wait counts as one
 * more than the submissions.
 */
static uint64_t with_wait(const struct partial *p)
{
	const uint64_t submitted = argument(p, 1) & UINT32_MAX;
	const uint64_t wanted = argument(p, 2) & UINT32_MAX;
	const uint64_t flags = argument(p, 3);

	if (p->done != submitted || wanted == 0 || (flags & IORING_ENTER_GETEVENTS) == 0 ||
	    (flags & ENTER_EXT_ARG_REG) != 0)
		return 0;
	if (submitted == 0 && (wanted == 1 || may_have_fewer(p)))
		return 0;
	return waits_for_more(p) ? p->done + 1 : 0;
}

static bool has_its_flags(const struct partial *p)
{
	const struct syscall_rule *rule = syscall_rule(p->nr);
	const unsigned int flags = rule->flags != 0 ? (unsigned int)argument(p, rule->flags) : 0;
	const unsigned int wanted = (unsigned int)rule->wanted;

	return (flags & wanted) == wanted && (flags & ~(unsigned int)rule->allowed) == 0 &&
	       (rule->null == 0 || argument(p, rule->null) == 0);
}

/* Returns the total that the call asked for; 0 if that is not known. */
static uint64_t asked_in_all(const struct partial *p)
{
	const struct syscall_rule *rule = syscall_rule(p->nr);

	switch (rule->asked) {
	case ASKED_NOTHING:
		break;
	case ASKED_LONG:
		return min_u64(argument(p, rule->size), PIECES_MAX_BYTES);
	case ASKED_INT:
		return argument(p, rule->size) & UINT32_MAX;
	case ASKED_IOVECS:
	case ASKED_MESSAGE:
		return sum_of_pieces(p);
	case ASKED_URING:
		return with_wait(p);
	}
	return 0;
}

/* Returns true if a call on this file returns a short result only because of capture. */
static bool only_capture_cuts_it_short(struct partial *p)
{
	const unsigned int files = syscall_rule(p->nr)->files;

	if (files == 0)
		return true;
	p->file = descriptor_kind(p->tid, argument(p, 0));
	return (files & 1u << p->file) != 0;
}

bool partial_find(struct partial *p)
{
	long result;

	p->file = DESCRIPTOR_OTHER;
	if (!arch_interrupted_call(&p->regs, &p->nr, &result) || result < 0 ||
	    (result == 0 && p->nr != SYS_io_uring_enter) || !has_its_flags(p))
		return false;
	p->done = (uint64_t)result;
	p->whole = asked_in_all(p);
	return p->done < p->whole && has_time_left(p) && only_capture_cuts_it_short(p);
}

static long next_number(const struct partial *p)
{
	switch (syscall_rule(p->nr)->next) {
	case NEXT_SAME:
		break;
	case NEXT_READ:
		return SYS_read;
	case NEXT_WRITE:
		return p->file == DESCRIPTOR_STREAM ? SYS_sendto : SYS_write;
	case NEXT_RECVFROM:
		return SYS_recvfrom;
	case NEXT_SENDTO:
		return SYS_sendto;
	}
	return p->nr;
}

/*
 * Returns the flags of the call for the rest. If the connection has been closed meanwhile, there
 * must be no SIGPIPE, because the kernel sends none for a call that has sent something. Data that
 * are sent without a copy are acknowledged by the number of the call, once for each call
 * (Documentation/networking/msg_zerocopy.rst), so the rest is copied.
 */
static uint64_t next_flags(const struct partial *p)
{
	const struct syscall_rule *rule = syscall_rule(p->nr);
	const uint64_t flags = rule->flags != 0 ? argument(p, rule->flags) : 0;

	return next_number(p) == SYS_sendto ? (flags & ~(uint64_t)MSG_ZEROCOPY) | MSG_NOSIGNAL
					    : flags;
}

bool partial_is_alike(const struct partial *p)
{
	const struct syscall_rule *rule = syscall_rule(p->nr);

	return (rule->alike & 1u << p->file) != 0 &&
	       (rule->flags == 0 || next_flags(p) == argument(p, rule->flags));
}

bool partial_may_have_timed_out(const struct partial *p)
{
	return p->file == DESCRIPTOR_STREAM || p->file == DESCRIPTOR_DATAGRAM ||
	       p->nr == SYS_recvmmsg;
}

/* Sets *ret to the same call for the rest. */
static bool same_call(const struct partial *p, struct partial_call *ret)
{
	const struct syscall_rule *rule = syscall_rule(p->nr);

	for (unsigned int i = 0; i < ARCH_ARGUMENTS; i++)
		ret->arguments[i] = argument(p, i);
	ret->arguments[rule->address] += rule->step * p->done;
	ret->arguments[rule->size] = ret->asked;
	switch (p->nr) {
	case SYS_splice:
		/* An empty pipe means that the call was not cut short. */
		ret->arguments[5] |= SPLICE_F_NONBLOCK;
		return true;
	case SYS_io_getevents:
	case SYS_io_pgetevents:
		ret->arguments[2] -= p->done;
		return true;
	case SYS_io_uring_enter:
		ret->arguments[1] = 0;
		ret->counts = false;
		return waits_for_more(p);
	default:
		return has_time_left(p);
	}
}

/* Sets *ret to a call for the next piece of memory. Returns false if the piece is not known. */
static bool piece_call(const struct partial *p, struct partial_call *ret)
{
	const struct syscall_rule *rule = syscall_rule(p->nr);
	uint64_t addr = argument(p, 1) + p->done;
	struct iovec piece;

	if (rule->asked != ASKED_LONG) {
		if (!next_piece(p, &piece))
			return false;
		addr = (uintptr_t)piece.iov_base;
		ret->asked = min_u64(piece.iov_len, ret->asked);
	}
	ret->arguments[0] = argument(p, 0);
	ret->arguments[1] = addr;
	ret->arguments[2] = ret->asked;
	ret->arguments[3] = next_flags(p);
	return true;
}

bool partial_next(const struct partial *p, struct partial_call *ret)
{
	if (p->done >= p->whole)
		return false;
	*ret = (struct partial_call){
		.nr = next_number(p), .counts = true, .asked = p->whole - p->done};
	return syscall_rule(p->nr)->next == NEXT_SAME ? same_call(p, ret) : piece_call(p, ret);
}

void partial_files(uint32_t tid, const struct user_regs_struct *regs, long nr,
		   struct partial_files *ret)
{
	const unsigned int which = syscall_rule(nr)->descriptors;

	ret->n = 0;
	for (unsigned int i = 0; i < ARCH_ARGUMENTS && ret->n < PARTIAL_FILES_MAX; i++)
		if ((which & 1u << i) != 0)
			ret->file[ret->n++] = descriptor_file(tid, arch_argument(regs, i));
}

static bool is_equal(const struct descriptor_file *a, const struct descriptor_file *b)
{
	return a->major == b->major && a->minor == b->minor && a->inode == b->inode;
}

bool partial_has_files(const struct partial_files *files, uint32_t tid,
		       const struct user_regs_struct *regs, long nr)
{
	struct partial_files now;

	partial_files(tid, regs, nr, &now);
	for (unsigned int i = 0; i < now.n; i++)
		if (!is_equal(&now.file[i], &files->file[i]))
			return false;
	return true;
}
