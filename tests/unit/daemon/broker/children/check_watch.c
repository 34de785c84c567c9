/* Heartbeats that a capture which was taken over has written. */
#include "daemon/broker/children/watch.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "tests/unit/suite.h"

static struct state state;
static struct children children;
static struct heartbeat heartbeat;

/* A process that waits stands for capture. */
static void set_up(void)
{
	memset(&state, 0, sizeof(state));
	memset(&children, 0, sizeof(children));
	memset(&heartbeat, 0, sizeof(heartbeat));
	children.state = &state;
	children.heartbeat = &heartbeat;
	children.capture = (struct child){
		.type = &child_types[CHILD_CAPTURE],
		.children = &children,
		.pid = fork(),
		.fd = -1,
		.state = CHILD_READY,
		.started_ns = clock_mono_ns(),
	};
	if (children.capture.pid == 0)
		for (;;)
			(void)pause();
}

static void tear_down(void)
{
	(void)kill(children.capture.pid, SIGKILL);
	(void)waitpid(children.capture.pid, NULL, 0);
}

FIXTURE(set_up, tear_down)

TEST(a_beat_of_now_is_none_of_the_future)
{
	uint32_t target;

	heartbeat.beat.time_ns = clock_mono_ns() + NS_PER_MS;
	ck_assert(!watch_capture_hangs(&children, &target));
	ck_assert_int_eq(children.capture.state, CHILD_READY);
}

TEST(a_beat_of_the_future_ends_capture)
{
	uint32_t target;

	heartbeat.beat.time_ns = UINT64_MAX;
	heartbeat.beat.touching = 7;
	/* No target is to blame. */
	ck_assert(!watch_capture_hangs(&children, &target));
	ck_assert_int_eq(children.capture.state, CHILD_KILLED);
}

TEST(no_beat_is_later_than_now)
{
	heartbeat.beat.time_ns = UINT64_MAX;
	ck_assert_uint_le(watch_beat_ns(&children), clock_mono_ns());
	heartbeat.beat.time_ns = 5;
	ck_assert_uint_eq(watch_beat_ns(&children), 5);
}
