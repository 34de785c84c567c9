#include "lib/client/sentry_profd.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/client/connection.h"
#include "lib/client/linking.h"
#include "lib/client/page_copy.h"
#include "lib/client/release.h"

/*
 * How often enter() yields the processor while another thread uses the connection, which takes that
 * thread a few system calls.
 */
#define YIELDS_MAX 1000

static bool enter(struct state *s)
{
	for (int n = 0; n < YIELDS_MAX; n++) {
		if (state_enter(s))
			return true;
		(void)sched_yield();
	}
	return false;
}

static void leave(struct state *s)
{
	store(&s->is_due, 1);
	state_leave(s, connection_work);
}

int sentry_profd_connect(const char *path)
{
	const int saved = errno;
	struct state *s = state_get();
	int r;

	if (s == NULL)
		return -ENOMEM;
	if (!enter(s))
		return -EAGAIN;
	r = connection_set_path(path);
	if (r == 0) {
		r = connection_open(s);
		leave(s);
	} else {
		state_leave(s, connection_work);
	}
	errno = saved;
	return r;
}

void sentry_profd_disconnect(void)
{
	struct state *s = state_get();

	connection_forget_path();
	if (s != NULL)
		state_do_work(s, connection_work);
}

int sentry_profd_wait(int timeout_ms)
{
	const int saved = errno;
	struct state *s = state_get();
	uint64_t now_ns = state_now_ns(), end_ns = now_ns;
	int r = s == NULL ? -ENOMEM : 0;
	bool is_over = false;

	if (timeout_ms > 0)
		end_ns += (uint64_t)timeout_ms * NS_PER_MS;
	while (r == 0) {
		state_do_work(s, connection_work);
		if (load(&s->has_page))
			break;
		/* The socket can be readable while another thread has entered the state. */
		if (is_over) {
			r = -ETIMEDOUT;
			break;
		}
		now_ns = state_now_ns();
		is_over = now_ns >= end_ns;
		r = connection_wait(s, is_over ? 0 : (int)((end_ns - now_ns - 1) / NS_PER_MS) + 1);
	}
	errno = saved;
	return r;
}

static int release(unsigned int seconds)
{
	struct state *s = state_get();
	int fd, r;

	if (s == NULL)
		return -ENOMEM;
	if (!enter(s))
		return -EAGAIN;
	fd = connection_dial();
	state_leave(s, connection_work);
	if (fd < 0)
		return fd;
	r = release_request(fd, seconds);
	/* A child that another thread has forked meanwhile would keep the connection open. */
	(void)shutdown(fd, SHUT_RDWR);
	(void)close(fd);
	return r;
}

int sentry_profd_release(unsigned int seconds)
{
	const int saved = errno;
	int cancel, r;

	(void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	r = release(seconds);
	(void)pthread_setcancelstate(cancel, &cancel);
	errno = saved;
	return r;
}

enum sentry_profd_state sentry_profd_state(void)
{
	struct page_copy copy;

	if (!page_copy_read(&copy))
		return SENTRY_PROFD_NO_DAEMON;
	switch ((enum protocol_state)copy.page.state) {
	case PROTOCOL_STATE_NONE:
		return SENTRY_PROFD_NO_TARGET;
	case PROTOCOL_STATE_PROFILING:
		return SENTRY_PROFD_PROFILING;
	case PROTOCOL_STATE_STOPPED:
		return SENTRY_PROFD_STOPPED;
	case PROTOCOL_STATE_UNSAMPLED:
		return SENTRY_PROFD_UNSAMPLED;
	case PROTOCOL_STATE_LIMITED:
	case PROTOCOL_STATE_TRACED_BY_OTHER:
	case PROTOCOL_STATE_LEFT_OUT:
	case PROTOCOL_STATE_CRASHED:
	case PROTOCOL_STATE_DETACHING:
	case PROTOCOL_STATE_WAITING:
		return SENTRY_PROFD_SUSPENDED;
	}
	return SENTRY_PROFD_SUSPENDED;
}

/*
 * Returns the result that a start (starts) or a stop will have, by the daemon's page. Call it
 * before the request is sent.
 */
static enum sentry_profd_result expected_result(bool starts)
{
	struct page_copy copy;

	if (!page_copy_read(&copy))
		return SENTRY_PROFD_LATER;
	if (copy.page.state == PROTOCOL_STATE_NONE)
		return SENTRY_PROFD_OK;
	if (copy.page.lifecycle == PROTOCOL_TRACE)
		return SENTRY_PROFD_TRACE_MODE;
	if (starts && !copy.page.is_sampled)
		return SENTRY_PROFD_NOT_SAMPLED;
	if (copy.is_running == starts)
		return starts ? SENTRY_PROFD_RUNS_ALREADY : SENTRY_PROFD_NOT_RUNNING;
	return SENTRY_PROFD_OK;
}

static enum sentry_profd_result command(enum command what)
{
	struct state *s = state_get();
	enum sentry_profd_result result;

	if (s == NULL)
		return SENTRY_PROFD_LATER;
	result = expected_result(what == COMMAND_START);
	store(&s->command, what);
	__atomic_add_fetch(&s->n_commands, 1, __ATOMIC_SEQ_CST);
	state_do_work(s, connection_work);
	return result;
}

enum sentry_profd_result sentry_profd_start_profiler(void)
{
	return command(COMMAND_START);
}

enum sentry_profd_result sentry_profd_stop_profiler(void)
{
	return command(COMMAND_STOP);
}

sentry_profd_span sentry_profd_root_span_begin(int is_sampled)
{
	struct state *s = state_get();
	bool is_first;

	if (s == NULL)
		return 0;
	is_first = !load(&s->is_traced);
	if (is_first)
		store(&s->is_traced, 1);
	if (is_sampled)
		is_first |= __atomic_fetch_add(&s->spans, 1, __ATOMIC_SEQ_CST) == 0;
	if (is_first)
		state_do_work(s, connection_work);
	else
		connection_check_if_due(s);
	if (!is_sampled)
		return 0;
	if (load(&s->has_page))
		linking_prepare();
	return load(&s->generation);
}

void sentry_profd_root_span_end(sentry_profd_span span)
{
	struct state *s = span == 0 ? NULL : state_get();
	uint32_t open;

	/* A span that was begun before a fork(2) belongs to the parent. */
	if (s == NULL || load(&s->generation) != span)
		return;
	open = load(&s->spans);
	do {
		if (open == 0)
			return;
	} while (!__atomic_compare_exchange_n(&s->spans, &open, open - 1, false, __ATOMIC_SEQ_CST,
					      __ATOMIC_SEQ_CST));
	if (open == 1)
		state_do_work(s, connection_work);
}
