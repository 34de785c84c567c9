#include "lib/base/token_bucket.h"

#include "tests/unit/suite.h"

#define SIZE 100
#define NOW  5000

static uint64_t full;

static bool holds(uint64_t now_ns, uint64_t ns)
{
	return token_bucket_holds(full, SIZE, now_ns, ns);
}

static void set_up(void)
{
	full = 0;
}

FIXTURE(set_up, NULL)

TEST(a_new_bucket_is_full)
{
	ck_assert(holds(0, SIZE));
	ck_assert(holds(NOW, SIZE));
	ck_assert(!holds(NOW, SIZE + 1));
}

TEST(the_bucket_fills_again)
{
	token_bucket_take(&full, NOW, SIZE);
	ck_assert(holds(NOW, 0));
	ck_assert(!holds(NOW, 1));
	ck_assert(holds(NOW + 30, 30));
	ck_assert(!holds(NOW + 30, 31));
	token_bucket_take(&full, NOW + 30, 10);
	ck_assert(holds(NOW + 30, 20));
	ck_assert(!holds(NOW + 30, 21));
	/* The bucket holds no more than its size. */
	ck_assert(holds(NOW + 10 * SIZE, SIZE));
	ck_assert(!holds(NOW + 10 * SIZE, SIZE + 1));
}

TEST(a_debt_is_paid_first)
{
	token_bucket_take(&full, NOW, SIZE + 50);
	ck_assert(!holds(NOW + 49, 0));
	ck_assert(holds(NOW + 50, 0));
	ck_assert(!holds(NOW + 50, 1));
	ck_assert(holds(NOW + 51, 1));
}

TEST(a_clock_that_goes_back_gives_nothing)
{
	token_bucket_take(&full, NOW, SIZE);
	ck_assert(!holds(NOW - 1, 1));
	ck_assert(!holds(0, 1));
	token_bucket_take(&full, 0, 1);
	ck_assert(!holds(NOW + 1, 1));
	ck_assert(holds(NOW + 2, 1));
}
