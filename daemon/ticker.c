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

int ticker_start(struct ticker *t, struct loop *loop, uint64_t epoch_ns,
		 uint64_t period_ns, loop_fn fn)
{
	struct itimerspec timer;

	if (period_ns == 0)
		return -EPROTO;
	if (t->source != NULL)
		return epoch_ns == t->epoch_ns && period_ns == t->period_ns
			       ? 0
			       : -EPROTO;
	t->epoch_ns = epoch_ns;
	t->period_ns = period_ns;
	t->tick = ticker_at(t, clock_mono_ns());
	timer = (struct itimerspec){
		.it_value = as_timespec(ticker_time(t, t->tick + 1)),
		.it_interval = as_timespec(period_ns),
	};
	t->fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (t->fd < 0 ||
	    timerfd_settime(t->fd, TFD_TIMER_ABSTIME, &timer, NULL) < 0)
		return -errno;
	return loop_add(loop, t->fd, fn, NULL, &t->source);
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

bool ticker_take(struct ticker *t, uint64_t now_ns)
{
	uint64_t expirations, tick;

	if (read(t->fd, &expirations, sizeof(expirations)) < 0)
		return false;
	tick = ticker_at(t, now_ns);
	if (tick <= t->tick)
		return false;
	t->tick = tick;
	return true;
}
