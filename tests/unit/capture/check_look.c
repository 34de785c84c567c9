#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <unistd.h>

#include "lib/capture/capture.h"
#include "lib/capture/detach.h"
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

/*
 * Replaces /proc/PID/status of the target by this file, for this test only. Returns false if that
 * is not permitted.
 */
static bool put_on_status(const char *file)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/%d/status", (int)l.pid);
	/* Mounts on /proc and not on "/", which may be no mount point in a chroot. */
	return unshare(CLONE_NEWNS) == 0 && mount(NULL, "/proc", NULL, MS_PRIVATE, NULL) == 0 &&
	       mount(file, path, NULL, MS_BIND, NULL) == 0;
}

static void say(int fd, const char *text)
{
	OK(ftruncate(fd, 0));
	ck_assert_int_eq(pwrite(fd, text, strlen(text), 0), (ssize_t)strlen(text));
}

FIXTURE(set_up, tear_down)

/*
 * A thread that writes a core dump is not interrupted, because an interrupt would cut off the core.
 */
TEST(a_thread_that_writes_a_core_is_not_interrupted)
{
	char file[] = "/tmp/check_look.XXXXXX";
	uint64_t stops = l.counters.stops;
	int fd = mkstemp(file);
	bool is_put;

	ck_assert_int_ge(fd, 0);
	is_put = put_on_status(file);
	(void)unlink(file);
	/* Only root is permitted to mount. */
	if (!is_put) {
		ck_assert_int_ne(geteuid(), 0);
		close_fd(&fd);
		return;
	}
	say(fd, "Name:\tx\nCoreDumping:\t1\n");
	th->dump.possible = true;
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
	/* A thread that has stopped for capture writes no core, so the file is not read again. */
	say(fd, "Name:\tx\nCoreDumping:\t1\n");
	live_until_blocked(&l, l.pid);
	tick_running();
	live_settle(&l);
	ck_assert_uint_eq(l.counters.stops, stops + 2);
	live_check_sum(&l);
	close_fd(&fd);
}

/*
 * A dump may begin between a reading of /proc and the interrupt. So a thread whose signal has its
 * default action is not interrupted, until a second later it has survived.
 */
TEST(a_thread_whose_signal_ends_it_is_not_interrupted)
{
	uint64_t stops;

	live_end(&l);
	/* The program inherits the ignored signal. */
	ck_assert(signal(SIGQUIT, SIG_IGN) != SIG_ERR);
	set_up();
	tick_running();
	live_settle(&l);
	live_until_blocked(&l, l.pid);
	stops = l.counters.stops;
	th->dump = (struct thread_dump){.possible = true, .signal = SIGXCPU};
	for (uint64_t i = 1; i <= 20; i++) {
		tick_running();
		ck_assert_uint_eq(l.counters.missed[MISSED_EXITED], i);
	}
	ck_assert_uint_eq(l.counters.stops, stops);
	live_later(NS_PER_SEC);
	tick_running();
	live_settle(&l);
	ck_assert_uint_eq(l.counters.stops, stops + 1);
	live_until_blocked(&l, l.pid);
	th->dump = (struct thread_dump){.possible = true, .signal = SIGQUIT};
	tick_running();
	live_settle(&l);
	ck_assert_uint_eq(l.counters.stops, stops + 2);
	ck_assert_uint_eq(l.counters.missed[MISSED_EXITED], 20);
	live_check_sum(&l);
}

/* Makes the thread look like a dying one, which has no sp and pc. */
static void make_dying(void)
{
	live_script(&th->activity.syscall_fd, "-1 0x0 0x0\n");
}

/*
 * A file that cannot be read does not mean that the thread is dead. The next look reads it again.
 */
TEST(a_leader_whose_state_cannot_be_read_is_not_dead)
{
	const uint64_t samples = live_thread(&l, l.pid)->samples;

	make_dying();
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

/* A thread with a place has a stack, so it is no zombie, and no further file is opened. */
TEST(a_blocked_leader_is_sampled_without_opening_a_file)
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

/* Checks the same for a thread that is interrupted and has not stopped yet. */
TEST(an_interrupted_leader_whose_state_cannot_be_read_is_not_dead)
{
	th->resumed = (struct resumed_call){
		.state = RESUME_INSIDE, .same_call = true, .undisturbed = true};
	tick_running();
	ck_assert(th->due == DUE_SAMPLE);
	make_dying();
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

/* As long as the thread may be writing a core, it is not interrupted. */
TEST(a_core_check_that_fails_is_repeated_at_the_next_look)
{
	const uint64_t stops = l.counters.stops;

	th->dump.possible = true;
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

/*
 * A thread may be writing a core if it is new to capture, or if it has received a signal that
 * causes one.
 */
TEST(new_threads_and_fatal_signals_may_mean_a_core_dump)
{
	live_end(&l);
	/* The program inherits the ignored signals. */
	ck_assert(signal(SIGQUIT, SIG_IGN) != SIG_ERR);
	ck_assert(signal(SIGUSR1, SIG_IGN) != SIG_ERR);
	live_begin(&l, "cap_threads", NULL, NULL);
	th = tracees_find(l.capture, (uint32_t)l.pid);
	ck_assert(th->dump.possible);
	tick_running();
	live_settle(&l);
	ck_assert(!th->dump.possible);
	stop_by(SIGQUIT);
	ck_assert(th->dump.possible);
	ck_assert_int_eq(th->dump.signal, SIGQUIT);
	stop_by(SIGUSR1);
	ck_assert(!th->dump.possible);
}

/*
 * The thread is in a call that must not be disturbed. Capture sends no interrupt: no stop comes
 * while the sample is pending or after it was given up, and none has to be awaited at the end.
 */
TEST(an_undisturbed_call_gets_no_interrupt)
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

/*
 * Returns the number of ticks from the interrupt until a look finds the thread blocked. The thread
 * runs at n_running of them.
 */
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

/*
 * A thread that does not stop is looked at after 16, 32, 64 ticks and so on. Most threads stop
 * before the first of these.
 */
TEST(a_thread_that_does_not_stop_is_looked_at_less_and_less_often)
{
	const unsigned int first = ticks_until_seen(0);

	ck_assert_uint_ge(first, 8);
	ck_assert_uint_le(first, 32);
	ck_assert_uint_eq(ticks_until_seen(first), 2 * first);
	ck_assert_uint_eq(ticks_until_seen(2 * first), 4 * first);
	live_check_sum(&l);
}

/* The content of /proc/TID/schedstat that the test sets. */
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
	/*
	 * All values are higher than before, as for a thread that has run. No sample tells that
	 * time.
	 */
	balance_forget(th);
	said.run_ns += NS_PER_SEC;
	said.wait_ns += NS_PER_SEC;
	said.slices += 1000000;
	say_schedstat();
}

static void end_saying(void)
{
	live_unscript(&th->activity.schedstat_fd);
}

/* Adds to the run time, the wait time and the number of slices in schedstat. */
static void add(uint64_t ran_ns, uint64_t waited_ns, uint64_t slices)
{
	said.run_ns += ran_ns;
	said.wait_ns += waited_ns;
	said.slices += slices;
	say_schedstat();
}

/* Gives a tick that samples the thread without an interrupt, until let_stop(). */
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

/*
 * Lets the thread stop since_ns after a tick at which it was interrupted. The look was half way in
 * between. The ticks at which it had not stopped follow the first one at once.
 */
static void stop_after(uint64_t since_ns)
{
	uint64_t now_ns;

	live_step(0);
	now_ns = l.capture->options.now_ns();
	th->pending.due_ns = th->pending.came_ns = now_ns - since_ns;
	th->pending.mark_ns = now_ns - since_ns / 2;
	if (th->pending.later_ns != 0)
		th->pending.later_ns = th->pending.due_ns;
	let_stop();
}

/*
 * Returns true if the sample is marked as running. Between the tick and the stop, since_ns later,
 * the thread has run for ran_ns, waited for waited_ns, and got a processor slices times.
 */
static bool is_marked_as_running(uint64_t since_ns, uint64_t ran_ns, uint64_t waited_ns,
				 uint64_t slices)
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

TEST(a_thread_that_keeps_its_processor_counts_as_running)
{
	ck_assert(is_marked_as_running(NS_PER_MS, 0, 0, 0));
	ck_assert(th->stop.in_call);
	ck_assert(is_marked_as_running(0, 9 * NS_PER_MS, 0, 0));
}

/* The thread waited for a processor at the tick. Its stack shows where it lost the processor. */
TEST(a_thread_that_waits_for_a_processor_does_not_count_as_running)
{
	ck_assert(!is_marked_as_running(NS_PER_MS, 9000, 5 * NS_PER_MS, 1));
	ck_assert(!is_marked_as_running(NS_PER_MS, 9000, NS_PER_SEC, 1));
}

/* The thread lost its processor to the tracer; without the tick it would run. */
TEST(a_thread_that_loses_its_processor_to_the_tracer_counts_as_running)
{
	ck_assert(is_marked_as_running(3 * NS_PER_MS, 9000, 3 * NS_PER_MS, 1));
	ck_assert(is_marked_as_running(0, 9000, 9000, 1));
}

/* The thread ran at the tick, and slept when the interrupt came: its stack is that of the wait. */
TEST(a_thread_that_falls_asleep_does_not_run_where_it_sleeps)
{
	ck_assert(is_marked_as_running(0, 9000, 9000, 1));
	ck_assert_uint_ne(live_thread(&l, l.pid)->flags & SAMPLE_ASLEEP, 0);
	ck_assert(is_marked_as_running(0, 9000, 0, 0));
	ck_assert_uint_eq(live_thread(&l, l.pid)->flags & SAMPLE_ASLEEP, 0);
}

/* The thread slept at the tick. */
TEST(a_thread_woken_after_the_tick_does_not_count_as_running)
{
	ck_assert(!is_marked_as_running(3 * NS_PER_MS, 9000, 2 * NS_PER_MS, 1));
}

static void stop_late(uint64_t waited_ns, uint64_t slices)
{
	live_until_blocked(&l, l.pid);
	begin_saying();
	tick_alone();
	for (unsigned int i = 0; i < 5; i++)
		live_tick(&l);
	add(9000, waited_ns, slices);
	stop_after(NS_PER_MS);
	end_saying();
	ck_assert(live_thread(&l, l.pid)->flags & SAMPLE_RUNNING);
	live_check_sum(&l);
}

/* The thread was in uninterruptible sleep at the later ticks. */
TEST(a_late_stop_after_a_sleep_means_waiting)
{
	stop_late(9000, 1);
	ck_assert_uint_eq(l.records[RECORD_READY], 0);
	ck_assert_uint_eq(l.records[RECORD_WAITING], 1);
	ck_assert(!th->reader.ready);
}

/*
 * The thread waited for a processor at the later ticks; with a processor it would have stopped
 * there.
 */
TEST(a_late_stop_after_losing_the_processor_means_ready)
{
	stop_late(NS_PER_MS, 1);
	ck_assert_uint_eq(l.records[RECORD_READY], 1);
	ck_assert_uint_eq(l.records[RECORD_WAITING], 0);
	ck_assert(th->reader.ready);
}

/*
 * The thread had its processor all the time, but did not stop, as in a system call that clears a
 * gigabyte and does not check for signals.
 */
TEST(a_late_stop_with_the_processor_kept_means_running)
{
	stop_late(0, 0);
	ck_assert_uint_eq(l.records[RECORD_READY], 0);
	ck_assert(!th->reader.ready);
}

/* Its times are read only where they decide: a virtual machine's processor may stand still. */
TEST(a_late_stop_of_a_thread_with_a_processor_to_itself_means_running)
{
	const pid_t tid = (pid_t)live_ask(&l, "busy 1", "ok");

	live_ticks(&l, 2);
	th = live_known(&l, tid);
	begin_saying();
	tick_alone();
	for (unsigned int i = 0; i < 5; i++)
		live_tick(&l);
	th->look.own_processor = true;
	stop_after(NS_PER_MS);
	end_saying();
	ck_assert_uint_eq(l.records[RECORD_WAITING], 0);
	ck_assert(live_thread(&l, tid)->flags & SAMPLE_RUNNING);
	live_check_sum(&l);
}

/* Gives a tick at which the thread is runnable. Returns the number of stops. */
static uint64_t stops_at_a_tick(void)
{
	const uint64_t before = l.counters.stops;

	tick_running();
	live_settle(&l);
	live_check_sum(&l);
	return l.counters.stops - before;
}

/*
 * A thread that has had no processor since its last stop is unchanged, so it is not stopped again.
 */
TEST(a_thread_that_has_not_run_since_its_stop_is_not_stopped_again)
{
	begin_saying();
	ck_assert_uint_eq(stops_at_a_tick(), 1);
	ck_assert(!th->reader.ready);
	for (unsigned int i = 0; i < 10; i++)
		ck_assert_uint_eq(stops_at_a_tick(), 0);
	ck_assert_uint_eq(l.records[RECORD_READY], 1);
	ck_assert(th->reader.ready);
	add(NS_PER_MS, 9 * NS_PER_MS, 1);
	ck_assert_uint_eq(stops_at_a_tick(), 1);
	ck_assert_uint_eq(stops_at_a_tick(), 0);
	/* Exception: the last stop gave no sample. */
	record_missed(th, MISSED_LATE, 1, l.tick, l.tick * l.tick_ns);
	l.counters.expected++;
	ck_assert_uint_eq(stops_at_a_tick(), 1);
	ck_assert_uint_eq(stops_at_a_tick(), 0);
	/* Exceptions: the reader is a new one, or needs more bytes. */
	capture_reset(l.capture, &l.sink);
	ck_assert_uint_eq(stops_at_a_tick(), 1);
	ck_assert_uint_eq(stops_at_a_tick(), 0);
	capture_hint(l.capture, &l.sink, LIVE_TARGET, th->tid, th->stack.copied_top - 1,
		     th->stack.copied_top + 4096, 0);
	ck_assert_uint_eq(stops_at_a_tick(), 1);
	end_saying();
}

static void compute_in_user_mode(void)
{
	const long tid = live_ask(&l, "busy 1", "ok");

	live_ticks(&l, 1);
	th = live_known(&l, (pid_t)tid);
	/* The thread begins in a system call. */
	do {
		tick_running();
		live_settle(&l);
		live_patience();
	} while (th->stop.in_call);
}

static uint64_t said_ns;

static uint64_t said_clock_ns(void)
{
	return said_ns;
}

/*
 * Returns at how many of 32 looks the thread's times were read. 32 looks before these show capture
 * whether the thread shares its processor. At each look the thread's sample is marked as running.
 */
static unsigned int times_read(bool in_call, uint64_t waited_ns)
{
	unsigned int asked = 0;
	uint64_t running;

	begin_saying();
	tick_running();
	live_settle(&l);
	running = live_thread(&l, (pid_t)th->tid)->running;
	/* On a slow machine more time passes than that of the ticks. */
	said_ns = max_u64(said_ns, clock_mono_ns());
	l.capture->options.now_ns = said_clock_ns;
	for (unsigned int i = 0; i < 64; i++) {
		said_ns += l.tick_ns;
		add(l.tick_ns - waited_ns, waited_ns, 1);
		th->stop.in_call = in_call;
		tick_running();
		live_settle(&l);
		asked += i >= 32 && th->look.without_mark == 0;
	}
	end_saying();
	ck_assert_uint_eq(live_thread(&l, (pid_t)th->tid)->running, running + 64);
	live_check_sum(&l);
	return asked;
}

/* The times of a thread that has a processor to itself need not be read at each look. */
TEST(times_of_a_thread_with_its_own_processor_are_read_rarely)
{
	compute_in_user_mode();
	ck_assert_uint_eq(times_read(true, 0), 32);
	ck_assert_uint_le(times_read(false, 0), 32 / 4 + 2);
	ck_assert_uint_eq(times_read(false, l.tick_ns / 16), 32);
}

/* After a sleep the earlier times prove nothing, so they are read again. */
TEST(times_are_read_again_after_a_sleep)
{
	compute_in_user_mode();
	(void)times_read(false, 0);
	ck_assert(th->look.own_processor);
	begin_saying();
	sleepers_add(th, &said, &(struct activity_place){0});
	sleepers_wake(th);
	ck_assert(!th->look.own_processor);
	tick_running();
	ck_assert_uint_eq(th->look.without_mark, 0);
	live_settle(&l);
	end_saying();
}

/* Any later record of the thread ends the state "ready". */
TEST(any_later_record_ends_the_ready_state)
{
	ck_assert(!is_marked_as_running(NS_PER_MS, 9000, 5 * NS_PER_MS, 1));
	ck_assert(th->reader.ready);
	live_until_blocked(&l, l.pid);
	live_tick(&l);
	ck_assert(!th->reader.ready);
	ck_assert(!is_marked_as_running(NS_PER_MS, 9000, 5 * NS_PER_MS, 1));
	ck_assert(th->reader.ready);
	record_missed(th, MISSED_LATE, 1, l.tick, l.tick * l.tick_ns);
	ck_assert(!th->reader.ready);
	l.counters.expected++;
	live_check_sum(&l);
}

/*
 * Returns true if, by the records, a thread was looked at for the first time after another thread
 * had been stopped and sampled.
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
 * Threads that are interrupted first do not wait until all others have been looked at: sooner or
 * later one of them has stopped by then.
 */
TEST(stops_are_handled_between_looks)
{
	struct ring_reader reader;

	OK(ring_reader_init(&reader, l.sink.ring.fd));
	(void)live_ask(&l, "asleep 39", "ok");
	live_ticks(&l, 1);
	/* The threads seem to run, but do not use a processor. */
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
