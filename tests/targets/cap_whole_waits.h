/* Waits for several things at once, and work that is done at once or not. */
#ifndef TESTS_TARGETS_CAP_WHOLE_WAITS_H
#define TESTS_TARGETS_CAP_WHOLE_WAITS_H

#include <linux/bpf.h>
#include <linux/io_uring.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#include "call.h"
#include "cap_whole_received.h"

#define BPF_ROUNDS 4000

/* No wait ends by this. */
#define LONG_S 3600

static void make_ring(struct work *w)
{
	struct io_uring_params p = {0};
	struct ring *r = &w->ring;
	uint8_t *rings;

	r->fd = (int)syscall(SYS_io_uring_setup, RING_SPARE, &p);
	if (r->fd < 0)
		return;
	rings = mmap(NULL, p.cq_off.cqes + p.cq_entries * 16u + 4096,
		     PROT_READ | PROT_WRITE, MAP_SHARED, r->fd,
		     IORING_OFF_SQ_RING);
	need(rings != MAP_FAILED);
	r->sq_tail = (void *)(rings + p.sq_off.tail);
	r->sq_mask = (void *)(rings + p.sq_off.ring_mask);
	r->sq_array = (void *)(rings + p.sq_off.array);
	r->cq_head = (void *)(rings + p.cq_off.head);
	r->cq_tail = (void *)(rings + p.cq_off.tail);
	r->sqes = mmap(NULL, p.sq_entries * sizeof(*r->sqes),
		       PROT_READ | PROT_WRITE, MAP_SHARED, r->fd,
		       IORING_OFF_SQES);
	need(r->sqes != MAP_FAILED);
}

/* Puts n of these into the queue. */
static void queue(struct ring *r, const struct io_uring_sqe *sqe,
		  unsigned int n)
{
	const unsigned int tail = *r->sq_tail;

	for (unsigned int i = 0; i < n; i++) {
		const unsigned int at = (tail + i) & *r->sq_mask;

		r->sq_array[at] = at;
		r->sqes[at] = *sqe;
	}
	__atomic_store_n(r->sq_tail, tail + n, __ATOMIC_RELEASE);
}

/* For a call that the kernel refuses, as in many containers. */
static ssize_t refused(void)
{
	usleep(50);
	return 0;
}

static unsigned int completed(const struct ring *r)
{
	return __atomic_load_n(r->cq_tail, __ATOMIC_ACQUIRE) - *r->cq_head;
}

/* What is not there yet is waited for; returns what that was. */
static ssize_t take_completed(struct ring *r, unsigned int n)
{
	const unsigned int missing = n - completed(r);

	while (completed(r) < n)
		;
	__atomic_store_n(r->cq_head, *r->cq_head + n, __ATOMIC_RELEASE);
	return missing;
}

static long enter(const struct ring *r, unsigned int submit, unsigned int wait,
		  unsigned int flags, const void *arg, size_t size)
{
	return syscall(SYS_io_uring_enter, r->fd, submit, wait,
		       IORING_ENTER_GETEVENTS | flags, arg, size);
}

static void make_ring_and_pipe(struct work *w)
{
	make_pipe(w);
	make_ring(w);
}

/* A byte where there is none: so one read after the other is done. */
static void write_one(struct work *w)
{
	int there = 0;

	need(ioctl(w->peer, FIONREAD, &there) == 0);
	if (there == 0)
		need(write(w->fd, "x", 1) == 1);
	usleep(20);
}

/* Waits for several: with a submit, without, and with a timeout. */
static ssize_t call_io_uring_several(struct work *w)
{
	const struct __kernel_timespec t = {.tv_sec = LONG_S};
	const struct io_uring_getevents_arg arg = {.ts = (uintptr_t)&t};
	const struct io_uring_sqe sqe = {.opcode = IORING_OP_READ,
					 .fd = w->peer,
					 .addr = (uintptr_t)w->bytes,
					 .len = 1};
	const bool timed = w->calls % 3 == 2;
	struct ring *r = &w->ring;
	long n;

	if (r->fd < 0)
		return refused();
	queue(r, &sqe, RING_SPARE);
	if (w->calls++ % 3 == 0) {
		if (enter(r, RING_SPARE, RING_SPARE, 0, NULL, 0) != RING_SPARE)
			return -1;
		return take_completed(r, RING_SPARE);
	}
	if (enter(r, RING_SPARE, 0, 0, NULL, 0) != RING_SPARE)
		return -1;
	n = enter(r, 0, RING_SPARE, timed ? IORING_ENTER_EXT_ARG : 0,
		  timed ? &arg : NULL, timed ? sizeof(arg) : 0);
	if (n != 0 && (n > 0 || errno != EINTR))
		return -1;
	return take_completed(r, RING_SPARE);
}

static void make_aio(struct work *w)
{
	w->fd = eventfd(0, EFD_NONBLOCK);
	w->peer = eventfd(0, EFD_NONBLOCK);
	need(w->fd >= 0 && w->peer >= 0 &&
	     syscall(SYS_io_setup, 2, &w->aio) == 0);
}

/* One of the two, by turns. */
static void post(struct work *w)
{
	const uint64_t one = 1;

	need(write(w->sent++ % 2 == 0 ? w->fd : w->peer, &one, sizeof(one)) ==
	     sizeof(one));
	usleep(50);
}

/* Both have to be there: with a timeout, which is far away, and without. */
static ssize_t call_io_getevents(struct work *w)
{
	struct timespec t = {.tv_sec = LONG_S};
	struct iocb two[2] = {
		{.aio_lio_opcode = IOCB_CMD_POLL,
		 .aio_fildes = (uint32_t)w->fd,
		 .aio_buf = POLLIN},
		{.aio_lio_opcode = IOCB_CMD_POLL,
		 .aio_fildes = (uint32_t)w->peer,
		 .aio_buf = POLLIN},
	};
	struct iocb *list[] = {&two[0], &two[1]};
	struct io_event events[2];
	uint64_t count;
	long n, all = 0;

	(void)!read(w->fd, &count, sizeof(count));
	(void)!read(w->peer, &count, sizeof(count));
	if (syscall(SYS_io_submit, w->aio, 2, list) != 2)
		return -1;
	n = call_kernel(SYS_io_getevents,
			(const long[]){(long)w->aio, 2, 2, (long)events,
				       w->calls++ % 2 == 0 ? (long)&t : 0, 0});
	if (n < 0 && errno != EINTR)
		return -1;
	for (all = n < 0 ? 0 : n; all < 2;) {
		long more = syscall(SYS_io_getevents, w->aio, 2 - all, 2 - all,
				    events, NULL);

		all += more < 0 ? 0 : more;
	}
	return n < 0 ? 2 : 2 - n;
}

/*
 * The kernel runs through the loop when it checks the program, for some
 * milliseconds, and gives up where it is interrupted.
 */
static ssize_t call_bpf(struct work *w)
{
	const struct bpf_insn program[] = {
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0},
		{.code = BPF_ALU64 | BPF_ADD | BPF_K,
		 .dst_reg = BPF_REG_0,
		 .imm = 1},
		{.code = BPF_JMP | BPF_JLT | BPF_K,
		 .dst_reg = BPF_REG_0,
		 .off = -2,
		 .imm = BPF_ROUNDS},
		{.code = BPF_JMP | BPF_EXIT},
	};
	union bpf_attr attr;
	int fd;

	memset(&attr, 0, sizeof(attr));
	attr.prog_type = BPF_PROG_TYPE_SOCKET_FILTER;
	attr.insns = (uintptr_t)program;
	attr.insn_cnt = sizeof(program) / sizeof(program[0]);
	attr.license = (uintptr_t) "";
	fd = (int)syscall(SYS_bpf, BPF_PROG_LOAD, &attr, sizeof(attr));
	if (fd >= 0)
		return close(fd);
	return errno == EAGAIN ? 1 : refused();
}

/*
 * Before they do anything they wait for what was written to be sent, which on
 * this terminal takes no time, and give up where they are interrupted.
 */
#define TTY_ROUNDS 50

static ssize_t call_tty_ioctls(struct work *w)
{
	const int discipline = 0; /* N_TTY */
	ssize_t shorter = 0;

	for (int i = 0; i < TTY_ROUNDS; i++) {
		int failed = (ioctl(w->fd, TIOCSBRK) != 0) +
			     (ioctl(w->fd, TIOCCBRK) != 0) +
			     (ioctl(w->fd, TIOCSETD, &discipline) != 0) +
			     (tcdrain(w->fd) != 0) +
			     (tcsendbreak(w->fd, 0) != 0) +
			     (ioctl(w->fd, TCSBRKP, 1) != 0);

		if (failed > 0 && errno != EINTR)
			return -1;
		shorter += failed;
	}
	return shorter;
}

#endif
