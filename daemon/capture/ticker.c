#include "daemon/capture/ticker.h"

#include <errno.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "lib/base/util.h"

static struct timespec as_timespec(uint64_t ns)
{
	return (struct timespec){.tv_sec = (time_t)(ns / NS_PER_SEC),
				 .tv_nsec = (long)(ns % NS_PER_SEC)};
}

/*
 * The distance of tick n from the begin of its period: by SplitMix64 (Steele, Lea, Flood: Fast
 * splittable pseudorandom number generators, 2014), so that the time of a tick follows from its
 * number.
 */
static uint64_t offset_ns(const struct ticker *t, uint64_t tick)
{
	const uint64_t range_ns = t->period_ns - t->period_ns / 16;
	uint64_t z = t->epoch_ns + tick * UINT64_C(0x9e3779b97f4a7c15);

	if (tick == 0 || range_ns == 0 || t->period_ns > TICKER_RANDOM_MAX_NS)
		return 0;
	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return (z ^ z >> 31) % range_ns;
}

uint64_t ticker_time(const struct ticker *t, uint64_t tick)
{
	return t->epoch_ns + tick * t->period_ns + offset_ns(t, tick);
}

struct tick ticker_now(const struct ticker *t)
{
	return (struct tick){.number = t->tick,
			     .begin_ns = t->epoch_ns + t->tick * t->period_ns,
			     .period_ns = t->period_ns,
			     .due_ns = ticker_time(t, t->tick)};
}

uint64_t ticker_at(const struct ticker *t, uint64_t now_ns)
{
	uint64_t tick;

	if (now_ns <= t->epoch_ns)
		return 0;
	tick = (now_ns - t->epoch_ns) / t->period_ns;
	return ticker_time(t, tick) <= now_ns ? tick : tick - 1;
}

static int set(const struct ticker *t)
{
	const struct itimerspec timer = {
		.it_value = as_timespec(ticker_time(t, t->timer_tick)),
	};

	return timerfd_settime(t->fd, TFD_TIMER_ABSTIME, &timer, NULL) < 0 ? -errno : 0;
}

int ticker_start(struct ticker *t, struct loop *loop, uint64_t epoch_ns, uint64_t period_ns,
		 loop_fn fn)
{
	int r;

	if (period_ns == 0)
		return -EPROTO;
	if (t->source != NULL)
		return epoch_ns == t->epoch_ns && period_ns == t->period_ns ? 0 : -EPROTO;
	t->epoch_ns = epoch_ns;
	t->period_ns = period_ns;
	t->expired_unread = false;
	t->tick = ticker_at(t, clock_mono_ns());
	t->timer_tick = t->tick + 1;
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

int ticker_set_timer(struct ticker *t, uint64_t tick)
{
	tick = max_u64(tick, t->tick + 1);
	if (tick == t->timer_tick)
		return 0;
	t->timer_tick = tick;
	return set(t);
}

int ticker_plan(struct ticker *t, const struct capture *capture)
{
	/*
	 * The timer is set to the very next tick, or the timer of await.h wakes the caller at each
	 * tick.
	 */
	if (t->source == NULL || t->timer_tick == t->tick + 1 || t->expired_unread)
		return 0;
	return ticker_set_timer(t, min_u64(capture_next_tick(capture),
					   ticker_at(t, capture_timeout_ns(capture)) + 1));
}

static bool advance(struct ticker *t, uint64_t now_ns)
{
	const uint64_t tick = ticker_at(t, now_ns);

	if (tick <= t->tick)
		return false;
	t->tick = tick;
	return true;
}

bool ticker_pass(struct ticker *t, uint64_t now_ns)
{
	const bool is_new = advance(t, now_ns);

	t->expired_unread = t->timer_tick <= t->tick;
	return is_new;
}

bool ticker_take(struct ticker *t, uint64_t now_ns)
{
	uint64_t expirations;

	if (read(t->fd, &expirations, sizeof(expirations)) <= 0)
		return false;
	t->expired_unread = false;
	return advance(t, now_ns);
}
