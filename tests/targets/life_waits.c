/*
 * What signals do to calls that wait: by the table of signal(7).
 *
 * Usage: life_waits N. A thread waits in each of the calls of cap_kinds.h that
 * the table is about, in turn. While it is blocked there it is sent, N times
 * each: a signal whose handler restarts calls, one whose handler does not, and
 * signals that are ignored, by default or by choice. Ignored ones end no wait,
 * the first kind only those of calls that never restart, the second all.
 */
// cflags: -lrt
#include "cap_kinds.h"
#include "life.h"

static struct wait w;

/* It runs a little between two waits, so that ticks find it running. */
static void *wait_again(void *unused)
{
	atomic_store(&w.tid, thread_number());
	while (!atomic_load(&ending)) {
		if (!wait_once(&w) && errno == EINTR)
			atomic_fetch_add(&w.eintr, 1);
		else
			atomic_fetch_add(&w.right, 1);
		run_for(50000);
	}
	return unused;
}

static void until_blocked(void)
{
	uint64_t since = now_ns();

	/* Twice: once may be on the way out. */
	for (int n = 0; n < 2;) {
		n = blocked_in(w.tid) >= 0 ? n + 1 : 0;
		patience(since, "the thread does not wait");
	}
}

/* Sends a signal n times; returns how often the wait ended. */
static unsigned long send_signals(int signal, unsigned long n, bool has_handler)
{
	const unsigned long before = w.eintr + w.right;

	for (unsigned long i = 0; i < n; i++) {
		const unsigned long so_far = n_handled;
		uint64_t since;

		until_blocked();
		send_signal(&w, signal);
		since = now_ns();
		while (has_handler && n_handled == so_far)
			patience(since, "a signal is not handled");
	}
	until_blocked();
	return w.eintr + w.right - before;
}

static void try_call(const struct wait_kind *kind, unsigned long n)
{
	static const int ignored[] = {SIGCHLD, SIGWINCH, SIGURG,
				      SIGCONT, SIGUSR2,	 SIGTSTP};
	unsigned long restart, plain, without = 0;
	pthread_t thread;

	memset(&w, 0, sizeof(w));
	atomic_store(&ending, false);
	wait_add(&w, kind, 0);
	thread = start(wait_again, NULL);
	while (w.tid == 0)
		(void)sched_yield();
	for (size_t k = 0; k < sizeof(ignored) / sizeof(ignored[0]); k++)
		without += send_signals(ignored[k], n, false);
	restart = send_signals(SIGALRM, n, true);
	plain = send_signals(SIGUSR1, n, true);
	printf("%s: ended %lu ignored, %lu SA_RESTART, %lu without\n",
	       kind->name, without, restart, plain);
	if (without != 0 || plain != n ||
	    restart != (kind->restart == RESTARTS ? 0 : n))
		wrong("%s: ended %lu, %lu, %lu of %lu", kind->name, without,
		      restart, plain, n);
	/* What it waits for does not come: the last signal ends it. */
	atomic_store(&ending, true);
	send_signal(&w, SIGUSR1);
	join(thread);
}

int main(int argc, char **argv)
{
	if (argc != 2)
		return 2;
	mask(SIG_BLOCK, TO_SIGWAIT);
	mask(SIG_BLOCK, TO_SIGNALFD);
	handle(SIGUSR1, on_signal, 0);
	handle(SIGALRM, on_signal, SA_RESTART);
	(void)signal(SIGUSR2, SIG_IGN);
	(void)signal(SIGTSTP, SIG_IGN);
	/* In a namespace of its own it goes with us, however we end. */
	(void)unshare(CLONE_NEWIPC);
	begin();
	for (size_t i = 0; i < N_KINDS; i++)
		if (kinds[i].restart != NOT_TRIED)
			try_call(&kinds[i], strtoul(argv[1], NULL, 10));
	return finish();
}
