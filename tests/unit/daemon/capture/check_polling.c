/* Polls that were of no use get rarer, and one that was of use makes them regular again. */
#include "daemon/capture/polling.h"

#include "tests/unit/suite.h"

/* Returns the number of ticks without a poll until the next one. */
static unsigned int ticks_without(struct polling *p)
{
	unsigned int n = 0;

	while (!polling_is_due(p))
		n++;
	return n;
}

TEST(each_tick_is_polled_for_while_that_is_of_use)
{
	struct polling p = {0};

	for (int i = 0; i < 1000; i++) {
		ck_assert(polling_is_due(&p));
		polling_ended(&p, true);
	}
}

TEST(useless_polls_get_rarer)
{
	const unsigned int pauses[] = {1, 3, 7, 15, 31, 63, 63, 63};
	struct polling p = {0};

	for (size_t i = 0; i < array_size(pauses); i++) {
		polling_ended(&p, false);
		ck_assert_uint_eq(ticks_without(&p), pauses[i]);
	}
}

TEST(a_poll_of_use_ends_the_pauses)
{
	struct polling p = {0};

	for (int i = 0; i < 5; i++)
		polling_ended(&p, false);
	polling_ended(&p, true);
	ck_assert_uint_eq(ticks_without(&p), 0);
	polling_ended(&p, false);
	ck_assert_uint_eq(ticks_without(&p), 1);
}
