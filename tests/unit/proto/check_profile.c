#include "proto/profile.h"

#include "tests/unit/proto/good_profile.h"
#include "tests/unit/suite.h"

TEST(a_valid_profile_has_no_fault)
{
	struct good_profile g;

	good_profile_init(&g);
	ck_assert_int_eq(profile_check(&g.p), PROFILE_OK);
}

static void empty_stacks(struct good_profile *g, size_t from, size_t to)
{
	for (; from < to; from++)
		g->samples[from].node = PROFILE_NONE;
}

/* Checks that the changed profile has this fault. */
#define EXPECT(fault, ...)                                                            \
	do {                                                                          \
		struct good_profile g;                                                \
                                                                                      \
		good_profile_init(&g);                                                \
		__VA_ARGS__;                                                          \
		ck_assert_msg(profile_check(&g.p) == (fault), "%s: %s", #__VA_ARGS__, \
			      profile_fault_name(profile_check(&g.p)));               \
	} while (0)

TEST(each_broken_rule_has_its_fault)
{
	EXPECT(PROFILE_NO_SAMPLES, g.p.n_samples = 0);
	EXPECT(PROFILE_NO_SAMPLES, g.p.n_samples = 2);
	/* There are still as many samples as threads. */
	EXPECT(PROFILE_NO_SAMPLES, g.p.n_samples = 2; g.p.threads++; g.p.n_threads = 2);
	/* Empty stacks do not count. */
	EXPECT(PROFILE_NO_SAMPLES, empty_stacks(&g, 2, g.p.n_samples));
	EXPECT(PROFILE_BAD_ID, g.p.profiler_id[31] = '\0');
	EXPECT(PROFILE_BAD_ID, g.p.chunk_id[5] = 'A');
	EXPECT(PROFILE_BAD_ID, g.p.chunk_id[8] = '-');
	EXPECT(PROFILE_BAD_ID, g.p.chunk_id[0] = '\0');
	EXPECT(PROFILE_BAD_ID, g.images[1].id = NULL);
	EXPECT(PROFILE_BAD_ID, g.images[1].id_size = 0);
	EXPECT(PROFILE_MISSING_METADATA, g.p.platform = NULL);
	EXPECT(PROFILE_MISSING_METADATA, g.p.platform = "");
	EXPECT(PROFILE_MISSING_METADATA, g.p.release = NULL);
	EXPECT(PROFILE_MISSING_METADATA, g.p.environment = "");
	EXPECT(PROFILE_MISSING_METADATA, g.p.sdk_name = NULL);
	EXPECT(PROFILE_MISSING_METADATA, g.p.sdk_version = "");
	EXPECT(PROFILE_TOO_LONG, g.samples[7].time_us = g.samples[0].time_us + 66000001);
	/* The server compares the newest and the oldest time, in whatever order. */
	EXPECT(PROFILE_TOO_LONG, g.samples[3].time_us = g.samples[0].time_us + 70000000);
	EXPECT(PROFILE_BAD_INDEX, g.samples[0].node = 6);
	EXPECT(PROFILE_BAD_INDEX, g.nodes[2].frame = 5);
	EXPECT(PROFILE_BAD_INDEX, g.nodes[5].parent = 6);
	EXPECT(PROFILE_BAD_INDEX, g.nodes[3].parent = 3);
	EXPECT(PROFILE_BAD_INDEX, g.nodes[1].parent = 5);
	EXPECT(PROFILE_BAD_TEXT, g.frames[0].function = "ma\xffin");
	EXPECT(PROFILE_BAD_TEXT, g.frames[0].package = "/opt/\xc3");
	EXPECT(PROFILE_BAD_TEXT, g.images[0].code_file = "/opt/\xed\xa0\x80");
	EXPECT(PROFILE_BAD_TEXT, g.threads[1].name = "\x80");
	EXPECT(PROFILE_BAD_TEXT, g.p.release = "1\xfe");
	EXPECT(PROFILE_BAD_TEXT, g.p.environment = "\xe2\x82");
	EXPECT(PROFILE_BAD_TEXT, g.p.platform = "\xc0\xaf");
	EXPECT(PROFILE_BAD_TEXT, g.p.sdk_name = "\xf5\x80\x80\x80");
	EXPECT(PROFILE_BAD_TEXT, g.p.sdk_version = "1\x80");
	EXPECT(PROFILE_NO_ADDRESS, g.frames[3].addr = 0);
	EXPECT(PROFILE_BAD_ORDER, g.samples[2].time_us = g.samples[0].time_us - 1);
	EXPECT(PROFILE_BAD_ORDER, g.samples[4].tid = 100);
	EXPECT(PROFILE_BAD_ORDER, g.threads[0].tid = 200);
	EXPECT(PROFILE_ROOT_CALLEE_WITHOUT_NAME, g.frames[0].function = NULL);
	EXPECT(PROFILE_ROOT_CALLEE_WITHOUT_NAME, g.frames[0].function = "");
	EXPECT(PROFILE_IMAGES_OVERLAP, g.images[0].size = g.images[1].addr - g.images[0].addr + 1);
	EXPECT(PROFILE_IMAGES_OVERLAP, struct profile_image first = g.images[0];
	       g.images[0] = g.images[1]; g.images[1] = first);
	EXPECT(PROFILE_IMAGES_OVERLAP, g.images[0].addr = g.images[1].addr; g.images[0].size = 0);
	EXPECT(PROFILE_IMAGES_OVERLAP, g.images[1].size = UINT64_MAX - g.images[1].addr + 1);
	EXPECT(PROFILE_UNKNOWN_THREAD, g.samples[7].tid = 102);
}

TEST(values_at_the_limits_are_valid)
{
	EXPECT(PROFILE_OK, g.samples[7].time_us = g.samples[0].time_us + 66000000);
	EXPECT(PROFILE_OK, g.images[0].size = g.images[1].addr - g.images[0].addr);
	/* The root itself needs no name. */
	EXPECT(PROFILE_OK, g.frames[1].function = NULL);
	/* One thread with two samples is enough. */
	EXPECT(PROFILE_OK, empty_stacks(&g, 1, 7); g.samples[6].node = 3);
	EXPECT(PROFILE_OK, g.p.n_images = 0);
}

TEST(each_fault_has_its_own_name)
{
	for (int i = 0; i < PROFILE_FAULT_N; i++) {
		const char *name = profile_fault_name((enum profile_fault)i);

		ck_assert_str_ne(name, "unknown");
		for (int j = 0; j < i; j++)
			ck_assert_str_ne(name, profile_fault_name((enum profile_fault)j));
	}
	ck_assert_str_eq(profile_fault_name(PROFILE_FAULT_N), "unknown");
	ck_assert_str_eq(profile_fault_name(PROFILE_TOO_LONG), "duration_too_long");
}

TEST(a_thread_is_found_by_its_tid)
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

TEST(an_index_takes_its_digits_and_a_comma)
{
	ck_assert_uint_eq(profile_index_bytes(0), 2);
	ck_assert_uint_eq(profile_index_bytes(9), 2);
	ck_assert_uint_eq(profile_index_bytes(10), 3);
	ck_assert_uint_eq(profile_index_bytes(UINT32_MAX), 11);
}
