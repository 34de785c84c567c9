#include "daemon/unwind/thread_keys.h"

#include "tests/unit/suite.h"

#define POINTER UINT64_C(0x7f0012345680)

static struct thread_keys k;

static void set_up(void)
{
	thread_keys_init(&k, true, 0);
}

static void tear_down(void)
{
	thread_keys_fini(&k);
	thread_keys_fini(NULL);
}

static struct thread_name take(uint32_t tid, uint64_t pointer)
{
	struct thread_name name;

	OK(thread_keys_take(&k, tid, pointer, &name));
	return name;
}

FIXTURE(set_up, tear_down)

TEST(by_tid)
{
	struct thread_name name;

	thread_keys_init(&k, false, 0);
	name = take(4711, POINTER);
	ck_assert_uint_eq(name.key, 4711);
	ck_assert_uint_eq(name.id, 0);
	ck_assert_uint_eq(name.left, 0);
	ck_assert_uint_eq(thread_keys_of(&k, 815), 815);
	thread_keys_leave(&k, 815);
	thread_keys_leave_all(&k);
	ck_assert_int_eq(thread_keys_next(&k), 0);
}

TEST(by_pointer)
{
	struct thread_name a = take(100, POINTER), b = take(101, POINTER + 64);

	ck_assert_uint_eq(a.id, POINTER);
	ck_assert_uint_eq(b.id, POINTER + 64);
	ck_assert_uint_ne(a.key, b.key);
	ck_assert_uint_eq(thread_keys_of(&k, 100), a.key);
	ck_assert_uint_eq(thread_keys_of(&k, 101), b.key);
	ck_assert_uint_eq(thread_keys_of(&k, 102), 0);
	/* Its new name. */
	ck_assert_uint_eq(take(100, POINTER).key, a.key);
	ck_assert_uint_eq(take(100, 0).id, POINTER);
}

TEST(a_pointer_that_comes_to_be_known)
{
	struct thread_name before = take(100, 0), after;

	ck_assert_uint_eq(before.id, 100);
	after = take(100, POINTER);
	ck_assert_uint_eq(after.id, POINTER);
	ck_assert_uint_eq(after.key, before.key);
	ck_assert_uint_eq(after.left, 0);
}

TEST(a_stack_that_is_used_again)
{
	struct thread_name first = take(100, POINTER), second;

	thread_keys_leave(&k, 100);
	ck_assert_uint_eq(thread_keys_of(&k, 100), 0);
	second = take(200, POINTER);
	ck_assert_uint_eq(second.key, first.key);
	ck_assert_uint_eq(second.id, POINTER);
	ck_assert_uint_eq(second.left, 0);
	/* One whose end is told after the beginning of the next. */
	ck_assert_uint_eq(take(300, POINTER).key, first.key);
	ck_assert_uint_eq(thread_keys_of(&k, 200), 0);
	thread_keys_leave(&k, 200);
	ck_assert_uint_eq(thread_keys_of(&k, 300), first.key);
}

TEST(a_stack_that_turns_out_to_be_used_again)
{
	struct thread_name first = take(100, POINTER), second = take(200, 0);
	struct thread_name after;

	ck_assert_uint_ne(second.key, first.key);
	after = take(200, POINTER);
	ck_assert_uint_eq(after.key, first.key);
	ck_assert_uint_eq(after.left, second.key);
	ck_assert_uint_eq(thread_keys_of(&k, 100), 0);
	/* And its own pointer is another's. */
	ck_assert_uint_eq(take(200, POINTER + 64).key, first.key);
	ck_assert_uint_ne(take(300, POINTER).key, first.key);
}

/* It was known before the one whose stack it has, and goes on as that. */
TEST(a_stack_of_one_that_came_later)
{
	uint32_t key;

	(void)take(100, 0);
	key = take(200, POINTER).key;
	ck_assert_uint_eq(take(100, POINTER).key, key);
	ck_assert_int_eq(thread_keys_next(&k), 0);
	ck_assert_uint_eq(thread_keys_of(&k, 100), key);
	ck_assert_uint_eq(take(300, POINTER).key, key);
	ck_assert_uint_eq(thread_keys_of(&k, 100), 0);
}

TEST(all_are_gone)
{
	uint32_t key = take(100, POINTER).key;

	thread_keys_leave_all(&k);
	ck_assert_uint_eq(thread_keys_of(&k, 100), 0);
	ck_assert_uint_eq(take(100, POINTER).key, key);
}

/* Both go on alone from there. */
TEST(a_copy)
{
	const struct thread_name a = take(100, POINTER);
	struct thread_keys copy;
	struct thread_name b;

	OK(thread_keys_copy(&copy, &k));
	thread_keys_leave(&k, 100);
	ck_assert_uint_eq(thread_keys_of(&k, 100), 0);
	ck_assert_uint_eq(thread_keys_of(&copy, 100), a.key);
	/* A thread on the same stack goes on with its number. */
	OK(thread_keys_take(&copy, 101, POINTER, &b));
	ck_assert_uint_eq(b.key, a.key);
	/* No number is given twice. */
	OK(thread_keys_take(&copy, 102, POINTER + 64, &b));
	ck_assert_uint_ne(b.key, a.key);
	thread_keys_fini(&copy);
}

TEST(chunks)
{
	uint32_t living, ended;

	for (uint32_t tid = 1000; tid < 2000; tid++)
		(void)take(tid, POINTER + 64 * tid);
	living = thread_keys_of(&k, 1500);
	ended = thread_keys_of(&k, 1600);
	for (uint32_t tid = 1000; tid < 2000; tid++)
		if (tid != 1500)
			thread_keys_leave(&k, tid);
	/* What it did last may be told in the next one. */
	ck_assert_int_eq(thread_keys_next(&k), 0);
	ck_assert_uint_eq(thread_keys_of(&k, 1500), living);
	ck_assert_uint_eq(k.n, 1000);
	ck_assert_uint_eq(take(3000, POINTER + 64 * 1600).key, ended);
	ck_assert_int_eq(thread_keys_next(&k), 0);
	ck_assert_uint_eq(k.n, 2);
	ck_assert_uint_eq(thread_keys_of(&k, 1500), living);
	ck_assert_uint_eq(thread_keys_of(&k, 3000), ended);
	ck_assert_uint_gt(take(4000, POINTER + 64 * 1700).key, 1000);
	ck_assert_uint_eq(take(5000, POINTER + 64 * 1500).key, living);
}
