#include "proto/export/covered.h"

#include <stdlib.h>
#include <string.h>

#include "tests/unit/random.h"
#include "tests/unit/suite.h"

#define TIMES 60

static struct covered c;
/* By nanosecond: whether it is covered. */
static bool model[TIMES];

static void set_up(void)
{
	c = (struct covered){0};
	memset(model, 0, sizeof(model));
}

static void tear_down(void)
{
	covered_fini(&c);
}

/* Adds the gaps of a bar, and compares them with the model. */
static void add(uint64_t start, uint64_t end)
{
	uint64_t at = start, part_end;

	while (at < end && covered_find_gap(&c, &at, end, &part_end)) {
		ck_assert(at < part_end && part_end <= end);
		OK(covered_add(&c, at, part_end));
		for (; at < part_end; at++) {
			ck_assert_msg(!model[at], "%d", (int)at);
			model[at] = true;
		}
	}
	for (at = start; at < end; at++)
		ck_assert_msg(model[at], "%d", (int)at);
}

static void check_spans(void)
{
	size_t n = 0;

	for (size_t i = 0; i < c.n; i++) {
		ck_assert(c.spans[i].start_ns < c.spans[i].end_ns);
		if (i > 0)
			ck_assert(c.spans[i].start_ns > c.spans[i - 1].end_ns);
		for (uint64_t at = c.spans[i].start_ns; at < c.spans[i].end_ns; at++, n++)
			ck_assert(model[at]);
	}
	for (size_t i = 0; i < TIMES; i++)
		n -= model[i];
	ck_assert_uint_eq(n, 0);
}

FIXTURE(set_up, tear_down)

TEST(chunks_that_follow_each_other_are_one_span)
{
	for (uint64_t i = 0; i < 10; i++) {
		add(i * 4, i * 4 + 3);
		add(i * 4 + 3, i * 4 + 4);
		OK(covered_settle(&c));
		ck_assert_uint_eq(c.n, 1);
	}
	check_spans();
}

TEST(a_moment_is_covered_from_the_start_of_a_span)
{
	static const bool wanted[] = {true, true, false, false, true};
	uint64_t end;

	for (uint64_t at = 1; at < 6; at++) {
		uint64_t start = at;

		if (at == 1)
			add(3, 5);
		OK(covered_settle(&c));
		ck_assert_int_eq(covered_find_gap(&c, &start, at, &end), wanted[at - 1]);
	}
}

/* Chunks in any order, whose bars are in the order of their starts and may overlap. */
TEST(chunks_in_any_order)
{
	uint64_t state = 1;

	for (int round = 0; round < 2000; round++) {
		tear_down();
		set_up();
		for (int chunk = 0; chunk < 5; chunk++) {
			uint64_t at = random_next(&state) % (TIMES / 2);

			for (int bar = 0; bar < 5; bar++) {
				at = min_u64(at + random_next(&state) % 8, TIMES);
				add(at, min_u64(at + random_next(&state) % 9, TIMES));
			}
			OK(covered_settle(&c));
			check_spans();
		}
	}
}
