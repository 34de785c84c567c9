/*
 * Threads that wait, in every kind of call, and count how the calls end.
 *
 * Usage: cap_waits CALL: a thread waits in this call; nothing wakes it.
 *        cap_waits MICROSECONDS [CALL]: a thread for each kind of call (or this
 *        one) waits that long, or until another thread wakes it, and again.
 *        Those of children only where they are named: their SIGCHLD disturbs
 *        the others. In either order.
 *        cap_waits --list: the calls.
 * Says "ready TID", with the first thread's number.
 *
 * Lines on its input, each answered by one: "eintr" by that and the number of
 * calls that failed with EINTR, "wrong" that came out in another unexpected
 * way, "right", "other" (both): that came out as expected, "least": the fewest
 * that came out as expected of a kind; "names" by a line for each kind: its
 * name and these three; "lengths" by a line for each: its name, how long its
 * calls took, in microseconds, in the mean and at most, and how many there were
 * since the last such line; "handled" by that and how often SIGUSR1 or SIGALRM
 * were handled. "wake", answered by "ok 0": what ends the waits happens once.
 * "runs", "ok 0": from now on each thread runs as long as it has waited, before
 * it waits again. "filter", "ok 0": from now on all are under a seccomp filter
 * that kills for restart_syscall. "storm MICROSECONDS", "ok 0": each waiting
 * thread gets a SIGWINCH, which it ignores, so often. "lull", "ok 0": no more.
 * SIGALRM is handled by whom it is sent to, SIGUSR1 by a thread that waits;
 * SIGTSTP is ignored. At the input's end it ends.
 */
// cflags: -lrt
#include <limits.h>
#include <sched.h>

#include "cap_kinds.h"
#include "filter.h"

static struct wait waits[N_KINDS];
static size_t n_waits;

static atomic_bool runs; /* as long as it waits */

static void measure(struct wait *w, unsigned long ns)
{
	unsigned long longest = atomic_load(&w->longest_ns);

	atomic_fetch_add(&w->ns, ns);
	atomic_fetch_add(&w->n, 1);
	while (ns > longest &&
	       !atomic_compare_exchange_weak(&w->longest_ns, &longest, ns))
		;
}

static void *wait_again(void *arg)
{
	struct wait *w = arg;
	uint64_t since;
	bool right;

	mask(SIG_UNBLOCK, SIGUSR1);
	atomic_store(&w->tid, thread_number());
	for (;;) {
		since = now_ns();
		right = wait_once(w);
		measure(w, now_ns() - since);
		if (right) {
			atomic_fetch_add(&w->right, 1);
		} else if (errno == EINTR) {
			atomic_fetch_add(&w->eintr, 1);
		} else {
			atomic_store(&w->wrong_errno, errno);
			atomic_fetch_add(&w->wrong, 1);
		}
		if (atomic_load(&runs))
			run_for((uint64_t)w->us * 1000);
	}
	return NULL;
}

static void wake_all(void)
{
	for (size_t i = 0; i < n_waits; i++)
		if (waits[i].kind->wake != NULL)
			waits[i].kind->wake(&waits[i]);
}

/* One for all: what it does is over soon. */
static void *wake_again(void *arg)
{
	const struct timespec t = span(&waits[0]);

	(void)arg;
	for (;;) {
		wake_all();
		nanosleep(&t, NULL);
	}
	return NULL;
}

static atomic_long storm_us;

static void *storm(void *arg)
{
	long us;

	(void)arg;
	while ((us = atomic_load(&storm_us)) > 0) {
		const struct timespec t = timespec_of((uint64_t)us * 1000);

		for (size_t i = 0; i < n_waits; i++)
			if (atomic_load(&waits[i].tid) != 0)
				send_signal(&waits[i], SIGWINCH);
		nanosleep(&t, NULL);
	}
	return NULL;
}

static bool obey(const char *line)
{
	if (strcmp(line, "wake\n") == 0) {
		wake_all();
	} else if (strcmp(line, "runs\n") == 0) {
		atomic_store(&runs, true);
	} else if (strcmp(line, "filter\n") == 0) {
		need(FILTER_INSTALL(SECCOMP_FILTER_FLAG_TSYNC,
				    FILTER_CALL(SYS_restart_syscall,
						SECCOMP_RET_KILL_PROCESS)));
	} else if (strncmp(line, "storm ", 6) == 0) {
		atomic_store(&storm_us, strtol(line + 6, NULL, 10));
		start(storm, NULL);
	} else if (strcmp(line, "lull\n") == 0) {
		atomic_store(&storm_us, 0);
	} else {
		return false;
	}
	puts("ok 0");
	return true;
}

static void print_lengths(void)
{
	for (size_t i = 0; i < n_waits; i++) {
		struct wait *w = &waits[i];
		unsigned long n = atomic_exchange(&w->n, 0);
		unsigned long ns = atomic_exchange(&w->ns, 0);

		printf("%s %lu %lu %lu\n", w->kind->name,
		       n == 0 ? 0 : ns / n / 1000,
		       atomic_exchange(&w->longest_ns, 0) / 1000, n);
	}
}

static void answer_sum(const char *line)
{
	unsigned long eintr = 0, wrong = 0, right = 0, least = ULONG_MAX;

	for (size_t i = 0; i < n_waits; i++) {
		eintr += waits[i].eintr;
		wrong += waits[i].wrong;
		right += waits[i].right;
		if (waits[i].right < least)
			least = waits[i].right;
		if (strcmp(line, "names\n") == 0)
			printf("%s %lu %lu %lu %s\n", waits[i].kind->name,
			       waits[i].eintr, waits[i].wrong, waits[i].right,
			       strerror(waits[i].wrong_errno));
	}
	(void)(answer(line, "eintr", eintr) || answer(line, "wrong", wrong) ||
	       answer(line, "right", right) || answer(line, "least", least) ||
	       answer(line, "other", wrong + right) ||
	       answer(line, "handled", n_handled));
}

static bool makes_children(size_t kind)
{
	return kinds[kind].function == woken_wait4 ||
	       kinds[kind].function == woken_waitid;
}

/* Nothing is left behind that outlives a process. */
static void clean_up(void)
{
	for (size_t i = 0; i < n_waits; i++) {
		if (waits[i].kind->make == make_semaphore)
			semctl(waits[i].fd, 0, IPC_RMID);
		if (waits[i].kind->make == make_msg ||
		    waits[i].kind->make == make_msg_full)
			msgctl(waits[i].fd, IPC_RMID, NULL);
	}
}

int main(int argc, char **argv)
{
	static const int taken[] = {SIGUSR1, TO_SIGNALFD, TO_SIGWAIT};
	const char *name = "";
	char line[64], *end;
	long number, us = 0;
	bool wakes = false;

	for (int i = 1; i < argc; i++) {
		number = strtol(argv[i], &end, 10);
		if (*end == '\0')
			us = number;
		else
			name = argv[i];
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	/* In a namespace of its own it goes with us, however we end. */
	(void)unshare(CLONE_NEWIPC);
	handle(SIGUSR1, on_signal, 0);
	handle(SIGALRM, on_signal, 0);
	(void)signal(SIGPIPE, SIG_IGN);
	(void)signal(SIGTSTP, SIG_IGN);
	for (size_t i = 0; i < sizeof(taken) / sizeof(taken[0]); i++)
		mask(SIG_BLOCK, taken[i]);
	for (size_t i = 0; i < N_KINDS; i++) {
		if (strcmp(name, "--list") == 0)
			puts(kinds[i].name);
		else if (strcmp(name, kinds[i].name) == 0 ||
			 (name[0] == '\0' && us > 0 && !makes_children(i))) {
			wait_add(&waits[n_waits++], &kinds[i], us);
			wakes = wakes || kinds[i].wake != NULL;
		}
	}
	if (n_waits == 0)
		return strcmp(name, "--list") == 0 ? 0 : 2;
	for (size_t i = 0; i < n_waits; i++)
		start(wait_again, &waits[i]);
	if (us > 0 && wakes)
		start(wake_again, NULL);
	while (atomic_load(&waits[0].tid) == 0)
		;
	ready(waits[0].tid);
	while (fgets(line, sizeof(line), stdin) != NULL) {
		if (strcmp(line, "lengths\n") == 0)
			print_lengths();
		else if (!obey(line))
			answer_sum(line);
	}
	clean_up();
	_exit(0);
}
