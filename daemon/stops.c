#include "daemon/stops.h"

#include <sys/signalfd.h>
#include <unistd.h>

#include "daemon/heartbeat.h"

/* To wait for any goes through all, and twice before it sleeps: 50 ns each. */
#define AWAIT_THREADS_MAX 128

static void on_signals(void *ctx)
{
	struct stops *s = ctx;
	struct signalfd_siginfo info;

	(void)!read(s->signal_fd, &info, sizeof(info));
	/* While it rings they are taken without being told of. */
	if (!s->await.rings)
		s->behind = capture_reap(s->capture);
}

int stops_init(struct stops *s, struct loop *loop, struct capture *capture)
{
	sigset_t blocked;

	*s = (struct stops){.capture = capture, .signal_fd = -1};
	sigemptyset(&s->child_signal);
	sigaddset(&s->child_signal, SIGCHLD);
	blocked = s->child_signal;
	sigaddset(&blocked, SIGALRM);
	sigaddset(&blocked, AWAIT_SIGNAL);
	if (sigprocmask(SIG_BLOCK, &blocked, NULL) < 0)
		return -errno;
	s->signal_fd =
		signalfd(-1, &s->child_signal, SFD_CLOEXEC | SFD_NONBLOCK);
	if (s->signal_fd < 0)
		return -errno;
	await_init(&s->await);
	return loop_add(loop, s->signal_fd, on_signals, s, &s->source);
}

/*
 * Where those of the tick before have not all stopped, there are more threads
 * than processors, most likely, and so it goes on.
 */
void stops_tick(struct stops *s, const struct ticker *t)
{
	if (!s->await.rings && capture_pending(s->capture) > 0 &&
	    capture_threads(s->capture) <= AWAIT_THREADS_MAX &&
	    t->period_ns <= HEARTBEAT_EVERY_MS * NS_PER_MS)
		await_ring(&s->await, ticker_time(t, t->tick + 1),
			   t->period_ns);
}

/* All, up to the tick. */
static bool take_awaited(struct stops *s, uint64_t next_ns)
{
	bool taken = false;
	pid_t tid;
	int status;

	while (capture_pending(s->capture) > 0 &&
	       await_next(&s->await, next_ns, &tid, &status)) {
		capture_take(s->capture, (uint32_t)tid, status);
		taken = true;
	}
	return taken;
}

/* It takes SIGCHLD as it comes; by the signalfd a stop would cost three calls.
 */
static bool take_signalled(struct stops *s, uint64_t wait_ns)
{
	const struct timespec timeout = {
		.tv_nsec =
			(long)min_u64(wait_ns, HEARTBEAT_EVERY_MS * NS_PER_MS),
	};

	if (sigtimedwait(&s->child_signal, NULL, &timeout) < 0)
		return false;
	s->behind = capture_reap(s->capture);
	return true;
}

bool stops_take(struct stops *s, uint64_t now_ns, uint64_t next_ns)
{
	if (s->await.rings && capture_pending(s->capture) == 0) {
		await_rest(&s->await);
		s->behind = capture_reap(s->capture);
	}
	if (s->behind || capture_pending(s->capture) == 0 || now_ns >= next_ns)
		return false;
	return s->await.rings ? take_awaited(s, next_ns)
			      : take_signalled(s, next_ns - now_ns);
}

void stops_take_rest(struct stops *s)
{
	if (s->behind)
		s->behind = capture_reap(s->capture);
}
