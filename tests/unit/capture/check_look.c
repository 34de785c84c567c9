#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <unistd.h>

#include "lib/capture/capture.h"
#include "lib/capture/leave.h"
#include "lib/capture/ptrace/arch.h"
#include "lib/capture/record.h"
#include "lib/capture/restart/resume.h"
#include "lib/capture/sample.h"
#include "lib/capture/sleepers.h"
#include "lib/capture/state.h"
#include "lib/capture/tracees.h"
#include "tests/unit/capture/live.h"
#include "tests/unit/suite.h"

static struct live l;
static struct thread *th;

static void set_up(void)
{
	live_begin(&l, "cap_threads", NULL, NULL);
	live_until_blocked(&l, l.pid);
	live_ticks(&l, 1);
	th = tracees_find(l.capture, (uint32_t)l.pid);
	ck_assert_ptr_nonnull(th);
}

static void tear_down(void)
{
	live_end(&l);
}

static void tick_running(void)
{
	live_tick_running(&l, th);
}

/* What /proc says of the target, for this test alone. False: it may not. */
static bool put_on_status(const char *file)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/%d/status", (int)l.pid);
	/* Not "/": in a chroot that may be no mount. */
	return unshare(CLONE_NEWNS) == 0 && mount(NULL, "/proc", NULL, MS_PRIVATE, NULL) == 0 &&
	       mount(file, path, NULL, MS_BIND, NULL) == 0;
}

static void say(int fd, const char *text)
{
	OK(ftruncate(fd, 0));
	ck_assert_int_eq(pwrite(fd, text, strlen(text), 0), (ssize_t)strlen(text));
}

FIXTURE(set_up, tear_down)

/* An interrupt would end the core where it is. */
TEST(who_writes_a_core_is_left_alone)
{
	char file[] = "/tmp/check_look.XXXXXX";
	uint64_t stops = l.counters.stops;
	int fd = mkstemp(file);
	bool is_put;

	ck_assert_int_ge(fd, 0);
	is_put = put_on_status(file);
	(void)unlink(file);
	/* Only root may. */
	if (!is_put) {
		ck_assert_int_ne(geteuid(), 0);
		close_fd(&fd);
		return;
	}
	say(fd, "Name:\tx\nCoreDumping:\t1\n");
	th->may_dump = true;
	for (uint64_t i = 1; i <= 20; i++) {
		tick_running();
		ck_assert_uint_eq(l.counters.missed[MISSED_EXITED], i);
		ck_assert_uint_eq(capture_pending(l.capture), 0);
	}
	ck_assert_uint_eq(l.counters.stops, stops);
	say(fd, "Name:\tx\nCoreDumping:\t0\n");
	tick_running();
	live_settle(&l);
	ck_assert_uint_eq(l.counters.missed[MISSED_EXITED], 20);
	ck_assert_uint_eq(l.counters.stops, stops + 1);
	/* Who has stopped for us writes none: it is not asked again. */
	say(fd, "Name:\tx\nCoreDumping:\t1\n");
	live_until_blocked(&l, l.pid);
	tick_running();
	live_settle(&l);
	ck_assert_uint_eq(l.counters.stops, stops + 2);
	live_check_sum(&l);
	close_fd(&fd);
}

/* As one that dies: without a place. */
static void look_dying(void)
{
	live_script(&th->activity.syscall_fd, "-1 0x0 0x0\n");
}

/* What cannot be read is no death: the next look reads it again. */
TEST(a_main_thread_is_not_dead_for_want_of_a_descriptor)
{
	const uint64_t samples = live_thread(&l, l.pid)->samples;

	look_dying();
	live_take_descriptors();
	for (uint64_t i = 1; i <= 5; i++) {
		sleepers_wake(th);
		live_tick(&l);
		ck_assert(th->life != THREAD_DEAD);
		ck_assert_uint_eq(l.counters.missed[MISSED_NO_RESOURCES], i);
	}
	ck_assert_uint_eq(l.records[RECORD_EXIT], 0);
	ck_assert_uint_eq(l.records[RECORD_MISSED], 1);
	live_check_sum(&l);
	live_give_descriptors();
	live_unscript(&th->activity.syscall_fd);
	sleepers_wake(th);
	live_tick(&l);
	ck_assert_uint_eq(live_thread(&l, l.pid)->samples, samples + 1);
	ck_assert_uint_eq(l.counters.missed[MISSED_NO_RESOURCES], 5);
	live_check_sum(&l);
}

/* A place is a stack, which a zombie has not: nothing more is read of it. */
TEST(a_blocked_main_thread_needs_no_descriptor)
{
	const uint64_t samples = live_thread(&l, l.pid)->samples;

	live_take_descriptors();
	sleepers_wake(th);
	live_tick(&l);
	ck_assert_uint_eq(l.counters.missed[MISSED_NO_RESOURCES], 0);
	ck_assert_uint_eq(live_thread(&l, l.pid)->samples, samples + 1);
	live_give_descriptors();
	live_check_sum(&l);
}

/* The same of a thread that is on its way to a stop. */
TEST(a_main_thread_that_stops_late_is_not_dead_either)
{
	th->resumed = (struct resumed_call){
		.state = RESUME_INSIDE, .same_call = true, .undisturbed = true};
	tick_running();
	ck_assert(th->due == DUE_SAMPLE);
	look_dying();
	live_take_descriptors();
	for (unsigned int i = 0; i < 200; i++)
		live_tick(&l);
	ck_assert(th->life != THREAD_DEAD);
	ck_assert(th->due == DUE_SAMPLE);
	live_give_descriptors();
	live_unscript(&th->activity.syscall_fd);
	th->resumed = (struct resumed_call){0};
	OK(ptrace(PTRACE_INTERRUPT, th->tid, NULL, NULL));
	live_settle(&l);
	ck_assert_uint_eq(l.records[RECORD_EXIT], 0);
	live_check_sum(&l);
}

/* Nothing is interrupted as long as a core may be under way. */
TEST(a_core_is_asked_for_again_for_want_of_a_descriptor)
{
	const uint64_t stops = l.counters.stops;

	th->may_dump = true;
	sleepers_wake(th);
	live_script(&th->activity.syscall_fd, "running\n");
	live_take_descriptors();
	live_tick(&l);
	live_give_descriptors();
	ck_assert_uint_eq(l.counters.missed[MISSED_NO_RESOURCES], 1);
	ck_assert_uint_eq(l.counters.missed[MISSED_EXITED], 0);
	ck_assert_uint_eq(l.counters.stops, stops);
	live_tick(&l);
	live_settle(&l);
	ck_assert_uint_eq(l.counters.stops, stops + 1);
	live_check_sum(&l);
}

static void stop_by(int signal)
{
	uint64_t before = l.counters.event_stops;

	OK(kill(l.pid, signal));
	while (l.counters.event_stops == before)
		live_wait(&l);
}

/* It is asked of those that are new to us, and those that had a signal. */
TEST(who_may_write_one)
{
	live_end(&l);
	/* The program inherits that. */
	ck_assert(signal(SIGQUIT, SIG_IGN) != SIG_ERR);
	ck_assert(signal(SIGUSR1, SIG_IGN) != SIG_ERR);
	live_begin(&l, "cap_threads", NULL, NULL);
	th = tracees_find(l.capture, (uint32_t)l.pid);
	ck_assert(th->may_dump);
	tick_running();
	live_settle(&l);
	ck_assert(!th->may_dump);
	stop_by(SIGQUIT);
	ck_assert(th->may_dump);
	stop_by(SIGUSR1);
	ck_assert(!th->may_dump);
}

/*
 * In a call that gives up where it is interrupted: no stop is to come that
 * would be ours, neither soon nor when it is not waited for any more, nor is
 * there one to wait for at the end.
 */
TEST(who_is_left_alone_does_not_stop)
{
	th->resumed = (struct resumed_call){.state = RESUME_INSIDE,
					    .same_call = true,
					    .undisturbed = true,
					    .until_ns = RESUME_NO_LIMIT};
	tick_running();
	ck_assert(th->due == DUE_SAMPLE);
	ck_assert(capture_settle(l.capture));
	th->resumed.undisturbed = false;
	ck_assert(!capture_settle(l.capture));
	th->resumed.undisturbed = true;
	for (; th->due == DUE_SAMPLE; live_patience())
		live_tick(&l);
	ck_assert(th->due == DUE_NOTHING);
	for (; l.counters.missed[MISSED_NOT_STOPPED] == 0; live_patience())
		tick_running();
	ck_assert(th->due == DUE_NOTHING);
	live_settle(&l);
	ck_assert_uint_eq(l.counters.stops, 0);
	live_check_sum(&l);
	th->resumed.state = RESUME_NONE;
}

/* Ticks from its interrupt until it is seen to be blocked; it runs for some. */
static unsigned int ticks_until_seen(unsigned int n_running)
{
	unsigned int n = 0;

	th->resumed = (struct resumed_call){
		.state = RESUME_INSIDE, .same_call = true, .undisturbed = true};
	tick_running();
	live_script(&th->activity.syscall_fd, "running\n");
	while (n++ < n_running)
		live_tick(&l);
	live_unscript(&th->activity.syscall_fd);
	ck_assert(th->due == DUE_SAMPLE);
	for (; th->due == DUE_SAMPLE; n++)
		live_tick(&l);
	th->resumed = (struct resumed_call){0};
	return n;
}

/* Most stop before that: they are not asked where they are at each tick. */
TEST(who_does_not_stop_is_looked_at_ever_more_rarely)
{
	const unsigned int first = ticks_until_seen(0);

	ck_assert_uint_ge(first, 8);
	ck_assert_uint_le(first, 32);
	ck_assert_uint_eq(ticks_until_seen(first), 2 * first);
	ck_assert_uint_eq(ticks_until_seen(2 * first), 4 * first);
	live_check_sum(&l);
}

/* What /proc/TID/schedstat says. */
static struct activity_mark said;

static void say_schedstat(void)
{
	char text[96];

	(void)snprintf(text, sizeof(text), "%lu %lu %lu\n", (unsigned long)said.run_ns,
		       (unsigned long)said.wait_ns, (unsigned long)said.slices);
	live_script(&th->activity.schedstat_fd, text);
}

static void begin_saying(void)
{
	/* More than it has said before, as of a thread that has run. */
	said.run_ns += NS_PER_SEC;
	said.wait_ns += NS_PER_SEC;
	said.slices += 1000000;
	say_schedstat();
}

static void end_saying(void)
{
	live_unscript(&th->activity.schedstat_fd);
}

/* From here on the kernel says that it has run, waited, and got a processor. */
static void add(uint64_t ran_ns, uint64_t waited_ns, uint64_t slices)
{
	said.run_ns += ran_ns;
	said.wait_ns += waited_ns;
	said.slices += slices;
	say_schedstat();
}

/* It is left alone until it is let stop. */
static void tick_alone(void)
{
	th->resumed = (struct resumed_call){
		.state = RESUME_INSIDE, .same_call = true, .undisturbed = true};
	tick_running();
	ck_assert(th->due == DUE_SAMPLE);
}

static void let_stop(void)
{
	th->resumed = (struct resumed_call){0};
	OK(ptrace(PTRACE_INTERRUPT, th->tid, NULL, NULL));
	live_settle(&l);
}

/* So long after the tick, at which it was looked at and interrupted at once. */
static void stop_after(uint64_t since_ns)
{
	live_step(0);
	l.capture->woke_ns = l.capture->options.now_ns();
	l.capture->left_ns = l.capture->woke_ns;
	th->due_ns = th->look_ns = th->interrupt_ns = l.capture->woke_ns - since_ns;
	let_stop();
}

/*
 * True if the sample says that it was running. Between the tick and its stop
 * the thread has run, waited, and got a processor so often.
 */
static bool is_told_to_run(uint64_t since_ns, uint64_t ran_ns, uint64_t waited_ns, uint64_t slices)
{
	live_until_blocked(&l, l.pid);
	begin_saying();
	tick_alone();
	add(ran_ns, waited_ns, slices);
	stop_after(since_ns);
	end_saying();
	live_check_sum(&l);
	return (live_thread(&l, (pid_t)th->tid)->flags & SAMPLE_RUNNING) != 0;
}

TEST(who_keeps_its_processor_runs)
{
	ck_assert(is_told_to_run(NS_PER_MS, 0, 0, 0));
	ck_assert(th->in_call);
	ck_assert(is_told_to_run(0, 9 * NS_PER_MS, 0, 0));
}

/* Its stack is where it lost the processor, not where it runs. */
TEST(who_waits_for_a_processor_does_not_run)
{
	ck_assert(!is_told_to_run(NS_PER_MS, 9000, 5 * NS_PER_MS, 1));
	ck_assert(!is_told_to_run(NS_PER_MS, 9000, NS_PER_SEC, 1));
}

/* It would run if there were no tick. */
TEST(who_loses_its_processor_to_us_runs)
{
	ck_assert(is_told_to_run(3 * NS_PER_MS, 9000, 3 * NS_PER_MS, 1));
	ck_assert(is_told_to_run(0, 9000, 9000, 1));
}

/* At the tick it slept. */
TEST(who_is_woken_after_the_tick_does_not_run)
{
	ck_assert(!is_told_to_run(3 * NS_PER_MS, 9000, 2 * NS_PER_MS, 1));
}

/* However much it has run by a tick: nothing is made up for. */
TEST(who_waits_at_each_tick_is_never_told_to_run)
{
	for (unsigned int i = 0; i < 100; i++)
		ck_assert(!is_told_to_run(NS_PER_MS, 8 * NS_PER_MS, 2 * NS_PER_MS, 3));
	ck_assert_uint_eq(live_thread(&l, l.pid)->running, 0);
}

static void stop_late(uint64_t slices)
{
	live_until_blocked(&l, l.pid);
	begin_saying();
	tick_alone();
	for (unsigned int i = 0; i < 5; i++)
		live_tick(&l);
	add(9000, slices * NS_PER_MS, slices);
	stop_after(NS_PER_MS);
	end_saying();
	ck_assert(live_thread(&l, l.pid)->flags & SAMPLE_RUNNING);
	live_check_sum(&l);
}

/* At the later ticks, at which it would have stopped. */
TEST(who_ran_at_a_tick_and_stops_late_has_waited_since)
{
	stop_late(1);
	ck_assert_uint_eq(l.records[RECORD_WAITING], 1);
	ck_assert(!th->recorded_running);
}

/* As in a call that clears a gigabyte, and looks for no signal meanwhile. */
TEST(who_stops_late_and_had_its_processor_all_the_time_ran)
{
	stop_late(0);
	ck_assert_uint_eq(l.records[RECORD_WAITING], 0);
	ck_assert(th->recorded_running);
}

/* A tick at which it can run; returns the stops that came of it. */
static uint64_t stops_at_a_tick(void)
{
	const uint64_t before = l.counters.stops;

	tick_running();
	live_settle(&l);
	live_check_sum(&l);
	return l.counters.stops - before;
}

/* Without a processor since its last stop: nothing has changed. */
TEST(who_has_not_run_since_its_stop_is_not_stopped_again)
{
	begin_saying();
	ck_assert_uint_eq(stops_at_a_tick(), 1);
	ck_assert(th->recorded_running);
	for (unsigned int i = 0; i < 10; i++)
		ck_assert_uint_eq(stops_at_a_tick(), 0);
	ck_assert_uint_eq(l.records[RECORD_WAITING], 1);
	ck_assert(!th->recorded_running);
	add(NS_PER_MS, 9 * NS_PER_MS, 1);
	ck_assert_uint_eq(stops_at_a_tick(), 1);
	ck_assert_uint_eq(stops_at_a_tick(), 0);
	/* A stop that gave no sample stands for nothing. */
	record_missed(th, MISSED_LATE, 1, l.tick, l.tick * l.tick_ns);
	l.counters.expected++;
	ck_assert_uint_eq(stops_at_a_tick(), 1);
	ck_assert_uint_eq(stops_at_a_tick(), 0);
	/* Nor does one for a reader that is gone, or that needs more. */
	capture_reset(l.capture, &l.sink);
	ck_assert_uint_eq(stops_at_a_tick(), 1);
	ck_assert_uint_eq(stops_at_a_tick(), 0);
	capture_hint(l.capture, &l.sink, LIVE_TARGET, th->tid, th->copied_top - 1,
		     th->copied_top + 4096, 0);
	ck_assert_uint_eq(stops_at_a_tick(), 1);
	end_saying();
}

static void compute_in_user_mode(void)
{
	const long tid = live_ask(&l, "busy 1", "ok");

	live_ticks(&l, 1);
	th = live_known(&l, (pid_t)tid);
	/* Its start is a call, too. */
	do {
		tick_running();
		live_settle(&l);
		live_patience();
	} while (th->in_call);
}

static uint64_t ahead_ns;

static uint64_t clock_ahead_ns(void)
{
	return clock_mono_ns() + ahead_ns;
}

/*
 * Of 32 looks those at which it was asked, after as many that tell whether it
 * shares its processor; at each it is told to run.
 */
static unsigned int times_asked(bool in_call, uint64_t waited_ns)
{
	unsigned int asked = 0;
	uint64_t told;

	begin_saying();
	tick_running();
	live_settle(&l);
	told = live_thread(&l, (pid_t)th->tid)->running;
	l.capture->options.now_ns = clock_ahead_ns;
	for (unsigned int i = 0; i < 64; i++) {
		ahead_ns += l.tick_ns;
		add(l.tick_ns - waited_ns, waited_ns, 1);
		th->in_call = in_call;
		tick_running();
		live_settle(&l);
		asked += i >= 32 && th->looks_without_mark == 0;
	}
	end_saying();
	ck_assert_uint_eq(live_thread(&l, (pid_t)th->tid)->running, told + 64);
	live_check_sum(&l);
	return asked;
}

/* Its processor is its own: that need not be asked at each look. */
TEST(who_is_alone_in_user_mode_is_seldom_asked)
{
	compute_in_user_mode();
	ck_assert_uint_eq(times_asked(true, 0), 32);
	ck_assert_uint_le(times_asked(false, 0), 32 / 4 + 2);
	ck_assert_uint_eq(times_asked(false, l.tick_ns / 16), 32);
}

/* From what it ran and waited before it slept nothing follows. */
TEST(who_wakes_is_asked_again)
{
	compute_in_user_mode();
	(void)times_asked(false, 0);
	ck_assert(th->own_processor);
	begin_saying();
	sleepers_add(th, &said);
	sleepers_wake(th);
	ck_assert(!th->own_processor);
	tick_running();
	ck_assert_uint_eq(th->looks_without_mark, 0);
	live_settle(&l);
	end_saying();
}

/* By whatever is told next of it. */
TEST(what_is_told_ends)
{
	ck_assert(is_told_to_run(0, 0, 0, 0));
	ck_assert(th->recorded_running);
	live_until_blocked(&l, l.pid);
	live_tick(&l);
	ck_assert(!th->recorded_running);
	ck_assert(is_told_to_run(0, 0, 0, 0));
	record_missed(th, MISSED_LATE, 1, l.tick, l.tick * l.tick_ns);
	ck_assert(!th->recorded_running);
	l.counters.expected++;
	live_check_sum(&l);
}

/*
 * True if a thread was looked at for the first time, as it is told, after
 * another had been stopped and sampled.
 */
static bool is_in_between(struct ring_reader *reader)
{
	const struct ring_record *record;
	bool stopped = false, found = false;
	size_t size;
	int r;

	OK(ring_advance(reader, l.sink.ring.head));
	while ((r = ring_next(reader, &record, &size)) > 0) {
		const struct record_sample *sample = (const void *)record;

		if (record->type == RECORD_SAMPLE)
			stopped |= sample->regs_known == ARCH_REGS_ALL;
		else if (record->type == RECORD_RESET)
			stopped = false;
		else if (record->type == RECORD_THREAD)
			found |= stopped;
		ring_release(reader, size);
	}
	ck_assert_int_eq(r, 0);
	return found;
}

/*
 * Those that are interrupted first do not wait until all have been looked at;
 * sooner or later one of them has stopped by then.
 */
TEST(stops_are_taken_between_looks)
{
	struct ring_reader reader;

	OK(ring_reader_init(&reader, l.sink.ring.fd));
	(void)live_ask(&l, "asleep 39", "ok");
	live_ticks(&l, 1);
	/* They seem to run, and take no processor from us. */
	for (size_t i = 0; i < l.capture->threads.n_by_index; i++)
		live_script(&l.capture->threads.by_index[i]->activity.syscall_fd, "running\n");
	do {
		capture_reset(l.capture, &l.sink);
		live_tick(&l);
		live_settle(&l);
		live_patience();
	} while (!is_in_between(&reader));
	live_check_sum(&l);
	ring_reader_fini(&reader);
}
