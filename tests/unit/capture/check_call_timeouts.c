#include <fcntl.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/capture/detach.h"
#include "lib/capture/restart/partial.h"
#include "lib/capture/restart/resume.h"
#include "lib/capture/state.h"
#include "lib/capture/tracees.h"
#include "tests/unit/capture/live.h"
#include "tests/unit/suite.h"

/*
 * lib/capture/restart/resume.h with waits, and the program tests/targets/cap_waits.c: how long
 * waits last under ignored signals and interrupts. All waits but one kind last an hour. The test
 * sets the time that capture sees.
 */

#define HOUR_NS	  (3600 * NS_PER_SEC)
#define MINUTE_NS (60 * NS_PER_SEC)

static struct live l;

static void tear_down(void)
{
	live_end(&l);
}

/* Calls whose relative timeout begins anew when the call is entered again. */
static const char *const kinds[] = {
#if ARCH_RESULT_RESTARTS
	"epoll_wait",	    "io_pgetevents",
#endif
	"epoll_pwait",	    "epoll_pwait2",	"ppoll_read_only", "pselect_read_only",
	"sigtimedwait",	    "semtimedop",	"io_getevents",	   "io_uring_enter",
	"recv_timeout",	    "recv_all_timeout", "recvmsg_timeout", "recvmmsg_timeout",
	"read_timeout",	    "readv_timeout",	"preadv2_timeout", "send_timeout",
	"sendmsg_timeout",  "sendmmsg_timeout", "write_timeout",   "writev_timeout",
	"pwritev2_timeout", "accept_timeout",	"connect_timeout", "connect_tcp_timeout",
};

/* Calls that are entered again only under a seccomp filter. */
static const char *const filtered_kinds[] = {"poll", "nanosleep", "clock_nanosleep", "futex"};

/* Waits until the call is resumed, so that capture watches its timeout. */
static void until_inside(uint64_t rewritten)
{
	while (l.counters.rewritten <= rewritten)
		live_wait(&l);
	live_until_blocked(&l, l.first);
}

/* A signal that an untraced thread would not notice. */
static void disturb(void)
{
	const uint64_t rewritten = l.counters.rewritten;

	OK(syscall(SYS_tgkill, l.pid, l.first, SIGWINCH));
	until_inside(rewritten);
	/* The thread stops without a signal when it enters the call again. */
	live_reap(&l);
	live_until_state(&l, l.first, 'S');
}

static void begin(const char *call, bool filter)
{
	live_begin(&l, "cap_waits", call, NULL);
	if (filter)
		(void)live_ask(&l, "filter", "ok");
	live_until_blocked(&l, l.first);
}

static void still_waits(void)
{
	live_tick(&l);
	live_settle(&l);
	disturb();
	ck_assert_int_eq(live_count(&l, "other"), 0);
	ck_assert_int_eq(live_count(&l, "eintr"), 0);
}

/* Checks that the call has ended with the result that it has when its timeout is over. */
static void has_ended(void)
{
	while (live_count(&l, "right") == 0)
		live_patience();
	ck_assert_int_eq(live_count(&l, "right"), 1);
	ck_assert_int_eq(live_count(&l, "wrong"), 0);
	ck_assert_int_eq(live_count(&l, "eintr"), 0);
	/* The thread then waits again, for an hour. */
	live_until_blocked(&l, l.first);
	live_later(HOUR_NS - MINUTE_NS);
	live_tick(&l);
	live_settle(&l);
	ck_assert_int_eq(live_count(&l, "other"), 1);
}

static void storm(void)
{
	for (int i = 0; i < 11; i++) {
		disturb();
		live_later(HOUR_NS / 12);
		still_waits();
	}
}

FIXTURE(NULL, tear_down)

TESTS(signals_do_not_prolong_a_timeout, array_size(kinds))
{
	begin(kinds[_i], false);
	storm();
	live_later(HOUR_NS / 12);
	live_tick(&l);
	has_ended();
}

/* On aarch64 the kernel restarts these calls by restart_syscall(2) all the same. */
TESTS(signals_do_not_prolong_a_timeout_under_a_filter,
      ARCH_RESULT_RESTARTS ? array_size(filtered_kinds) : 0)
{
	begin(filtered_kinds[_i], true);
	storm();
	live_later(HOUR_NS / 12);
	live_tick(&l);
	has_ended();
}

/* Known exception: io_pgetevents(2) has its whole time again (docs/SAFETY.md, aarch64). */
TEST_IF(signals_prolong_the_timeout_of_io_pgetevents, !ARCH_RESULT_RESTARTS)
{
	begin("io_pgetevents", false);
	for (int i = 0; i < 3; i++) {
		OK(syscall(SYS_tgkill, l.pid, l.first, SIGWINCH));
		live_wait(&l);
		live_until_blocked(&l, l.first);
		live_later(HOUR_NS);
		live_tick(&l);
		live_settle(&l);
		ck_assert_int_eq(live_count(&l, "other"), 0);
		ck_assert_int_eq(live_count(&l, "eintr"), 0);
	}
	ck_assert_uint_eq(l.counters.rewritten, 0);
}

/* If ticks are rare, the next signal ends the call whose time is over. */
TESTS(a_signal_ends_a_call_whose_time_is_over, array_size(kinds))
{
	begin(kinds[_i], false);
	disturb();
	live_later(HOUR_NS);
	OK(syscall(SYS_tgkill, l.pid, l.first, SIGWINCH));
	has_ended();
}

/*
 * A tick has found the thread waiting long before the first signal, so its time counts from that
 * tick.
 */
TESTS(the_timeout_counts_from_the_tick_that_found_the_wait, array_size(kinds))
{
	const struct thread *th;

	for (;;) {
		begin(kinds[_i], false);
		live_ticks(&l, 2);
		live_later(HOUR_NS - MINUTE_NS);
		still_waits();
		th = tracees_find(l.capture, (uint32_t)l.first);
		/* Otherwise the thread has lost its processor on its way: see cap_waits.c. */
		if (th->resumed.late)
			break;
		live_end(&l);
	}
	live_later(MINUTE_NS);
	live_tick(&l);
	has_ended();
}

/* The target does not notice capture's interrupts of a resumed call. */
TESTS(interrupts_of_a_resumed_call_are_not_noticed, array_size(kinds))
{
	begin(kinds[_i], false);
	disturb();
	for (int i = 0; i < 5; i++) {
		OK(ptrace(PTRACE_INTERRUPT, l.first, NULL, NULL));
		live_wait(&l);
		still_waits();
	}
	live_later(HOUR_NS);
	live_tick(&l);
	has_ended();
}

static void interrupt(void)
{
	struct thread *th = tracees_find(l.capture, (uint32_t)l.first);
	const uint64_t before = l.counters.stops;

	live_until_blocked(&l, l.first);
	/* The state of a thread that was sampled without a stop, after an interrupt. */
	th->due = DUE_STOP;
	OK(ptrace(PTRACE_INTERRUPT, l.first, NULL, NULL));
	while (l.counters.stops + l.counters.event_stops == before)
		live_wait(&l);
	live_until_state(&l, l.first, 'S');
}

/* Interrupts by ticks, which a wait that is woken in vain may get at any time. */
TESTS(interrupts_by_ticks_do_not_prolong_a_timeout, array_size(kinds))
{
	begin(kinds[_i], false);
	for (int i = 0; i < 4; i++) {
		interrupt();
		live_later(HOUR_NS / 4 - MINUTE_NS);
		live_tick(&l);
		live_settle(&l);
		ck_assert_int_eq(live_count(&l, "other"), 0);
		ck_assert_int_eq(live_count(&l, "eintr"), 0);
	}
	live_later(4 * MINUTE_NS);
	live_tick(&l);
	has_ended();
}

static long n_waits(void)
{
	return live_status(l.first, "voluntary_ctxt_switches");
}

/*
 * Sends a byte, and returns when the target has received it: the thread has waited once more since.
 */
static void send_byte(void)
{
	long before;

	live_until_blocked(&l, l.first);
	before = n_waits();
	ck_assert_int_eq(live_ask(&l, "wake", "ok"), 0);
	for (; n_waits() == before; live_patience())
		live_reap(&l);
	live_until_blocked(&l, l.first);
}

/*
 * Parts do not extend the timeout of recv(2) with MSG_WAITALL: the call wants more bytes than come,
 * and each part has some.
 */
TEST(parts_of_a_transfer_do_not_prolong_a_timeout)
{
	begin("recv_all_timeout", false);
	send_byte();
	interrupt();
	ck_assert_uint_eq(l.counters.continued, 1);
	for (int i = 0; i < 11; i++) {
		live_later(HOUR_NS / 12);
		live_tick(&l);
		live_settle(&l);
		send_byte();
		interrupt();
		ck_assert_int_eq(live_count(&l, "other"), 0);
	}
	live_later(HOUR_NS / 12);
	live_tick(&l);
	has_ended();
	ck_assert_uint_eq(l.counters.continued, 1);
}

/*
 * Nothing interrupts the last part; it ends because its bytes did not come in time. So the call
 * ends, too.
 */
TEST(a_part_ended_by_the_timeout_is_final)
{
	uint64_t before;
	long right;

	live_begin(&l, "cap_waits", "50000", "recv_all_timeout");
	while (l.counters.continued == 0) {
		send_byte();
		interrupt();
	}
	before = l.counters.event_stops;
	right = live_count(&l, "right");
	ck_assert_int_eq(live_ask(&l, "wake", "ok"), 0);
	for (; live_count(&l, "right") == right; live_patience())
		live_reap(&l);
	ck_assert_int_eq(live_count(&l, "wrong"), 0);
	/* At most two stops: the begin and the end of one part. */
	ck_assert_uint_le(l.counters.event_stops, before + 2);
}

/*
 * A connect(2) that is entered again fails with another error when its time is over. Capture
 * corrects the result.
 */
TEST(a_resumed_connect_keeps_its_timeout)
{
	live_begin(&l, "cap_waits", "50000", "connect_tcp_timeout");
	while (l.counters.rewritten == 0) {
		live_until_blocked(&l, l.first);
		(void)ptrace(PTRACE_INTERRUPT, l.first, NULL, NULL);
		live_wait(&l);
	}
	for (; live_count(&l, "other") < 2; live_patience())
		live_reap(&l);
	ck_assert_int_eq(live_count(&l, "wrong"), 0);
}

/* The socket of that connect(2) cannot be copied, so capture knows no timeout. */
TEST_IF(a_resumed_connect_does_not_succeed_when_its_unknown_timeout_is_over, !ARCH_RESULT_RESTARTS)
{
	live_begin(&l, "cap_waits", "50000", "connect_tcp_timeout");
	while (l.counters.rewritten == 0) {
		live_until_blocked(&l, l.first);
		live_take_descriptors();
		(void)ptrace(PTRACE_INTERRUPT, l.first, NULL, NULL);
		live_wait(&l);
		live_give_descriptors();
	}
	for (; live_count(&l, "other") < 2; live_patience())
		live_reap(&l);
	ck_assert_int_eq(live_count(&l, "wrong"), 0);
}

static void what_has_ended(void)
{
	begin("recv_all_timeout", false);
	send_byte();
	interrupt();
	send_byte();
	live_later(HOUR_NS);
	live_known(&l, l.first)->due = DUE_STOP;
	OK(ptrace(PTRACE_INTERRUPT, l.first, NULL, NULL));
	live_until_state(NULL, l.first, 't');
	OK(ptrace(PTRACE_INTERRUPT, l.first, NULL, NULL));
	for (; live_count(&l, "right") == 0; live_patience())
		live_reap(&l);
	ck_assert_uint_eq(l.counters.continued, 1);
}

/*
 * A second interrupt comes while the stop of the first one is not handled yet. The call that has
 * ended is not resumed again.
 */
TEST(a_call_that_has_ended_is_not_resumed)
{
	what_has_ended();
}

/*
 * The thread makes the next call at once and with the same registers. Its part is resumed
 * nevertheless.
 */
TEST(the_next_call_with_the_same_registers_is_resumed)
{
	what_has_ended();
	live_step(1);
	send_byte();
	send_byte();
	interrupt();
	ck_assert_uint_eq(l.counters.continued, 2);
	ck_assert_int_eq(live_count(&l, "other"), 1);
}

/*
 * Sends a byte without handling stops: the thread that answers is not stopped, or its stop stays
 * unhandled.
 */
static void send_byte_untaken(void)
{
	struct capture *c = l.capture;

	l.capture = NULL;
	ck_assert_int_eq(live_ask(&l, "wake", "ok"), 0);
	l.capture = c;
}

/*
 * The interrupt comes after the thread has stopped at the begin of its next part, or of the
 * unchanged wait, and before that stop is handled. The call then has some bytes, and is cut short.
 */
TESTS(an_interrupt_at_the_begin_of_a_part_is_noticed, 2)
{
	const bool is_part = _i != 0;
	struct thread *th;
	siginfo_t info;

	begin("recv_all_timeout", false);
	if (is_part)
		send_byte();
	interrupt();
	th = tracees_find(l.capture, (uint32_t)l.first);
	do {
		live_until_blocked(&l, l.first);
		th->due = DUE_STOP;
		OK(ptrace(PTRACE_INTERRUPT, l.first, NULL, NULL));
		OK(waitid(P_PID, (id_t)l.first, &info, WSTOPPED | WNOWAIT | __WALL));
		/* Thousands of interrupts may be needed until a stop is handled at that moment. */
		th->resumed.fruitless = 0;
		live_reap(&l);
		live_patience();
		ck_assert_int_ne(th->resumed.state, RESUME_NONE);
	} while (th->resumed.state != RESUME_ENTERING);
	live_until_state(NULL, l.first, 't');
	send_byte_untaken();
	th->due = DUE_STOP;
	OK(ptrace(PTRACE_INTERRUPT, l.first, NULL, NULL));
	/* Meanwhile the thread may be found in the wait that it was about to begin. */
	while (th->resumed.state != RESUME_INSIDE || th->resumed.same_call ||
	       live_state(l.first) != 'S') {
		live_reap(&l);
		live_patience();
		ck_assert_int_ne(th->resumed.state, RESUME_NONE);
	}
	ck_assert_uint_eq(th->resumed.partial.done, is_part ? 2 : 1);
	ck_assert_int_eq(live_count(&l, "other"), 0);
	live_later(HOUR_NS);
	live_tick(&l);
	has_ended();
}

/* An event ends the wait, and the next wait is another call. */
TEST(an_event_ends_the_resumed_wait)
{
	begin("epoll_woken_timed", false);
	disturb();
	live_later(HOUR_NS - MINUTE_NS);
	still_waits();
	ck_assert_int_eq(live_ask(&l, "wake", "ok"), 0);
	has_ended();
}

/* The code of a thread that waits may leave memory. /dev/zero as pagemap: no page is there. */
TEST(a_resumed_wait_does_not_need_its_code)
{
	int *pagemap_fd, real;

	begin("epoll_woken_timed", false);
	disturb();
	pagemap_fd = &live_known(&l, l.first)->target->pagemap_fd;
	real = *pagemap_fd;
	*pagemap_fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	ck_assert_int_ge(*pagemap_fd, 0);
	interrupt();
	ck_assert_int_eq(live_count(&l, "other"), 0);
	ck_assert_int_eq(live_ask(&l, "wake", "ok"), 0);
	for (; live_count(&l, "other") == 0; live_patience())
		live_reap(&l);
	ck_assert_int_eq(live_count(&l, "wrong"), 0);
	ck_assert_int_eq(live_count(&l, "eintr"), 0);
	close_fd(pagemap_fd);
	*pagemap_fd = real;
}

/* A signal handler ends the wait, as it does without capture. */
TEST(a_handler_ends_the_resumed_call)
{
	begin("epoll_pwait", false);
	for (int i = 1; i <= 30; i++) {
		live_until_blocked(&l, l.first);
		/* aarch64: the wait is repaired again when a tick has found it (waits_seen). */
		if (!ARCH_RESULT_RESTARTS) {
			live_tick(&l);
			live_settle(&l);
		}
		OK(syscall(SYS_tgkill, l.pid, l.first, SIGWINCH));
		if (i % 2 == 0)
			live_reap(&l);
		OK(syscall(SYS_tgkill, l.pid, l.first, SIGALRM));
		while (live_count(&l, "eintr") < i)
			live_patience();
	}
	ck_assert_int_eq(live_count(&l, "eintr"), 30);
	ck_assert_int_eq(live_count(&l, "other"), 0);
}

/* SIGSTOP and SIGCONT end an epoll_wait(2), as they do without capture. */
TEST(a_group_stop_ends_the_resumed_call)
{
	begin("epoll_pwait", false);
	disturb();
	OK(kill(l.pid, SIGSTOP));
	/* Waits until the process is stopped. Before that, SIGCONT would cancel the stop. */
	for (; live_known(&l, l.first)->group_stop != GROUP_STOP_IN; live_patience())
		live_reap(&l);
	OK(kill(l.pid, SIGCONT));
	while (live_count(&l, "eintr") == 0)
		live_patience();
	ck_assert_int_eq(live_count(&l, "eintr"), 1);
	ck_assert_int_eq(live_count(&l, "other"), 0);
}

/* The resumed wait loses nothing if capture ends, so capture does not wait for it. */
TEST(a_resumed_wait_does_not_delay_the_end_of_the_tracer)
{
	begin("epoll_pwait", false);
	disturb();
	ck_assert(capture_settle(l.capture));
}

TEST(a_process_killed_in_a_resumed_call_ends)
{
	begin("epoll_pwait", false);
	disturb();
	OK(kill(l.pid, SIGKILL));
	while (l.gone == 0)
		live_wait(&l);
	live_later(HOUR_NS);
	live_tick(&l);
}
