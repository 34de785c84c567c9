/*
 * Compares the same random stacks by address and by function: fewer frames and stacks, and the same
 * time of each function.
 */
#include "lib/aggregate/dedup.h"

#include <stdio.h>
#include <string.h>

#include "lib/aggregate/aggregate.h"
#include "lib/aggregate/functions.h"
#include "tests/unit/aggregate/fake_unwind.h"
#include "tests/unit/random.h"
#include "tests/unit/suite.h"

#define N_FUNCTIONS   12 /* of 256 bytes; every third has no symbol */
#define TICKS	      300
#define NAME_MAX_SIZE 64

static const struct fake_image image = {
	0x10000, 0x20000, {.path = "/opt/app", .addr = 0x10000, .size = 0x10000}};
static struct fake_symbol symbols[N_FUNCTIONS];
static struct fake_function functions[N_FUNCTIONS];
static char names[N_FUNCTIONS][NAME_MAX_SIZE];
static struct unwind_space space;

/* The time of each function in a profile, by the function's number. */
struct times {
	size_t self[N_FUNCTIONS], total[N_FUNCTIONS];
	size_t n_frames, n_nodes;
};

static void set_up(void)
{
	space = (struct unwind_space){
		.images = &image,
		.n_images = 1,
		.symbols = symbols,
		.functions = functions,
		.n_functions = N_FUNCTIONS,
	};
	for (size_t i = 0; i < N_FUNCTIONS; i++) {
		const uint64_t start = 0x10000 + i * 256;

		functions[i] = (struct fake_function){start, start + 256};
		if (i % 3 == 0) {
			(void)snprintf(names[i], sizeof(names[i]), "app+0x%x",
				       (unsigned int)(i * 256));
			continue;
		}
		(void)snprintf(names[i], sizeof(names[i]), "f%zu", i);
		symbols[space.n_symbols++] = (struct fake_symbol){start, start + 256, names[i]};
	}
}

static size_t number_of(const char *name)
{
	for (size_t i = 0; i < N_FUNCTIONS; i++)
		if (strcmp(names[i], name) == 0)
			return i;
	ck_abort_msg("a function %s", name);
	return 0;
}

/* Counts samples, of which the profile has one for each tick and thread. */
static void count(const struct profile *p, struct times *ret)
{
	*ret = (struct times){.n_frames = p->n_frames, .n_nodes = p->n_nodes};
	for (size_t i = 0; i < p->n_samples; i++) {
		uint32_t node = p->samples[i].node;
		bool seen[N_FUNCTIONS] = {false};

		if (node == PROFILE_NONE)
			continue;
		ret->self[number_of(p->frames[p->nodes[node].frame].function)]++;
		for (; node != PROFILE_NONE; node = p->nodes[node].parent) {
			size_t f = number_of(p->frames[p->nodes[node].frame].function);

			ck_assert(p->nodes[node].parent == PROFILE_NONE ||
				  p->nodes[node].parent < node);
			ret->total[f] += !seen[f];
			seen[f] = true;
		}
	}
}

/* Makes a profile of random stacks. */
static void profile_random(uint64_t seed, bool by_function, struct times *ret, char *table,
			   size_t table_size)
{
	struct functions sums;
	const struct aggregate_options options = {
		.chunk_us = 60000000,
		.chunk_bytes = 20000000,
		.main_path = "/opt/app",
		.main_argv0 = "",
		.name_by_start = true,
		.by_function = by_function,
		.table = &sums,
	};
	static struct unwind_stack stack;
	struct aggregate *a;
	struct profile p;
	FILE *out = fmemopen(table, table_size, "w");

	functions_init(&sums, 0);
	OK(aggregate_new(&options, &space, &a));
	for (uint64_t t = 1; t <= TICKS; t++) {
		stack = (struct unwind_stack){.n = 1 + random_next(&seed) % 6};
		for (size_t i = 0; i < stack.n; i++)
			stack.frames[i] = (struct unwind_frame){
				0x10001 + random_next(&seed) % (N_FUNCTIONS * 256 - 1), i == 0, 0};
		OK(aggregate_sample(a, 1, t * NS_PER_MS, &stack, PROFILE_RUNNING));
		(void)!aggregate_tick(a, t * NS_PER_MS, t * NS_PER_MS, 1);
	}
	OK(aggregate_close(a, TICKS * NS_PER_MS, &p));
	count(&p, ret);
	OK(functions_write(&sums, 20, false, out));
	(void)fclose(out);
	functions_fini(&sums);
	OK(aggregate_next(a));
	aggregate_free(a);
}

FIXTURE(set_up, NULL)

TESTS(functions_have_the_same_times, 10)
{
	static char exact_table[8192], function_table[8192];
	struct times exact, function;
	const uint64_t seed = (uint64_t)_i + 1;

	profile_random(seed, false, &exact, exact_table, sizeof(exact_table));
	profile_random(seed, true, &function, function_table, sizeof(function_table));
	ck_assert_mem_eq(exact.self, function.self, sizeof(exact.self));
	ck_assert_mem_eq(exact.total, function.total, sizeof(exact.total));
	ck_assert_str_eq(exact_table, function_table);
	/* The frames of a thousand addresses became one for each function. */
	ck_assert_uint_eq(function.n_frames, N_FUNCTIONS);
	ck_assert_uint_gt(exact.n_frames, 50 * N_FUNCTIONS);
	ck_assert_uint_lt(function.n_nodes, exact.n_nodes);
}

/* Two frames stay apart if they differ in any member but in_app. */
TEST(equal_frames_and_stacks_are_merged)
{
	static const char f[] = "f", g[] = "g";
	static const struct profile_frame frames[] = {
		{0x11, f, f, true, f, 1}, {0x11, f, f, false, f, 1}, {0x12, f, f, true, f, 1},
		{0x11, g, f, true, f, 1}, {0x11, f, g, true, f, 1},  {0x11, f, f, true, g, 1},
		{0x11, f, f, true, f, 2}, {0x11, f, f, true, f, 1},  {0x11, NULL, f, true, f, 1},
	};
	static const struct profile_node nodes[] = {
		{PROFILE_NONE, 0}, {PROFILE_NONE, 1}, {0, 2}, {1, 2}, {3, 7}, {2, 0}, {0, 3},
	};
	struct profile_sample samples[] = {
		{1, 1, 4, PROFILE_RUNNING, false},
		{2, 1, 5, PROFILE_RUNNING, false},
		{3, 1, PROFILE_NONE, PROFILE_WAITING, false},
		{4, 1, 6, PROFILE_RUNNING, false},
	};
	struct profile p = {
		.frames = frames,
		.n_frames = array_size(frames),
		.nodes = nodes,
		.n_nodes = array_size(nodes),
		.samples = samples,
		.n_samples = array_size(samples),
	};
	struct dedup dedup = {0};

	OK(dedup_profile(&dedup, 7, samples, &p));
	ck_assert_uint_eq(p.n_frames, 7);
	/* One of the two frames was not in_app. */
	ck_assert(!p.frames[0].in_app);
	ck_assert(p.frames[1].in_app);
	ck_assert_uint_eq(p.n_nodes, 4);
	ck_assert_uint_eq(samples[0].node, samples[1].node);
	ck_assert_uint_eq(samples[2].node, PROFILE_NONE);
	ck_assert_uint_eq(p.nodes[samples[0].node].frame, 0);
	ck_assert_uint_eq(p.nodes[p.nodes[samples[0].node].parent].frame, 1);
	ck_assert_uint_eq(p.nodes[samples[3].node].frame, 2);
	dedup_fini(&dedup);
}

TEST(empty_profile)
{
	struct profile p = {.n_samples = 0};
	struct dedup dedup = {0};

	OK(dedup_profile(&dedup, 0, NULL, &p));
	ck_assert_uint_eq(p.n_frames + p.n_nodes, 0);
	dedup_fini(&dedup);
}
