#include "lib/capture/account.h"

/*
 * The scheduler writes down what a thread has run when it takes the processor
 * away, which our stop does at each look, and at its own ticks; so up to one
 * look's worth is not there yet. What we hold a thread for is none of its own.
 * With less than this a thread that has its processor to itself would have
 * gaps.
 */
#define SLACK_LOOKS 3

/*
 * Who runs now and then is met or not as chance has it: owed goes up and down
 * by a look each time. The nearer this limit, the more is forgotten: of 5 % of
 * a processor, one part in 140.
 */
#define OWED_LOOKS 64

void account_look(struct account *a, uint64_t run_ns, uint64_t tick_ns)
{
	const int64_t limit = (int64_t)(OWED_LOOKS * tick_ns);

	if (a->begun && run_ns >= a->run_ns)
		a->owed_ns += (int64_t)(run_ns - a->run_ns);
	a->begun = true;
	a->run_ns = run_ns;
	if (a->owed_ns > limit)
		a->owed_ns = limit;
	else if (a->owed_ns < -limit)
		a->owed_ns = -limit;
}

void account_end(struct account *a, uint64_t time_ns)
{
	if (a->since_ns != 0 && time_ns > a->since_ns)
		a->owed_ns -= (int64_t)(time_ns - a->since_ns);
	a->since_ns = 0;
}

void account_begin(struct account *a, uint64_t time_ns)
{
	account_end(a, time_ns);
	a->since_ns = time_ns;
}

bool account_has_run(const struct account *a, uint64_t tick_ns)
{
	return a->owed_ns >= -(int64_t)(SLACK_LOOKS * tick_ns);
}

/*
 * Whoever is on a processor at one tick of ten is at none of 20 now and then;
 * what is owed then is paid at the ticks at which it is met.
 */
#define BEHIND_LOOKS 8

bool account_is_behind(const struct account *a, uint64_t tick_ns)
{
	return a->owed_ns > (int64_t)(BEHIND_LOOKS * tick_ns);
}
