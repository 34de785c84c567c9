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
#include <linux/userfaultfd.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>

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

static char *window(void)
{
	return stack + STACK_BYTES - WINDOW;
}

/* A FUSE file system of one file; fuse.h is the protocol. */

enum server { SERVE_NO_READ, SERVE_OWN_READ, SERVE_NO_OPEN, SERVE_NO_CLOSE };

static bool is_this_program(uint32_t tid)
{
	struct stat own, other;
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/%u/exe", tid);
	return stat(path, &other) == 0 && stat("/proc/self/exe", &own) == 0 &&
	       own.st_dev == other.st_dev && own.st_ino == other.st_ino;
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

static void reply(int fd, const struct fuse_in_header *in, enum server how)
{
	static bool opened, closed;
	const struct fuse_read_in *read_in = (const void *)(in + 1);
	char page[PAGE];

	if (in->opcode == FUSE_READ) {
		if (how == SERVE_NO_READ ||
		    (how == SERVE_OWN_READ && !is_this_program(in->pid)))
			return;
		fill_code(page);
		fuse_reply(fd, in->unique, 0, page,
			   read_in->size < PAGE ? read_in->size : PAGE);
		return;
	}
	if (in->opcode == FUSE_OPEN) {
		if (opened && how != SERVE_NO_CLOSE)
			return;
		opened = true;
	}
	if (in->opcode == FUSE_FLUSH) {
		if (closed && how == SERVE_NO_CLOSE)
			return;
		closed = true;
	}
	fuse_answer(fd, in, WINDOW_BYTES);
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
			reply(fd, &request.header, how);
	}
}

/* Returns the file of a file system in DIR, opened. */
static int open_fuse_file(const char *dir, enum server how, pid_t *ret_server)
{
	const int device = fuse_mount(dir, ",allow_other");
	char text[128];
	int fd;

	*ret_server = fork();
	if (*ret_server == 0)
		serve(device, how);
	(void)close(device);
	(void)snprintf(text, sizeof(text), "%s/file", dir);
	fd = open(text, O_RDONLY | O_CLOEXEC);
	need(fd >= 0);
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

	need(mmap(window(), WINDOW_BYTES, PROT_READ | PROT_WRITE,
		  MAP_PRIVATE | MAP_FIXED, fd, 0) != MAP_FAILED);
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

	need(fd >= 0 && ioctl(fd, UFFDIO_API, &api) == 0 &&
	     ioctl(fd, UFFDIO_REGISTER, &range) == 0);
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

	need(clone(run_race, race_stack + sizeof(race_stack),
		   CLONE_VM | SIGCHLD, NULL) > 0);
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
	need(stack != MAP_FAILED);
	if (strcmp(how, "uffd") == 0 || strcmp(how, "race") == 0)
		register_uffd();
	else
		map_fuse(dir, how);
	(void)pthread_attr_init(&attr);
	need(pthread_attr_setstack(&attr, stack, STACK_BYTES) == 0 &&
	     pthread_create(&thread, &attr, run_deep, NULL) == 0);
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

	need(code != MAP_FAILED);
	(void)close(fd);
	(void)pthread_setname_np(start(run_code, code), "code");
}

int main(int argc, char **argv)
{
	const sigset_t signals = set_of(SIGUSR1);
	int number;

	if (argc != 3)
		return 2;
	mask(SIG_BLOCK, SIGUSR1);
	if (strcmp(argv[1], "code") == 0)
		start_code(argv[2], SERVE_NO_OPEN);
	else if (strcmp(argv[1], "close") == 0)
		start_code(argv[2], SERVE_NO_CLOSE);
	else
		start_deep(argv[1], argv[2]);
	ready(getpid());
	(void)sigwait(&signals, &number);
	go_deep = 1;
	for (;;)
		(void)pause();
}
