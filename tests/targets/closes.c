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
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "fuse.h"

/* So long a close waits. */
#define FLUSH_US 200

enum { FILE_NODE = 2 };

static atomic_ulong right, eintr, wrong;
static char path[256];

static void die(const char *what)
{
	perror(what);
	exit(EXIT_FAILURE);
}

static struct fuse_attr attributes(uint64_t node)
{
	return (struct fuse_attr){
		.ino = node,
		.mode = node == FILE_NODE ? S_IFREG | 0644 : S_IFDIR | 0755,
		.nlink = 1,
	};
}

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

static void answer(int fd, const union request *r, bool polite);

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
	answer(fd, &next, polite);
}

static void answer(int fd, const union request *r, bool polite)
{
	const struct fuse_in_header *in = &r->header;
	const struct fuse_init_out init = {
		.major = FUSE_KERNEL_VERSION, .minor = 31, .max_write = 4096};
	const struct fuse_entry_out entry = {.nodeid = FILE_NODE,
					     .attr = attributes(FILE_NODE)};
	const struct fuse_attr_out attr = {.attr = attributes(in->nodeid)};
	const struct fuse_open_out open_out = {.fh = 0};

	switch (in->opcode) {
	case FUSE_INIT:
		fuse_reply(fd, in->unique, 0, &init, sizeof(init));
		return;
	case FUSE_LOOKUP:
		fuse_reply(fd, in->unique, 0, &entry, sizeof(entry));
		return;
	case FUSE_GETATTR:
		fuse_reply(fd, in->unique, 0, &attr, sizeof(attr));
		return;
	case FUSE_OPEN:
		fuse_reply(fd, in->unique, 0, &open_out, sizeof(open_out));
		return;
	case FUSE_FLUSH:
		flush(fd, in->unique, polite);
		return;
	case FUSE_RELEASE:
		fuse_reply(fd, in->unique, 0, NULL, 0);
		return;
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
	case FUSE_INTERRUPT:
		return;
	default:
		fuse_reply(fd, in->unique, -ENOSYS, NULL, 0);
		return;
	}
}

static void serve(int fd, bool polite)
{
	union request request;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;)
		if (next_request(fd, &request))
			answer(fd, &request, polite);
}

static void mount_it(const char *dir, bool polite)
{
	int device = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	char text[128];

	if (device < 0 || unshare(CLONE_NEWNS) < 0 ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		die("closes");
	(void)snprintf(text, sizeof(text),
		       "fd=%d,rootmode=40000,user_id=0,group_id=0", device);
	if (mount("closes", dir, "fuse", MS_NOSUID | MS_NODEV, text) < 0)
		die("mount");
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
		if (fd < 0)
			die(path);
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
	pthread_t thread;
	char line[64];

	if (argc != 3)
		return EXIT_FAILURE;
	setvbuf(stdout, NULL, _IOLBF, 0);
	mount_it(argv[2], strcmp(argv[1], "polite") == 0);
	if (pthread_create(&thread, NULL, close_again, NULL) != 0)
		return EXIT_FAILURE;
	printf("ready %d\n", getpid());
	while (fgets(line, sizeof(line), stdin) != NULL) {
		if (strcmp(line, "right\n") == 0)
			printf("right %lu\n", right);
		else if (strcmp(line, "eintr\n") == 0)
			printf("eintr %lu\n", eintr);
		else if (strcmp(line, "wrong\n") == 0)
			printf("wrong %lu\n", wrong);
	}
	_exit(0);
}
