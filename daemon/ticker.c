#include "daemon/ticker.h"

#include <errno.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "lib/base/util.h"

static struct timespec as_timespec(uint64_t ns)
{
	return (struct timespec){.tv_sec = (time_t)(ns / NS_PER_SEC),
				 .tv_nsec = (long)(ns % NS_PER_SEC)};
}

/* From t->from on. */
static int set(const struct ticker *t)
{
	const struct itimerspec timer = {
		.it_value = as_timespec(ticker_time(t, t->from)),
		.it_interval = as_timespec(t->period_ns),
	};

	return timerfd_settime(t->fd, TFD_TIMER_ABSTIME, &timer, NULL) < 0
		       ? -errno
		       : 0;
}

int ticker_start(struct ticker *t, struct loop *loop, uint64_t epoch_ns,
		 uint64_t period_ns, loop_fn fn)
{
	int r;

	if (period_ns == 0)
		return -EPROTO;
	if (t->source != NULL)
		return epoch_ns == t->epoch_ns && period_ns == t->period_ns
			       ? 0
			       : -EPROTO;
	t->epoch_ns = epoch_ns;
	t->period_ns = period_ns;
	t->tick = ticker_at(t, clock_mono_ns());
	t->from = t->tick + 1;
	t->fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (t->fd < 0)
		return -errno;
	r = set(t);
	return r < 0 ? r : loop_add(loop, t->fd, fn, NULL, &t->source);
}

void ticker_stop(struct ticker *t, struct loop *loop)
{
	if (t->source == NULL)
		return;
	loop_remove(loop, &t->source);
	close_fd(&t->fd);
}

uint64_t ticker_at(const struct ticker *t, uint64_t now_ns)
{
	return now_ns <= t->epoch_ns ? 0
				     : (now_ns - t->epoch_ns) / t->period_ns;
}

int ticker_ring_at(struct ticker *t, uint64_t tick)
{
	tick = max_u64(tick, t->tick + 1);
	if (tick == ticker_next(t))
		return 0;
	t->from = tick;
	return set(t);
}

int ticker_plan(struct ticker *t, const struct capture *capture)
{
	/* Between two ticks in a row nothing can be earlier, nor is later. */
	if (t->source == NULL ||
	    (t->planned == t->tick && ticker_next(t) == t->tick + 1))
		return 0;
	t->planned = t->tick;
	return ticker_ring_at(
		t, min_u64(capture_next_tick(capture),
			   ticker_at(t, capture_waits_ns(capture)) + 1));
}

bool ticker_pass(struct ticker *t, uint64_t now_ns)
{
	const uint64_t tick = ticker_at(t, now_ns);

	if (tick <= t->tick)
		return false;
	t->tick = tick;
	return true;
}

/* The kernel sets a timer that has rung again where it is read. */
bool ticker_take(struct ticker *t, uint64_t now_ns)
{
	uint64_t expirations;

	return read(t->fd, &expirations, sizeof(expirations)) > 0 &&
	       ticker_pass(t, now_ns);
}
