/*
 * Threads that count what they get done in a file that others can map, so that
 * a test sees whether each of them goes on, and how fast.
 *
 * Usage: progress FILE [BUSY]. FILE becomes an array of uint64_t: one for each
 * of BUSY (4) threads that calculate, about 10 us a round; then one for
 * "sleeper", which sleeps 1 ms a round; then one for "ping" and one for "pong",
 * which hand a byte to and fro by pipes. Says "ready PID" when all run, and
 * goes on until it is killed.
 */
#include <fcntl.h>
#include <sys/mman.h>

#include "target.h"

#define BUSY_MAX    64
#define OTHERS	    3
#define ROUND_STEPS 10000

struct task {
	volatile uint64_t *done;
	int from, to; /* the pipes of ping and pong */
	char name[16];
};

static struct task tasks[BUSY_MAX + OTHERS];

static __attribute__((noipa)) uint64_t calculate(uint64_t x)
{
	return burn(x, ROUND_STEPS);
}

static void *busy(void *arg)
{
	struct task *task = arg;
	uint64_t x = 1;

	while (x != 0) {
		x = calculate(x) | 1;
		++*task->done;
	}
	return NULL;
}

static void *sleeper(void *arg)
{
	struct task *task = arg;
	struct timespec round = {.tv_nsec = 1000 * 1000};

	while (nanosleep(&round, NULL) == 0)
		++*task->done;
	/* EINTR: nobody sends this thread a signal that it handles. */
	(void)fprintf(stderr, "nanosleep was interrupted\n");
	exit(EXIT_FAILURE);
}

static void *hand_over(void *arg)
{
	struct task *task = arg;
	char byte;

	while (read(task->from, &byte, 1) == 1 &&
	       write(task->to, &byte, 1) == 1)
		++*task->done;
	(void)fprintf(stderr, "%s was interrupted\n", task->name);
	exit(EXIT_FAILURE);
}

static volatile uint64_t *make_counters(const char *path, size_t n)
{
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	void *memory;

	if (fd < 0 || ftruncate(fd, (off_t)(n * sizeof(uint64_t))) < 0)
		return NULL;
	memory = mmap(NULL, n * sizeof(uint64_t), PROT_READ | PROT_WRITE,
		      MAP_SHARED, fd, 0);
	return memory == MAP_FAILED ? NULL : memory;
}

static void start_task(size_t i, volatile uint64_t *counter, const char *name,
		       void *(*run)(void *))
{
	tasks[i].done = counter;
	(void)snprintf(tasks[i].name, sizeof(tasks[i].name), "%s", name);
	(void)pthread_setname_np(start(run, &tasks[i]), tasks[i].name);
}

int main(int argc, char **argv)
{
	size_t n = argc > 2 ? strtoul(argv[2], NULL, 10) : 4;
	volatile uint64_t *counters;
	int there[2], back[2];
	char name[16];

	if (argc < 2 || n > BUSY_MAX)
		return 2;
	counters = make_counters(argv[1], n + OTHERS);
	if (counters == NULL || pipe(there) < 0 || pipe(back) < 0)
		return EXIT_FAILURE;
	for (size_t i = 0; i < n; i++) {
		(void)snprintf(name, sizeof(name), "busy %zu", i);
		start_task(i, &counters[i], name, busy);
	}
	tasks[n + 1].from = back[0];
	tasks[n + 1].to = there[1];
	tasks[n + 2].from = there[0];
	tasks[n + 2].to = back[1];
	start_task(n, &counters[n], "sleeper", sleeper);
	start_task(n + 1, &counters[n + 1], "ping", hand_over);
	start_task(n + 2, &counters[n + 2], "pong", hand_over);
	need(write(there[1], "", 1) == 1);
	ready(getpid());
	for (;;)
		(void)pause();
}
