// cflags: -O2 -fno-optimize-sibling-calls
/*
 * Threads whose stacks are known by the name of the thread: they work in functions that call each
 * other, in signal handlers and in the vDSO, or wait for WAIT_MS at a time in calls of libc that
 * have no frame of their own on some processors. argv[1]: how often each kind waits after a byte
 * on standard input. Afterwards prints "waits KIND N EINTR EARLY" for each, and works on until
 * standard input ends.
 */
#include <linux/aio_abi.h>
#include <linux/futex.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "target.h"

#define NOINLINE __attribute__((noipa))

#define WAIT_MS 50
#define WAIT_NS (WAIT_MS * UINT64_C(1000000))
/* Counters of ticks may end a call up to one of them early. */
#define TICK_NS UINT64_C(4000000)

/* A function that calls no other. */
static NOINLINE uint64_t leaf(uint64_t n)
{
	return burn(n, (int)n);
}

static NOINLINE uint64_t level3(uint64_t n)
{
	volatile uint64_t own[20];

	own[n % 20] = leaf(n);
	return own[n % 20];
}

static NOINLINE uint64_t level2(uint64_t n)
{
	return level3(n) + 1;
}

static NOINLINE void level1(uint64_t n)
{
	(void)level2(n);
}

/* Its frame has a size that is known at run time only. */
static NOINLINE void varies(uint64_t n)
{
	volatile char own[n % 1000 + 16];

	own[3] = (char)leaf(n);
}

static NOINLINE void handler(int signal)
{
	(void)signal;
	(void)leaf(100000);
}

static NOINLINE void raiser(void)
{
	(void)raise(SIGUSR1);
}

static void *levels(void *argument)
{
	for (;;)
		level1(100000);
	return argument;
}

static void *variable(void *argument)
{
	for (;;)
		varies(100000);
	return argument;
}

static void *raises(void *argument)
{
	for (;;)
		raiser();
	return argument;
}

/* The main thread sends it SIGUSR1: most handlers interrupt leaf. */
static void *interrupted(void *argument)
{
	for (;;)
		level1(1000000);
	return argument;
}

static void *clock_reader(void *argument)
{
	for (;;)
		(void)now_ns();
	return argument;
}

static void *caller(void *argument)
{
	for (;;)
		(void)thread_number();
	return argument;
}

static int pipe_ends[2], pair[2], epoll, semaphores;
static aio_context_t aio;

static const struct timespec span = {.tv_nsec = (long)WAIT_NS};

/* Each returns whether it has waited to the end, or -1 with errno. */

static int wait_nanosleep(void)
{
	return nanosleep(&span, NULL);
}

static int wait_clock_nanosleep(void)
{
	const struct timespec until = timespec_of(now_ns() + WAIT_NS);

	errno = clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
	return errno == 0 ? 0 : -1;
}

static int wait_usleep(void)
{
	return usleep(WAIT_MS * 1000);
}

static int wait_poll(void)
{
	struct pollfd p = {.fd = pipe_ends[0], .events = POLLIN};

	return poll(&p, 1, WAIT_MS);
}

static int wait_select(void)
{
	struct timeval t = {.tv_usec = WAIT_MS * 1000};
	fd_set set;

	FD_ZERO(&set);
	FD_SET(pipe_ends[0], &set);
	return select(pipe_ends[0] + 1, &set, NULL, NULL, &t);
}

static int wait_epoll(void)
{
	struct epoll_event event;

	return epoll_wait(epoll, &event, 1, WAIT_MS);
}

/* Through syscall(3), as every lock of Rust's standard library. */
static int wait_futex(void)
{
	static uint32_t word;

	return (int)syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &span, NULL, 0);
}

static int wait_getevents(void)
{
	struct io_event event;

	return (int)syscall(SYS_io_getevents, aio, 1, 1, &event, &span);
}

static int wait_cond(void)
{
	static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
	static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
	const struct timespec until = timespec_of(clock_ns(CLOCK_REALTIME) + WAIT_NS);

	(void)pthread_mutex_lock(&mutex);
	errno = pthread_cond_timedwait(&cond, &mutex, &until);
	(void)pthread_mutex_unlock(&mutex);
	return -1;
}

static int wait_recv(void)
{
	char c;

	return (int)recv(pair[0], &c, 1, 0);
}

static int wait_semaphore(void)
{
	struct sembuf down = {.sem_op = -1};

	return semtimedop(semaphores, &down, 1, &span);
}

static int wait_signal(void)
{
	const sigset_t set = set_of(SIGUSR2);

	return sigtimedwait(&set, NULL, &span);
}

static struct kind {
	const char *name;
	int (*wait)(void);
	unsigned long n, eintr, early;
} kinds[] = {
	{"nanosleep", wait_nanosleep}, {"clock_nanosleep", wait_clock_nanosleep},
	{"usleep", wait_usleep},       {"poll", wait_poll},
	{"select", wait_select},       {"epoll", wait_epoll},
	{"futex", wait_futex},	       {"getevents", wait_getevents},
	{"cond", wait_cond},	       {"recv", wait_recv},
	{"semaphore", wait_semaphore}, {"signal", wait_signal},
};

static void *waits(void *argument)
{
	struct kind *k = argument;

	(void)pthread_setname_np(pthread_self(), k->name);
	for (;;) {
		const uint64_t since = now_ns();
		const int r = k->wait();
		const bool is_interrupted = r < 0 && errno == EINTR;

		/* main has removed the semaphores. */
		if (r < 0 && errno == EIDRM)
			return argument;
		need(is_interrupted || r == 0 || errno == ETIMEDOUT || errno == EAGAIN);
		if (is_interrupted)
			k->eintr++;
		else if (now_ns() - since < WAIT_NS - TICK_NS)
			k->early++;
		__atomic_fetch_add(&k->n, 1, __ATOMIC_RELEASE);
	}
}

static pthread_t named(void *(*run)(void *), const char *name)
{
	const pthread_t thread = start(run, NULL);

	(void)pthread_setname_np(thread, name);
	return thread;
}

int main(int argc, char **argv)
{
	const struct timeval timeout = {.tv_usec = WAIT_MS * 1000};
	const unsigned long n = strtoul(argv[argc - 1], NULL, 10);
	unsigned long until[sizeof(kinds) / sizeof(kinds[0])];
	pthread_t thread;
	char c;

	need(pipe(pipe_ends) == 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0 &&
	     setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout)) == 0 &&
	     syscall(SYS_io_setup, 1, &aio) == 0);
	epoll = epoll_create1(EPOLL_CLOEXEC);
	semaphores = semget(IPC_PRIVATE, 1, 0600);
	need(epoll >= 0 && semaphores >= 0);
	handle(SIGUSR1, handler, 0);
	mask(SIG_BLOCK, SIGUSR2);
	(void)named(levels, "levels");
	(void)named(variable, "variable");
	(void)named(raises, "raises");
	(void)named(clock_reader, "clock_reader");
	(void)named(caller, "caller");
	thread = named(interrupted, "interrupted");
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		(void)start(waits, &kinds[i]);
	ready(getpid());
	need(read(STDIN_FILENO, &c, 1) == 1);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		until[i] = __atomic_load_n(&kinds[i].n, __ATOMIC_ACQUIRE) + n;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		while (__atomic_load_n(&kinds[i].n, __ATOMIC_ACQUIRE) < until[i]) {
			(void)nanosleep(&span, NULL);
			(void)pthread_kill(thread, SIGUSR1);
		}
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		printf("waits %s %lu %lu %lu\n", kinds[i].name, kinds[i].n, kinds[i].eintr,
		       kinds[i].early);
	(void)semctl(semaphores, 0, IPC_RMID);
	printf("end\n");
	(void)fflush(stdout);
	(void)read(STDIN_FILENO, &c, 1);
	return 0;
}
