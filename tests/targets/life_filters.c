/*
 * Threads under seccomp(2), beside one that calculates.
 *
 * Usage: life_filters strict|waits N
 *   strict  a thread in SECCOMP_MODE_STRICT, which may read and write and no
 *           more, reads and writes blocks of 1 MiB by pipes
 *   waits   the calls that restart_syscall(2) would go on with, under a filter
 *           that kills for it and logs what it lets through: in each wait comes
 *           a signal that is ignored by default
 */
#include "filter.h"
#include "life.h"

#include <linux/futex.h>
#include <poll.h>
#include <sys/prctl.h>

#define BLOCK (1u << 20)

/* A wait; long enough for the signal to come in it. */
#define WAIT_NS 5000000

static const struct timespec wait_time = {.tv_nsec = WAIT_NS};
static int there[2], back[2];
static long rounds;
static _Atomic pid_t waiter;
static atomic_long begun; /* waits */

static void read_all(int fd, uint8_t *bytes)
{
	for (size_t n = 0; n < BLOCK;) {
		ssize_t r = read(fd, bytes + n, BLOCK - n);

		must(r > 0, "read");
		n += (size_t)r;
	}
}

/* Gives back each block, with a byte changed. A write is whole. */
static void *be_strict(void *unused)
{
	static uint8_t bytes[BLOCK];

	must(prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) == 0, "strict mode");
	for (long n = 0; n < rounds; n++) {
		read_all(there[0], bytes);
		bytes[n]++;
		if (write(back[1], bytes, BLOCK) != BLOCK)
			break;
	}
	(void)syscall(SYS_exit, 0);
	return unused;
}

static void strict(void)
{
	static uint8_t bytes[BLOCK], seen[BLOCK];

	must(pipe(there) == 0 && pipe(back) == 0, "pipe");
	start(be_strict, NULL);
	for (long n = 0; n < rounds; n++) {
		memset(bytes, (int)n, sizeof(bytes));
		if (write(there[1], bytes, BLOCK) != BLOCK)
			wrong("a block is written in part");
		read_all(back[0], seen);
		bytes[n]++;
		if (memcmp(bytes, seen, BLOCK) != 0)
			wrong("a block comes back changed");
	}
}

static int by_poll(void)
{
	return poll(NULL, 0, WAIT_NS / 1000000);
}

static int by_nanosleep(void)
{
	return (int)syscall(SYS_nanosleep, &wait_time, NULL);
}

static int by_clock_nanosleep(void)
{
	return (int)syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &wait_time,
			    NULL);
}

/* It returns an error in any case: that the time is over. */
static int by_futex(void)
{
	static uint32_t word;

	return syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &wait_time) ==
				       -1 &&
			       errno == ETIMEDOUT
		       ? 0
		       : -1;
}

static int (*const waits[])(void) = {by_poll, by_nanosleep, by_clock_nanosleep,
				     by_futex};

static void *wait_and_wait(void *unused)
{
	pid_t parent = getppid();

	must(FILTER_INSTALL(
		     0,
		     FILTER_CALL(SYS_restart_syscall, SECCOMP_RET_KILL_PROCESS),
		     FILTER_CALL(SYS_getppid, SECCOMP_RET_LOG)),
	     "seccomp");
	atomic_store(&waiter, thread_number());
	for (long n = 0; n < rounds; n++) {
		uint64_t since = now_ns();

		atomic_fetch_add(&begun, 1);
		if (waits[n % 4]() != 0)
			wrong("wait %ld fails: %s", n % 4, strerror(errno));
		if (now_ns() - since < WAIT_NS)
			wrong("wait %ld is too short", n % 4);
		if (getppid() != parent)
			wrong("getppid, which is logged");
	}
	return unused;
}

static void in_waits(void)
{
	pthread_t thread = start(wait_and_wait, NULL);

	/* One in each: with a second, a time may begin anew. */
	for (long n = 1; n <= rounds; n = atomic_load(&begun) + 1) {
		uint64_t since = now_ns();

		while (atomic_load(&begun) < n)
			patience(since, "a wait");
		run_for(WAIT_NS / 4);
		(void)syscall(SYS_tgkill, getpid(), waiter, SIGWINCH);
	}
	(void)pthread_join(thread, NULL);
}

int main(int argc, char **argv)
{
	if (argc != 3)
		return 2;
	rounds = strtol(argv[2], NULL, 10);
	begin();
	start(calculate, NULL);
	if (strcmp(argv[1], "strict") == 0)
		strict();
	else
		in_waits();
	printf("rounds %ld\n", rounds);
	return finish();
}
