#include "lib/capture/target.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <unistd.h>

#include "tests/unit/capture/live.h"
#include "tests/unit/suite.h"

static struct live l;
static struct thread *th;

static void set_up(void)
{
	live_begin(&l, "cap_threads", NULL, NULL);
	live_until_blocked(&l, l.pid);
	live_ticks(&l, 1);
	th = capture_thread(l.capture, (uint32_t)l.pid);
	ck_assert_ptr_nonnull(th);
}

static void tear_down(void)
{
	live_end(&l);
}

/* /proc/TID/syscall of one that runs. */
static int open_running(void)
{
	int fd = memfd_create("running", MFD_CLOEXEC);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, "running\n", 8), 8);
	return fd;
}

/* A tick at which the thread seems to run, and is interrupted if it may be. */
static void tick_running(void)
{
	int was = th->activity.syscall_fd;

	th->activity.syscall_fd = open_running();
	thread_wake(th);
	live_tick(&l);
	close_fd(&th->activity.syscall_fd);
	th->activity.syscall_fd = was;
}

/* What /proc says of the target, for this test alone. False: it may not. */
static bool put_on_status(const char *file)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/%d/status", (int)l.pid);
	/* Not "/": in a chroot that may be no mount. */
	return unshare(CLONE_NEWNS) == 0 &&
	       mount(NULL, "/proc", NULL, MS_PRIVATE, NULL) == 0 &&
	       mount(file, path, NULL, MS_BIND, NULL) == 0;
}

static void say(int fd, const char *text)
{
	ck_assert_int_eq(ftruncate(fd, 0), 0);
	ck_assert_int_eq(pwrite(fd, text, strlen(text), 0),
			 (ssize_t)strlen(text));
}

/* An interrupt would end the core where it is. */
START_TEST(who_writes_a_core_is_left_alone)
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
END_TEST

/* As one that dies: without a place. Returns what was there. */
static int look_dying(void)
{
	const int was = th->activity.syscall_fd;
	const int dying = memfd_create("dying", MFD_CLOEXEC);

	ck_assert_int_ge(dying, 0);
	ck_assert_int_eq(write(dying, "-1 0x0 0x0\n", 11), 11);
	th->activity.syscall_fd = dying;
	return was;
}

static void look_alive(int was)
{
	close_fd(&th->activity.syscall_fd);
	th->activity.syscall_fd = was;
}

/* What cannot be read is no death: the next look reads it again. */
START_TEST(a_main_thread_is_not_dead_for_want_of_a_descriptor)
{
	const uint64_t samples = live_thread(&l, l.pid)->samples;
	const int was = look_dying();

	live_take_descriptors();
	for (uint64_t i = 1; i <= 5; i++) {
		thread_wake(th);
		live_tick(&l);
		ck_assert(!th->dead);
		ck_assert_uint_eq(l.counters.missed[MISSED_NO_RESOURCES], i);
	}
	ck_assert_uint_eq(l.records[RECORD_EXIT], 0);
	ck_assert_uint_eq(l.records[RECORD_MISSED], 1);
	live_check_sum(&l);
	live_give_descriptors();
	look_alive(was);
	thread_wake(th);
	live_tick(&l);
	ck_assert_uint_eq(live_thread(&l, l.pid)->samples, samples + 1);
	ck_assert_uint_eq(l.counters.missed[MISSED_NO_RESOURCES], 5);
	live_check_sum(&l);
}
END_TEST

/* A place is a stack, which a zombie has not: nothing more is read of it. */
START_TEST(a_blocked_main_thread_needs_no_descriptor)
{
	const uint64_t samples = live_thread(&l, l.pid)->samples;

	live_take_descriptors();
	thread_wake(th);
	live_tick(&l);
	ck_assert_uint_eq(l.counters.missed[MISSED_NO_RESOURCES], 0);
	ck_assert_uint_eq(live_thread(&l, l.pid)->samples, samples + 1);
	live_give_descriptors();
	live_check_sum(&l);
}
END_TEST

/* The same of a thread that is on its way to a stop. */
START_TEST(a_main_thread_that_stops_late_is_not_dead_either)
{
	int was;

	th->rest = (struct rest){
		.state = REST_INSIDE, .whole = true, .alone = true};
	tick_running();
	ck_assert(th->pending);
	was = look_dying();
	live_take_descriptors();
	for (unsigned int i = 0; i < 200; i++)
		live_tick(&l);
	ck_assert(!th->dead);
	ck_assert(th->pending);
	live_give_descriptors();
	look_alive(was);
	th->rest = (struct rest){0};
	ck_assert_int_eq(ptrace(PTRACE_INTERRUPT, th->tid, NULL, NULL), 0);
	live_settle(&l);
	ck_assert_uint_eq(l.records[RECORD_EXIT], 0);
	live_check_sum(&l);
}
END_TEST

/* Nothing is interrupted as long as a core may be under way. */
START_TEST(a_core_is_asked_for_again_for_want_of_a_descriptor)
{
	const int running = open_running(), was = th->activity.syscall_fd;
	const uint64_t stops = l.counters.stops;

	th->may_dump = true;
	thread_wake(th);
	th->activity.syscall_fd = running;
	live_take_descriptors();
	live_tick(&l);
	live_give_descriptors();
	ck_assert_uint_eq(l.counters.missed[MISSED_NO_RESOURCES], 1);
	ck_assert_uint_eq(l.counters.missed[MISSED_EXITED], 0);
	ck_assert_uint_eq(l.counters.stops, stops);
	live_tick(&l);
	live_settle(&l);
	ck_assert_uint_eq(l.counters.stops, stops + 1);
	th->activity.syscall_fd = was;
	(void)close(running);
	live_check_sum(&l);
}
END_TEST

static void stop_by(int signal)
{
	uint64_t before = l.counters.event_stops;

	ck_assert_int_eq(kill(l.pid, signal), 0);
	while (l.counters.event_stops == before)
		live_wait(&l);
}

/* It is asked of those that are new to us, and those that had a signal. */
START_TEST(who_may_write_one)
{
	live_end(&l);
	/* The program inherits that. */
	ck_assert(signal(SIGQUIT, SIG_IGN) != SIG_ERR);
	ck_assert(signal(SIGUSR1, SIG_IGN) != SIG_ERR);
	live_begin(&l, "cap_threads", NULL, NULL);
	th = capture_thread(l.capture, (uint32_t)l.pid);
	ck_assert(th->may_dump);
	tick_running();
	live_settle(&l);
	ck_assert(!th->may_dump);
	stop_by(SIGQUIT);
	ck_assert(th->may_dump);
	stop_by(SIGUSR1);
	ck_assert(!th->may_dump);
}
END_TEST

/*
 * In a call that gives up where it is interrupted: no stop is to come that
 * would be ours, neither soon nor when it is not waited for any more, nor is
 * there one to wait for at the end.
 */
START_TEST(who_is_left_alone_does_not_stop)
{
	th->rest = (struct rest){.state = REST_INSIDE,
				 .whole = true,
				 .alone = true,
				 .until_ns = REST_NEVER};
	tick_running();
	ck_assert(th->pending);
	ck_assert(capture_settle(l.capture));
	th->rest.alone = false;
	ck_assert(!capture_settle(l.capture));
	th->rest.alone = true;
	while (th->pending) {
		live_tick(&l);
		live_patience();
	}
	ck_assert(!th->stop_expected);
	while (l.counters.missed[MISSED_NOT_STOPPED] == 0) {
		tick_running();
		live_patience();
	}
	ck_assert(!th->stop_expected);
	live_settle(&l);
	ck_assert_uint_eq(l.counters.stops, 0);
	live_check_sum(&l);
	th->rest.state = REST_NONE;
}
END_TEST

/* Ticks from its interrupt until it is seen to be blocked; it runs for some. */
static unsigned int ticks_until_seen(unsigned int n_running)
{
	const int was = th->activity.syscall_fd;
	unsigned int n = 0;

	th->rest = (struct rest){
		.state = REST_INSIDE, .whole = true, .alone = true};
	tick_running();
	th->activity.syscall_fd = open_running();
	while (n++ < n_running)
		live_tick(&l);
	close_fd(&th->activity.syscall_fd);
	th->activity.syscall_fd = was;
	ck_assert(th->pending);
	for (; th->pending; n++)
		live_tick(&l);
	th->rest = (struct rest){0};
	return n;
}

/* Most stop before that: they are not asked where they are at each tick. */
START_TEST(who_does_not_stop_is_looked_at_ever_more_rarely)
{
	const unsigned int first = ticks_until_seen(0);

	ck_assert_uint_ge(first, 8);
	ck_assert_uint_le(first, 32);
	ck_assert_uint_eq(ticks_until_seen(first), 2 * first);
	ck_assert_uint_eq(ticks_until_seen(2 * first), 4 * first);
	live_check_sum(&l);
}
END_TEST

/* What the kernel will say that it has run, from here on. */
static int run_is(uint64_t ns)
{
	const int was = th->activity.schedstat_fd;
	char text[64];

	(void)snprintf(text, sizeof(text), "%lu 7 5\n", (unsigned long)ns);
	th->activity.schedstat_fd = memfd_create("schedstat", MFD_CLOEXEC);
	ck_assert_int_ge(th->activity.schedstat_fd, 0);
	say(th->activity.schedstat_fd, text);
	return was;
}

static void run_is_its_own(int was)
{
	close_fd(&th->activity.schedstat_fd);
	th->activity.schedstat_fd = was;
}

/* True if the sample of a tick, at which it has run for so long, says so. */
static bool is_told_to_run(uint64_t ns)
{
	bool runs;
	int was;

	live_until_blocked(&l, l.pid);
	was = run_is(ns);
	tick_running();
	live_settle(&l);
	runs = (live_thread(&l, l.pid)->flags & SAMPLE_RUNNING) != 0;
	run_is_its_own(was);
	return runs;
}

/* As many ticks as it has run for, whether it stops at once or not. */
START_TEST(who_runs_is_told_as_long_as_it_ran)
{
	uint64_t ran = 5 * l.tick_ns, told = 0;

	th->account = (struct account){0};
	for (unsigned int i = 0; i < 40; i++)
		told += is_told_to_run(ran);
	/* What may not have been written down yet. */
	ck_assert_uint_ge(told, 3);
	ck_assert_uint_le(told, 4);
	ck_assert(!is_told_to_run(ran));
	told = 0;
	for (unsigned int i = 0; i < 40; i++)
		told += is_told_to_run(ran += l.tick_ns / 4);
	ck_assert_uint_ge(told, 9);
	ck_assert_uint_le(told, 11);
	live_check_sum(&l);
}
END_TEST

/* It is left alone until it is let stop. */
static void tick_alone(void)
{
	th->rest = (struct rest){
		.state = REST_INSIDE, .whole = true, .alone = true};
	tick_running();
	ck_assert(th->pending);
}

static void let_stop(void)
{
	th->rest = (struct rest){0};
	ck_assert_int_eq(ptrace(PTRACE_INTERRUPT, th->tid, NULL, NULL), 0);
	live_settle(&l);
}

/* At the later ticks, at which it would have stopped. */
START_TEST(who_ran_at_a_tick_and_stops_late_has_waited_since)
{
	const int64_t owed = th->account.owed_ns;
	const int was = run_is(5 * l.tick_ns);

	tick_alone();
	for (unsigned int i = 0; i < 5; i++)
		live_tick(&l);
	let_stop();
	ck_assert(live_thread(&l, l.pid)->flags & SAMPLE_RUNNING);
	ck_assert_uint_eq(l.records[RECORD_WAITING], 1);
	run_is_its_own(was);
	/* One tick was told, of them all. */
	ck_assert_uint_eq(th->account.since_ns, 0);
	ck_assert_int_ge(th->account.owed_ns, owed - 2 * (int64_t)l.tick_ns);
	/* Who stops before the next tick has not waited for it. */
	live_until_blocked(&l, l.pid);
	tick_running();
	live_settle(&l);
	ck_assert_uint_eq(l.records[RECORD_WAITING], 1);
	live_check_sum(&l);
}
END_TEST

/*
 * True if it is told to run at a tick by which it has run for so long; after
 * the tick the kernel says that it has waited for waited_ns in its life.
 */
static bool is_told_though_it_waited(uint64_t ran_ns, uint64_t waited_ns)
{
	const int was = run_is(ran_ns);
	char text[64];
	bool runs;

	(void)snprintf(text, sizeof(text), "%lu %lu 6\n", (unsigned long)ran_ns,
		       (unsigned long)waited_ns);
	tick_alone();
	say(th->activity.schedstat_fd, text);
	live_step(0);
	th->asked_ns = l.capture->options.now_ns();
	let_stop();
	runs = (live_thread(&l, (pid_t)th->tid)->flags & SAMPLE_RUNNING) != 0;
	run_is_its_own(was);
	return runs;
}

/* Where a thread has lost its processor in a call is not where it runs. */
START_TEST(who_waited_in_a_call_is_not_told_to_run)
{
	uint64_t ran = 5 * l.tick_ns;

	th->account = (struct account){0};
	live_until_blocked(&l, l.pid);
	ck_assert(!is_told_though_it_waited(ran, NS_PER_SEC));
	ck_assert(th->in_call);
	live_until_blocked(&l, l.pid);
	ck_assert(is_told_though_it_waited(ran += l.tick_ns, 7));
	/* In the end it is, though it is never met on one. */
	for (unsigned int i = 0; i < 8; i++) {
		live_until_blocked(&l, l.pid);
		(void)is_told_though_it_waited(ran += l.tick_ns, NS_PER_SEC);
	}
	live_until_blocked(&l, l.pid);
	ck_assert(is_told_though_it_waited(ran += l.tick_ns, NS_PER_SEC));
	live_check_sum(&l);
}
END_TEST

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

/* In user mode it has lost it to an interrupt, which may come anywhere. */
START_TEST(who_waited_in_user_mode_is_told_as_long_as_it_ran)
{
	compute_in_user_mode();
	th->account = (struct account){0};
	for (unsigned int i = 1; i <= 8; i++)
		ck_assert(is_told_though_it_waited(i * l.tick_ns,
						   i * NS_PER_SEC));
	/* But not for longer than that. */
	for (unsigned int i = 0; i < 8; i++)
		(void)is_told_though_it_waited(8 * l.tick_ns, 9 * NS_PER_SEC);
	ck_assert(!is_told_though_it_waited(8 * l.tick_ns, 9 * NS_PER_SEC));
	live_check_sum(&l);
}
END_TEST

/* Looks, of 32, at which it was asked what it has run: always. */
static unsigned int times_asked(bool in_call)
{
	const uint64_t told = live_thread(&l, (pid_t)th->tid)->running;
	unsigned int asked = 0;
	uint64_t ran = l.tick_ns;

	th->account = (struct account){
		.begun = true,
		.run_ns = ran,
		.owed_ns = -3 * (int64_t)l.tick_ns / 2,
		.look_ns = th->target->last_ns,
	};
	for (unsigned int i = 0; i < 32; i++) {
		const uint64_t before = th->account.run_ns;
		const int was = run_is(ran += l.tick_ns);

		th->in_call = in_call;
		tick_running();
		live_settle(&l);
		run_is_its_own(was);
		asked += th->account.run_ns != before;
	}
	ck_assert_uint_eq(live_thread(&l, (pid_t)th->tid)->running, told + 32);
	return asked;
}

/* Nor is it asked at each look, then, what it has run. */
START_TEST(who_is_found_in_user_mode_is_seldom_asked)
{
	compute_in_user_mode();
	ck_assert_uint_eq(times_asked(true), 32);
	ck_assert_uint_eq(times_asked(false), 32 / 4);
	live_check_sum(&l);
}
END_TEST

/* From how little a thread ran that slept nothing follows. */
START_TEST(who_wakes_is_asked_again)
{
	const uint64_t ran = 5 * l.tick_ns;
	int was = run_is(ran);

	while (!th->asleep) {
		live_tick(&l);
		live_patience();
	}
	live_tick(&l);
	run_is_its_own(was);
	was = run_is(ran + l.tick_ns);
	th->in_call = false;
	tick_running();
	ck_assert_uint_eq(th->account.run_ns, ran + l.tick_ns);
	run_is_its_own(was);
	live_settle(&l);
	th->in_call = false;
	was = run_is(ran + 2 * l.tick_ns);
	tick_running();
	ck_assert_uint_eq(th->account.run_ns, ran + 2 * l.tick_ns);
	run_is_its_own(was);
	live_settle(&l);
}
END_TEST

/* By whatever is told next of it. */
START_TEST(what_is_told_ends)
{
	(void)is_told_to_run(5 * l.tick_ns);
	ck_assert_uint_ne(th->account.since_ns, 0);
	live_until_blocked(&l, l.pid);
	live_tick(&l);
	ck_assert_uint_eq(th->account.since_ns, 0);
	(void)is_told_to_run(6 * l.tick_ns);
	ck_assert_uint_ne(th->account.since_ns, 0);
	thread_missed(th, MISSED_LATE, 1, l.tick, l.tick * l.tick_ns);
	ck_assert_uint_eq(th->account.since_ns, 0);
	l.counters.expected++;
	(void)is_told_to_run(7 * l.tick_ns);
	ck_assert_uint_ne(th->account.since_ns, 0);
	/* The reader takes nothing any more, not even that it has lost track.
	 */
	th->announced = false;
	th->target->needs_reset = true;
	thread_look(th, 1,
		    &(struct stand){.ticks = 1,
				    .tick = l.tick,
				    .time_ns = l.tick * l.tick_ns});
	ck_assert_uint_eq(th->account.since_ns, 0);
	l.counters.expected++;
	live_check_sum(&l);
}
END_TEST

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

	ck_assert_int_eq(ring_advance(reader, l.sink.ring.head), 0);
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
START_TEST(stops_are_taken_between_looks)
{
	struct ring_reader reader;
	int running_fd = open_running(), fd;

	ck_assert_int_eq(ring_reader_init(&reader, l.sink.ring.fd), 0);
	(void)live_ask(&l, "asleep 39", "ok");
	live_ticks(&l, 1);
	/* They seem to run, and take no processor from us. */
	for (size_t i = 0; i < l.capture->n_by_index; i++) {
		fd = l.capture->by_index[i]->activity.syscall_fd;
		ck_assert_int_eq(dup3(running_fd, fd, O_CLOEXEC), fd);
	}
	do {
		capture_reset(l.capture, &l.sink);
		live_tick(&l);
		live_settle(&l);
		live_patience();
	} while (!is_in_between(&reader));
	live_check_sum(&l);
	ring_reader_fini(&reader);
	close_fd(&running_fd);
}
END_TEST

Suite *suite(void)
{
	Suite *s = suite_create("look");
	TCase *tc = tcase_create("cores");

	tcase_add_checked_fixture(tc, set_up, tear_down);
	tcase_add_test(tc, who_writes_a_core_is_left_alone);
	tcase_add_test(tc, who_may_write_one);
	tcase_add_test(tc, a_core_is_asked_for_again_for_want_of_a_descriptor);
	suite_add_tcase(s, tc);
	tc = tcase_create("stops");
	tcase_add_checked_fixture(tc, set_up, tear_down);
	tcase_add_test(tc, who_is_left_alone_does_not_stop);
	tcase_add_test(tc, who_does_not_stop_is_looked_at_ever_more_rarely);
	tcase_add_test(tc, who_runs_is_told_as_long_as_it_ran);
	tcase_add_test(tc, who_ran_at_a_tick_and_stops_late_has_waited_since);
	tcase_add_test(tc, who_waited_in_a_call_is_not_told_to_run);
	tcase_add_test(tc, who_waited_in_user_mode_is_told_as_long_as_it_ran);
	tcase_add_test(tc, who_is_found_in_user_mode_is_seldom_asked);
	tcase_add_test(tc, who_wakes_is_asked_again);
	tcase_add_test(tc, what_is_told_ends);
	tcase_add_test(tc, stops_are_taken_between_looks);
	tcase_add_test(tc, a_blocked_main_thread_needs_no_descriptor);
	tcase_add_test(tc, a_main_thread_is_not_dead_for_want_of_a_descriptor);
	tcase_add_test(tc, a_main_thread_that_stops_late_is_not_dead_either);
	suite_add_tcase(s, tc);
	return s;
}
