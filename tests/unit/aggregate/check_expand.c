/* Tests stacks of letters, in some of which functions were inlined. */
#include "lib/aggregate/expand.h"

#include <stdio.h>
#include <stdlib.h>

#include "tests/unit/aggregate/fake_unwind.h"
#include "tests/unit/suite.h"

static const struct fake_image image = {
	0x1000, 0x9000, {.path = "/opt/app", .addr = 0x1000, .size = 0x8000}};

static const struct fake_symbol symbols[] = {
	{0x1000, 0x1100, "main"},
	{0x1100, 0x1200, "outer"},
	{0x1200, 0x1300, "plain"},
	{0x1300, 0x1400, "around"},
};

static const struct fake_lines lines[] = {
	{0x1000, 0x1100, 1, {{"main", "/src/main.c", 10}}},
	{0x1100,
	 0x1180,
	 3,
	 {{"innermost", "/src/a.h", 1}, {"between", "/src/b.h", 2}, {"outer", "/src/c.c", 3}}},
	{0x1180, 0x1200, 1, {{"outer", "/src/c.c", 30}}},
	/* An inlined function without a name, and one without a file. */
	{0x1300, 0x1400, 3, {{NULL, "/src/a.h", 7}, {"known", NULL, 8}, {NULL, "/src/d.c", 9}}},
};

static struct unwind_space space;
static struct stacks s;
static struct lookup l;
static struct expand e;
static struct profile p;
static struct profile_sample samples[8];

static void set_up(void)
{
	space = (struct unwind_space){
		.images = &image,
		.n_images = 1,
		.symbols = symbols,
		.n_symbols = array_size(symbols),
		.lines = lines,
		.n_lines = array_size(lines),
	};
	stacks_init(&s, 0);
	lookup_init(&l, 0);
	p = (struct profile){.samples = samples};
}

static void tear_down(void)
{
	expand_fini(&e);
	lookup_fini(&l);
	stacks_fini(&s);
}

/* Adds a sample with these addresses, leaf first. */
static void add(size_t n, const uint64_t *addrs)
{
	struct unwind_frame frames[8];

	for (size_t i = 0; i < n; i++)
		frames[i] = (struct unwind_frame){addrs[i], i == 0, 0};
	OK(stacks_add(&s, PROFILE_NONE, frames, n, &samples[p.n_samples++].node));
}
#define ADD(...) \
	add(sizeof((uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t), (uint64_t[]){__VA_ARGS__})

static void expand(void)
{
	OK(lookup_update(&l, &s, &space, "/opt/app"));
	OK(lookup_finish(&l, &s, &space));
	p.frames = l.frames;
	p.n_frames = l.n_frames;
	p.nodes = s.nodes;
	p.n_nodes = s.n_nodes;
	OK(expand_inlined(&e, &l, &s, samples, &p));
}

/* Compares the stack of sample i: functions with their files and lines, leaf first. */
static void check_stack(size_t i, const char *expected)
{
	uint32_t node = samples[i].node;
	char text[512] = "";
	size_t used = 0;

	for (; node != PROFILE_NONE; node = p.nodes[node].parent) {
		const struct profile_frame *f = &p.frames[p.nodes[node].frame];

		ck_assert_uint_lt(node, p.n_nodes);
		ck_assert_uint_lt(p.nodes[node].frame, p.n_frames);
		ck_assert(p.nodes[node].parent == PROFILE_NONE || p.nodes[node].parent < node);
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s %s:%u",
					 used > 0 ? ", " : "", f->function, f->file ? f->file : "?",
					 f->line);
	}
	ck_assert_str_eq(text, expected);
}

FIXTURE(set_up, tear_down)

TEST(inlined_functions_become_frames)
{
	ADD(0x1210, 0x1120, 0x1020);
	ADD(0x1110, 0x1020);
	ADD(0x1190, 0x1020);
	expand();
	check_stack(0, "plain ?:0, innermost /src/a.h:1, between /src/b.h:2, "
		       "outer /src/c.c:3, main /src/main.c:10");
	check_stack(1, "innermost /src/a.h:1, between /src/b.h:2, "
		       "outer /src/c.c:3, main /src/main.c:10");
	check_stack(2, "outer /src/c.c:30, main /src/main.c:10");
	/* All frames of an expanded one have its address and its package. */
	for (size_t i = 0; i < p.n_frames; i++) {
		if (p.frames[i].addr != 0x1120)
			continue;
		ck_assert_str_eq(p.frames[i].package, "/opt/app");
		ck_assert(p.frames[i].in_app);
	}
}

/* A root with an inlined function: each frame near the root still has a name. */
TEST(inlined_functions_at_the_root)
{
	ADD(0x1120);
	ADD(0x1320, 0x1120);
	expand();
	check_stack(0, "innermost /src/a.h:1, between /src/b.h:2, "
		       "outer /src/c.c:3");
	check_stack(1, "known ?:0, around /src/d.c:9, innermost /src/a.h:1, "
		       "between /src/b.h:2, outer /src/c.c:3");
}

TEST(nothing_is_inlined)
{
	ADD(0x1210, 0x1020);
	samples[p.n_samples++].node = PROFILE_NONE;
	expand();
	ck_assert_ptr_eq(p.frames, l.frames);
	ck_assert_ptr_eq(p.nodes, s.nodes);
	ck_assert_uint_eq(samples[1].node, PROFILE_NONE);
	check_stack(0, "plain ?:0, main /src/main.c:10");
}

/* Stacks that would exceed the server's limit are not expanded. */
TEST(stacks_above_the_limit_stay)
{
	struct unwind_frame *frames = calloc(UNWIND_FRAMES_MAX, sizeof(*frames));
	size_t bytes = 0;

	ck_assert_ptr_nonnull(frames);
	for (size_t i = 0; i < UNWIND_FRAMES_MAX; i++)
		frames[i] = (struct unwind_frame){0x1120, i == 0, 0};
	/* Each stack has a leaf of its own. */
	for (uint64_t leaf = 0; bytes < EXPAND_PAYLOAD_MAX; leaf++) {
		uint32_t node;

		frames[0].addr = 0x2000 + leaf;
		OK(stacks_add(&s, PROFILE_NONE, frames, UNWIND_FRAMES_MAX, &node));
		bytes += 3 * (size_t)UNWIND_FRAMES_MAX * 8;
	}
	ADD(0x1110, 0x1020);
	expand();
	ck_assert_ptr_eq(p.frames, l.frames);
	check_stack(0, "outer /src/c.c:3, main /src/main.c:10");
	free(frames);
}
