#include "daemon/broker/discovery/rechecks.h"

#include "tests/unit/suite.h"

static struct rechecks s;

static void set_up(void)
{
	rechecks_init(&s);
}

static void tear_down(void)
{
	rechecks_fini(&s);
	ck_assert_uint_eq(s.n, 0);
}

static int add(int32_t pid, enum recheck_cause cause, uint64_t born, uint64_t due)
{
	const struct recheck new = {.pid = pid, .cause = cause, .born_ns = born, .due_ns = due};

	return rechecks_add(&s, &new);
}

/* Takes the only entry that is due. */
static struct recheck take(uint64_t now)
{
	struct recheck found, none;

	rechecks_begin_pass(&s);
	ck_assert(rechecks_take(&s, now, &found));
	ck_assert(!rechecks_take(&s, now, &none));
	return found;
}

static bool any(uint64_t now)
{
	struct recheck found;

	rechecks_begin_pass(&s);
	return rechecks_take(&s, now, &found);
}

FIXTURE(set_up, tear_down)

TEST(an_entry_is_taken_when_it_is_due)
{
	ck_assert(!any(UINT64_MAX));
	OK(add(7, RECHECK_FORK, 1, 10));
	ck_assert(!any(9));
	ck_assert_int_eq(take(10).pid, 7);
	ck_assert(!any(UINT64_MAX));
}

TEST(a_pid_has_one_entry)
{
	struct recheck found;

	OK(add(7, RECHECK_FORK, 1, 10));
	/* Renames itself: the check at 10 sees that as well. */
	OK(add(7, RECHECK_OTHER, 5, 15));
	found = take(20);
	ck_assert_uint_eq(found.born_ns, 1);
	ck_assert_uint_eq(found.due_ns, 10);
	ck_assert_int_eq(found.cause, RECHECK_FORK);

	/* A check was due later; this one is sooner. */
	OK(add(7, RECHECK_OTHER, 1, 40));
	OK(add(7, RECHECK_OTHER, 30, 31));
	found = take(31);
	ck_assert_uint_eq(found.born_ns, 1);

	/* Another program, then another process. */
	OK(add(7, RECHECK_EXEC, 50, 60));
	OK(add(7, RECHECK_OTHER, 50, 52));
	found = take(52);
	ck_assert_int_eq(found.cause, RECHECK_EXEC);
	OK(add(7, RECHECK_EXEC, 50, 50));
	OK(add(7, RECHECK_FORK, 60, 70));
	ck_assert(!any(69));
	ck_assert_int_eq(take(70).cause, RECHECK_FORK);
}

/* All entries, each once, also if a caller takes a few at a time. */
TEST(a_pass_visits_each_entry_once)
{
	enum { N = 1000 };
	static bool seen[N];
	struct recheck found;
	int n = 0, turns = 0;

	for (int i = 0; i < N; i++)
		OK(add(i, RECHECK_OTHER, 0, i % 2 == 0 ? 5 : 9));
	while (n < N / 2) {
		ck_assert_int_lt(turns++, N);
		rechecks_begin_pass(&s);
		for (int i = 0; i < 7 && rechecks_take(&s, 5, &found); i++) {
			ck_assert_int_eq(found.pid % 2, 0);
			ck_assert(!seen[found.pid]);
			seen[found.pid] = true;
			n++;
		}
	}
	ck_assert(!any(8));
	/* An entry that is added during a turn waits for the next one. */
	rechecks_begin_pass(&s);
	while (rechecks_take(&s, 9, &found)) {
		n++;
		OK(add(found.pid + N, RECHECK_OTHER, 0, 9));
	}
	ck_assert_int_eq(n, N);
	ck_assert_uint_eq(s.n, N / 2);
}

TEST(a_full_queue_refuses_new_pids)
{
	for (int i = 0; i < RECHECKS_MAX; i++)
		OK(add(i, RECHECK_FORK, 0, 5));
	ck_assert_int_eq(add(RECHECKS_MAX, RECHECK_FORK, 0, 5), -ENOSPC);
	/* An entry that exists needs no room. */
	OK(add(1, RECHECK_EXEC, 0, 5));
	ck_assert(any(5));
	OK(add(RECHECKS_MAX, RECHECK_FORK, 0, 5));
}
