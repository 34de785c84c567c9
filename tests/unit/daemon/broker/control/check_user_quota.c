/* The limits of a user, a process and all peers of the socket. Two users: USER and OTHER. */
#include "daemon/broker/control/user_quota.h"

#include "tests/unit/suite.h"

#define USER  UINT32_C(1000)
#define OTHER UINT32_C(1001)

static struct user_quotas a;

static void set_up(void)
{
	user_quota_init(&a, 1u << 20);
}

/* Returns how many more connections uid gets, each of another process. */
static size_t open_all(uint32_t uid)
{
	size_t n = 0;

	while (n <= USER_QUOTA_CONNECTIONS_MAX && user_quota_open(&a, uid, 0))
		n++;
	return n;
}

FIXTURE(set_up, NULL)

TEST(a_user_has_a_limited_number_of_connections)
{
	ck_assert_uint_eq(open_all(USER), USER_QUOTA_USER_MAX);
	ck_assert(user_quota_open(&a, OTHER, 0));
	user_quota_close(&a, USER);
	ck_assert(user_quota_open(&a, USER, 0));
	ck_assert(!user_quota_open(&a, USER, 0));
}

TEST(a_process_has_a_limited_number_of_connections)
{
	ck_assert(user_quota_open(&a, USER, USER_QUOTA_PROCESS_MAX - 1));
	ck_assert(!user_quota_open(&a, USER, USER_QUOTA_PROCESS_MAX));
}

TEST(users_leave_reserved_connections_to_operators)
{
	size_t n = 0;

	for (uint32_t uid = 1; uid <= 5; uid++)
		n += open_all(uid);
	ck_assert_uint_eq(n, USER_QUOTA_CONNECTIONS_MAX - USER_QUOTA_RESERVED);
	ck_assert(user_quota_is_full(&a));
	/* Users cannot use up the connections of operators. */
	ck_assert_uint_eq(open_all(USER_QUOTA_OPERATORS), USER_QUOTA_RESERVED);
}

TEST(few_descriptors_lower_the_limit_of_connections)
{
	user_quota_init(&a, 256);
	ck_assert_uint_eq(open_all(USER), 32);
	ck_assert_uint_eq(open_all(USER_QUOTA_OPERATORS), 32);
}

TEST(only_so_many_users_can_be_connected)
{
	for (uint32_t uid = 1; uid <= USER_QUOTA_USERS; uid++)
		ck_assert(user_quota_open(&a, uid, 0));
	ck_assert(!user_quota_open(&a, 9999, 0));
	ck_assert(user_quota_is_full(&a));
	/* The uids of a user of rootless containers do not keep operators out. */
	ck_assert(user_quota_open(&a, USER_QUOTA_OPERATORS, 0));
	user_quota_close(&a, 5);
	ck_assert(!user_quota_is_full(&a));
	ck_assert(user_quota_open(&a, 9999, 0));
}

TEST(requests_of_a_user_per_second_are_limited)
{
	const uint64_t t = 5 * NS_PER_SEC;

	ck_assert(user_quota_open(&a, USER, 0));
	ck_assert(user_quota_open(&a, OTHER, 0));
	for (int i = 0; i < USER_QUOTA_AT_ONCE; i++) {
		ck_assert(user_quota_may_request(&a, USER, t));
		user_quota_use(&a, USER, 1, t);
	}
	ck_assert(!user_quota_may_request(&a, USER, t));
	ck_assert(user_quota_may_request(&a, OTHER, t));
	/* A tenth of a second gives 100; the debt is paid first. */
	user_quota_use(&a, USER, 50, t);
	ck_assert(!user_quota_may_request(&a, USER, t + NS_PER_SEC / 20));
	ck_assert(user_quota_may_request(&a, USER, t + NS_PER_SEC / 10));
	for (int i = 0; i < 50; i++) {
		ck_assert(user_quota_may_request(&a, USER, t + NS_PER_SEC / 10));
		user_quota_use(&a, USER, 1, t + NS_PER_SEC / 10);
	}
	ck_assert(!user_quota_may_request(&a, USER, t + NS_PER_SEC / 10));
}

TEST(the_quota_never_exceeds_its_maximum)
{
	ck_assert(user_quota_open(&a, USER, 0));
	ck_assert(user_quota_may_request(&a, USER, 1000 * NS_PER_SEC));
	user_quota_use(&a, USER, USER_QUOTA_AT_ONCE, 1000 * NS_PER_SEC);
	ck_assert(!user_quota_may_request(&a, USER, 1000 * NS_PER_SEC));
	/* A clock that stands still or goes back adds nothing. */
	ck_assert(!user_quota_may_request(&a, USER, 999 * NS_PER_SEC));
}

TEST(a_new_connection_does_not_renew_the_quota)
{
	ck_assert(user_quota_open(&a, USER, 0));
	user_quota_use(&a, USER, USER_QUOTA_AT_ONCE, NS_PER_SEC);
	user_quota_close(&a, USER);
	ck_assert(user_quota_open(&a, USER, 0));
	ck_assert(!user_quota_may_request(&a, USER, NS_PER_SEC));
}
