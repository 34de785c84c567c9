/*
 * Scripts for the tests of lib/aggregate/aggregate.h: a test plays a text that stands for the
 * records of capture into the aggregate a, closes the chunk, and compares its samples. Stacks are
 * words of letters (letters.h); times are milliseconds. A file of tests uses FIXTURE(set_up,
 * tear_down).
 */
#ifndef TESTS_UNIT_AGGREGATE_SCRIPT_H
#define TESTS_UNIT_AGGREGATE_SCRIPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "lib/aggregate/aggregate.h"
#include "lib/base/util.h"
#include "tests/unit/aggregate/fake_unwind.h"
#include "tests/unit/aggregate/letters.h"
#include "tests/unit/suite.h"

#define MS NS_PER_MS

static const struct fake_symbol symbols[] = {{0x10000, 0x12000, "some"}};
static struct unwind_space space;
static struct aggregate *a;
static struct profile chunk; /* the closed chunk */
static bool due;	     /* what the last aggregate_tick() returned */

static inline void open_with(uint64_t chunk_us, size_t chunk_bytes)
{
	const struct aggregate_options options = {
		.chunk_us = chunk_us,
		.chunk_bytes = chunk_bytes,
		.wall_offset_us = LETTERS_WALL_US,
		.main_path = "/opt/a-program-of-a-long-name",
		.main_argv0 = "",
		.table = &letters_table,
	};

	aggregate_free(a);
	a = NULL;
	functions_fini(&letters_table);
	OK(aggregate_new(&options, &space, &a));
}

static inline void set_up(void)
{
	space = (struct unwind_space){.symbols = symbols, .n_symbols = 1};
	open_with(1000000, 20000000);
}

static inline void tear_down(void)
{
	aggregate_free(a);
	a = NULL;
	functions_fini(&letters_table);
}

/* Adds a sample of a waiting thread with this stack. */
static inline void sample(uint32_t tid, uint64_t ms, const char *word)
{
	OK(aggregate_sample(a, tid, ms * MS, letters_stack(word), PROFILE_WAITING));
}

/* Adds a sample of a running thread with this stack. */
static inline void runs(uint32_t tid, uint64_t ms, const char *word)
{
	OK(aggregate_sample(a, tid, ms * MS, letters_stack(word), PROFILE_RUNNING));
}

/* Adds a sample of a ready thread with this stack. */
static inline void is_ready(uint32_t tid, uint64_t ms, const char *word)
{
	OK(aggregate_sample(a, tid, ms * MS, letters_stack(word), PROFILE_READY));
}

static inline void missed(uint32_t tid, uint64_t ms)
{
	OK(aggregate_missed(a, tid, ms * MS));
}

static inline void exits(uint32_t tid, uint64_t ms)
{
	OK(aggregate_exit(a, tid, ms * MS));
}

static inline void tick_settled(uint64_t ms, uint64_t settled_ms)
{
	due = aggregate_tick(a, ms * MS, settled_ms * MS, 1);
}

/* Adds a tick that is the n-th one since the last one added; capture skipped the others. */
static inline void tick_after(uint64_t n, uint64_t ms)
{
	due = aggregate_tick(a, ms * MS, ms * MS, n);
}

static inline void tick(uint64_t ms)
{
	tick_settled(ms, ms);
}

static inline void ticks(uint64_t from_ms, uint64_t to_ms)
{
	for (; from_ms <= to_ms; from_ms += 10)
		tick(from_ms);
}

static inline void play_thread(uint64_t ms, uint32_t tid, const char *word, size_t n)
{
	char stack[32] = "";

	ck_assert_uint_lt(n, sizeof(stack));
	memcpy(stack, word, n);
	if (strcmp(stack, "-") == 0)
		missed(tid, ms);
	else if (strcmp(stack, ".") == 0)
		exits(tid, ms);
	else if (word[n] == '!')
		runs(tid, ms, stack);
	else if (word[n] == '?')
		is_ready(tid, ms, stack);
	else
		sample(tid, ms, stack);
}

/*
 * Plays a script: records of capture, separated by commas. Times are in ms.
 *	10 1:am		at 10 ms thread 1 waits, with the stack am (leaf first)
 *	10 1:am!	thread 1 runs, with this stack
 *	10 1:am?	thread 1 is ready, with this stack
 *	10 1:-		the sample of thread 1 is missed
 *	10 1:.		thread 1 has exited
 *	10		a tick, which is settled
 *	10-40		a settled tick every 10 ms
 *	40~20		a tick at 40 ms; 20 ms is the settled tick
 *	40*3		a tick, the third since the last one: capture skipped two
 */
static inline void play(const char *script)
{
	while (*script != '\0') {
		char *at;
		const uint64_t ms = strtoull(script, &at, 10);
		const char kind = *at;
		const uint64_t n =
			strchr(" -~*", kind) && kind != '\0' ? strtoull(at + 1, &at, 10) : 0;
		const size_t word = kind == ' ' ? strcspn(++at, "!?,") : 0;

		if (kind == ' ')
			play_thread(ms, (uint32_t)n, at, word);
		else if (kind == '-')
			ticks(ms, n);
		else if (kind == '~')
			tick_settled(ms, n);
		else if (kind == '*')
			tick_after(n, ms);
		else
			tick(ms);
		at += word;
		at += strspn(at, "!?, ");
		ck_assert_ptr_ne(at, script);
		script = at;
	}
}

/* Closes the chunk at end_ms, compares its samples (letters_samples()), opens the next chunk. */
#define CHUNK(end_ms, expected)                                      \
	do {                                                         \
		OK(aggregate_close(a, (end_ms)*MS, &chunk));         \
		ck_assert_str_eq(letters_samples(&chunk), expected); \
		OK(aggregate_next(a));                               \
	} while (0)

/* CHUNK with the states of the samples (letters_states()). */
#define CHUNK_STATES(end_ms, expected)                              \
	do {                                                        \
		OK(aggregate_close(a, (end_ms)*MS, &chunk));        \
		ck_assert_str_eq(letters_states(&chunk), expected); \
		OK(aggregate_next(a));                              \
	} while (0)

#endif
