/*
 * Opens and closes a file of FUSE again and again, and counts how that ends.
 *
 * Usage: closes deaf|polite DIR, where the file system is mounted, seen by this
 * program only. Its server, a child, takes its time for the request by which
 * close(2) waits; "deaf", it takes no notice of interrupts, as most do;
 * "polite", it answers an interrupted request with EINTR. Says "ready PID".
 *
 * Lines on its input, each answered by one: "right", "eintr", "wrong" by that
 * and a number: closes that succeeded, that failed with EINTR, and in another
 * way, or after which the descriptor was still there. At the input's end it
 * ends. Needs root.
 */
#include <poll.h>
#include <stdatomic.h>
#include <sys/prctl.h>

#include "fuse.h"

/* So long a close waits. */
#define FLUSH_US 200

static atomic_ulong right, eintr, wrong;
static char path[256];

union request {
	struct fuse_in_header header;
	struct {
		struct fuse_in_header header;
		struct fuse_interrupt_in in;
	} interrupt;
	char bytes[FUSE_MIN_READ_BUFFER + 4096];
};

static bool next_request(int fd, union request *ret)
{
	ssize_t n = read(fd, ret, sizeof(*ret));

	if (n < 0 && errno != ENOENT && errno != EINTR && errno != EAGAIN)
		_exit(0);
	return n >= (ssize_t)sizeof(ret->header);
}

static void reply(int fd, const union request *r, bool polite);

/* Until its time is over, or an interrupt is heard. */
static void flush(int fd, uint64_t unique, bool polite)
{
	const struct timespec wait = {.tv_nsec = FLUSH_US * 1000};
	struct pollfd p = {.fd = fd, .events = POLLIN};
	union request next;

	if (ppoll(&p, 1, &wait, NULL) <= 0 || !next_request(fd, &next)) {
		fuse_reply(fd, unique, 0, NULL, 0);
		return;
	}
	fuse_reply(fd, unique,
		   polite && next.header.opcode == FUSE_INTERRUPT &&
				   next.interrupt.in.unique == unique
			   ? -EINTR
			   : 0,
		   NULL, 0);
	reply(fd, &next, polite);
}

static void reply(int fd, const union request *r, bool polite)
{
	if (r->header.opcode == FUSE_FLUSH)
		flush(fd, r->header.unique, polite);
	else
		fuse_answer(fd, &r->header, 0);
}

static void serve(int fd, bool polite)
{
	union request request;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;)
		if (next_request(fd, &request))
			reply(fd, &request, polite);
}

static void mount_it(const char *dir, bool polite)
{
	const int device = fuse_mount(dir, "");

	if (fork() == 0)
		serve(device, polite);
	(void)close(device);
	(void)snprintf(path, sizeof(path), "%s/file", dir);
}

static void *close_again(void *arg)
{
	(void)arg;
	for (;;) {
		int fd = open(path, O_RDONLY | O_CLOEXEC), r;

		/* As without us: the server decides. */
		if (fd < 0 && errno == EINTR)
			continue;
		need(fd >= 0);
		errno = 0;
		r = close(fd);
		if (r < 0 && errno != EINTR)
			atomic_fetch_add(&wrong, 1);
		else if (fcntl(fd, F_GETFD) >= 0)
			atomic_fetch_add(&wrong, 1);
		else
			atomic_fetch_add(r < 0 ? &eintr : &right, 1);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	char line[64];

	if (argc != 3)
		return EXIT_FAILURE;
	setvbuf(stdout, NULL, _IOLBF, 0);
	mount_it(argv[2], strcmp(argv[1], "polite") == 0);
	start(close_again, NULL);
	ready(getpid());
	while (fgets(line, sizeof(line), stdin) != NULL)
		(void)(answer(line, "right", right) ||
		       answer(line, "eintr", eintr) ||
		       answer(line, "wrong", wrong));
	_exit(0);
}
