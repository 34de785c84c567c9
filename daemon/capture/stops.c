#include "daemon/capture/stops.h"

#include <sys/signalfd.h>
#include <unistd.h>

#include "lib/capture/detach.h"
#include "lib/capture/ptrace/tracee.h"
#include "lib/capture/reap.h"

/* waitpid(-1) visits all tracees, twice before it sleeps, and takes 50 ns for each. */
#define AWAIT_THREADS_MAX 128

/*
 * The timer is set after this many ticks in a row with due stops, because setting and clearing it
 * costs as much as it saves in some ticks.
 */
#define AWAIT_TICKS 4

/* The longest time for which the event loop does not run while ticks come. */
#define EVENTS_NS (40 * NS_PER_MS)

/*
 * The longest wait by await_next if no stop is due: messages wait for its end, and the next tick
 * may be two periods away (ticker.h).
 */
#define AWAIT_IDLE_NS (20 * NS_PER_MS)

static void on_signals(void *ctx)
{
	struct stops *s = ctx;
	struct signalfd_siginfo info;

	/* While the timer of await is set, stops are taken without this signal. */
	if (s->await.is_set)
		return;
	(void)!read(s->signal_fd, &info, sizeof(info));
	s->behind = capture_reap(s->capture);
}

int stops_init(struct stops *s, struct loop *loop, struct capture *capture,
	       struct heartbeat_polls *counts)
{
	sigset_t blocked;

	*s = (struct stops){.capture = capture, .signal_fd = -1, .counts = counts};
	sigemptyset(&s->child_signal);
	sigaddset(&s->child_signal, SIGCHLD);
	blocked = s->child_signal;
	sigaddset(&blocked, SIGALRM);
	sigaddset(&blocked, AWAIT_SIGNAL);
	if (sigprocmask(SIG_BLOCK, &blocked, NULL) < 0)
		return -errno;
	s->signal_fd = signalfd(-1, &s->child_signal, SFD_CLOEXEC | SFD_NONBLOCK);
	if (s->signal_fd < 0)
		return -errno;
	await_init(&s->await);
	return loop_add(loop, s->signal_fd, on_signals, s, &s->source);
}

void stops_tick(struct stops *s, const struct ticker *t)
{
	s->ticks_with_stops = capture_pending(s->capture) > 0 ? s->ticks_with_stops + 1 : 0;
	s->polls_next = s->ticks_with_stops > 0 && polling_is_due(&s->polling);
	s->period_ns = t->period_ns;
	if (s->await.is_set || (s->ticks_with_stops >= AWAIT_TICKS &&
				capture_threads(s->capture) <= AWAIT_THREADS_MAX &&
				t->period_ns <= HEARTBEAT_EVERY_MS * NS_PER_MS))
		await_set_timer(&s->await, ticker_time(t, t->tick + 1), t->period_ns / 2);
}

void stops_by_signal(struct stops *s)
{
	if (!s->await.is_set)
		return;
	s->ticks_with_stops = 0;
	await_clear_timer(&s->await);
	s->behind = capture_reap(s->capture);
}

/*
 * Called while no stop is due. Returns true if the timer of await.h is of no use: no stop is
 * expected after the next tick, or that tick is far away.
 */
static bool waits_needlessly(const struct stops *s, uint64_t now_ns, uint64_t next_ns)
{
	return s->ticks_with_stops == 0 || capture_threads(s->capture) == 0 ||
	       next_ns > now_ns + min_u64(2 * s->period_ns, AWAIT_IDLE_NS);
}

/* Returns true if a stop is due, and the tracing thread goes on and may wait for it. */
static bool has_due(const struct stops *s)
{
	return capture_pending(s->capture) > 0 && !capture_must_detach_now(s->capture);
}

/* Handles the stops that come within POLLING_NS, until none is due. */
static void poll_for_stops(struct stops *s, uint64_t now_ns, uint64_t next_ns)
{
	const uint64_t end_ns = min_u64(now_ns + POLLING_NS, next_ns);
	bool all_came;
	int status;
	pid_t tid;

	s->polls_next = false;
	do {
		tid = tracee_wait(-1, false, &status);
		if (tid > 0)
			capture_handle_status(s->capture, (uint32_t)tid, status);
	} while (tid >= 0 && has_due(s) && clock_mono_ns() < end_ns);
	all_came = capture_pending(s->capture) == 0;
	if (all_came)
		s->counts->useful++;
	else
		s->counts->useless++;
	polling_ended(&s->polling, all_came);
}

static bool take_awaited(struct stops *s, uint64_t now_ns, uint64_t next_ns)
{
	pid_t tid;
	int status;

	if (s->polls_next && has_due(s)) {
		poll_for_stops(s, now_ns, next_ns);
		if (!has_due(s))
			return true;
	}
	do {
		if (!await_next(&s->await, next_ns, &tid, &status)) {
			/* If the wait ended before its time, there are no tracees. */
			if (clock_mono_ns() < next_ns)
				stops_by_signal(s);
			return false;
		}
		capture_handle_status(s->capture, (uint32_t)tid, status);
	} while (has_due(s));
	return true;
}

/* Waits for SIGCHLD by sigtimedwait(2), since a stop would cost three system calls by signalfd. */
static bool take_signalled(struct stops *s, uint64_t wait_ns)
{
	const struct timespec timeout = {
		.tv_nsec = (long)min_u64(wait_ns, HEARTBEAT_EVERY_MS * NS_PER_MS),
	};

	if (sigtimedwait(&s->child_signal, NULL, &timeout) < 0)
		return false;
	s->behind = capture_reap(s->capture);
	return true;
}

bool stops_take(struct stops *s, uint64_t now_ns, uint64_t next_ns)
{
	if (capture_pending(s->capture) == 0 && waits_needlessly(s, now_ns, next_ns))
		stops_by_signal(s);
	if (s->behind || now_ns >= next_ns)
		return false;
	if (s->await.is_set)
		return take_awaited(s, now_ns, next_ns);
	return capture_pending(s->capture) > 0 && take_signalled(s, next_ns - now_ns);
}

bool stops_spare_loop(struct stops *s, uint64_t next_ns)
{
	const uint64_t now_ns = clock_mono_ns();

	if (s->await.is_set && !s->behind && now_ns >= next_ns && now_ns < s->events_ns)
		return true;
	s->events_ns = now_ns + EVENTS_NS;
	return false;
}

void stops_take_more(struct stops *s)
{
	if (s->behind)
		s->behind = capture_reap(s->capture);
}
