#include "proto/profile.h"

#include <string.h>

#include "tests/unit/proto/good_profile.h"
#include "tests/unit/suite.h"

TEST(good)
{
	struct good_profile g;

	good_profile_init(&g);
	ck_assert_int_eq(profile_check(&g.p), PROFILE_OK);
}

/* Each breaks one thing of a good profile. */

static void no_samples(struct good_profile *g)
{
	g->p.n_samples = 0;
}

static void one_sample_a_thread(struct good_profile *g)
{
	g->p.n_samples = 2;
}

/* As many samples as threads, still. */
static void one_sample_each(struct good_profile *g)
{
	g->p.n_samples = 2;
	g->p.threads++;
	g->p.n_threads = 2;
}

/* Empty stacks do not count. */
static void one_stack_a_thread(struct good_profile *g)
{
	for (size_t i = 2; i < g->p.n_samples; i++)
		g->samples[i].node = PROFILE_NONE;
}

static void short_profiler_id(struct good_profile *g)
{
	g->p.profiler_id[31] = '\0';
}

static void upper_case_chunk_id(struct good_profile *g)
{
	g->p.chunk_id[5] = 'A';
}

static void dashed_chunk_id(struct good_profile *g)
{
	g->p.chunk_id[8] = '-';
}

static void no_chunk_id(struct good_profile *g)
{
	g->p.chunk_id[0] = '\0';
}

static void image_without_id(struct good_profile *g)
{
	g->images[1].id = NULL;
}

static void image_with_empty_id(struct good_profile *g)
{
	g->images[1].id_size = 0;
}

static void no_platform(struct good_profile *g)
{
	g->p.platform = NULL;
}

static void empty_platform(struct good_profile *g)
{
	g->p.platform = "";
}

static void no_release(struct good_profile *g)
{
	g->p.release = NULL;
}

static void no_environment(struct good_profile *g)
{
	g->p.environment = "";
}

static void no_sdk_name(struct good_profile *g)
{
	g->p.sdk_name = NULL;
}

static void no_sdk_version(struct good_profile *g)
{
	g->p.sdk_version = "";
}

static void too_long(struct good_profile *g)
{
	g->samples[7].time_us = g->samples[0].time_us + 66000001;
}

/* The server takes newest minus oldest, wherever they stand. */
static void too_long_in_the_middle(struct good_profile *g)
{
	g->samples[3].time_us = g->samples[0].time_us + 70000000;
}

static void node_out_of_range(struct good_profile *g)
{
	g->samples[0].node = 6;
}

static void frame_out_of_range(struct good_profile *g)
{
	g->nodes[2].frame = 5;
}

static void parent_out_of_range(struct good_profile *g)
{
	g->nodes[5].parent = 6;
}

static void own_parent(struct good_profile *g)
{
	g->nodes[3].parent = 3;
}

static void parent_behind_child(struct good_profile *g)
{
	g->nodes[1].parent = 5;
}

static void bad_function(struct good_profile *g)
{
	g->frames[0].function = "ma\xffin";
}

static void bad_package(struct good_profile *g)
{
	g->frames[0].package = "/opt/\xc3";
}

static void bad_code_file(struct good_profile *g)
{
	g->images[0].code_file = "/opt/\xed\xa0\x80";
}

static void bad_thread_name(struct good_profile *g)
{
	g->threads[1].name = "\x80";
}

static void bad_release(struct good_profile *g)
{
	g->p.release = "1\xfe";
}

static void bad_environment(struct good_profile *g)
{
	g->p.environment = "\xe2\x82";
}

static void bad_platform(struct good_profile *g)
{
	g->p.platform = "\xc0\xaf";
}

static void bad_sdk_name(struct good_profile *g)
{
	g->p.sdk_name = "\xf5\x80\x80\x80";
}

static void bad_sdk_version(struct good_profile *g)
{
	g->p.sdk_version = "1\x80";
}

static void no_address(struct good_profile *g)
{
	g->frames[3].addr = 0;
}

static void back_in_time(struct good_profile *g)
{
	g->samples[2].time_us = g->samples[0].time_us - 1;
}

static void thread_twice_at_a_time(struct good_profile *g)
{
	g->samples[4].tid = 100;
}

static void threads_not_by_tid(struct good_profile *g)
{
	g->threads[0].tid = 200;
}

static void unnamed_next_to_root(struct good_profile *g)
{
	g->frames[0].function = NULL;
}

static void empty_name_next_to_root(struct good_profile *g)
{
	g->frames[0].function = "";
}

static void overlap(struct good_profile *g)
{
	g->images[0].size = g->images[1].addr - g->images[0].addr + 1;
}

static void images_not_by_address(struct good_profile *g)
{
	struct profile_image swapped = g->images[0];

	g->images[0] = g->images[1];
	g->images[1] = swapped;
}

static void same_address(struct good_profile *g)
{
	g->images[0].addr = g->images[1].addr;
	g->images[0].size = 0;
}

static void image_past_the_end(struct good_profile *g)
{
	g->images[1].size = UINT64_MAX - g->images[1].addr + 1;
}

static void unknown_thread(struct good_profile *g)
{
	g->samples[7].tid = 102;
}

static const struct {
	void (*breaks)(struct good_profile *g);
	enum profile_fault fault;
} broken[] = {
	{no_samples, PROFILE_NO_SAMPLES},
	{one_sample_a_thread, PROFILE_NO_SAMPLES},
	{one_sample_each, PROFILE_NO_SAMPLES},
	{one_stack_a_thread, PROFILE_NO_SAMPLES},
	{short_profiler_id, PROFILE_BAD_ID},
	{upper_case_chunk_id, PROFILE_BAD_ID},
	{dashed_chunk_id, PROFILE_BAD_ID},
	{no_chunk_id, PROFILE_BAD_ID},
	{image_without_id, PROFILE_BAD_ID},
	{image_with_empty_id, PROFILE_BAD_ID},
	{no_platform, PROFILE_MISSING_METADATA},
	{empty_platform, PROFILE_MISSING_METADATA},
	{no_release, PROFILE_MISSING_METADATA},
	{no_environment, PROFILE_MISSING_METADATA},
	{no_sdk_name, PROFILE_MISSING_METADATA},
	{no_sdk_version, PROFILE_MISSING_METADATA},
	{too_long, PROFILE_TOO_LONG},
	{too_long_in_the_middle, PROFILE_TOO_LONG},
	{node_out_of_range, PROFILE_BAD_INDEX},
	{frame_out_of_range, PROFILE_BAD_INDEX},
	{parent_out_of_range, PROFILE_BAD_INDEX},
	{own_parent, PROFILE_BAD_INDEX},
	{parent_behind_child, PROFILE_BAD_INDEX},
	{bad_function, PROFILE_BAD_TEXT},
	{bad_package, PROFILE_BAD_TEXT},
	{bad_code_file, PROFILE_BAD_TEXT},
	{bad_thread_name, PROFILE_BAD_TEXT},
	{bad_release, PROFILE_BAD_TEXT},
	{bad_environment, PROFILE_BAD_TEXT},
	{bad_platform, PROFILE_BAD_TEXT},
	{bad_sdk_name, PROFILE_BAD_TEXT},
	{bad_sdk_version, PROFILE_BAD_TEXT},
	{no_address, PROFILE_NO_ADDRESS},
	{back_in_time, PROFILE_BAD_ORDER},
	{thread_twice_at_a_time, PROFILE_BAD_ORDER},
	{threads_not_by_tid, PROFILE_BAD_ORDER},
	{unnamed_next_to_root, PROFILE_ROOT_WITHOUT_NAME},
	{empty_name_next_to_root, PROFILE_ROOT_WITHOUT_NAME},
	{overlap, PROFILE_IMAGES_OVERLAP},
	{images_not_by_address, PROFILE_IMAGES_OVERLAP},
	{same_address, PROFILE_IMAGES_OVERLAP},
	{image_past_the_end, PROFILE_IMAGES_OVERLAP},
	{unknown_thread, PROFILE_UNKNOWN_THREAD},
};

TESTS(faults, array_size(broken))
{
	struct good_profile g;

	good_profile_init(&g);
	broken[_i].breaks(&g);
	ck_assert_str_eq(profile_fault_name(profile_check(&g.p)),
			 profile_fault_name(broken[_i].fault));
}

/* What stands just on the good side of a rule. */
TEST(limits)
{
	struct good_profile g;

	good_profile_init(&g);
	g.samples[7].time_us = g.samples[0].time_us + 66000000;
	ck_assert_int_eq(profile_check(&g.p), PROFILE_OK);

	good_profile_init(&g);
	g.images[0].size = g.images[1].addr - g.images[0].addr;
	ck_assert_int_eq(profile_check(&g.p), PROFILE_OK);

	/* The root itself needs no name. */
	good_profile_init(&g);
	g.frames[1].function = NULL;
	ck_assert_int_eq(profile_check(&g.p), PROFILE_OK);

	/* One thread with a pair is enough; the samples in between are not. */
	good_profile_init(&g);
	for (size_t i = 1; i < 7; i++)
		g.samples[i].node = PROFILE_NONE;
	g.samples[6].node = 3;
	ck_assert_int_eq(profile_check(&g.p), PROFILE_OK);

	good_profile_init(&g);
	g.p.n_images = 0;
	ck_assert_int_eq(profile_check(&g.p), PROFILE_OK);
}

TEST(fault_names)
{
	for (int i = 0; i < PROFILE_FAULT_N; i++) {
		const char *name = profile_fault_name((enum profile_fault)i);

		ck_assert_str_ne(name, "unknown");
		for (int j = 0; j < i; j++)
			ck_assert_str_ne(name, profile_fault_name(
						       (enum profile_fault)j));
	}
	ck_assert_str_eq(profile_fault_name(PROFILE_FAULT_N), "unknown");
	ck_assert_str_eq(profile_fault_name(PROFILE_TOO_LONG),
			 "duration_too_long");
}

static const struct {
	const char *s;
	size_t length;
} sequences[] = {
	{"a", 1},
	{"\x7f", 1},
	{"\x80", 0},
	{"\xbf", 0},
	{"\xc0\x80", 0}, /* overlong */
	{"\xc1\xbf", 0},
	{"\xc2\x80", 2},
	{"\xc2", 0},
	{"\xc2z", 0},
	{"\xdf\xbf", 2},
	{"\xe0\x9f\xbf", 0}, /* overlong */
	{"\xe0\xa0\x80", 3},
	{"\xe0\xa0", 0},
	{"\xe2\x82\xac", 3},
	{"\xed\x9f\xbf", 3},
	{"\xed\xa0\x80", 0}, /* a surrogate */
	{"\xee\x80\x80", 3},
	{"\xf0\x8f\xbf\xbf", 0}, /* overlong */
	{"\xf0\x90\x80\x80", 4},
	{"\xf0\x90\x80", 0},
	{"\xf4\x8f\xbf\xbf", 4},
	{"\xf4\x90\x80\x80", 0}, /* above U+10FFFF */
	{"\xf5\x80\x80\x80", 0},
	{"\xff", 0},
};

TESTS(utf8, array_size(sequences))
{
	ck_assert_uint_eq(profile_utf8_length(sequences[_i].s),
			  sequences[_i].length);
}

TEST(find_thread)
{
	struct good_profile g;

	good_profile_init(&g);
	ck_assert_uint_eq(profile_find_thread(&g.p, 99), 0);
	ck_assert_uint_eq(profile_find_thread(&g.p, 100), 1);
	ck_assert_uint_eq(profile_find_thread(&g.p, 101), 2);
	ck_assert_uint_eq(profile_find_thread(&g.p, 98), PROFILE_NONE);
	ck_assert_uint_eq(profile_find_thread(&g.p, 102), PROFILE_NONE);
	g.p.n_threads = 0;
	ck_assert_uint_eq(profile_find_thread(&g.p, 99), PROFILE_NONE);
}

TEST(index_bytes)
{
	ck_assert_uint_eq(profile_index_bytes(0), 2);
	ck_assert_uint_eq(profile_index_bytes(9), 2);
	ck_assert_uint_eq(profile_index_bytes(10), 3);
	ck_assert_uint_eq(profile_index_bytes(UINT32_MAX), 11);
}
