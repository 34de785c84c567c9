/*
 * A program whose memory and files cannot be read without hanging: what a
 * hostile target does to its profiler.
 *
 * Usage: hang uffd|fuse|jam|race|race-jam|code|close DIR
 *   uffd  a thread ("deep") runs in frames that have pages below a userfaultfd
 *         among them which nobody fills
 *   fuse  the same, by pages of a file of a FUSE file system in DIR, whose
 *         server takes no requests any more
 *   jam   the same, with a server that takes requests and never answers:
 *         whoever waits for it cannot even be killed
 *   race  like uffd, but the pages come and go, until somebody waits for one
 *   race-jam  like jam, but the pages come and go; the server answers this
 *         program
 *   code  a thread ("code") runs code of a file of such a file system; the
 *         server answers reads, and no open but this program's own
 *   close the same; the server answers reads and opens, and no close but this
 *         program's own
 *
 * Says "ready PID" with the thread in harmless frames yet; on SIGUSR1 it goes
 * where it hangs those who look, and then says "deep". It runs on until it is
 * killed. Needs root.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "fuse.h"

#define PAGE	    4096
#define STACK_BYTES (256 * 1024)

/*
 * Deep frames have HOLE_BYTES in their middle that they do not touch. The pages
 * that hang are those at WINDOW below the stack's top: glibc keeps 8 KB there
 * at most, and the frames above the hole are small.
 */
#define HOLE_BYTES   (96 * 1024)
#define WINDOW	     (64 * 1024)
#define WINDOW_BYTES (16 * 1024)

static char *stack;
static volatile sig_atomic_t go_deep;
static volatile uint64_t rounds;

static void die(const char *what)
{
	(void)fprintf(stderr, "%s: %s\n", what, strerror(errno));
	exit(EXIT_FAILURE);
}

static char *window(void)
{
	return stack + STACK_BYTES - WINDOW;
}

/* A FUSE file system of one file; fuse.h is the protocol. */

enum { FILE_NODE = 2 };

enum server { SERVE_NO_READ, SERVE_OWN_READ, SERVE_NO_OPEN, SERVE_NO_CLOSE };

static bool is_this_program(uint32_t tid)
{
	struct stat own, other;
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/%u/exe", tid);
	return stat(path, &other) == 0 && stat("/proc/self/exe", &own) == 0 &&
	       own.st_dev == other.st_dev && own.st_ino == other.st_ino;
}

static struct fuse_attr attributes(uint64_t node)
{
	return (struct fuse_attr){
		.ino = node,
		.size = WINDOW_BYTES,
		.mode = node == FILE_NODE ? S_IFREG | 0755 : S_IFDIR | 0755,
		.nlink = 1,
		.blksize = PAGE,
	};
}

/* EB FE: jump to itself; on arm64 the same. */
static void fill_code(char page[PAGE])
{
#if defined(__x86_64__)
	static const unsigned char loop[] = {0xeb, 0xfe};
#else
	static const unsigned char loop[] = {0x00, 0x00, 0x00, 0x14};
#endif

	memset(page, 0, PAGE);
	memcpy(page, loop, sizeof(loop));
}

static void answer(int fd, const struct fuse_in_header *in, enum server how)
{
	static bool opened, closed;
	struct fuse_init_out init = {
		.major = FUSE_KERNEL_VERSION,
		.minor = 31,
		.max_write = PAGE,
	};
	struct fuse_entry_out entry = {.nodeid = FILE_NODE,
				       .attr = attributes(FILE_NODE)};
	struct fuse_attr_out attr = {.attr = attributes(in->nodeid)};
	struct fuse_open_out open_out = {0};
	const struct fuse_read_in *read_in = (const void *)(in + 1);
	char page[PAGE];

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
		if (!opened || how == SERVE_NO_CLOSE)
			fuse_reply(fd, in->unique, 0, &open_out,
				   sizeof(open_out));
		opened = true;
		return;
	case FUSE_READ:
		if (how == SERVE_NO_READ ||
		    (how == SERVE_OWN_READ && !is_this_program(in->pid)))
			return;
		fill_code(page);
		fuse_reply(fd, in->unique, 0, page,
			   read_in->size < PAGE ? read_in->size : PAGE);
		return;
	case FUSE_FLUSH:
		if (!closed || how != SERVE_NO_CLOSE)
			fuse_reply(fd, in->unique, 0, NULL, 0);
		closed = true;
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

static void serve(int fd, enum server how)
{
	static union {
		struct fuse_in_header header;
		char bytes[FUSE_MIN_READ_BUFFER + PAGE];
	} request;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	(void)prctl(PR_SET_NAME, "hang-server");
	(void)setpriority(PRIO_PROCESS, 0, -20);
	for (;;) {
		ssize_t n = read(fd, &request, sizeof(request));

		if (n < 0 && errno != ENOENT && errno != EINTR)
			_exit(0);
		if (n >= (ssize_t)sizeof(request.header))
			answer(fd, &request.header, how);
	}
}

/* Mounts it where only this process sees it; returns its file, opened. */
static int open_fuse_file(const char *dir, enum server how, pid_t *ret_server)
{
	int device = open("/dev/fuse", O_RDWR | O_CLOEXEC), fd;
	char text[128];

	if (device < 0)
		die("/dev/fuse");
	if (unshare(CLONE_NEWNS) < 0 ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		die("a mount namespace");
	(void)snprintf(text, sizeof(text),
		       "fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other",
		       device);
	if (mount("hang", dir, "fuse", MS_NOSUID | MS_NODEV, text) < 0)
		die("mount");
	*ret_server = fork();
	if (*ret_server == 0)
		serve(device, how);
	(void)close(device);
	(void)snprintf(text, sizeof(text), "%s/file", dir);
	fd = open(text, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		die(text);
	return fd;
}

/* Of "race" and "race-jam": what brings the pages, or takes them away. */
static int uffd = -1, race_file = -1;

static void map_fuse(const char *dir, const char *how)
{
	const bool race = strcmp(how, "race-jam") == 0;
	pid_t server;
	int fd = open_fuse_file(dir, race ? SERVE_OWN_READ : SERVE_NO_READ,
				&server);

	if (mmap(window(), WINDOW_BYTES, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_FIXED, fd, 0) == MAP_FAILED)
		die("mmap");
	if (race) {
		race_file = fd;
		return;
	}
	/* Closing waits for the server, too. */
	(void)close(fd);
	if (strcmp(how, "fuse") == 0)
		(void)kill(server, SIGSTOP);
}

static void register_uffd(void)
{
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	struct uffdio_api api = {.api = UFFD_API};
	struct uffdio_register range = {
		.range = {.start = (uintptr_t)window(), .len = WINDOW_BYTES},
		.mode = UFFDIO_REGISTER_MODE_MISSING,
	};

	if (fd < 0 || ioctl(fd, UFFDIO_API, &api) < 0 ||
	    ioctl(fd, UFFDIO_REGISTER, &range) < 0)
		die("userfaultfd");
	uffd = fd;
}

/*
 * Now on one processor, now on the other: whoever looks has taken one of them,
 * and perhaps always the same.
 */
static void move_on(unsigned int n)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(n % (unsigned int)sysconf(_SC_NPROCESSORS_ONLN), &set);
	/* Where some processors are not for us, it stays where it is. */
	(void)sched_setaffinity(0, sizeof(set), &set);
}

#define MOVE_EVERY 1000

/*
 * A process that shares the memory, and that nobody profiles, so that it goes
 * on while the target is stopped. Nobody else touches the page but those who
 * look.
 */
static int run_race(void *unused)
{
	struct uffdio_zeropage zeros = {
		.range = {.start = (uintptr_t)window(), .len = PAGE}};
	struct pollfd waits = {.fd = uffd, .events = POLLIN};

	(void)unused;
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* It has to run while the other processor looks. */
	(void)setpriority(PRIO_PROCESS, 0, -20);
	while (!go_deep)
		(void)usleep(1000);
	/* Whoever waits for a page keeps it waiting from here on. */
	for (unsigned int n = 0; uffd < 0 || poll(&waits, 1, 0) == 0; n++) {
		if (n % MOVE_EVERY == 0)
			move_on(n / MOVE_EVERY);
		if (uffd < 0)
			(void)*(volatile char *)window();
		else if (ioctl(uffd, UFFDIO_ZEROPAGE, &zeros) < 0)
			break;
		(void)madvise(window(), PAGE, MADV_DONTNEED);
		if (uffd < 0)
			(void)posix_fadvise(race_file, 0, PAGE,
					    POSIX_FADV_DONTNEED);
	}
	for (;;)
		(void)pause();
}

static void start_race(void)
{
	static char race_stack[65536] __attribute__((aligned(16)));

	if (clone(run_race, race_stack + sizeof(race_stack), CLONE_VM | SIGCHLD,
		  NULL) < 0)
		die("clone");
}

static void say(const char *line)
{
	if (write(STDOUT_FILENO, line, strlen(line)) < 0)
		_exit(1);
}

static __attribute__((noipa)) void work(void)
{
	for (int i = 0; i < 1000; i++)
		rounds++;
}

static __attribute__((noipa)) void shallow(void)
{
	while (!go_deep)
		work();
}

static __attribute__((noipa)) void innermost(volatile char *hole)
{
	/* Else the test would show nothing. */
	if (hole > window() || hole + HOLE_BYTES < window() + WINDOW_BYTES)
		abort();
	say("deep\n");
	for (;;)
		work();
}

static __attribute__((noipa)) void deep(void)
{
	volatile char hole[HOLE_BYTES];

	innermost(hole);
	hole[0] = 0;
}

static void *run_deep(void *unused)
{
	shallow();
	deep();
	return unused;
}

static void *run_code(void *arg)
{
	void (*code)(void);

	memcpy(&code, &arg, sizeof(code));
	shallow();
	say("deep\n");
	code();
	return NULL;
}

static void start_deep(const char *how, const char *dir)
{
	pthread_attr_t attr;
	pthread_t thread;

	stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (stack == MAP_FAILED)
		die("mmap");
	if (strcmp(how, "uffd") == 0 || strcmp(how, "race") == 0)
		register_uffd();
	else
		map_fuse(dir, how);
	(void)pthread_attr_init(&attr);
	if (pthread_attr_setstack(&attr, stack, STACK_BYTES) != 0 ||
	    pthread_create(&thread, &attr, run_deep, NULL) != 0)
		die("pthread_create");
	(void)pthread_setname_np(thread, "deep");
	if (strncmp(how, "race", 4) == 0)
		start_race();
}

static void start_code(const char *dir, enum server how)
{
	pid_t server;
	int fd = open_fuse_file(dir, how, &server);
	void *code = mmap(NULL, PAGE, PROT_READ | PROT_EXEC,
			  MAP_PRIVATE | MAP_POPULATE, fd, 0);
	pthread_t thread;

	if (code == MAP_FAILED)
		die("mmap");
	(void)close(fd);
	if (pthread_create(&thread, NULL, run_code, code) != 0)
		die("pthread_create");
	(void)pthread_setname_np(thread, "code");
}

int main(int argc, char **argv)
{
	sigset_t signals;
	int number;

	if (argc != 3)
		return 2;
	sigemptyset(&signals);
	sigaddset(&signals, SIGUSR1);
	(void)pthread_sigmask(SIG_BLOCK, &signals, NULL);
	if (strcmp(argv[1], "code") == 0)
		start_code(argv[2], SERVE_NO_OPEN);
	else if (strcmp(argv[1], "close") == 0)
		start_code(argv[2], SERVE_NO_CLOSE);
	else
		start_deep(argv[1], argv[2]);
	printf("ready %ld\n", (long)getpid());
	(void)fflush(stdout);
	(void)sigwait(&signals, &number);
	go_deep = 1;
	for (;;)
		(void)pause();
}
