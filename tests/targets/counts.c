/*
 * Programs whose time is spent in stacks that last: a thread is in the same
 * system call for many ticks in a row, and in a loop for others.
 *
 * Usage: counts KIND, until it is killed. Says "ready PID".
 *
 * in_kernel() is in getrandom(2), at the same program counter all the time;
 * in_loop() is at others. Both are measured by the thread's own processor time,
 * so that their shares are 70 and 30 % on a machine of any speed.
 */
#include <fcntl.h>
#include <poll.h>
#include <sys/random.h>

#include "target.h"

#define MS UINT64_C(1000000)

static uint64_t ran_ns(void)
{
	return clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

static __attribute__((noipa)) void in_kernel(uint64_t ns)
{
	static _Thread_local char bytes[1 << 18];
	uint64_t end = ran_ns() + ns;

	while (ran_ns() < end)
		(void)!getrandom(bytes, sizeof(bytes), 0);
}

static __attribute__((noipa)) uint64_t spin(uint64_t x)
{
	return burn(x, 20000);
}

static __attribute__((noipa)) uint64_t in_loop(uint64_t ns)
{
	uint64_t end = ran_ns() + ns, x = 1;

	while (ran_ns() < end)
		x = spin(x);
	return x;
}

static void sleep_ns(uint64_t ns)
{
	const struct timespec t = timespec_of(ns);

	(void)nanosleep(&t, NULL);
}

static void kernel(void)
{
	for (;;) {
		in_kernel(70 * MS);
		(void)in_loop(30 * MS);
	}
}

/* Asleep for so long that the sampler looks at it at some ticks only. */
static void periodic(void)
{
	for (uint64_t n = 0;; n++) {
		in_kernel(35 * MS);
		(void)in_loop(15 * MS);
		sleep_ns((n % 8 == 0 ? 1500 : 20) * MS);
	}
}

static void *live_short(void *arg)
{
	in_kernel(14 * MS);
	(void)in_loop(6 * MS);
	return arg;
}

static void short_lived(void)
{
	pthread_t threads[4];

	for (;;) {
		for (size_t i = 0; i < 4; i++)
			threads[i] = start(live_short, NULL);
		for (size_t i = 0; i < 4; i++)
			(void)pthread_join(threads[i], NULL);
	}
}

static void *be_busy(void *arg)
{
	kernel();
	return arg;
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void *lock_and_work(void *arg)
{
	for (;;) {
		(void)pthread_mutex_lock(&mutex);
		in_kernel(7 * MS);
		(void)pthread_mutex_unlock(&mutex);
		(void)in_loop(3 * MS);
	}
	return arg;
}

/* Each round waits in another way. */
static void *wait_and_work(void *arg)
{
	int fds[2];
	char byte = 0;

	if (pipe2(fds, O_CLOEXEC) < 0)
		abort();
	for (unsigned int n = 0;; n++) {
		struct pollfd never = {.fd = fds[0], .events = POLLIN};

		if (n % 3 == 0)
			sleep_ns(10 * MS);
		else if (n % 3 == 1)
			(void)poll(&never, 1, 10);
		else if (write(fds[1], &byte, 1) == 1)
			(void)!read(fds[0], &byte, 1);
		in_kernel(14 * MS);
		(void)in_loop(6 * MS);
	}
	return arg;
}

static __attribute__((noipa)) uint64_t descend(unsigned int depth)
{
	if (depth > 0)
		return descend(depth - 1) + 1;
	in_kernel(21 * MS);
	return in_loop(9 * MS);
}

static void recursion(void)
{
	for (unsigned int n = 0;; n++)
		(void)descend(n % 60);
}

static void with_threads(size_t n, void *(*run)(void *))
{
	while (n-- > 1)
		start(run, NULL);
	(void)run(NULL);
}

int main(int argc, char **argv)
{
	const char *kind = argc > 1 ? argv[1] : "";

	ready(getpid());
	if (strcmp(kind, "kernel") == 0)
		kernel();
	else if (strcmp(kind, "periodic") == 0)
		periodic();
	else if (strcmp(kind, "short") == 0)
		short_lived();
	else if (strcmp(kind, "busy") == 0)
		with_threads(8, be_busy);
	else if (strcmp(kind, "locks") == 0)
		with_threads(16, lock_and_work);
	else if (strcmp(kind, "waits") == 0)
		with_threads(6, wait_and_work);
	else if (strcmp(kind, "recursion") == 0)
		recursion();
	return EXIT_FAILURE;
}
