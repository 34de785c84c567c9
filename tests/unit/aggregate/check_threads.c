#include "lib/aggregate/threads.h"

#include "proto/profile.h"
#include "tests/unit/suite.h"

static struct threads threads;

static void set_up(void)
{
	threads_init(&threads, 0);
}

static void tear_down(void)
{
	threads_fini(&threads);
}

static struct thread *get(uint32_t tid)
{
	struct thread *t = NULL;

	OK(threads_get(&threads, tid, &t));
	ck_assert_uint_eq(t->tid, tid);
	return t;
}

FIXTURE(set_up, tear_down)

TEST(starts_from_nothing)
{
	struct thread *t = get(7);

	ck_assert_str_eq(t->name, "");
	ck_assert_uint_eq(t->node, PROFILE_NONE);
	ck_assert_uint_eq(t->last, PROFILE_NONE);
	ck_assert_uint_eq(t->carry, PROFILE_NONE);
	ck_assert(!t->exited && !t->ahead);
	t->node = 3;
	ck_assert_uint_eq(get(7)->node, 3);
	ck_assert_ptr_null(threads_find(&threads, 8));
	threads_fini(NULL);
}

/* The dead go, those with something ahead a chunk later. */
TEST(drop_exited)
{
	for (uint32_t tid = 0; tid < 1000; tid++)
		get(tid);
	for (uint32_t tid = 0; tid < 1000; tid++) {
		get(tid)->exited = tid % 2 == 0;
		get(tid)->ahead = tid % 4 == 0;
	}
	OK(threads_drop_exited(&threads));
	ck_assert_uint_eq(threads.n, 750);
	for (uint32_t tid = 0; tid < 1000; tid++) {
		struct thread *t = threads_find(&threads, tid);

		ck_assert_int_eq(t != NULL, tid % 4 != 2);
		if (t != NULL)
			ck_assert_uint_eq(t->tid, tid);
	}
}
