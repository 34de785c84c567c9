#include "lib/capture/partial.h"

#include <fcntl.h>
#include <linux/io_uring.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "lib/capture/memory.h"
#include "lib/capture/pieces.h"
#include "lib/capture/uring.h"

/* Of a struct io_event, include/uapi/linux/aio_abi.h. */
#define IO_EVENT_BYTES 32

/* Of io_uring_enter(2), Linux 5.18 and 6.13. */
#define ENTER_REGISTERED_RING (1u << 4)
#define ENTER_EXT_ARG_REG     (1u << 6)

/* Flags of send(2) and recv(2) that do not change what a part means. */
#define SEND_FLAGS (MSG_NOSIGNAL | MSG_MORE | MSG_DONTROUTE | MSG_ZEROCOPY)
#define RECV_FLAGS (MSG_WAITALL | MSG_NOSIGNAL | MSG_CMSG_CLOEXEC)

static uint64_t argument(const struct partial *p, unsigned int n)
{
	return arch_argument(&p->regs, n);
}

static bool read_all(const struct partial *p, uint64_t addr, void *to,
		     size_t size)
{
	return memory_read(p->pagemap_fd, NULL, (int32_t)p->tid, addr, to, size,
			   0) == (ssize_t)size;
}

static bool is_file(struct partial *p, enum descriptor_kind kind)
{
	p->file = descriptor_kind(p->tid, argument(p, 0));
	return p->file == kind;
}

static uint64_t walk(const struct partial *p, uint64_t at, struct iovec *ret)
{
	struct pieces pieces;

	if (!pieces_find(p->tid, p->pagemap_fd, &p->regs, &pieces))
		return 0;
	return pieces_walk(p->tid, p->pagemap_fd, &pieces, at, ret);
}

static bool flags_are(uint64_t flags, int wanted, int allowed)
{
	return (flags & (uint64_t)wanted) == (uint64_t)wanted &&
	       (flags & ~(uint64_t)allowed & UINT32_MAX) == 0;
}

/*
 * With a timeout recvmmsg(2) comes back with what it has when that is over,
 * and says so by what it leaves of it: nothing (net/socket.c).
 */
static bool has_time_left(const struct partial *p)
{
	struct timespec left;

	return argument(p, 4) == 0 ||
	       (read_all(p, argument(p, 4), &left, sizeof(left)) &&
		(left.tv_sec != 0 || left.tv_nsec != 0));
}

/* With min_wait_usec fewer are enough. */
static bool may_have_fewer(const struct partial *p)
{
	uint32_t min_wait_us; /* before the timeout; it was padding once */
	const size_t at = offsetof(struct io_uring_getevents_arg, ts) -
			  sizeof(min_wait_us);

	return (argument(p, 3) & IORING_ENTER_EXT_ARG) != 0 &&
	       (!read_all(p, argument(p, 4) + at, &min_wait_us,
			  sizeof(min_wait_us)) ||
		min_wait_us != 0);
}

/*
 * Has a wait for several come back because of us? One that is registered as a
 * number, or has a timeout that is, is left alone: they cannot be read.
 */
static bool waits_for_more(const struct partial *p)
{
	const uint64_t wanted = argument(p, 2) & UINT32_MAX;

	return wanted == 1 || ((argument(p, 3) & ENTER_REGISTERED_RING) == 0 &&
			       uring_lacks(p->tid, argument(p, 0), wanted));
}

/*
 * How many have been submitted is all that the result says of a wait that was
 * not in vain: one for more than one that comes back with 0 has got some
 * (io_uring/io_uring.c). So "one more" is the wait.
 */
static uint64_t with_wait(const struct partial *p)
{
	const uint64_t submitted = argument(p, 1) & UINT32_MAX;
	const uint64_t wanted = argument(p, 2) & UINT32_MAX;
	const uint64_t flags = argument(p, 3);

	if (p->done != submitted || wanted == 0 ||
	    (flags & IORING_ENTER_GETEVENTS) == 0 ||
	    (flags & ENTER_EXT_ARG_REG) != 0)
		return 0;
	if (submitted == 0 && (wanted == 1 || may_have_fewer(p)))
		return 0;
	return waits_for_more(p) ? p->done + 1 : 0;
}

/*
 * What was asked for; 0 if this call is left as it came. Most calls never come
 * further than the switch.
 */
static uint64_t whole(const struct partial *p)
{
	switch (p->nr) {
	case SYS_write: /* fs/pipe.c, drivers/tty/tty_io.c, and see send */
	case SYS_read:	/* drivers/char/mem.c, random.c */
	case SYS_pwrite64:
	case SYS_pread64:
	case SYS_copy_file_range:
		return min_u64(
			argument(p, p->nr == SYS_copy_file_range ? 4 : 2),
			PIECES_MAX_BYTES);
	case SYS_writev:
	case SYS_pwritev:
	case SYS_pwritev2:
	case SYS_readv:
	case SYS_preadv:
	case SYS_preadv2:
		return walk(p, 0, NULL);
	case SYS_getrandom:
		return min_u64(argument(p, 1), PIECES_MAX_BYTES);
	case SYS_sendfile:
		return min_u64(argument(p, 3), PIECES_MAX_BYTES);
	case SYS_splice:
		return min_u64(argument(p, 4), PIECES_MAX_BYTES);
	case SYS_sendto:
		return argument(p, 4) == 0 &&
				       flags_are(argument(p, 3), 0, SEND_FLAGS)
			       ? min_u64(argument(p, 2), PIECES_MAX_BYTES)
			       : 0;
	case SYS_recvfrom:
		return flags_are(argument(p, 3), MSG_WAITALL, RECV_FLAGS)
			       ? min_u64(argument(p, 2), PIECES_MAX_BYTES)
			       : 0;
	case SYS_sendmsg:
		return flags_are(argument(p, 2), 0, SEND_FLAGS)
			       ? walk(p, 0, NULL)
			       : 0;
	case SYS_recvmsg:
		return flags_are(argument(p, 2), MSG_WAITALL, RECV_FLAGS)
			       ? walk(p, 0, NULL)
			       : 0;
	case SYS_recvmmsg:
		return flags_are(argument(p, 3), 0, RECV_FLAGS & ~MSG_WAITALL)
			       ? argument(p, 2) & UINT32_MAX
			       : 0;
	case SYS_sendmmsg:
		return flags_are(argument(p, 3), 0, SEND_FLAGS)
			       ? argument(p, 2) & UINT32_MAX
			       : 0;
	case SYS_io_getevents:
	case SYS_io_pgetevents:
		return argument(p, 1);
	case SYS_io_uring_enter:
		return with_wait(p);
	default:
		return 0;
	}
}

/* Is this a file of which only we can have cut the call short? */
static bool is_of_such(struct partial *p)
{
	switch (p->nr) {
	case SYS_write:
	case SYS_writev:
	case SYS_pwritev2:
		return is_file(p, DESCRIPTOR_PIPE) ||
		       p->file == DESCRIPTOR_STREAM ||
		       p->file == DESCRIPTOR_TTY ||
		       p->file == DESCRIPTOR_SOURCE;
	case SYS_pwrite64:
	case SYS_pwritev:
	case SYS_read:
	case SYS_readv:
	case SYS_pread64:
	case SYS_preadv:
	case SYS_preadv2:
		return is_file(p, DESCRIPTOR_SOURCE);
	case SYS_sendto:
	case SYS_sendmsg:
	case SYS_recvfrom:
	case SYS_recvmsg:
		return is_file(p, DESCRIPTOR_STREAM);
	case SYS_sendmmsg:
		/* Of a stream the last message may be a part itself. */
		return is_file(p, DESCRIPTOR_DATAGRAM);
	case SYS_recvmmsg:
		return has_time_left(p);
	case SYS_sendfile:
		/* Into a pipe it gives what fits. */
		return is_file(p, DESCRIPTOR_STREAM) ||
		       p->file == DESCRIPTOR_REGULAR;
	case SYS_splice:
		return is_file(p, DESCRIPTOR_PIPE);
	default:
		return true;
	}
}

bool partial_find(struct partial *p)
{
	long result;

	p->file = DESCRIPTOR_OTHER;
	if (!arch_interrupted_call(&p->regs, &p->nr, &result) || result < 0 ||
	    (result == 0 && p->nr != SYS_io_uring_enter))
		return false;
	p->done = (uint64_t)result;
	p->whole = whole(p);
	return p->done < p->whole && is_of_such(p);
}

bool partial_is_alike(const struct partial *p)
{
	switch (p->nr) {
	case SYS_write:
		/*
		 * What goes to a socket is sent. Those who name a size to a
		 * filter write little, to terminals perhaps; into a pipe that
		 * is never done in parts (PIPE_BUF).
		 */
		return p->file == DESCRIPTOR_PIPE ||
		       p->file == DESCRIPTOR_SOURCE;
	case SYS_sendto:
		return flags_are(argument(p, 3), MSG_NOSIGNAL,
				 SEND_FLAGS & ~MSG_ZEROCOPY);
	case SYS_read:
	case SYS_pread64:
	case SYS_pwrite64:
	case SYS_recvfrom:
	case SYS_recvmmsg:
	case SYS_sendmmsg:
	case SYS_getrandom:
	case SYS_sendfile:
	case SYS_copy_file_range:
	case SYS_io_getevents:
	case SYS_io_pgetevents:
	case SYS_io_uring_enter:
		return true;
	default:
		return false;
	}
}

bool partial_is_on_socket(const struct partial *p)
{
	return p->file == DESCRIPTOR_STREAM || p->file == DESCRIPTOR_DATAGRAM ||
	       p->nr == SYS_recvmmsg;
}

/* Those that go on like the first, but for an address and a size. */
static const struct {
	long nr;
	unsigned int address; /* which argument, and its step */
	size_t step;
	unsigned int size;
} moves[] = {
	{SYS_read, 1, 1, 2},
	{SYS_pread64, 1, 1, 2},
	{SYS_pwrite64, 1, 1, 2},
	{SYS_getrandom, 0, 1, 1},
	/* The kernel has moved the offsets that there are, or files'. */
	{SYS_sendfile, 0, 0, 3},
	{SYS_copy_file_range, 0, 0, 4},
	{SYS_splice, 0, 0, 4},
	{SYS_recvmmsg, 1, sizeof(struct mmsghdr), 2},
	{SYS_sendmmsg, 1, sizeof(struct mmsghdr), 2},
	{SYS_io_getevents, 3, IO_EVENT_BYTES, 1},
	{SYS_io_pgetevents, 3, IO_EVENT_BYTES, 1},
	{SYS_io_uring_enter, 0, 0, 1},
};

static bool advance(const struct partial *p, struct partial_call *ret)
{
	size_t m = 0;

	while (m < array_size(moves) && moves[m].nr != p->nr)
		m++;
	if (m == array_size(moves))
		return false;
	ret->nr = p->nr;
	for (unsigned int i = 0; i < ARCH_ARGUMENTS; i++)
		ret->arguments[i] = argument(p, i);
	ret->arguments[moves[m].address] += moves[m].step * p->done;
	ret->asked = p->whole - p->done;
	ret->arguments[moves[m].size] = ret->asked;
	switch (p->nr) {
	case SYS_splice:
		/* Where the pipe is empty, nobody cut it short. */
		ret->arguments[5] |= SPLICE_F_NONBLOCK;
		return true;
	case SYS_recvmmsg:
		return has_time_left(p);
	case SYS_io_getevents:
	case SYS_io_pgetevents:
		ret->arguments[2] -= p->done;
		return true;
	case SYS_io_uring_enter:
		ret->arguments[1] = 0;
		ret->counts = false;
		return waits_for_more(p);
	default:
		return true;
	}
}

/* False: it is none of those that go on piece by piece, or cannot be read. */
static bool next_piece(const struct partial *p, struct iovec *ret)
{
	switch (p->nr) {
	case SYS_write:
	case SYS_sendto:
	case SYS_recvfrom:
		ret->iov_base = (void *)(uintptr_t)(argument(p, 1) + p->done);
		ret->iov_len = p->whole - p->done;
		return true;
	default:
		if (walk(p, p->done, ret) == 0)
			return false;
		ret->iov_len = min_size(ret->iov_len, p->whole - p->done);
		return true;
	}
}

/*
 * A connection that has been closed meanwhile gives no SIGPIPE for the rest:
 * the kernel gives none for a call that has sent something. What is sent
 * without a copy is acknowledged by the number of the call, once for each
 * (Documentation/networking/msg_zerocopy.rst): the rest is copied.
 */
static void move_piece(const struct partial *p, const struct iovec *iov,
		       struct partial_call *ret)
{
	uint64_t flags = 0;

	if (p->nr == SYS_sendto || p->nr == SYS_recvfrom)
		flags = argument(p, 3);
	else if (p->nr == SYS_sendmsg || p->nr == SYS_recvmsg)
		flags = argument(p, 2);
	ret->asked = iov->iov_len;
	ret->arguments[0] = argument(p, 0);
	ret->arguments[1] = (uintptr_t)iov->iov_base;
	ret->arguments[2] = iov->iov_len;
	switch (p->nr) {
	case SYS_readv:
	case SYS_preadv:
	case SYS_preadv2:
		ret->nr = SYS_read;
		break;
	case SYS_recvfrom:
	case SYS_recvmsg:
		ret->nr = SYS_recvfrom;
		ret->arguments[3] = flags;
		break;
	default:
		ret->nr = SYS_write;
		if (p->file != DESCRIPTOR_STREAM)
			break;
		ret->nr = SYS_sendto;
		ret->arguments[3] =
			(flags & ~(uint64_t)MSG_ZEROCOPY) | MSG_NOSIGNAL;
	}
}

bool partial_next(const struct partial *p, struct partial_call *ret)
{
	struct iovec iov;

	if (p->done >= p->whole)
		return false;
	*ret = (struct partial_call){.counts = true};
	if (advance(p, ret))
		return true;
	if (!next_piece(p, &iov))
		return false;
	move_piece(p, &iov, ret);
	return true;
}
