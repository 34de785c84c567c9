#include "lib/capture/restart/partial.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "lib/capture/restart/pieces.h"
#include "lib/capture/restart/syscalls.h"

static uint64_t argument(const struct partial *p, unsigned int n)
{
	return arch_argument(&p->regs, n);
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
	if (!arch_interrupted_call(&p->regs, &p->nr, &result) || !arch_knows_arguments(&p->regs) ||
	    result <= 0 || !has_its_flags(p))
		return false;
	p->done = (uint64_t)result;
	p->whole = asked_in_all(p);
	return p->done < p->whole && only_capture_cuts_it_short(p);
}

static long next_number(const struct partial *p)
{
	switch (syscall_rule(p->nr)->next) {
	case NEXT_SAME:
		break;
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

bool partial_changes_only_buffer(const struct partial *p)
{
	const struct syscall_rule *rule = syscall_rule(p->nr);

	return (rule->alike & 1u << p->file) != 0 &&
	       (rule->flags == 0 || next_flags(p) == argument(p, rule->flags));
}

bool partial_may_have_timed_out(const struct partial *p)
{
	return p->file == DESCRIPTOR_STREAM || p->file == DESCRIPTOR_DATAGRAM;
}

/* Sets *ret to the same call for the rest. */
static void same_call(const struct partial *p, struct partial_call *ret)
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
		break;
	case SYS_io_getevents:
	case SYS_io_pgetevents:
		ret->arguments[2] -= p->done;
		break;
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
	*ret = (struct partial_call){.nr = next_number(p), .asked = p->whole - p->done};
	if (syscall_rule(p->nr)->next != NEXT_SAME)
		return piece_call(p, ret);
	same_call(p, ret);
	return true;
}

void partial_files(uint32_t tid, const struct arch_regs *regs, long nr, struct partial_files *ret)
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
		       const struct arch_regs *regs, long nr)
{
	struct partial_files now;

	partial_files(tid, regs, nr, &now);
	for (unsigned int i = 0; i < now.n; i++)
		if (!is_equal(&now.file[i], &files->file[i]))
			return false;
	return true;
}
