#include "lib/capture/restart/resume.h"

#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/capture/detach.h"
#include "lib/capture/proc/memory.h"
#include "lib/capture/ptrace/arch.h"
#include "lib/capture/restart/partial.h"
#include "lib/capture/state.h"
#include "tests/unit/capture/live.h"
#include "tests/unit/suite.h"

/* Calls that block many times before they are complete. */
static const char *const kinds[] = {"write_pipe",    "writev_pipe",  "write_unix",   "write_tcp",
				    "writev_unix",   "send_unix",    "send_tcp",     "recv_unix",
				    "recv_tcp",	     "recvmsg_tcp",  "sendmsg_tcp",  "send_flag",
				    "send_zerocopy", "io_getevents", "pwritev2_pipe"};

#define N_KINDS (sizeof(kinds) / sizeof(kinds[0]))

/*
 * RESTS: how many partial transfers are resumed for each kind of call. IN_A_ROW: interrupts before
 * the program gets time to complete a transfer.
 */
#define RESTS	 10
#define IN_A_ROW 5

/*
 * TCP transfers so much at once that a thread is rarely interrupted in the middle. After this many
 * rounds one resumed call is enough.
 */
#define ROUNDS_MAX 4

static bool is_enough(uint64_t continued, int rounds)
{
	return continued >= RESTS || (continued > 0 && rounds >= ROUNDS_MAX);
}

static struct live l;

static void tear_down(void)
{
	live_end(&l);
}

/* Waits until the transfer under way is complete, so that the program has counted it. */
static void until_all_is_done(void)
{
	long whole = live_count(&l, "whole");

	while (live_count(&l, "whole") < whole + 1)
		live_patience();
}

static void interrupt_once(void)
{
	uint64_t before = l.counters.stops + l.counters.event_stops;

	live_until_state(&l, l.first, 'S');
	/* The state of a thread that was sampled without a stop, after an interrupt. */
	live_known(&l, l.first)->due = DUE_STOP;
	OK(ptrace(PTRACE_INTERRUPT, l.first, NULL, NULL));
	while (l.counters.stops + l.counters.event_stops == before)
		live_wait(&l);
}

FIXTURE(NULL, tear_down)

TESTS(interrupts_lose_no_bytes, N_KINDS)
{
	live_begin(&l, "cap_whole", kinds[_i], NULL);
	for (int n = 0; !is_enough(l.counters.continued, n); n++) {
		for (int i = 0; i < IN_A_ROW; i++)
			interrupt_once();
		until_all_is_done();
	}
	until_all_is_done();
	ck_assert_int_eq(live_count(&l, "short"), 0);
	ck_assert_int_eq(live_count(&l, "wrong"), 0);
}

/* A signal that an untraced thread would not notice wakes a traced one. */
TESTS(ignored_signals_lose_no_bytes, N_KINDS)
{
	live_begin(&l, "cap_whole", kinds[_i], NULL);
	for (int i = 1; !is_enough(l.counters.continued, i / IN_A_ROW); i++) {
		uint64_t before = l.counters.event_stops;

		live_until_state(&l, l.first, 'S');
		OK(syscall(SYS_tgkill, l.pid, l.first, SIGWINCH));
		while (l.counters.event_stops == before)
			live_wait(&l);
		if (i % IN_A_ROW == 0)
			until_all_is_done();
	}
	until_all_is_done();
	ck_assert_int_eq(live_count(&l, "short"), 0);
	ck_assert_int_eq(live_count(&l, "wrong"), 0);
}

/*
 * A handler ends the call with a part, as it does without capture. No byte is lost or sent twice.
 */
TESTS(handlers_end_the_call_without_losing_bytes, N_KINDS)
{
	live_begin(&l, "cap_whole", kinds[_i], NULL);
	for (int i = 1; i <= RESTS; i++) {
		(void)ptrace(PTRACE_INTERRUPT, l.first, NULL, NULL);
		if (i % 2 == 0)
			live_reap(&l);
		OK(syscall(SYS_tgkill, l.pid, l.first, SIGUSR1));
		(void)ptrace(PTRACE_INTERRUPT, l.first, NULL, NULL);
		while (live_count(&l, "handled") < i)
			live_patience();
	}
	until_all_is_done();
	ck_assert_int_eq(live_count(&l, "handled"), RESTS);
	ck_assert_int_eq(live_count(&l, "wrong"), 0);
}

TESTS(group_stops_end_the_call_without_losing_bytes, N_KINDS)
{
	live_begin(&l, "cap_whole", kinds[_i], NULL);
	for (int i = 0; i < RESTS / 4; i++) {
		(void)ptrace(PTRACE_INTERRUPT, l.first, NULL, NULL);
		if (i % 2 == 0)
			live_reap(&l);
		OK(kill(l.pid, SIGSTOP));
		live_until_state(&l, l.first, 't');
		(void)ptrace(PTRACE_INTERRUPT, l.first, NULL, NULL);
		OK(kill(l.pid, SIGCONT));
		until_all_is_done();
	}
	ck_assert_int_eq(live_count(&l, "wrong"), 0);
}

/* Calls that stay short. Afterwards, neither they nor the calls that follow fail. */
static const char *const short_kinds[] = {"write_tty", "sendfile_tcp", "recvmmsg",
					  "io_uring_several"};

TESTS(calls_that_stay_short_do_not_fail, array_size(short_kinds))
{
	live_begin(&l, "cap_whole", short_kinds[_i], NULL);
	for (int n = 0; n < RESTS; n++) {
		for (int i = 0; i < IN_A_ROW; i++)
			interrupt_once();
		until_all_is_done();
	}
	ck_assert_uint_eq(l.counters.continued, 0);
	ck_assert_int_eq(live_count(&l, "wrong"), 0);
}

TESTS(a_process_killed_in_a_resumed_transfer_ends, N_KINDS)
{
	live_begin(&l, "cap_whole", kinds[_i], NULL);
	while (l.counters.continued < 1)
		interrupt_once();
	OK(kill(l.pid, SIGKILL));
	while (l.gone == 0)
		live_wait(&l);
}

/* The filter has let the same call through, with another address and size. */
TEST(under_a_filter_a_call_of_the_same_kind_is_resumed)
{
	live_begin(&l, "cap_whole", "write_pipe", NULL);
	ck_assert_int_eq(live_ask(&l, "filter", "ok"), 0);
	while (l.counters.continued < RESTS) {
		interrupt_once();
		until_all_is_done();
	}
	ck_assert_int_eq(live_count(&l, "short"), 0);
	ck_assert_int_eq(live_count(&l, "wrong"), 0);
}

/* The filter may refuse another call. The rest of this one would be sent by sendto(2). */
TEST(under_a_filter_no_other_call_is_made)
{
	live_begin(&l, "cap_whole", "write_unix", NULL);
	ck_assert_int_eq(live_ask(&l, "filter", "ok"), 0);
	while (live_count(&l, "short") == 0)
		interrupt_once();
	until_all_is_done();
	ck_assert_uint_eq(l.counters.continued, 0);
	ck_assert_int_eq(live_count(&l, "wrong"), 0);
	ck_assert_uint_eq(l.gone, 0);
}

/* Nothing interrupts the calls, so each short result is final. */
TEST(a_short_result_without_an_interruption_is_final)
{
	live_begin(&l, "life_ends", "3", NULL);
	live_say(&l, "");
	while (l.gone == 0) {
		live_wait(&l);
		ck_assert_uint_eq(l.counters.continued, 0);
	}
}

/* Makes a connection. *ret_to receives what is sent into the returned descriptor. */
static int connection(int *ret_to)
{
	struct sockaddr_in name = {.sin_family = AF_INET};
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t size = sizeof(name);

	name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	OK(bind(listener, (void *)&name, sizeof(name)));
	OK(listen(listener, 1));
	OK(getsockname(listener, (void *)&name, &size));
	OK(connect(fd, (void *)&name, sizeof(name)));
	*ret_to = accept(listener, NULL, NULL);
	ck_assert_int_ge(*ret_to, 0);
	close_fd(&listener);
	return fd;
}

/* Reads the registers of a stopped process, and finds its call. */
static void get_regs(pid_t pid, struct arch_regs *ret)
{
	uint8_t code[ARCH_CODE_BYTES + 1];
	uint64_t regs[ARCH_REGS];

	OK(arch_get_regs((uint32_t)pid, ret));
	if (ARCH_CODE_BYTES == 0)
		return;
	arch_to_dwarf(ret, regs);
	ck_assert_int_eq(memory_read(-1, NULL, pid, regs[ARCH_PC] - ARCH_CODE_BEFORE, code,
				     ARCH_CODE_BYTES, 0),
			 ARCH_CODE_BYTES);
	arch_find_call(ret, code);
}

/*
 * Starts a process that receives from fd, and returns when it is in the stop at the end of that
 * call.
 */
static pid_t at_end_of_recv(int fd, struct arch_regs *ret)
{
	char bytes[64];
	long nr, result;
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		(void)ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		(void)raise(SIGSTOP);
		(void)recv(fd, bytes, sizeof(bytes), MSG_WAITALL);
		_exit(0);
	}
	do {
		ck_assert_int_eq(waitpid(pid, &status, 0), pid);
		ck_assert(WIFSTOPPED(status));
		get_regs(pid, ret);
		OK(ptrace(PTRACE_SYSCALL, pid, NULL, NULL));
	} while (!arch_interrupted_call(ret, &nr, &result) || nr != SYS_recvfrom);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	get_regs(pid, ret);
	return pid;
}

static bool is_at_getppid(const struct arch_regs *regs)
{
	long nr, result;

	return arch_interrupted_call(regs, &nr, &result) && nr == SYS_getppid;
}

FIXTURE(NULL, NULL)

/* After urgent data the call is complete. Otherwise it would wait for bytes that may never come. */
TEST(a_call_at_urgent_data_is_not_resumed)
{
	struct pollfd urgent = {.events = POLLPRI};
	struct arch_regs regs;
	struct resumed_call rest = {.state = RESUME_NONE};
	struct resume_stop stop = {.pagemap_fd = -1, .regs = &regs, .goes_on = true};
	int from = connection(&urgent.fd);
	pid_t pid;

	ck_assert_int_eq(send(from, "part", 4, 0), 4);
	ck_assert_int_eq(send(from, "!", 1, MSG_OOB), 1);
	ck_assert_int_eq(poll(&urgent, 1, -1), 1);
	pid = at_end_of_recv(urgent.fd, &regs);
	stop.pid = pid;
	stop.tid = (uint32_t)pid;
	ck_assert(!resume_partial(&rest, &stop));
	ck_assert_uint_eq(rest.partial.done, 4);
	ck_assert_uint_eq(rest.partial.whole, 64);
	OK(kill(pid, SIGKILL));
	ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
	close_fd(&from);
	close_fd(&urgent.fd);
}

/*
 * A thread that was sent back to its call stops in a handler. It stays there, with its own
 * registers.
 */
TESTS(a_stop_in_a_handler_ends_the_resumption, 3)
{
	struct arch_regs there, seen, now;
	struct resumed_call rest = {.state = RESUME_ENTERING};
	struct resume_stop stop = {
		.pagemap_fd = -1, .regs = &seen, .at_call = _i == 1, .goes_on = _i != 2};
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		(void)ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		(void)raise(SIGSTOP);
		(void)getppid();
		_exit(0);
	}
	stop.pid = pid;
	stop.tid = rest.partial.tid = (uint32_t)pid;
	rest.partial.pagemap_fd = -1;
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	get_regs(pid, &rest.partial.regs);
	/* Waits for the begin of another call than the one that the thread was sent to. */
	do {
		OK(ptrace(PTRACE_SYSCALL, pid, NULL, NULL));
		ck_assert_int_eq(waitpid(pid, &status, 0), pid);
		get_regs(pid, &there);
	} while (!is_at_getppid(&there));
	seen = there;
	resume_stopped(&rest, &stop, &seen);
	ck_assert_int_eq(rest.state, RESUME_NONE);
	ck_assert_mem_eq(&seen, &there, sizeof(there));
	get_regs(pid, &now);
	ck_assert_mem_eq(&now, &there, sizeof(there));
	OK(kill(pid, SIGKILL));
	ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
}

FIXTURE(NULL, tear_down)

TEST(capture_settle_leaves_no_resumed_call)
{
	live_begin(&l, "cap_whole", "write_pipe", NULL);
	for (int i = 0; i < RESTS; i++) {
		until_all_is_done();
		interrupt_once();
	}
	while (!capture_settle(l.capture))
		live_wait(&l);
	ck_assert_int_eq(live_count(&l, "short"), 0);
	ck_assert_int_eq(live_count(&l, "wrong"), 0);
}

/*
 * Calls of the target are cut short, because it is detaching and has taken long. No further call is
 * resumed.
 */
TEST(no_call_is_resumed_while_calls_are_cut_short)
{
	uint64_t continued;

	live_begin(&l, "cap_whole", "write_pipe", NULL);
	while (l.counters.continued < 1)
		interrupt_once();
	live_known(&l, l.first)->target->settling.cut = true;
	/* The resumed call under way is completed. */
	while (live_known(&l, l.first)->resumed.state != RESUME_NONE)
		interrupt_once();
	continued = l.counters.continued;
	for (int i = 0; i < RESTS; i++) {
		interrupt_once();
		ck_assert_int_eq(live_known(&l, l.first)->resumed.state, RESUME_NONE);
	}
	ck_assert_uint_eq(l.counters.continued, continued);
	until_all_is_done();
	ck_assert_int_eq(live_count(&l, "wrong"), 0);
}
