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

/* Of a struct io_event, include/uapi/linux/aio_abi.h. */
#define IO_EVENT_BYTES 32

/* Flags of send(2) and recv(2) that do not change what a part means. */
#define SEND_FLAGS (MSG_NOSIGNAL | MSG_MORE)
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

static enum descriptor_kind file_kind(const struct partial *p, unsigned int n)
{
	return descriptor_kind(p->tid, argument(p, n));
}

static bool read_msghdr(const struct partial *p, struct msghdr *ret)
{
	return read_all(p, argument(p, 1), ret, sizeof(*ret));
}

/*
 * Of sendmsg(2) and recvmsg(2) those without an address and control messages:
 * sent ones went with the first part, received ones would be lost.
 */
static bool find_pieces(const struct partial *p, struct pieces *ret)
{
	struct msghdr m;

	switch (p->nr) {
	case SYS_writev:
		*ret = (struct pieces){argument(p, 1), argument(p, 2)};
		break;
	case SYS_sendmsg:
	case SYS_recvmsg:
		if (!read_msghdr(p, &m) ||
		    (p->nr == SYS_sendmsg ? m.msg_name != NULL
					  : m.msg_control != NULL))
			return false;
		*ret = (struct pieces){(uintptr_t)m.msg_iov, m.msg_iovlen};
		break;
	default:
		return false;
	}
	return true;
}

static uint64_t walk(const struct partial *p, uint64_t at, struct iovec *ret)
{
	struct pieces pieces;

	if (!find_pieces(p, &pieces))
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

/*
 * What was asked for; 0 if this call is left as it came. Most calls never come
 * further than the switch.
 */
static uint64_t whole(const struct partial *p)
{
	switch (p->nr) {
	case SYS_write: /* fs/pipe.c, drivers/tty/tty_io.c, and see send */
	case SYS_read:	/* drivers/char/mem.c, random.c */
	case SYS_copy_file_range:
		return min_u64(
			argument(p, p->nr == SYS_copy_file_range ? 4 : 2),
			PIECES_MAX_BYTES);
	case SYS_writev:
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
		/* A timeout would have ended it too. */
		return argument(p, 4) == 0 ? argument(p, 1) : 0;
	case SYS_io_uring_enter:
		/*
		 * All is submitted; whether it has waited, the result does not
		 * say (io_uring/io_uring.c): "one more" is the wait.
		 */
		return p->done == (argument(p, 1) & UINT32_MAX) &&
				       (argument(p, 2) & UINT32_MAX) != 0 &&
				       (argument(p, 3) &
					IORING_ENTER_GETEVENTS) != 0
			       ? p->done + 1
			       : 0;
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
		p->file = file_kind(p, 0);
		return p->file == DESCRIPTOR_PIPE ||
		       p->file == DESCRIPTOR_STREAM ||
		       p->file == DESCRIPTOR_TTY;
	case SYS_read:
		p->file = file_kind(p, 0);
		return p->file == DESCRIPTOR_SOURCE;
	case SYS_sendto:
	case SYS_sendmsg:
	case SYS_recvfrom:
	case SYS_recvmsg:
		p->file = file_kind(p, 0);
		return p->file == DESCRIPTOR_STREAM;
	case SYS_sendmmsg:
		/* Of a stream the last message may be a part itself. */
		p->file = file_kind(p, 0);
		return p->file == DESCRIPTOR_DATAGRAM;
	case SYS_recvmmsg:
		return has_time_left(p);
	case SYS_sendfile:
		/* Into a pipe it gives what fits. */
		p->file = file_kind(p, 0);
		return p->file == DESCRIPTOR_REGULAR ||
		       p->file == DESCRIPTOR_STREAM;
	case SYS_splice:
		p->file = file_kind(p, 0);
		return p->file == DESCRIPTOR_PIPE;
	default:
		return true;
	}
}

bool partial_find(struct partial *p)
{
	long result;

	p->file = DESCRIPTOR_OTHER;
	if (!arch_interrupted_call(&p->regs, &p->nr, &result) || result <= 0)
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
		return p->file == DESCRIPTOR_PIPE;
	case SYS_sendto:
		return (argument(p, 3) & MSG_NOSIGNAL) != 0;
	case SYS_read:
	case SYS_recvfrom:
	case SYS_recvmmsg:
	case SYS_sendmmsg:
	case SYS_getrandom:
	case SYS_sendfile:
	case SYS_copy_file_range:
	case SYS_io_getevents:
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

/*
 * A connection that has been closed meanwhile gives no SIGPIPE for the rest:
 * the kernel gives none for a call that has sent something.
 */
static void send_rest(const struct partial *p, const struct iovec *iov,
		      uint64_t flags, struct partial_call *ret)
{
	ret->nr = SYS_write;
	ret->asked = iov->iov_len;
	ret->arguments[0] = argument(p, 0);
	ret->arguments[1] = (uintptr_t)iov->iov_base;
	ret->arguments[2] = iov->iov_len;
	if (p->file == DESCRIPTOR_STREAM) {
		ret->nr = SYS_sendto;
		ret->arguments[3] = flags | MSG_NOSIGNAL;
	}
}

static void receive_rest(const struct partial *p, const struct iovec *iov,
			 uint64_t flags, struct partial_call *ret)
{
	ret->nr = SYS_recvfrom;
	ret->asked = iov->iov_len;
	ret->arguments[0] = argument(p, 0);
	ret->arguments[1] = (uintptr_t)iov->iov_base;
	ret->arguments[2] = iov->iov_len;
	ret->arguments[3] = flags;
}

/* Arguments like those of the first, but for two. */
static void advance(const struct partial *p, unsigned int address, size_t step,
		    unsigned int count, struct partial_call *ret)
{
	ret->nr = p->nr;
	for (unsigned int i = 0; i < ARCH_ARGUMENTS; i++)
		ret->arguments[i] = argument(p, i);
	ret->arguments[address] += step * p->done;
	ret->asked = p->whole - p->done;
	ret->arguments[count] = ret->asked;
}

/* The kernel has moved the offsets that there are, in file or memory. */
static void move_rest(const struct partial *p, unsigned int count,
		      struct partial_call *ret)
{
	advance(p, 0, 0, count, ret);
}

bool partial_next(const struct partial *p, struct partial_call *ret)
{
	struct iovec iov;

	if (p->done >= p->whole)
		return false;
	*ret = (struct partial_call){.counts = true};
	switch (p->nr) {
	case SYS_write:
	case SYS_sendto:
	case SYS_recvfrom:
		iov.iov_base = (void *)(uintptr_t)(argument(p, 1) + p->done);
		iov.iov_len = p->whole - p->done;
		break;
	case SYS_writev:
	case SYS_sendmsg:
	case SYS_recvmsg:
		if (walk(p, p->done, &iov) == 0)
			return false;
		iov.iov_len = min_size(iov.iov_len, p->whole - p->done);
		break;
	default:
		break;
	}
	switch (p->nr) {
	case SYS_write:
	case SYS_writev:
		send_rest(p, &iov, 0, ret);
		return true;
	case SYS_sendto:
		send_rest(p, &iov, argument(p, 3), ret);
		return true;
	case SYS_sendmsg:
		send_rest(p, &iov, argument(p, 2), ret);
		return true;
	case SYS_recvfrom:
		receive_rest(p, &iov, argument(p, 3), ret);
		return true;
	case SYS_recvmsg:
		receive_rest(p, &iov, argument(p, 2), ret);
		return true;
	case SYS_read:
		advance(p, 1, 1, 2, ret);
		return true;
	case SYS_getrandom:
		advance(p, 0, 1, 1, ret);
		return true;
	case SYS_sendfile:
		move_rest(p, 3, ret);
		return true;
	case SYS_copy_file_range:
		move_rest(p, 4, ret);
		return true;
	case SYS_splice:
		/* Where the pipe is empty, nobody cut it short. */
		move_rest(p, 4, ret);
		ret->arguments[5] |= SPLICE_F_NONBLOCK;
		return true;
	case SYS_recvmmsg:
		if (!has_time_left(p))
			return false;
		advance(p, 1, sizeof(struct mmsghdr), 2, ret);
		return true;
	case SYS_sendmmsg:
		advance(p, 1, sizeof(struct mmsghdr), 2, ret);
		return true;
	case SYS_io_getevents:
		advance(p, 3, IO_EVENT_BYTES, 1, ret);
		ret->arguments[2] -= p->done;
		return true;
	case SYS_io_uring_enter:
		advance(p, 0, 0, 1, ret);
		ret->arguments[1] = 0;
		ret->counts = false;
		return true;
	default:
		return false;
	}
}
