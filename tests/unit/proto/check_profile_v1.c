/* Compares both payloads byte by byte with tests/golden/profile_v1_*.json. */
#include "proto/profile_v1.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/golden.h"
#include "tests/unit/proto/good_profile.h"
#include "tests/unit/suite.h"

static struct good_profile g;
static struct profile_v1 v;

static void set_up(void)
{
	good_profile_init(&g);
	v = (struct profile_v1){
		.profile = &g.p,
		.name = "check\"out\xc3\xbc",
		.trace_id = "00112233445566778899aabbccddeeff",
		.span_id = "0123456789abcdef",
		.tid = 100,
		.architecture = "x86_64",
		.os_name = "Linux",
		.os_version = "6.1.0",
	};
}

static char *written(int (*write)(const struct profile_v1 *, FILE *))
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	ck_assert_ptr_nonnull(f);
	ck_assert_int_eq(profile_check(&g.p), PROFILE_OK);
	OK(write(&v, f));
	OK(fclose(f));
	return text;
}

FIXTURE(set_up, NULL)

TEST(both_payloads_equal_their_golden_files)
{
	char *text = written(profile_v1_transaction);

	golden_check(text, "tests/golden/profile_v1_transaction.json");
	free(text);
	text = written(profile_v1_write);
	golden_check(text, "tests/golden/profile_v1_full.json");
	free(text);
}

/* The server accepts no longer one. */
TEST(a_longer_profile_is_cut_to_30_seconds)
{
	char *text;

	g.samples[g.p.n_samples - 1].time_us = g.samples[0].time_us + UINT64_C(30000123);
	text = written(profile_v1_write);
	HAS(text, "\"elapsed_since_start_ns\":\"30000000000\"");
	LACKS(text, "30000123");
	free(text);
	text = written(profile_v1_transaction);
	HAS(text, "\"start_timestamp\":1724777211.0,");
	HAS(text, "\"timestamp\":1724777241.0,");
	free(text);
}

TEST(a_name_that_is_not_utf8_is_refused)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	v.name = "\377";
	ck_assert_int_eq(profile_v1_transaction(&v, f), -EINVAL);
	ck_assert_int_eq(profile_v1_write(&v, f), -EINVAL);
	OK(fclose(f));
	free(text);
}
