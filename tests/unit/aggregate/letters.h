/*
 * Stacks as words for the tests of lib/aggregate: a letter is a function, the
 * leaf comes first. Times are milliseconds.
 */
#ifndef TESTS_UNIT_AGGREGATE_LETTERS_H
#define TESTS_UNIT_AGGREGATE_LETTERS_H

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "lib/aggregate/open_chunk.h"
#include "lib/unwind/unwind.h"
#include "proto/profile.h"

#define LETTERS_WALL_US UINT64_C(1700000000000000)

/* Function 'a' is at 0x10000, and so on; a caller's address is inside. */
static inline uint64_t letters_addr(char letter)
{
	return 0x10000 + (uint64_t)(letter - 'a') * 0x100;
}

static inline const struct unwind_stack *letters_stack(const char *word)
{
	static struct unwind_stack stack;

	stack.n = strlen(word);
	for (size_t i = 0; i < stack.n; i++)
		stack.frames[i] = (struct unwind_frame){
			.addr = letters_addr(word[i]) + (i == 0 ? 0 : 8),
			.is_leaf = i == 0,
		};
	return &stack;
}

static inline void letters_of_node(const struct profile *p, uint32_t node, char word[64])
{
	size_t n = 0;

	for (; node != PROFILE_NONE; node = p->nodes[node].parent)
		word[n++] = (char)('a' + (p->frames[p->nodes[node].frame].addr - 0x10000) / 0x100);
	word[n] = '\0';
}

/* All samples, such as "0 1:ab, 10 1:-": the time, the thread, the stack. */
static inline const char *letters_samples(const struct profile *p)
{
	static char text[65536];
	size_t used = 0;

	text[0] = '\0';
	for (size_t i = 0; i < p->n_samples; i++) {
		const struct profile_sample *s = &p->samples[i];
		char word[64];

		letters_of_node(p, s->node, word);
		used += (size_t)snprintf(text + used, sizeof(text) - used,
					 "%s%" PRIu64 " %" PRIu32 ":%s", i > 0 ? ", " : "",
					 (s->time_us - LETTERS_WALL_US) / 1000, s->tid,
					 word[0] != '\0' ? word : "-");
	}
	return text;
}

/* The time of all threads over the session: in its table, or in a stack yet. */
struct letters_times {
	uint64_t running_ns, waiting_ns;
};

static inline struct letters_times letters_times(const struct aggregate *a)
{
	struct letters_times sum = {a->functions.others_self_ns, a->functions.others_waiting_ns};

	for (size_t i = 0; i < a->functions.n; i++) {
		sum.running_ns += a->functions.rows[i].self_ns;
		sum.waiting_ns += a->functions.rows[i].waiting_ns;
	}
	for (size_t i = 0; i < a->stacks.n_times; i++) {
		sum.running_ns += a->stacks.times[i].running_ns;
		sum.waiting_ns += a->stacks.times[i].waiting_ns;
	}
	return sum;
}

#endif
