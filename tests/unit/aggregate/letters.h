/*
 * Stacks as words for the tests of lib/aggregate: each letter is a function, the leaf comes first.
 * "am" is the function a, which m called. Times are milliseconds.
 */
#ifndef TESTS_UNIT_AGGREGATE_LETTERS_H
#define TESTS_UNIT_AGGREGATE_LETTERS_H

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/aggregate/aggregate.h"
#include "lib/aggregate/functions.h"
#include "lib/base/util.h"
#include "lib/unwind/unwind.h"
#include "proto/profile.h"

#define LETTERS_WALL_US UINT64_C(1700000000000000)

/* Function 'a' is at 0x10000, and so on. A caller's address is inside the function. */
static inline uint64_t letters_addr(char letter)
{
	return 0x10000 + (uint64_t)(letter - 'a') * 0x100;
}

/* Returns the stack of a word, which is valid until the next call. */
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

/* Writes the word of the stack of a node of p, at most 63 letters. */
static inline void letters_of_node(const struct profile *p, uint32_t node, char word[64])
{
	size_t n = 0;

	for (; node != PROFILE_NONE; node = p->nodes[node].parent)
		word[n++] = (char)('a' + (p->frames[p->nodes[node].frame].addr - 0x10000) / 0x100);
	word[n] = '\0';
}

/*
 * Returns all samples as text. state_marks: by state, the text after the stack; of a sample that
 * is only for files "~" stands before it. NULL: neither.
 */
static inline const char *letters_text(const struct profile *p, const char *const *state_marks)
{
	static char text[65536];
	size_t used = 0;

	text[0] = '\0';
	for (size_t i = 0; i < p->n_samples; i++) {
		const struct profile_sample *s = &p->samples[i];
		char word[64];

		letters_of_node(p, s->node, word);
		used += (size_t)snprintf(text + used, sizeof(text) - used,
					 "%s%" PRIu64 " %" PRIu32 ":%s%s%s", i > 0 ? ", " : "",
					 (s->time_us - LETTERS_WALL_US) / 1000, s->tid,
					 word[0] != '\0' ? word : "-",
					 state_marks != NULL && s->is_for_files ? "~" : "",
					 state_marks != NULL ? state_marks[s->state] : "");
	}
	return text;
}

/* Returns all samples as text, such as "0 1:ab, 10 1:-": time, thread, stack (-: empty). */
static inline const char *letters_samples(const struct profile *p)
{
	return letters_text(p, NULL);
}

/*
 * Returns all samples as text with their states: "0 1:ab!" running, "0 1:ab?" ready, "0 1:ab"
 * waiting, and "0 1:ab~" for a sample that only payloads for files have.
 */
static inline const char *letters_states(const struct profile *p)
{
	static const char *const marks[PROFILE_STATES] = {
		[PROFILE_RUNNING] = "!",
		[PROFILE_READY] = "?",
		[PROFILE_WAITING] = "",
	};

	return letters_text(p, marks);
}

/* The times of all threads in the session by state, rounded to 10 ms. */
struct letters_times {
	uint64_t running_ns, ready_ns, waiting_ns;
};

/* The table of the aggregates whose times a test reads. */
__attribute__((unused)) static struct functions letters_table;

/* Returns the time after a text in the first line of the table; 0: the line does not have it. */
static inline uint64_t letters_time_after(const char *table, const char *text)
{
	const char *at = strstr(table, text);
	double s = 0;

	if (at == NULL || at > strchr(table, '\n') || sscanf(at + strlen(text), "%lf s", &s) != 1)
		return 0;
	return (uint64_t)(s * 100 + 0.5) * 10 * NS_PER_MS;
}

/* Reads the times in the first line of letters_table, which is the table of a. */
static inline struct letters_times letters_times(struct aggregate *a)
{
	struct letters_times sum = {0, 0, 0};
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	if (f == NULL || aggregate_update_table(a) < 0 ||
	    functions_write(&letters_table, 10, false, f) < 0 || fclose(f) != 0)
		return sum;
	sum.running_ns = letters_time_after(text, "Hottest functions. CPU time ");
	sum.ready_ns = letters_time_after(text, " ready ");
	sum.waiting_ns = letters_time_after(text, " waiting ");
	free(text);
	return sum;
}

#endif
