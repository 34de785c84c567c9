/*
 * Computes at which rates targets stay within the CPU budget. Pure functions: governor.h measures
 * the costs and sets the rates.
 *
 * In this header "user" means a user who is not an operator. A target is for a user if only users
 * want it (instance_is_for_user). All targets for users together may use what the other targets
 * leave of the budget, and at least RATES_USERS_SHARE of the budget. Reason: users' programs that
 * cost much must not lower the rates of the targets of sections and operators further.
 */
#ifndef DAEMON_BROKER_TARGETS_RATES_H
#define DAEMON_BROKER_TARGETS_RATES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The governor lowers a rate to this at the lowest, in samples a second, or to 0. A configured rate
 * may be lower than this; the governor lowers such a rate only to 0.
 */
#define RATES_MIN_HZ 11

/* All users together may use this part of the budget even if the other targets need it. */
#define RATES_USERS_SHARE 0.2

/* Returns the lowest rate of a target above 0: the lower of full_hz and RATES_MIN_HZ. */
uint32_t rates_least_hz(uint32_t full_hz);

/*
 * Computes the rates at which n targets stay within a budget. costs: the cost of each target at its
 * full rate, as a share of one processor; budget: in the same unit. The targets share the budget
 * equally. A target that costs less than its share keeps its full rate, and the rest of its share
 * goes to the other targets. Writes to ret_rates, for each target, its full_hz, or a lower prime of
 * at least rates_least_hz(full_hz): 100, 79 and 61 Hz for the costs 0.1, 0.5 and 0.6 at 100 Hz each
 * and the budget 0.9. If even the least rates cost more than the budget, each target whose cost is
 * above 0 gets its least rate.
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
	/* At the full rate, as a share of one processor; 0: not known, so the rate is full_hz. */
	double cost;
	uint32_t full_hz; /* the configured rate */
	bool is_for_user; /* only users want the target */
	uint32_t user;	  /* a uid, if is_for_user */
};

/*
 * Returns the part of the budget that all users together may use: the part that the other targets
 * leave at their full rates, and at least RATES_USERS_SHARE of the budget.
 */
double rates_left_for_users(const struct rates_claim *claims, size_t n, double budget);

/*
 * Computes the rates of n <= HEARTBEAT_SLOTS targets:
 * - Each user gets an equal part of rates_left_for_users(). If a user needs less, the other users
 *   get the difference.
 * - The targets of one user share the user's part as rates_compute() says. If they exceed the part
 *   even at their lowest rates, the one that costs most at its lowest rate gets the rate 0, then
 *   the next one, until the others fit.
 * - The targets that are not for users share what the users' parts leave of the budget, as
 *   rates_compute() says.
 *
 * ret_rates: as for rates_compute(), or 0.
 */
void rates_share_out(const struct rates_claim *claims, size_t n, double budget,
		     uint32_t *ret_rates);

#endif
