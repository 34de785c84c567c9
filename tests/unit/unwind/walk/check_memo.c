/*
 * Compares walks with a memo with walks without one: at random stops of a program, and with a
 * changed word on the stack, a changed register or a shorter copy.
 */
#include "lib/unwind/walk/memo.h"

#include <stdlib.h>
#include <string.h>

#include "lib/unwind/cpu.h"
#include "lib/unwind/unwind.h"
#include "tests/unit/random.h"
#include "tests/unit/suite.h"
#include "tests/unit/unwind/record.h"

#define FRAMES	  256
#define STOPS	  120
#define STEPS_MAX 97
#define CHANGES	  40

static const char *const programs[] = {"unw_o0", "unw_o2", "unw_fp", "unw_static"};

/* Of the last walk, of the one before, and of a walk without a memo. */
static struct unwind_stack now, before, fresh;
static uint32_t stranger;
static uint64_t state;

static uint64_t random_below(uint64_t n)
{
	return random_next(&state) % n;
}

/* The n outermost frames are equal, however they were found. */
static void assert_alike(const struct unwind_stack *a, const struct unwind_stack *b, size_t n)
{
	for (size_t i = 1; i <= n; i++) {
		ck_assert_uint_eq(a->frames[a->n - i].addr, b->frames[b->n - i].addr);
		ck_assert_uint_eq(a->frames[a->n - i].is_leaf, b->frames[b->n - i].is_leaf);
	}
}

/* Checks that the stack before has the frames that the ids say are shared. */
static void check_ids(void)
{
	ck_assert_uint_ne(now.id, 0);
	ck_assert_uint_le(now.shared_n, now.n);
	if (now.shared_n > 0) {
		ck_assert_uint_eq(now.shared_id, before.id);
		ck_assert_uint_le(now.shared_n, before.n);
		assert_alike(&now, &before, now.shared_n);
	}
	if (now.id == before.id) {
		ck_assert_uint_eq(now.n, before.n);
		assert_alike(&now, &before, now.n);
	}
}

/* Walks s as the thread's next sample, and as the first of a new thread. */
static void walk_both(struct target *t, struct record_sample *s, size_t size, size_t max_frames)
{
	uint32_t tid = s->h.tid;

	memcpy(&before, &now, sizeof(now));
	OK(unwind_walk(t->space, s, size, max_frames, &now));
	/* A thread id with an empty memo, always in the same other slot. */
	s->h.tid = stranger += MEMO_THREADS;
	OK(unwind_walk(t->space, s, size, max_frames, &fresh));
	s->h.tid = tid;
	ck_assert_uint_eq(fresh.shared_n, 0);
	ck_assert_uint_eq(now.n, fresh.n);
	ck_assert_mem_eq(now.frames, fresh.frames, now.n * sizeof(now.frames[0]));
	ck_assert_int_eq(now.end, fresh.end);
	ck_assert_int_eq(now.has_heuristic, fresh.has_heuristic);
	ck_assert_uint_eq(now.stack_top, fresh.stack_top);
	check_ids();
}

static void change_word(struct record_sample *s)
{
	size_t words = s->stack_size / 8;
	size_t from = 8 * random_below(words), to = 8 * random_below(words);
	uint64_t word;

	/* Mostly near the stack pointer, where the frames are. */
	if (random_below(4) != 0)
		to = 8 * random_below(min_size(words, 256));
	memcpy(&word, s->stack + from, 8);
	memcpy(s->stack + to, &word, 8);
}

static void change(struct record_sample *s)
{
	switch (random_below(6)) {
	case 0:
		s->stack_size -= 8 * (uint32_t)random_below(s->stack_size / 8);
		break;
	case 1:
		s->regs[CPU_FP] += 8 * random_below(4);
		break;
	case 2:
		s->regs[CPU_SP] += 8 * random_below(4);
		break;
	case 3:
		s->regs_known ^= UINT64_C(1) << CPU_FP;
		break;
	default:
		for (uint64_t n = 1 + random_below(4); n > 0; n--)
			change_word(s);
	}
}

static void walk_changed(struct target *t, const struct record_sample *s, size_t size)
{
	struct record_sample *copy = malloc(size);

	ck_assert_ptr_nonnull(copy);
	for (int i = 0; i < CHANGES; i++) {
		memcpy(copy, s, size);
		change(copy);
		walk_both(t, copy, size, 1 + random_below(FRAMES));
		/* A wrong stack leaves nothing wrong in the memo. */
		memcpy(copy, s, size);
		walk_both(t, copy, size, FRAMES);
	}
	free(copy);
}

TESTS(a_walk_with_a_memo_finds_what_a_walk_without_one_finds, array_size(programs))
{
	const char *args[] = {"work", NULL};
	size_t like = 0, same = 0;
	struct target t;

	state = (uint64_t)_i;
	memset(&now, 0, sizeof(now));
	target_start(&t, programs[_i], args);
	stranger = (uint32_t)t.pid + 1;
	thread_seize(t.pid);
	thread_interrupt(t.pid);
	for (int i = 0; i < STOPS; i++) {
		struct record_sample *s;
		size_t size;

		thread_step(t.pid, 1 + (unsigned int)random_below(STEPS_MAX));
		s = record_thread(&t, t.pid, &size);
		s->h.tid = (uint32_t)t.pid;
		walk_both(&t, s, size, FRAMES);
		like += now.shared_n > 0;
		walk_both(&t, s, size, FRAMES);
		same += now.id == before.id;
		if (i % 10 == 0)
			walk_changed(&t, s, size);
		free(s);
	}
	/* The memo was used. */
	ck_assert_uint_gt(like, STOPS / 2);
	ck_assert_uint_gt(same, STOPS / 2);
	target_stop(&t);
}

TESTS(frames_below_a_signal_frame_are_not_kept, array_size(programs))
{
	const char *args[] = {"signal", NULL};
	struct record_sample *s;
	struct target t;
	size_t size;

	state = (uint64_t)_i;
	memset(&now, 0, sizeof(now));
	target_start(&t, programs[_i], args);
	(void)target_wait_blocked(&t, t.pid);
	stranger = (uint32_t)t.pid + 1;
	thread_seize(t.pid);
	thread_interrupt(t.pid);
	s = record_thread(&t, t.pid, &size);
	s->h.tid = (uint32_t)t.pid;
	walk_both(&t, s, size, FRAMES);
	ck_assert_int_eq(now.end, UNWIND_END_ROOT);
	walk_both(&t, s, size, FRAMES);
	ck_assert_uint_gt(now.shared_n, 0);
	ck_assert_uint_lt(now.shared_n, now.n);
	for (int i = 0; i < 10; i++)
		walk_changed(&t, s, size);
	free(s);
	target_stop(&t);
}

TEST(new_maps_empty_the_memo)
{
	const char *args[] = {"work", NULL};
	struct record_sample *s = NULL;
	struct target t;
	size_t size;

	target_start(&t, "unw_o2", args);
	thread_seize(t.pid);
	thread_interrupt(t.pid);
	/* Not every stack is kept in a memo: step until one is. */
	for (int i = 0; i < STOPS; i++) {
		free(s);
		s = record_thread(&t, t.pid, &size);
		OK(unwind_walk(t.space, s, size, FRAMES, &before));
		OK(unwind_walk(t.space, s, size, FRAMES, &now));
		if (now.id == before.id)
			break;
		thread_step(t.pid, 1 + (unsigned int)random_below(STEPS_MAX));
	}
	ck_assert_uint_eq(now.id, before.id);
	OK(unwind_space_set_maps(t.space, "", 0));
	OK(unwind_walk(t.space, s, size, FRAMES, &now));
	ck_assert_uint_eq(now.n, 1);
	ck_assert_int_eq(now.end, UNWIND_END_NO_MAP);
	ck_assert_uint_ne(now.id, before.id);
	free(s);
	target_stop(&t);
}
