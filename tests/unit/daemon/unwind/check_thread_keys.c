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

static struct thread_key_change assign(uint32_t tid, uint64_t pointer)
{
	struct thread_key_change change;

	OK(thread_keys_assign(&k, tid, pointer, &change));
	return change;
}

FIXTURE(set_up, tear_down)

TEST(without_pointers_the_key_is_the_tid)
{
	struct thread_key_change change;

	thread_keys_init(&k, false, 0);
	change = assign(4711, POINTER);
	ck_assert_uint_eq(change.key, 4711);
	ck_assert_uint_eq(change.id, 0);
	ck_assert_uint_eq(change.old_key, 0);
	ck_assert_uint_eq(thread_keys_of(&k, 815), 815);
	thread_keys_end(&k, 815);
	thread_keys_end_all(&k);
	ck_assert_int_eq(thread_keys_next(&k), 0);
}

TEST(threads_have_keys_and_are_shown_by_their_pointers)
{
	struct thread_key_change a = assign(100, POINTER), b = assign(101, POINTER + 64);

	ck_assert_uint_eq(a.id, POINTER);
	ck_assert_uint_eq(b.id, POINTER + 64);
	ck_assert_uint_ne(a.key, b.key);
	ck_assert_uint_eq(thread_keys_of(&k, 100), a.key);
	ck_assert_uint_eq(thread_keys_of(&k, 101), b.key);
	ck_assert_uint_eq(thread_keys_of(&k, 102), 0);
	/* The thread has a new name, and perhaps no known pointer. */
	ck_assert_uint_eq(assign(100, POINTER).key, a.key);
	ck_assert_uint_eq(assign(100, 0).id, POINTER);
}

TEST(a_thread_keeps_its_key_when_its_pointer_becomes_known)
{
	struct thread_key_change before = assign(100, 0), after;

	ck_assert_uint_eq(before.id, 100);
	after = assign(100, POINTER);
	ck_assert_uint_eq(after.id, POINTER);
	ck_assert_uint_eq(after.key, before.key);
	ck_assert_uint_eq(after.old_key, 0);
}

TEST(a_thread_with_the_pointer_of_an_ended_thread_continues_its_key)
{
	struct thread_key_change first = assign(100, POINTER), second;

	thread_keys_end(&k, 100);
	ck_assert_uint_eq(thread_keys_of(&k, 100), 0);
	second = assign(200, POINTER);
	ck_assert_uint_eq(second.key, first.key);
	ck_assert_uint_eq(second.id, POINTER);
	ck_assert_uint_eq(second.old_key, 0);
	/* The end of a thread is reported after the beginning of the next one. */
	ck_assert_uint_eq(assign(300, POINTER).key, first.key);
	ck_assert_uint_eq(thread_keys_of(&k, 200), 0);
	thread_keys_end(&k, 200);
	ck_assert_uint_eq(thread_keys_of(&k, 300), first.key);
}

TEST(a_pointer_that_another_thread_had_replaces_the_key)
{
	struct thread_key_change first = assign(100, POINTER), second = assign(200, 0);
	struct thread_key_change after;

	ck_assert_uint_ne(second.key, first.key);
	after = assign(200, POINTER);
	ck_assert_uint_eq(after.key, first.key);
	ck_assert_uint_eq(after.old_key, second.key);
	ck_assert_uint_eq(thread_keys_of(&k, 100), 0);
	/* The pointer changes, and another thread gets the old one. */
	ck_assert_uint_eq(assign(200, POINTER + 64).key, first.key);
	ck_assert_uint_ne(assign(300, POINTER).key, first.key);
}

TEST(an_older_thread_can_continue_the_key_of_a_newer_one)
{
	uint32_t key;

	(void)assign(100, 0);
	key = assign(200, POINTER).key;
	ck_assert_uint_eq(assign(100, POINTER).key, key);
	ck_assert_int_eq(thread_keys_next(&k), 0);
	ck_assert_uint_eq(thread_keys_of(&k, 100), key);
	ck_assert_uint_eq(assign(300, POINTER).key, key);
	ck_assert_uint_eq(thread_keys_of(&k, 100), 0);
}

TEST(after_the_end_of_all_threads_a_pointer_keeps_its_key)
{
	uint32_t key = assign(100, POINTER).key;

	thread_keys_end_all(&k);
	ck_assert_uint_eq(thread_keys_of(&k, 100), 0);
	ck_assert_uint_eq(assign(100, POINTER).key, key);
}

TEST(a_copy_and_its_original_are_independent)
{
	const struct thread_key_change a = assign(100, POINTER);
	struct thread_keys copy;
	struct thread_key_change b;

	OK(thread_keys_copy(&copy, &k));
	thread_keys_end(&k, 100);
	ck_assert_uint_eq(thread_keys_of(&k, 100), 0);
	ck_assert_uint_eq(thread_keys_of(&copy, 100), a.key);
	/* A thread on the same stack continues the key. */
	OK(thread_keys_assign(&copy, 101, POINTER, &b));
	ck_assert_uint_eq(b.key, a.key);
	/* No key is given twice. */
	OK(thread_keys_assign(&copy, 102, POINTER + 64, &b));
	ck_assert_uint_ne(b.key, a.key);
	thread_keys_fini(&copy);
}

TEST(an_ended_thread_is_removed_after_one_more_chunk)
{
	uint32_t living, ended;

	for (uint32_t tid = 1000; tid < 2000; tid++)
		(void)assign(tid, POINTER + 64 * tid);
	living = thread_keys_of(&k, 1500);
	ended = thread_keys_of(&k, 1600);
	for (uint32_t tid = 1000; tid < 2000; tid++)
		if (tid != 1500)
			thread_keys_end(&k, tid);
	/* A thread that ends in one chunk may have samples in the next one. */
	ck_assert_int_eq(thread_keys_next(&k), 0);
	ck_assert_uint_eq(thread_keys_of(&k, 1500), living);
	ck_assert_uint_eq(k.n, 1000);
	ck_assert_uint_eq(assign(3000, POINTER + 64 * 1600).key, ended);
	ck_assert_int_eq(thread_keys_next(&k), 0);
	ck_assert_uint_eq(k.n, 2);
	ck_assert_uint_eq(thread_keys_of(&k, 1500), living);
	ck_assert_uint_eq(thread_keys_of(&k, 3000), ended);
	ck_assert_uint_gt(assign(4000, POINTER + 64 * 1700).key, 1000);
	ck_assert_uint_eq(assign(5000, POINTER + 64 * 1500).key, living);
}
