#include "daemon/broker/children/children.h"
#include "daemon/broker/children/reap.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#include "tests/unit/suite.h"

static struct children c;

static void set_up(void)
{
	memset(&c, 0, sizeof(c));
	c.capture.type = &child_types[CHILD_CAPTURE];
}

static uint64_t sum(void)
{
	uint64_t n = 0;

	for (size_t of = 0; of < CHILD_KIND_N; of++)
		for (size_t r = 0; r < RESTART_REASON_N; r++)
			n += c.restarts.n[of][r];
	return n;
}

FIXTURE(set_up, NULL)

TEST(each_restart_is_counted_by_its_reason)
{
	const uint64_t *n = c.restarts.n[CHILD_CAPTURE];

	reap_count_restart(&c.restarts, &c.capture, SIGSEGV);
	ck_assert_uint_eq(n[RESTART_SIGNAL], 1);
	reap_count_restart(&c.restarts, &c.capture, W_EXITCODE(1, 0));
	ck_assert_uint_eq(n[RESTART_STATUS], 1);
	/* Killed by the broker, so the status does not matter. */
	c.capture.state = CHILD_KILLED;
	reap_count_restart(&c.restarts, &c.capture, SIGKILL);
	ck_assert_uint_eq(n[RESTART_MISBEHAVED], 1);
	c.capture.state = CHILD_HUNG;
	reap_count_restart(&c.restarts, &c.capture, SIGKILL);
	ck_assert_uint_eq(n[RESTART_HEARTBEAT], 1);
	ck_assert_uint_eq(sum(), 4);
}

TEST(each_restart_is_counted_by_its_child)
{
	const struct child ship = {.type = &child_types[CHILD_SHIP]};
	const struct child unwind = {.type = &child_types[CHILD_UNWIND]};

	reap_count_restart(&c.restarts, &ship, SIGKILL);
	ck_assert_uint_eq(c.restarts.n[CHILD_SHIP][RESTART_SIGNAL], 1);
	reap_count_restart(&c.restarts, &unwind, SIGKILL);
	ck_assert_uint_eq(c.restarts.n[CHILD_UNWIND][RESTART_SIGNAL], 1);
	ck_assert_uint_eq(sum(), 2);
}

TEST(each_reason_has_a_name_of_its_own)
{
	for (int i = 0; i < RESTART_REASON_N; i++)
		for (int j = 0; j <= i; j++)
			ck_assert((strcmp(reap_reason_name(i), reap_reason_name(j)) == 0) ==
				  (i == j));
}
