/* The limits of a user, a process and all peers of the socket. Two users: USER and OTHER. */
#include "daemon/broker/control/allowance.h"

#include "tests/unit/suite.h"

#define USER  UINT32_C(1000)
#define OTHER UINT32_C(1001)

static struct allowance a;

static void set_up(void)
{
	allowance_init(&a, 1u << 20);
}

/* Returns how many more connections uid gets, each of another process. */
static size_t open_all(uint32_t uid)
{
	size_t n = 0;

	while (n <= ALLOWANCE_CONNECTIONS_MAX && allowance_open(&a, uid, 0))
		n++;
	return n;
}

FIXTURE(set_up, NULL)

TEST(a_user_has_a_limited_number_of_connections)
{
	ck_assert_uint_eq(open_all(USER), ALLOWANCE_USER_MAX);
	ck_assert(allowance_open(&a, OTHER, 0));
	allowance_close(&a, USER);
	ck_assert(allowance_open(&a, USER, 0));
	ck_assert(!allowance_open(&a, USER, 0));
}

TEST(a_process_has_a_limited_number_of_connections)
{
	ck_assert(allowance_open(&a, USER, ALLOWANCE_PROCESS_MAX - 1));
	ck_assert(!allowance_open(&a, USER, ALLOWANCE_PROCESS_MAX));
}

TEST(users_leave_reserved_connections_to_operators)
{
	size_t n = 0;

	for (uint32_t uid = 1; uid <= 5; uid++)
		n += open_all(uid);
	ck_assert_uint_eq(n, ALLOWANCE_CONNECTIONS_MAX - ALLOWANCE_RESERVED);
	ck_assert(allowance_is_full(&a));
	/* Users cannot use up the connections of operators. */
	ck_assert_uint_eq(open_all(ALLOWANCE_OPERATORS), ALLOWANCE_RESERVED);
}

TEST(few_descriptors_lower_the_limit_of_connections)
{
	allowance_init(&a, 256);
	ck_assert_uint_eq(open_all(USER), 32);
	ck_assert_uint_eq(open_all(ALLOWANCE_OPERATORS), 32);
}

TEST(only_so_many_users_can_be_connected)
{
	for (uint32_t uid = 1; uid <= ALLOWANCE_USERS; uid++)
		ck_assert(allowance_open(&a, uid, 0));
	ck_assert(!allowance_open(&a, 9999, 0));
	ck_assert(allowance_is_full(&a));
	/* The uids of a user of rootless containers do not keep operators out. */
	ck_assert(allowance_open(&a, ALLOWANCE_OPERATORS, 0));
	allowance_close(&a, 5);
	ck_assert(!allowance_is_full(&a));
	ck_assert(allowance_open(&a, 9999, 0));
}

TEST(requests_of_a_user_per_second_are_limited)
{
	const uint64_t t = 5 * NS_PER_SEC;

	ck_assert(allowance_open(&a, USER, 0));
	ck_assert(allowance_open(&a, OTHER, 0));
	for (int i = 0; i < ALLOWANCE_AT_ONCE; i++) {
		ck_assert(allowance_may_request(&a, USER, t));
		allowance_use(&a, USER, 1, t);
	}
	ck_assert(!allowance_may_request(&a, USER, t));
	ck_assert(allowance_may_request(&a, OTHER, t));
	/* A tenth of a second gives 100; the debt is paid first. */
	allowance_use(&a, USER, 50, t);
	ck_assert(!allowance_may_request(&a, USER, t + NS_PER_SEC / 20));
	ck_assert(allowance_may_request(&a, USER, t + NS_PER_SEC / 10));
	for (int i = 0; i < 50; i++) {
		ck_assert(allowance_may_request(&a, USER, t + NS_PER_SEC / 10));
		allowance_use(&a, USER, 1, t + NS_PER_SEC / 10);
	}
	ck_assert(!allowance_may_request(&a, USER, t + NS_PER_SEC / 10));
}

TEST(the_allowance_never_exceeds_its_maximum)
{
	ck_assert(allowance_open(&a, USER, 0));
	ck_assert(allowance_may_request(&a, USER, 1000 * NS_PER_SEC));
	allowance_use(&a, USER, ALLOWANCE_AT_ONCE, 1000 * NS_PER_SEC);
	ck_assert(!allowance_may_request(&a, USER, 1000 * NS_PER_SEC));
	/* A clock that stands still or goes back adds nothing. */
	ck_assert(!allowance_may_request(&a, USER, 999 * NS_PER_SEC));
}

TEST(a_new_connection_does_not_renew_the_allowance)
{
	ck_assert(allowance_open(&a, USER, 0));
	allowance_use(&a, USER, ALLOWANCE_AT_ONCE, NS_PER_SEC);
	allowance_close(&a, USER);
	ck_assert(allowance_open(&a, USER, 0));
	ck_assert(!allowance_may_request(&a, USER, NS_PER_SEC));
}
