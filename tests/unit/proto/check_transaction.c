/* The thread of a transaction for a chunk, and its reference to the chunk. */
#include "proto/transaction.h"

#include <stdlib.h>
#include <string.h>

#include "tests/unit/proto/good_profile.h"
#include "tests/unit/suite.h"

static struct good_profile g;

static void set_up(void)
{
	good_profile_init(&g);
}

FIXTURE(set_up, NULL)

/* The time after a sample that is not running does not count. */
TEST(the_busiest_thread_is_found)
{
	const struct profile_thread threads[] = {{1, "a", 0}, {2, "b", 0}};
	struct profile_sample samples[] = {
		{.time_us = 10, .tid = 1, .state = PROFILE_WAITING},
		{.time_us = 20, .tid = 2},
		{.time_us = 30, .tid = 2},
		{.time_us = 90, .tid = 1},
	};
	struct profile p = g.p;
	uint32_t tid;

	p.threads = threads;
	p.n_threads = 2;
	p.samples = samples;
	p.n_samples = 4;
	OK(transaction_busiest(&p, &tid));
	ck_assert_uint_eq(tid, 2);
	samples[0].state = PROFILE_READY;
	OK(transaction_busiest(&p, &tid));
	ck_assert_uint_eq(tid, 2);
	samples[0].state = PROFILE_RUNNING;
	OK(transaction_busiest(&p, &tid));
	ck_assert_uint_eq(tid, 1);
	/* No thread ran: the thread of the first sample. */
	samples[0].state = samples[1].state = PROFILE_WAITING;
	samples[2].node = samples[1].node = PROFILE_NONE;
	OK(transaction_busiest(&p, &tid));
	ck_assert_uint_eq(tid, 1);
}

TEST(a_transaction_refers_to_its_chunk)
{
	struct transaction t = {
		.profile = &g.p,
		.name = "a 1",
		.trace_id = "00112233445566778899aabbccddeeff",
		.span_id = "0123456789abcdef",
		.tid = 100,
	};

	for (int of_chunk = 0; of_chunk < 2; of_chunk++) {
		char *text = NULL;
		size_t size;
		FILE *f = open_memstream(&text, &size);

		t.of_chunk = of_chunk;
		OK(transaction_write(&t, f));
		OK(fclose(f));
		ck_assert((strstr(text, "},\"profile\":{\"profiler_id\":\"") != NULL) == of_chunk);
		free(text);
	}
}
