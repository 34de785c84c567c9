#include "lib/capture/target.h"

/*
 * Who sleeps is not looked at, nor even asked whether it has run, as long as
 * the process's CPU clock tells that nobody asleep has. That clock is the sum
 * of all threads' run times, of those that have ended too; both it and
 * schedstat show the sum as the scheduler last wrote it down
 * (thread_group_cputime() and proc_pid_schedstat()). So what is left of it
 * after the run times of those that are awake, as read now, and of those
 * asleep, as they were when they fell asleep, stays the same to the nanosecond
 * until somebody asleep runs.
 *
 * Then they are asked, whoever fell asleep last first, until what those have
 * run is all that the clock tells. Where it never is (also because the
 * scheduler wrote in between, or a thread has ended), every sleeper has been
 * asked. One that has run is looked at before the next is asked: those that
 * work for a moment only would be asleep after the asking of a hundred.
 */

static void put_into(struct thread **list, struct thread *th)
{
	th->prev = NULL;
	th->next = *list;
	if (th->next != NULL)
		th->next->prev = th;
	*list = th;
}

static void take_out(struct thread **list, struct thread *th)
{
	/* Stops are taken, and threads die, in the middle of a tick. */
	if (th->target->next_awake == th)
		th->target->next_awake = th->next;
	if (th->target->next_asleep == th)
		th->target->next_asleep = th->next;
	if (th->next != NULL)
		th->next->prev = th->prev;
	if (th->prev != NULL)
		th->prev->next = th->next;
	else
		*list = th->next;
}

void thread_link(struct thread *th)
{
	put_into(&th->target->awake, th);
	th->target->n_threads++;
	th->target->stirred = true;
	target_hasten(th->target);
}

void thread_unlink(struct thread *th)
{
	thread_wake(th);
	take_out(&th->target->awake, th);
	th->target->n_threads--;
	th->target->stirred = true;
	target_plan(th->target);
}

void thread_sleep(struct thread *th, const struct activity_mark *mark)
{
	struct target *t = th->target;

	thread_wake(th);
	take_out(&t->awake, th);
	put_into(&t->asleep, th);
	t->n_asleep++;
	t->asleep_ns += mark->run_ns;
	th->asleep = true;
	th->mark = *mark;
}

void thread_wake(struct thread *th)
{
	struct target *t = th->target;

	if (!th->asleep)
		return;
	take_out(&t->asleep, th);
	put_into(&t->awake, th);
	t->n_asleep--;
	t->asleep_ns -= th->mark.run_ns;
	t->names_tick = min_u64(t->names_tick, th->name_tick);
	t->idle_tick = t->last_tick;
	th->asleep = false;
	th->alone = false;
	target_hasten(t);
}

/*
 * A thread has a processor to itself if it ran for most of the last ALONE_NS
 * and waited for a processor for less than 1/ALONE_WAIT_SHARE of that time. Its
 * samples are marked as running without another read of its wait time: at most
 * 1/ALONE_WAIT_SHARE of them are wrong.
 */
#define ALONE_NS	 (100 * NS_PER_MS)
#define ALONE_WAIT_SHARE 64

static void find_out_if_alone(struct thread *th)
{
	const uint64_t since = th->look_ns - th->alone_since_ns;
	const uint64_t ran = th->look.run_ns - th->alone_since.run_ns;
	const uint64_t waited = th->look.wait_ns - th->alone_since.wait_ns;

	if (waited > ALONE_NS / ALONE_WAIT_SHARE)
		th->alone = false;
	else if (since < ALONE_NS)
		return;
	else
		th->alone = 2 * ran >= since;
	th->alone_since = th->look;
	th->alone_since_ns = th->look_ns;
}

void thread_ask(struct thread *th)
{
	th->look_ns = th->target->capture->options.now_ns();
	th->look_known = activity_mark(&th->activity, &th->look);
	th->unasked = 0;
	find_out_if_alone(th);
}

/*
 * A thread that has a processor to itself, and was last found in user mode, is
 * asked at one look of so many.
 */
#define ASK_LOOKS 4

static bool is_spared(const struct thread *th)
{
	return th->alone && !th->in_call && th->unasked < ASK_LOOKS - 1;
}

/*
 * Looks at those that are awake and, if *sum_ns is asked for, sums up what they
 * have run. Returns false if one of them was not read.
 */
static bool look_at_awake(struct target *t, uint64_t *sum_ns)
{
	bool all = true;

	for (struct thread *th = t->awake; th != NULL; th = th->next) {
		/* Of a pending one, the look before its interrupt counts. */
		struct activity_mark mark;
		bool known;

		const bool pending = th->due == DUE_SAMPLE;

		if (th->life == THREAD_DEAD || (pending && sum_ns == NULL))
			continue;
		if (is_spared(th) && sum_ns == NULL) {
			th->unasked++;
			continue;
		}
		if (pending) {
			known = activity_mark(&th->activity, &mark);
		} else {
			thread_ask(th);
			known = th->look_known;
			mark = th->look;
		}
		if (!known)
			all = false;
		else if (sum_ns != NULL)
			*sum_ns += mark.run_ns;
	}
	return all;
}

struct thread *target_next_that_ran(struct target *t, unsigned int *asks, uint64_t *ret_woke_ns)
{
	while (t->next_asleep != NULL && *asks > 0) {
		struct thread *th = t->next_asleep;
		uint64_t ran_ns, waited_ns;

		t->next_asleep = th->next;
		--*asks;
		thread_ask(th);
		if (th->look_known && activity_same(&th->look, &th->mark))
			continue;
		thread_wake(th);
		t->n_passed--;
		if (!th->look_known) {
			*ret_woke_ns = 0;
			return th;
		}
		ran_ns = th->look.run_ns - th->mark.run_ns;
		waited_ns = th->look.wait_ns - th->mark.wait_ns;
		*ret_woke_ns = ran_ns + waited_ns;
		t->ended_now_ns -= ran_ns;
		/* A thread that runs at this moment is found at the next look.
		 */
		if (t->ended_known && t->ended_now_ns == t->ended_ns)
			t->next_asleep = NULL;
		return th;
	}
	return NULL;
}

void target_look(struct target *t)
{
	/*
	 * With few sleepers, to ask them is cheaper than to ask the clock,
	 * which adds up the process's threads: 100 us for 1,000 of them.
	 */
	const bool worth_it = t->n_asleep > t->n_threads - t->n_asleep;
	uint64_t awake_ns = 0, process_ns = 0;
	bool known;

	known = look_at_awake(t, worth_it ? &awake_ns : NULL) && worth_it &&
		t->capture->options.process_ns(t->pid, &process_ns) == 0;
	t->ended_now_ns = process_ns - awake_ns - t->asleep_ns;
	t->n_passed = t->n_asleep;
	t->next_asleep = NULL;
	t->clock_read = known;
	if (known && t->ended_known && t->ended_now_ns == t->ended_ns) {
		t->stirred |= t->awake != NULL;
		return;
	}
	t->stirred = true;
	t->ended_known &= known;
	t->next_asleep = t->asleep;
}

void target_looked(struct target *t)
{
	t->ended_known = t->clock_read;
	t->ended_ns = t->ended_now_ns;
}
