#include "tests/bench/tracer.h"

#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>

#include "lib/base/clock.h"
#include "lib/base/util.h"
#include "lib/capture/ptrace/arch.h"

#define THREADS_MAX 4096
#define STACK_MAX   (64u * 1024)

static volatile sig_atomic_t over;

static void on_term(int signal)
{
	(void)signal;
	over = 1;
}

bool tracer_is_over(void)
{
	return over != 0;
}

static _Noreturn void fail(const char *what)
{
	(void)fprintf(stderr, "%s: %s\n", what, strerror(errno));
	exit(EXIT_FAILURE);
}

static void list_threads(struct tracer *tracer, pid_t pid)
{
	struct dirent *entry;
	char path[64];
	DIR *dir;

	(void)snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dir = opendir(path);
	tracer->tids = calloc(THREADS_MAX, sizeof(*tracer->tids));
	if (dir == NULL || tracer->tids == NULL)
		fail(path);
	while ((entry = readdir(dir)) != NULL && tracer->n < THREADS_MAX) {
		pid_t tid = (pid_t)strtol(entry->d_name, NULL, 10);

		if (tid > 0 && tid != pid)
			tracer->tids[tracer->n++] = tid;
	}
	(void)closedir(dir);
}

void tracer_attach(pid_t tid)
{
	if (ptrace(PTRACE_SEIZE, tid, NULL, NULL) < 0)
		fail("PTRACE_SEIZE");
}

void tracer_say_attached(void)
{
	printf("attached\n");
	(void)fflush(stdout);
}

struct tracer tracer_start(int argc, char **argv, uint64_t *ret_period_ns)
{
	const struct sigaction action = {.sa_handler = on_term};
	struct tracer tracer = {0};
	unsigned long hz = argc == 3 ? strtoul(argv[2], NULL, 10) : 0;

	if (hz == 0) {
		(void)fprintf(stderr, "usage: %s PID HZ\n", argv[0]);
		exit(2);
	}
	if (sigaction(SIGTERM, &action, NULL) < 0)
		fail("sigaction");
	list_threads(&tracer, (pid_t)strtol(argv[1], NULL, 10));
	*ret_period_ns = NS_PER_SEC / hz;
	return tracer;
}

void tracer_attach_all(const struct tracer *tracer)
{
	for (size_t i = 0; i < tracer->n; i++)
		tracer_attach(tracer->tids[i]);
	tracer_say_attached();
}

void tracer_raise_priority(void)
{
	const struct sched_param fifo = {.sched_priority = 1};

	if (sched_setscheduler(0, SCHED_FIFO, &fifo) < 0)
		(void)fprintf(stderr, "SCHED_FIFO: %s\n", strerror(errno));
}

static uint64_t stack_pointer(const struct arch_regs *regs)
{
	uint64_t dwarf[ARCH_REGS];

	arch_to_dwarf(regs, dwarf);
	return dwarf[ARCH_SP];
}

void tracer_sample(struct tracer *tracer, pid_t tid)
{
	static __thread uint8_t stack[STACK_MAX];
	struct arch_regs regs;
	uint64_t sp, top, n;
	struct iovec local = {.iov_base = stack}, remote;
	ssize_t got;

	if (arch_get_regs((uint32_t)tid, &regs) < 0)
		return;
	sp = stack_pointer(&regs) - ARCH_RED_ZONE;
	top = arch_thread_pointer((uint32_t)tid, &regs);
	n = top > sp ? min_u64(top - sp, STACK_MAX) : STACK_MAX;
	local.iov_len = (size_t)n;
	remote.iov_base = (void *)(uintptr_t)sp;
	remote.iov_len = (size_t)n;
	got = process_vm_readv(tid, &local, 1, &remote, 1, 0);
	if (got > 0)
		tracer->bytes += (uint64_t)got;
	tracer->stops++;
}

_Noreturn void tracer_finish(const struct tracer *tracer)
{
	printf("{\"ticks\": %llu, \"expected\": %llu, \"stops\": %llu, "
	       "\"filled\": %llu, \"bytes\": %llu, \"frames\": %llu, "
	       "\"cpu_ns\": %llu}\n",
	       (unsigned long long)tracer->ticks, (unsigned long long)tracer->expected,
	       (unsigned long long)tracer->stops, (unsigned long long)tracer->filled,
	       (unsigned long long)tracer->bytes, (unsigned long long)tracer->frames,
	       (unsigned long long)clock_read_ns(CLOCK_PROCESS_CPUTIME_ID));
	exit(EXIT_SUCCESS);
}
