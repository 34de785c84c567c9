#include "daemon/broker/targets/rates.h"

#include "daemon/msg/msg_capture.h"

uint32_t rates_least_hz(uint32_t full_hz)
{
	return full_hz < RATES_MIN_HZ ? full_hz : RATES_MIN_HZ;
}

/* Returns the cost at the lowest rate. */
static double floor_of(double cost, uint32_t full_hz)
{
	return cost * rates_least_hz(full_hz) / full_hz;
}

/*
 * Returns the sum of n costs if none may exceed level. full_hz: the full rates of the targets: no
 * cost is below the cost at the lowest rate. NULL: there is no such lower limit.
 */
static double cost_at(const double *costs, const uint32_t *full_hz, size_t n, double level)
{
	double sum = 0;

	for (size_t i = 0; i < n; i++) {
		double floor = full_hz == NULL ? 0 : floor_of(costs[i], full_hz[i]);
		double cost = costs[i] < level ? costs[i] : level;

		sum += cost > floor ? cost : floor;
	}
	return sum;
}

/* Returns the highest level at which the cost is within the budget. */
static double find_level(const double *costs, const uint32_t *full_hz, size_t n, double budget)
{
	double low = 0, high = 0;

	for (size_t i = 0; i < n; i++)
		if (costs[i] > high)
			high = costs[i];
	if (cost_at(costs, full_hz, n, high) <= budget)
		return high;
	/* Twenty halvings make the level exact to a millionth. */
	for (int i = 0; i < 20; i++) {
		double level = (low + high) / 2;

		if (cost_at(costs, full_hz, n, level) > budget)
			high = level;
		else
			low = level;
	}
	return low;
}

double rates_level(const double *costs, size_t n, double budget)
{
	return find_level(costs, NULL, n, budget);
}

static bool is_prime(uint32_t n)
{
	for (uint32_t d = 2; d * d <= n; d++)
		if (n % d == 0)
			return false;
	return n >= 2;
}

/*
 * Returns the highest prime up to rate that is at least `least`, or else `least`. At a lowered rate
 * of 20 Hz, the samples would coincide, to the tick, with a loop of the target that runs at 20 Hz.
 * The lowest rate, 11, and the default, 101, are primes, too.
 */
static uint32_t prime_up_to(double rate, uint32_t least)
{
	uint32_t hz = (uint32_t)rate;

	while (hz > least && !is_prime(hz))
		hz--;
	return hz < least ? least : hz;
}

void rates_compute(const double *costs, const uint32_t *full_hz, size_t n, double budget,
		   uint32_t *ret_rates)
{
	const double level = find_level(costs, full_hz, n, budget);

	for (size_t i = 0; i < n; i++) {
		ret_rates[i] = costs[i] > level ? prime_up_to(full_hz[i] * level / costs[i],
							      rates_least_hz(full_hz[i]))
						: full_hz[i];
	}
}

double rates_left_for_users(const struct rates_claim *claims, size_t n, double budget)
{
	const double least = RATES_USERS_SHARE * budget;
	double left = budget;

	for (size_t i = 0; i < n; i++)
		left -= claims[i].is_for_user ? 0 : claims[i].cost;
	return left > least ? left : least;
}

/* The targets of one user that have a rate. */
struct user {
	uint32_t uid;
	double cost, floor; /* sums: at the full and at the lowest rates */
	size_t dearest;	    /* index of the claim with the highest floor */
	double part;	    /* of the budget */
};

static struct user *find_user(struct user *users, size_t *n_users, uint32_t uid, size_t claim)
{
	for (size_t k = 0; k < *n_users; k++)
		if (users[k].uid == uid)
			return &users[k];
	users[*n_users] = (struct user){.uid = uid, .dearest = claim};
	return &users[(*n_users)++];
}

/* Sums the claims of each user whose rate is not 0. Returns the number of users. */
static size_t sum_users(const struct rates_claim *claims, size_t n, const uint32_t *rates,
			struct user *users)
{
	size_t n_users = 0;

	for (size_t i = 0; i < n; i++) {
		const double floor = floor_of(claims[i].cost, claims[i].full_hz);
		struct user *user;

		if (!claims[i].is_for_user || rates[i] == 0)
			continue;
		user = find_user(users, &n_users, claims[i].user, i);
		user->cost += claims[i].cost;
		user->floor += floor;
		if (floor > floor_of(claims[user->dearest].cost, claims[user->dearest].full_hz))
			user->dearest = i;
	}
	return n_users;
}

/* Sets the parts of users. Returns the user who exceeds the own part most; NULL: no user does. */
static struct user *share_among_users(struct user *users, size_t n_users, double left)
{
	static double costs[HEARTBEAT_SLOTS];
	struct user *worst = NULL;
	double level;

	for (size_t k = 0; k < n_users; k++)
		costs[k] = users[k].cost;
	level = rates_level(costs, n_users, left);
	for (size_t k = 0; k < n_users; k++) {
		struct user *user = &users[k];

		user->part = user->cost < level ? user->cost : level;
		if (user->floor > user->part &&
		    (worst == NULL || user->floor - user->part > worst->floor - worst->part))
			worst = user;
	}
	return worst;
}

/*
 * Computes the rates of the targets of one user; if user is NULL, those of the targets that are not
 * for users.
 */
static void compute_group(const struct rates_claim *claims, size_t n, const struct user *user,
			  double budget, uint32_t *rates)
{
	static double costs[HEARTBEAT_SLOTS];
	static uint32_t full_hz[HEARTBEAT_SLOTS], of_group[HEARTBEAT_SLOTS];
	static size_t at[HEARTBEAT_SLOTS];
	size_t n_group = 0;

	for (size_t i = 0; i < n; i++) {
		const bool is_member =
			user == NULL ? !claims[i].is_for_user
				     : claims[i].is_for_user && claims[i].user == user->uid;

		if (!is_member || rates[i] == 0)
			continue;
		costs[n_group] = claims[i].cost;
		full_hz[n_group] = claims[i].full_hz;
		at[n_group++] = i;
	}
	rates_compute(costs, full_hz, n_group, budget, of_group);
	for (size_t k = 0; k < n_group; k++)
		rates[at[k]] = of_group[k];
}

void rates_share_out(const struct rates_claim *claims, size_t n, double budget, uint32_t *ret_rates)
{
	static struct user users[HEARTBEAT_SLOTS];
	const double left = rates_left_for_users(claims, n, budget);
	struct user *worst;
	double used = 0;
	size_t n_users;

	for (size_t i = 0; i < n; i++)
		ret_rates[i] = claims[i].full_hz;
	/*
	 * One target at a time gets the rate 0: the cost of that target may be enough for all
	 * others of the user.
	 */
	for (;;) {
		n_users = sum_users(claims, n, ret_rates, users);
		worst = share_among_users(users, n_users, left);
		if (worst == NULL)
			break;
		ret_rates[worst->dearest] = 0;
	}
	for (size_t k = 0; k < n_users; k++) {
		compute_group(claims, n, &users[k], users[k].part, ret_rates);
		used += users[k].part;
	}
	compute_group(claims, n, NULL, budget - used, ret_rates);
}
