/*
 * Tests unwind_stack.shared_n, the number of frames that a stack shares with the thread's last one.
 * aggregate_sample() does not add these frames again. The chunks must be the same as if it did.
 */
#include "lib/aggregate/aggregate.h"

#include "lib/base/buf.h"
#include "tests/unit/aggregate/script.h"
#include "tests/unit/random.h"
#include "tests/unit/suite.h"

FIXTURE(set_up, tear_down)

#define THREADS 3
#define STEPS	400

/* The last stack of each thread, and its unwind_stack.id. */
static struct {
	char word[16];
	uint64_t id;
} lasts[THREADS];

/* Returns the number of frames that word and the thread's last stack share at the root. */
static size_t common(size_t thread, const char *word)
{
	const char *last = lasts[thread].word;
	size_t n = strlen(word), m = strlen(last), same = 0;

	if (strcmp(word, last) == 0)
		return n;
	/* A leaf and a caller are different frames. */
	while (same + 1 < n && same + 1 < m && word[n - 1 - same] == last[m - 1 - same])
		same++;
	return same;
}

/*
 * Adds a sample of a random thread with a random stack. with_ids: sets shared_id and shared_n, as
 * the unwinder does.
 */
static void add_random(uint64_t *random, uint64_t ms, bool with_ids)
{
	static uint64_t id;
	size_t thread = random_next(random) % THREADS;
	size_t other = random_next(random) % THREADS;
	size_t n = 1 + random_next(random) % 6;
	struct unwind_stack *stack;
	char word[16] = "";

	for (size_t i = 0; i < n; i++)
		word[i] = "ab"[random_next(random) % 2];
	word[n] = 'm';
	stack = (struct unwind_stack *)(uintptr_t)letters_stack(word);
	if (with_ids) {
		/* The id may be that of another thread's stack: then it must be ignored. */
		stack->shared_id = lasts[other].id;
		stack->shared_n = stack->shared_id == 0 ? 0 : common(other, word);
		stack->id = ++id;
	}
	OK(aggregate_sample(a, 1 + (uint32_t)thread, ms * MS, stack, PROFILE_RUNNING));
	memcpy(lasts[thread].word, word, sizeof(word));
	lasts[thread].id = stack->id;
	stack->id = stack->shared_id = stack->shared_n = 0;
}

/* Returns the samples of all chunks of a run with this seed, as text. */
static char *run(uint64_t random, bool with_ids)
{
	struct buf text;

	buf_init(&text, 1u << 20);
	memset(lasts, 0, sizeof(lasts));
	open_with(1000000, 20000000);
	for (uint64_t i = 1; i < STEPS; i++) {
		uint32_t tid = 1 + (uint32_t)(random_next(&random) % THREADS);

		tick(10 * i);
		add_random(&random, 10 * i, with_ids);
		switch (random_next(&random) % 16) {
		case 0:
			missed(tid, 10 * i + 10);
			break;
		case 1:
			exits(tid, 10 * i + 10);
			break;
		case 2:
			OK(aggregate_close(a, 10 * i * MS, &chunk));
			OK(buf_add_string(&text, letters_samples(&chunk)));
			OK(aggregate_next(a));
			break;
		default:
			break;
		}
	}
	ck_assert_uint_gt(text.len, STEPS);
	return text.data;
}

TESTS(shared_frames_change_nothing, 20)
{
	char *without = run((uint64_t)_i, false);
	char *with = run((uint64_t)_i, true);

	ck_assert_str_eq(with, without);
	free(with);
	free(without);
}
