/* Tests the table of threads. check_aggregate.c and check_chunks.c test the samples. */
#include "lib/aggregate/open_chunk.h"

#include "tests/unit/suite.h"

static struct open_chunk chunk;

static void set_up(void)
{
	open_chunk_init(&chunk, 1000000, 0, 0);
}

static void tear_down(void)
{
	open_chunk_fini(&chunk);
}

static struct thread *get(uint32_t tid)
{
	struct thread *t = NULL;

	OK(open_chunk_thread(&chunk, tid, &t));
	ck_assert_uint_eq(t->tid, tid);
	return t;
}

FIXTURE(set_up, tear_down)

TEST(new_threads_are_empty)
{
	struct thread *t = get(7);

	ck_assert_str_eq(t->name, "");
	ck_assert_uint_eq(t->stack.node, PROFILE_NONE);
	ck_assert_uint_eq(t->last, PROFILE_NONE);
	ck_assert_uint_eq(t->carry, PROFILE_NONE);
	ck_assert(!t->exited && !t->ahead);
	t->stack.node = 3;
	ck_assert_uint_eq(get(7)->stack.node, 3);
	ck_assert_ptr_null(open_chunk_find(&chunk, 8));
}

/*
 * Exited threads are removed. Threads with samples in the next chunk are removed one chunk later.
 */
TEST(exited_threads_are_dropped)
{
	for (uint32_t tid = 0; tid < 1000; tid++)
		get(tid);
	for (uint32_t tid = 0; tid < 1000; tid++) {
		get(tid)->exited = tid % 2 == 0;
		get(tid)->ahead = tid % 4 == 0;
	}
	OK(open_chunk_drop_exited(&chunk));
	ck_assert_uint_eq(chunk.n_threads, 750);
	for (uint32_t tid = 0; tid < 1000; tid++) {
		struct thread *t = open_chunk_find(&chunk, tid);

		ck_assert_int_eq(t != NULL, tid % 4 != 2);
		if (t != NULL)
			ck_assert_uint_eq(t->tid, tid);
	}
}
