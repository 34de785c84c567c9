/*
 * Threads that wait: for ever (sleep_on), for a second between two moments of work (tick), or for
 * 20 ms at a time (wait_often).
 */
#include "tests/bench/target.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <time.h>

#define WAIT_MS	      20
#define TICKER_ROUNDS 20000

/* Returns the reading end of a pipe into which no thread writes. */
static int empty_pipe(void)
{
	int fds[2];

	if (pipe2(fds, O_CLOEXEC) < 0)
		die("pipe");
	return fds[0];
}

void sleep_on(struct worker *w)
{
	struct pollfd none = {.fd = -1};
	struct epoll_event event;
	uint32_t word = 0;
	char byte;
	int fd;

	/* Only where it is needed: a process may have 1,024 descriptors. */
	fd = w->index % 4 == 1	 ? empty_pipe()
	     : w->index % 4 == 2 ? epoll_create1(EPOLL_CLOEXEC)
				 : -1;
	for (;;)
		switch (w->index % 4) {
		case 0:
			(void)syscall(SYS_futex, &word, 0, 0, NULL);
			break;
		case 1:
			(void)!read(fd, &byte, 1);
			break;
		case 2:
			(void)epoll_wait(fd, &event, 1, -1);
			break;
		default:
			(void)poll(&none, 1, -1);
			break;
		}
}

void tick(struct worker *w)
{
	struct timespec phase = {.tv_nsec = (long)(w->index * 7919 % 1000) * (long)NS_PER_MS};
	const struct timespec second = {.tv_sec = 1};
	volatile uint64_t x = 1;

	(void)nanosleep(&phase, NULL);
	for (;;) {
		for (int i = 0; i < TICKER_ROUNDS; i++)
			x = calculate(x);
		(void)nanosleep(&second, NULL);
	}
}

static NOINLINE void wait_once(struct worker *w, int epoll_fd)
{
	const struct timespec time = {.tv_nsec = WAIT_MS * (long)NS_PER_MS};
	struct pollfd none = {.fd = -1};
	struct epoll_event event;
	int r = -1;

	switch (w->wait) {
	case WAIT_EPOLL:
		r = epoll_wait(epoll_fd, &event, 1, WAIT_MS);
		break;
	case WAIT_NANOSLEEP:
		r = nanosleep(&time, NULL);
		break;
	case WAIT_POLL:
		r = poll(&none, 1, WAIT_MS);
		break;
	case WAITS:
		break;
	}
	if (r != 0)
		die("a wait");
}

void wait_often(struct worker *w)
{
	struct timespec phase = {.tv_nsec = (long)(w->index * 7919 % 20000) * 1000};
	int epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	uint64_t from, ns;

	(void)nanosleep(&phase, NULL);
	for (;;) {
		from = clock_mono_ns();
		wait_once(w, epoll_fd);
		ns = clock_mono_ns() - from;
		add(&w->waits, 1);
		add(&w->wait_ns, ns);
		if (ns > get(&w->wait_max_ns))
			set(&w->wait_max_ns, ns);
	}
}
