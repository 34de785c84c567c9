#include "lib/capture/sleepers.h"

#include <signal.h>

#include "lib/capture/schedule.h"
#include "lib/capture/state.h"

/*
 * How one reading of a clock shows whether any sleeping thread has run. The process's CPU clock is
 * the sum of the run times of all threads, of ended ones, too. The clock and schedstat show the
 * sums as the scheduler last wrote them (thread_group_cputime() and proc_pid_schedstat()). The run
 * times of awake threads, as read now, and those of sleeping threads, as they were when they fell
 * asleep, are subtracted from the clock. The difference stays the same to the nanosecond until a
 * sleeping thread runs.
 *
 * If the difference has changed, the sleeping threads are checked, the last to fall asleep first,
 * until the run times found explain the difference. If they never do (the scheduler has written in
 * between, or a thread has ended), every sleeping thread has been checked.
 *
 * A thread that has run is looked at before the next thread is checked: threads that work only for
 * a moment would be asleep again after a hundred checks.
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
	/*
	 * The thread may leave the list in the middle of a tick, because stops and deaths are
	 * handled between two looks.
	 */
	if (th->target->threads.next_awake == th)
		th->target->threads.next_awake = th->next;
	if (th->target->threads.next_asleep == th)
		th->target->threads.next_asleep = th->next;
	if (th->target->threads.begins_next == th)
		th->target->threads.begins_next = th->next;
	if (th->next != NULL)
		th->next->prev = th->prev;
	if (th->prev != NULL)
		th->prev->next = th->next;
	else
		*list = th->next;
}

void sleepers_link(struct thread *th)
{
	put_into(&th->target->threads.awake, th);
	th->target->threads.n++;
	th->target->threads.stirred = true;
	schedule_at_once(th->target);
}

void sleepers_unlink(struct thread *th)
{
	sleepers_wake(th);
	take_out(&th->target->threads.awake, th);
	th->target->threads.n--;
	th->target->threads.stirred = true;
	schedule_target(th->target);
}

void sleepers_add(struct thread *th, const struct activity_mark *mark,
		  const struct activity_place *place)
{
	struct traced_process *t = th->target;

	sleepers_wake(th);
	take_out(&t->threads.awake, th);
	put_into(&t->threads.asleep, th);
	t->threads.n_asleep++;
	t->threads.asleep_ns += mark->run_ns;
	th->asleep = true;
	th->sleep = (struct thread_sleep){
		.mark = *mark,
		.place = *place,
		.since_ns = t->capture->options.now_ns(),
	};
}

void sleepers_wake(struct thread *th)
{
	struct traced_process *t = th->target;

	if (!th->asleep)
		return;
	take_out(&t->threads.asleep, th);
	put_into(&t->threads.awake, th);
	t->threads.n_asleep--;
	t->threads.asleep_ns -= th->sleep.mark.run_ns;
	t->reader.names_tick = min_u64(t->reader.names_tick, th->reader.name_tick);
	th->asleep = false;
	th->look.own_processor = false;
	schedule_woken(t);
}

void sleepers_begin_with(struct thread *th)
{
	struct thread **list = &th->target->threads.awake;
	struct thread *last = th;

	if (th->prev == NULL)
		return;
	while (last->next != NULL)
		last = last->next;
	last->next = *list;
	(*list)->prev = last;
	th->prev->next = NULL;
	th->prev = NULL;
	*list = th;
}

void sleepers_note_counted(struct traced_process *t)
{
	t->threads.stirred = false;
}

void sleepers_wake_all(struct traced_process *t)
{
	while (t->threads.asleep != NULL)
		sleepers_wake(t->threads.asleep);
	t->threads.ended_known = false;
}

/*
 * A thread has a processor to itself if it ran for most of the last OWN_PROCESSOR_NS and waited for
 * a processor for less than 1/OWN_PROCESSOR_WAIT_SHARE of that time. Its samples are marked as
 * running without another reading of its wait time. At most 1/OWN_PROCESSOR_WAIT_SHARE of these
 * marks are wrong.
 */
#define OWN_PROCESSOR_NS	 (100 * NS_PER_MS)
#define OWN_PROCESSOR_WAIT_SHARE 64

static void find_own_processor(struct thread *th)
{
	const uint64_t since = th->look.ns - th->look.own_since_ns;
	const uint64_t ran = th->look.mark.run_ns - th->look.own_since.run_ns;
	const uint64_t waited = th->look.mark.wait_ns - th->look.own_since.wait_ns;

	if (waited > OWN_PROCESSOR_NS / OWN_PROCESSOR_WAIT_SHARE)
		th->look.own_processor = false;
	else if (since < OWN_PROCESSOR_NS)
		return;
	else
		th->look.own_processor = 2 * ran >= since;
	th->look.own_since = th->look.mark;
	th->look.own_since_ns = th->look.ns;
}

void sleepers_read_times(struct thread *th)
{
	th->look.ns = th->target->capture->options.now_ns();
	th->look.known = activity_mark(&th->activity, &th->look.mark);
	th->look.without_mark = 0;
	find_own_processor(th);
}

/*
 * The times of a thread that has a processor to itself, and was in user mode at its last stop, are
 * read at one of so many looks only.
 */
#define TIMES_LOOKS 4

static bool is_spared(const struct thread *th)
{
	return th->look.own_processor && !th->stop.in_call &&
	       th->look.without_mark < TIMES_LOOKS - 1;
}

/*
 * Reads the times of the awake threads. Adds up their run times if sum_ns is not NULL. Returns
 * false if the times of one thread could not be read.
 */
static bool read_awake_times(struct traced_process *t, uint64_t *sum_ns)
{
	bool all = true;

	for (struct thread *th = t->threads.awake; th != NULL; th = th->next) {
		/* An interrupted thread keeps its mark from before the interrupt. */
		struct activity_mark mark;
		bool known;

		const bool pending = th->due == DUE_SAMPLE;

		if (th->life == THREAD_DEAD || (pending && sum_ns == NULL))
			continue;
		if (is_spared(th) && sum_ns == NULL) {
			th->look.without_mark++;
			continue;
		}
		if (pending) {
			known = activity_mark(&th->activity, &mark);
		} else {
			sleepers_read_times(th);
			known = th->look.known;
			mark = th->look.mark;
		}
		if (!known)
			all = false;
		else if (sum_ns != NULL)
			*sum_ns += mark.run_ns;
	}
	return all;
}

struct thread *sleepers_next_that_ran(struct traced_process *t, unsigned int *checks,
				      uint64_t *ret_awake_ns)
{
	while (t->threads.next_asleep != NULL && *checks > 0) {
		struct thread *th = t->threads.next_asleep;
		uint64_t ran_ns, waited_ns;

		t->threads.next_asleep = th->next;
		--*checks;
		sleepers_read_times(th);
		if (th->look.known && activity_same(&th->look.mark, &th->sleep.mark))
			continue;
		sleepers_wake(th);
		t->threads.n_passed--;
		if (!th->look.known) {
			*ret_awake_ns = 0;
			return th;
		}
		ran_ns = th->look.mark.run_ns - th->sleep.mark.run_ns;
		waited_ns = th->look.mark.wait_ns - th->sleep.mark.wait_ns;
		*ret_awake_ns = ran_ns + waited_ns;
		t->threads.ended_now_ns -= ran_ns;
		/*
		 * No other thread has run. A thread that runs at this moment is found at the next
		 * look.
		 */
		if (t->threads.ended_known && t->threads.ended_now_ns == t->threads.ended_ns)
			t->threads.next_asleep = NULL;
		return th;
	}
	return NULL;
}

/*
 * To read a process's CPU clock, the kernel adds up its threads: 100 us for 1,000 of them. While a
 * timer is set on that clock, the scheduler keeps the sum, and the clock is read in 2 us
 * (cpu_clock_sample_group() in kernel/time/posix-cpu-timers.c). The target pays two additions more
 * at each switch of threads.
 */
#define TIMER_THREADS_MIN 16
#define TIMER_S		  (INT64_C(1) << 33) /* 272 years */

static void set_timer(struct traced_process *t)
{
	struct sigevent event = {
		/* With SIGEV_NONE the kernel would not keep the sum. */
		.sigev_notify = SIGEV_SIGNAL,
		.sigev_signo = SIGURG,
	};
	const struct itimerspec far = {.it_value = {.tv_sec = TIMER_S}};

	if (t->threads.timer_tried || t->threads.n_asleep < TIMER_THREADS_MIN)
		return;
	t->threads.timer_tried = true;
	/* On failure the kernel adds up the threads at each reading. */
	t->threads.has_timer =
		timer_create(clock_of_process(t->pid), &event, &t->threads.timer) == 0;
	if (t->threads.has_timer)
		(void)timer_settime(t->threads.timer, 0, &far, NULL);
}

void sleepers_delete_timer(struct traced_process *t)
{
	if (t->threads.has_timer)
		(void)timer_delete(t->threads.timer);
	t->threads.has_timer = false;
}

void sleepers_begin_tick(struct traced_process *t)
{
	/* If few threads sleep, checking each is cheaper than reading the clock. */
	const bool worth_it = t->threads.n_asleep > t->threads.n - t->threads.n_asleep;
	uint64_t awake_ns = 0, process_ns = 0;
	bool known;

	set_timer(t);
	known = read_awake_times(t, worth_it ? &awake_ns : NULL) && worth_it &&
		t->capture->options.process_ns(t->pid, &process_ns) == 0;
	t->threads.ended_now_ns = process_ns - awake_ns - t->threads.asleep_ns;
	t->threads.n_passed = t->threads.n_asleep;
	t->threads.next_asleep = NULL;
	t->threads.clock_read = known;
	if (known && t->threads.ended_known && t->threads.ended_now_ns == t->threads.ended_ns) {
		t->threads.stirred |= t->threads.awake != NULL;
		return;
	}
	t->threads.stirred = true;
	t->threads.ended_known &= known;
	t->threads.next_asleep = t->threads.asleep;
}

void sleepers_end_checks(struct traced_process *t)
{
	t->threads.ended_known = t->threads.clock_read;
	t->threads.ended_ns = t->threads.ended_now_ns;
}
