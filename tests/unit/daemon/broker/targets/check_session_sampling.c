#include "daemon/broker/targets/session_sampling.h"

#include <errno.h>
#include <math.h>

#include "tests/unit/suite.h"

#define N 100000

static const char boot[] = "3f6b5d0e-8c54-4f8e-9a3a-5f0c2c1d7e90\n";
static const char other_boot[] = "3f6b5d0e-8c54-4f8e-9a3a-5f0c2c1d7e91\n";
static struct session_sampling_key key;

static void set_up(void)
{
	OK(session_sampling_key_parse(boot, &key));
}

/* Pids and start times as on a host: in a row, close together. */
static bool is_sampled(const struct session_sampling_key *k, unsigned int i, double rate)
{
	return session_sampling_decides(k, (int32_t)(i % 32768) + 1, 1000 + (uint64_t)i / 7, rate);
}

static unsigned int sampled(const struct session_sampling_key *k, double rate)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < N; i++)
		n += is_sampled(k, i, rate);
	return n;
}

FIXTURE(set_up, NULL)

TEST(rate_0_profiles_none_and_rate_1_all)
{
	ck_assert_uint_eq(sampled(&key, 0.0), 0);
	ck_assert_uint_eq(sampled(&key, 1.0), N);
}

/*
 * The limits are four standard deviations of independent draws. The decisions are not random:
 * they are the same in every run.
 */
TEST(the_rate_is_exact_over_100_000)
{
	static const double rates[] = {0.001, 0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.999};

	for (size_t i = 0; i < array_size(rates); i++) {
		const double rate = rates[i];
		const double wide = 4 * sqrt(N * rate * (1 - rate));

		ck_assert_double_eq_tol(sampled(&key, rate), N * rate, wide);
	}
}

TEST(a_higher_rate_profiles_the_same_processes_and_more)
{
	for (unsigned int i = 0; i < 2000; i++) {
		bool was = false;

		for (int percent = 0; percent <= 100; percent++) {
			bool is = is_sampled(&key, i, percent / 100.0);

			ck_assert(is || !was);
			was = is;
		}
	}
}

/* With two keys, a quarter of the processes are sampled by both at 0.5. */
TEST(another_boot_id_decides_independently)
{
	struct session_sampling_key other;
	unsigned int both = 0;

	OK(session_sampling_key_parse(other_boot, &other));
	for (unsigned int i = 0; i < N; i++)
		both += is_sampled(&key, i, 0.5) && is_sampled(&other, i, 0.5);
	ck_assert_double_eq_tol(both, N / 4.0, 4 * sqrt(N * 0.25 * 0.75));
}

/* Another pid or start time gives another decision in half of the cases. */
TEST(each_part_of_the_identity_counts)
{
	unsigned int pid = 0, start = 0;

	for (int32_t i = 1; i <= 10000; i++) {
		bool is = session_sampling_decides(&key, i, 77, 0.5);

		pid += is != session_sampling_decides(&key, i + 4194304, 77, 0.5);
		start += is != session_sampling_decides(&key, i, 77 + (UINT64_C(1) << 40), 0.5);
	}
	ck_assert_double_eq_tol(pid, 5000, 200);
	ck_assert_double_eq_tol(start, 5000, 200);
}

/* A service keeps its decision over upgrades of the daemon. */
TEST(decisions_are_the_same_in_each_version)
{
	unsigned int bits = 0;

	for (int32_t pid = 1; pid <= 16; pid++)
		bits = bits << 1 | session_sampling_decides(&key, pid, 12345, 0.5);
	ck_assert_uint_eq(bits, 0x55f3);
}

TEST(invalid_boot_ids_are_refused)
{
	struct session_sampling_key k;

	ck_assert_int_eq(session_sampling_key_parse("", &k), -EINVAL);
	ck_assert_int_eq(session_sampling_key_parse("3f6b5d0e", &k), -EINVAL);
	ck_assert_int_eq(session_sampling_key_parse("3f6b5d0e-8c54-4f8e-9a3a-5f0c2c1d7e900", &k),
			 -EINVAL);
	ck_assert_int_eq(session_sampling_key_parse("3f6b5d0e-8c54-4f8e-9a3a-5f0c2c1d7e9g", &k),
			 -EINVAL);
	OK(session_sampling_key_read(&k));
}
