#include "daemon/idle.h"

#include <stdlib.h>
#include <sys/socket.h>

#include "daemon/child.h"
#include "tests/unit/suite.h"

static struct broker b;
static struct unwind *unwind;
static int end;

/* One unwind process, this test, and a target that it serves. */
static void set_up(void)
{
	int pair[2];

	b = (struct broker){.n_unwinds = 1};
	ck_assert_int_eq(ipc_pair(pair), 0);
	unwind = calloc(1, sizeof(*unwind));
	ck_assert_ptr_nonnull(unwind);
	unwind->child = (struct child){
		.broker = &b, .name = "unwind", .pid = 1, .fd = pair[0]};
	unwind->child.usage.cpu_s = 2;
	b.unwinds[0] = unwind;
	end = pair[1];
	b.targets[3] = (struct target){.id = 1, .slot = 3, .unwind = unwind};
}

static bool has_ended(void)
{
	char byte;

	return recv(end, &byte, 1, MSG_DONTWAIT) == 0;
}

START_TEST(one_that_is_needed_stays)
{
	for (uint64_t t = 1; t < 5 * IDLE_NS; t += IDLE_NS / 4)
		idle_check(&b, t);
	ck_assert(!has_ended());
	ck_assert_uint_eq(b.n_unwinds, 1);
}
END_TEST

START_TEST(a_minute_after_its_last_target)
{
	idle_check(&b, 10);
	b.targets[3].id = 0;
	idle_check(&b, 9 + IDLE_NS);
	ck_assert(!has_ended());
	idle_check(&b, 10 + IDLE_NS);
	ck_assert(has_ended());
	ck_assert(!child_is_wanted(&unwind->child));
	/* Until it is dead. */
	idle_check(&b, 20 + IDLE_NS);
	ck_assert_uint_eq(b.n_unwinds, 1);
	unwind->child.pid = 0;
	idle_check(&b, 30 + IDLE_NS);
	ck_assert_uint_eq(b.n_unwinds, 0);
	ck_assert_double_eq(b.unwinds_gone.cpu_s, 2);
}
END_TEST

START_TEST(one_that_comes_back_finds_it)
{
	idle_check(&b, 10);
	b.targets[3].id = 0;
	idle_check(&b, IDLE_NS);
	b.targets[3].id = 2;
	idle_check(&b, IDLE_NS + 5);
	b.targets[3].id = 0;
	idle_check(&b, 2 * IDLE_NS);
	ck_assert(!has_ended());
}
END_TEST

Suite *suite(void)
{
	Suite *s = suite_create("idle");
	TCase *c = tcase_create("idle");

	tcase_add_checked_fixture(c, set_up, NULL);
	tcase_add_test(c, one_that_is_needed_stays);
	tcase_add_test(c, a_minute_after_its_last_target);
	tcase_add_test(c, one_that_comes_back_finds_it);
	suite_add_tcase(s, c);
	return s;
}
