/*
 * Computes at which rates targets stay within the CPU budget. Pure functions: governor.h measures
 * the costs and sets the rates.
 *
 * Targets that only users who are no operators want (instance_is_for_user) come last: an ordinary
 * user must not be able to lower the rates of sections and operators by programs that cost much.
 */
#ifndef DAEMON_BROKER_TARGETS_RATES_H
#define DAEMON_BROKER_TARGETS_RATES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The lowest rate, in samples a second. The governor lowers no rate below it except to 0, but a
 * configured rate may be lower.
 */
#define RATES_MIN_HZ 11

/* The part of the budget that all users together may use at least. */
#define RATES_USERS_SHARE 0.2

/* Returns the lowest rate of a target with this full rate. */
uint32_t rates_least_hz(uint32_t full_hz);

/*
 * Computes the rates at which n targets stay within a budget. costs: the cost of each target at its
 * full rate, as a share of one processor; budget: in the same unit. The targets share the budget
 * equally. A target that costs less than its share keeps its full rate, and the rest of its share
 * goes to the other targets. Writes to ret_rates, for each target, its full_hz, or a lower prime of
 * at least rates_least_hz(full_hz). Together the lowest rates may exceed the budget.
 */
void rates_compute(const double *costs, const uint32_t *full_hz, size_t n, double budget,
		   uint32_t *ret_rates);

/*
 * Shares a budget equally among n users or targets. costs: what each of them would use without a
 * limit. Returns the limit for each, in the unit of costs, at which all together stay within the
 * budget: 0.4 for the costs 0.1, 0.5 and 0.6 and the budget 0.9, because 0.1 + 0.4 + 0.4 = 0.9. If
 * all fit without a limit, returns the highest cost.
 */
double rates_level(const double *costs, size_t n, double budget);

/* The claim of one target on the budget. */
struct rates_claim {
	double cost; /* at the target's full rate, as a share of one processor; 0: not known yet */
	uint32_t full_hz;
	bool is_for_user;
	uint32_t user; /* a uid, if is_for_user */
};

/*
 * Returns the part of the budget that all users together may use: the part that the other targets
 * leave, and at least RATES_USERS_SHARE of the budget.
 */
double rates_left_for_users(const struct rates_claim *claims, size_t n, double budget);

/*
 * Computes the rates of n <= HEARTBEAT_SLOTS targets:
 * - All users together get rates_left_for_users() of the budget, in equal parts. What a user does
 *   not need of the own part goes to the other users.
 * - The targets of one user share the user's part as rates_compute() says. If their lowest rates
 *   exceed the part, the most expensive of them get the rate 0, one after the other, until the
 *   others fit.
 * - The targets that are not for users share what is left of the budget, as rates_compute() says.
 */
void rates_share_out(const struct rates_claim *claims, size_t n, double budget,
		     uint32_t *ret_rates);

#endif
