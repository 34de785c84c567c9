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

static void owe(struct account *a, int64_t ns, uint64_t tick_ns)
{
	const int64_t limit = (int64_t)(OWED_LOOKS * tick_ns);

	a->owed_ns += ns;
	if (a->owed_ns > limit)
		a->owed_ns = limit;
	else if (a->owed_ns < -limit)
		a->owed_ns = -limit;
}

void account_look(struct account *a, uint64_t run_ns, uint64_t time_ns,
		  uint64_t tick_ns)
{
	const bool goes_on =
		a->begun && run_ns >= a->run_ns && time_ns > a->look_ns;
	const uint64_t ran_ns = goes_on ? run_ns - a->run_ns : 0;

	owe(a, (int64_t)(ran_ns - a->guess_ns), tick_ns);
	if (goes_on)
		a->share = (double)ran_ns / (double)(time_ns - a->look_ns);
	a->has_share = goes_on && !a->woke;
	a->woke = false;
	a->begun = true;
	a->run_ns = run_ns;
	a->look_ns = time_ns;
	a->guess_ns = 0;
}

void account_wake(struct account *a)
{
	a->has_share = false;
	a->woke = true;
}

void account_guess(struct account *a, uint64_t time_ns, uint64_t tick_ns)
{
	const uint64_t guess_ns =
		(uint64_t)(a->share * (double)(time_ns - a->look_ns));

	owe(a, (int64_t)(guess_ns - a->guess_ns), tick_ns);
	a->guess_ns = guess_ns;
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
