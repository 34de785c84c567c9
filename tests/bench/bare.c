/*
 * bare PID HZ: what sampling by ptrace costs without analysis. At each tick it interrupts all
 * threads. Of each thread that stops it reads registers and stack, and continues the thread: five
 * system calls per sample. It keeps nothing, stops blocked threads, too, and repairs no
 * interrupted system call.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>

#include "lib/base/util.h"
#include "tests/bench/tracer.h"

#define PID_LIMIT (4 * 1024 * 1024) /* PID_MAX_LIMIT of linux/threads.h */

static struct tracer tracer;
static volatile bool pending[PID_LIMIT];

/*
 * Interrupts the threads in the signal handler, so that no tick is lost between two system calls.
 * The signal interrupts waitpid(2), after which the program checks whether it has to end.
 */
static void on_tick(int signal, siginfo_t *info, void *context)
{
	uint64_t ticks = 1 + (uint64_t)info->si_overrun;

	(void)signal;
	(void)context;
	tracer.ticks += ticks;
	tracer.expected += ticks * tracer.n;
	for (size_t i = 0; i < tracer.n; i++) {
		pid_t tid = tracer.tids[i];

		if (pending[tid]) {
			tracer.filled += ticks;
			continue;
		}
		pending[tid] = true;
		(void)ptrace(PTRACE_INTERRUPT, tid, NULL, NULL);
	}
}

static void start_ticks(uint64_t period_ns)
{
	struct sigaction action = {.sa_sigaction = on_tick, .sa_flags = SA_SIGINFO};
	struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM};
	const struct timespec period = {.tv_nsec = (long)period_ns};
	const struct itimerspec times = {.it_interval = period, .it_value = period};
	timer_t timer;

	if (sigaction(SIGALRM, &action, NULL) < 0 ||
	    timer_create(CLOCK_MONOTONIC, &event, &timer) < 0 ||
	    timer_settime(timer, 0, &times, NULL) < 0)
		exit(EXIT_FAILURE);
}

int main(int argc, char **argv)
{
	uint64_t period_ns;
	int status;
	pid_t tid;

	tracer = tracer_start(argc, argv, &period_ns);
	tracer_attach_all(&tracer);
	tracer_raise_priority();
	start_ticks(period_ns);
	while (!tracer_is_over()) {
		tid = waitpid(-1, &status, __WALL);
		if (tid < 0 && errno == EINTR)
			continue;
		if (tid < 0 || tid >= PID_LIMIT)
			return EXIT_FAILURE;
		if (!WIFSTOPPED(status))
			continue;
		/* The stop is due to the interrupt: only the first thread gets signals. */
		tracer_sample(&tracer, tid);
		pending[tid] = false;
		(void)ptrace(PTRACE_CONT, tid, NULL, NULL);
	}
	tracer_finish(&tracer);
}
