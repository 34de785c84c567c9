#include "lib/capture/reap.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/capture/attach.h"
#include "lib/capture/capture.h"
#include "lib/capture/sample.h"
#include "lib/capture/state.h"
#include "lib/capture/tracees.h"
#include "tests/unit/capture/live.h"
#include "tests/unit/suite.h"

static struct live l;

static void threads(void)
{
	live_begin(&l, "cap_threads", NULL, NULL);
}

static void tear_down(void)
{
	live_end(&l);
}

/*
 * Waits until a dying thread is in its exit stop ('t') or is a zombie ('Z'), and returns that
 * state.
 */
static char end_of(pid_t tid)
{
	char state;

	while ((state = live_state(tid)) != 't' && state != 'Z')
		live_patience();
	return state;
}

FIXTURE(NULL, tear_down)

/*
 * The parent gets the status as soon as the process is dead, because capture detaches from the
 * leader.
 */
TEST(a_process_dies_untraced)
{
	pid_t tid;

	threads();
	tid = (pid_t)live_ask(&l, "asleep 1", "ok");
	live_ticks(&l, 2);
	close_fd(&l.in);
	ck_assert_int_eq(end_of(l.pid), 't');
	/* The other threads stay capture's tracees until they are reaped, and have no exit stop. */
	ck_assert_int_eq(end_of(tid), 'Z');
	ck_assert_uint_eq(l.gone, 0);
	while (l.gone == 0)
		live_wait(&l);
	ck_assert(l.ended);
	ck_assert_int_le(live_status(l.pid, "TracerPid:"), 0);
	live_check_sum(&l);
}

/* Before the exec no samples are written or expected; from the exec on, all are. */
TEST(no_sample_is_taken_before_the_awaited_exec)
{
	live_begin(&l, "cap_threads", NULL, NULL);
	capture_await_exec(l.capture, LIVE_TARGET);
	live_ticks(&l, 5);
	ck_assert_uint_eq(l.records[RECORD_SAMPLE], 0);
	ck_assert_uint_eq(l.counters.expected, 0);
	ck_assert_uint_eq(l.counters.ticks, 0);
	live_say(&l, "exec");
	while (l.execs == 0)
		live_wait(&l);
	live_ticks(&l, 5);
	ck_assert_uint_gt(l.records[RECORD_SAMPLE], 0);
	ck_assert_uint_le(l.counters.ticks, 5);
}

static void execute(void)
{
	const unsigned int before = l.execs;

	live_say(&l, "exec");
	while (l.execs == before)
		live_wait(&l);
}

/* A program that runs as another user, such as a set-user-ID program. */
TEST(no_sample_is_taken_of_a_program_with_other_rights)
{
	uint64_t samples, expected;

	live_begin(&l, "cap_threads", NULL, NULL);
	capture_set_user(l.capture, LIVE_TARGET, geteuid(), geteuid());
	live_ticks(&l, 5);
	ck_assert_uint_gt(l.records[RECORD_SAMPLE], 0);
	/* As if it had other rights when capture attached, and then after its exec. */
	capture_set_user(l.capture, LIVE_TARGET, geteuid(), geteuid() + 1);
	ck_assert_uint_eq(l.other_rights, 1);
	execute();
	ck_assert_uint_eq(l.other_rights, 2);
	samples = l.records[RECORD_SAMPLE];
	expected = l.counters.expected;
	live_ticks(&l, 5);
	ck_assert_uint_eq(l.records[RECORD_SAMPLE], samples);
	ck_assert_uint_eq(l.counters.expected, expected);
	/* The next program has the user's rights again. */
	capture_set_user(l.capture, LIVE_TARGET, geteuid(), geteuid());
	execute();
	live_ticks(&l, 1);
	/* The ticks without samples are no part of this one. */
	ck_assert_uint_eq(live_known(&l, l.pid)->target->ticks.span.length_ns, LIVE_TICK_NS);
	live_ticks(&l, 4);
	ck_assert_uint_gt(l.records[RECORD_SAMPLE], samples);
}

/* The files of a thread that exits belong to root, or are gone: they say nothing of the process. */
TEST(a_thread_that_exits_does_not_change_the_rights)
{
	struct thread *th;
	uint32_t tid;

	live_begin(&l, "cap_threads", NULL, NULL);
	live_ticks(&l, 5);
	th = live_known(&l, l.pid);
	tid = th->tid;
	th->tid = INT32_MAX;
	capture_set_user(l.capture, LIVE_TARGET, geteuid(), geteuid());
	th->tid = tid;
	ck_assert_uint_eq(l.other_rights, 0);
}

/* One that is not dumpable: root's files do not show that it executes a set-user-ID program. */
TEST(no_sample_is_taken_after_an_exec_of_a_process_whose_files_are_roots)
{
	uint64_t samples;

	live_begin(&l, "cap_threads", NULL, NULL);
	capture_set_user(l.capture, LIVE_TARGET, geteuid() + 1, geteuid());
	live_ticks(&l, 5);
	ck_assert_uint_gt(l.records[RECORD_SAMPLE], 0);
	ck_assert_uint_eq(l.other_rights, 0);
	execute();
	ck_assert_uint_eq(l.other_rights, 1);
	samples = l.records[RECORD_SAMPLE];
	live_ticks(&l, 5);
	ck_assert_uint_eq(l.records[RECORD_SAMPLE], samples);
}

/* Such an exec may also be found at a tick, before or without its stop. */
TEST(no_sample_is_taken_at_the_tick_that_finds_an_exec)
{
	uint64_t samples, expected;
	struct traced_process *t;

	live_begin(&l, "cap_threads", NULL, NULL);
	capture_set_user(l.capture, LIVE_TARGET, geteuid() + 1, geteuid());
	live_ticks(&l, 5);
	samples = l.records[RECORD_SAMPLE];
	expected = l.counters.expected;
	/* As if the process had executed another program. */
	t = live_known(&l, l.pid)->target;
	t->exec.auxv.words[1]++;
	t->exec.doubt = true;
	live_ticks(&l, 5);
	ck_assert_uint_eq(l.other_rights, 1);
	ck_assert_uint_eq(l.records[RECORD_SAMPLE], samples);
	ck_assert_uint_eq(l.counters.expected, expected);
}

/*
 * The parent's stop already reports the child, because the parent may end before the child has run.
 */
TEST(a_child_is_reported_when_its_parent_stops_in_fork)
{
	int status;

	l = (struct live){.pidfd = -1, .in = -1, .out = -1, .follow_children = true};
	live_start(&l, "cap_threads", NULL, NULL);
	live_open(&l, 1u << 24);
	live_attach(&l);
	live_say(&l, "child");
	ck_assert_int_eq(waitpid(l.pid, &status, __WALL), l.pid);
	ck_assert_int_eq(status >> 8, SIGTRAP | PTRACE_EVENT_FORK << 8);
	ck_assert_int_eq(l.born, 0);
	capture_handle_status(l.capture, (uint32_t)l.pid, status);
	ck_assert_int_gt(l.born, 0);
	ck_assert_int_eq(live_answer(&l, "ok"), l.born);
}

/*
 * Of a child that is attached, and that the caller has not added. Without a tracer the signals,
 * which are ignored, end no call. aarch64: a known exception (docs/SAFETY.md).
 */
TEST_IF(signals_end_no_wait_of_a_child_that_is_followed, ARCH_RESULT_RESTARTS)
{
	pid_t pid;
	char state;

	l = (struct live){.pidfd = -1, .in = -1, .out = -1, .follow_children = true};
	live_start(&l, "cap_threads", NULL, NULL);
	live_open(&l, 1u << 24);
	live_attach(&l);
	pid = (pid_t)live_ask(&l, "waiter", "ok");
	live_until_blocked(&l, pid);
	for (int i = 0; i < 20; i++) {
		OK(kill(pid, SIGWINCH));
		while ((state = live_state(pid)) != 'S' && state != 'Z')
			live_wait(&l);
		ck_assert_int_eq(state, 'S');
	}
	ck_assert_int_eq(live_status(pid, "TracerPid:"), getpid());
}

/*
 * Of a thread of a target that is not in the table: capture could not adopt it for a lack of
 * descriptors, and no scan has found it yet. aarch64: a known exception (docs/SAFETY.md).
 */
TEST(signals_end_no_wait_of_a_thread_that_was_not_adopted)
{
	enum { SIGNALS = 20 };

	live_begin(&l, "cap_waits", "epoll_pwait", NULL);
	for (int i = 0; i < SIGNALS; i++) {
		const uint64_t before = l.counters.event_stops;

		live_until_blocked(&l, l.first);
		tracees_remove(live_known(&l, l.first), MISSED_EXITED);
		OK(syscall(SYS_tgkill, l.pid, l.first, SIGWINCH));
		while (l.counters.event_stops == before)
			live_wait(&l);
	}
	live_until_blocked(&l, l.first);
	ck_assert_int_eq(live_count(&l, "eintr"), ARCH_RESULT_RESTARTS ? 0 : SIGNALS);
	ck_assert_int_eq(live_count(&l, "other"), 0);
	ck_assert_uint_ge(l.counters.rewritten, ARCH_RESULT_RESTARTS ? SIGNALS : 0);
}

/* Capture also detaches from a dying leader of a new program, whichever thread it was before. */
TEST(a_new_program_dies_untraced)
{
	threads();
	(void)live_ask(&l, "asleep 1", "ok");
	live_ticks(&l, 2);
	live_say(&l, "exec");
	ck_assert_int_eq(live_answer(&l, "ready"), l.pid);
	live_settle(&l);
	ck_assert_uint_eq(l.execs, 1);
	close_fd(&l.in);
	ck_assert_int_eq(end_of(l.pid), 't');
	while (l.gone == 0)
		live_wait(&l);
	ck_assert_int_le(live_status(l.pid, "TracerPid:"), 0);
}

/* Detaches from the leader as if it were dying, although it is not dead yet. */
static struct traced_process *let_go(void)
{
	struct traced_process *t = live_known(&l, l.pid)->target;
	int status;

	live_ticks(&l, 2);
	OK(ptrace(PTRACE_INTERRUPT, l.pid, NULL, NULL));
	ck_assert_int_eq(waitpid(l.pid, &status, __WALL), l.pid);
	ck_assert(WIFSTOPPED(status));
	OK(ptrace(PTRACE_DETACH, l.pid, NULL, NULL));
	tracees_remove(live_known(&l, l.pid), MISSED_EXITED);
	t->exec.leader_dies = true;
	OK(attach_scan(t));
	ck_assert_uint_eq(t->scan.held_up_ticks, 1);
	return t;
}

TEST(a_process_that_dies_slowly_ends_once)
{
	threads();
	(void)let_go();
	live_ticks(&l, 20);
	ck_assert_int_eq(live_status(l.pid, "TracerPid:"), 0);
	ck_assert_uint_eq(l.gone, 0);
	/*
	 * If capture is not the parent, it gets no status. The test, which is the parent, takes the
	 * status itself.
	 */
	close_fd(&l.in);
	ck_assert_int_eq(waitpid(l.pid, NULL, 0), l.pid);
	for (; l.gone == 0; live_patience())
		live_tick(&l);
	ck_assert(l.ended);
	live_check_sum(&l);
}

TEST(a_leader_that_executes_does_not_count_as_dying)
{
	threads();
	(void)let_go();
	live_say(&l, "exec");
	ck_assert_int_eq(live_answer(&l, "ready"), l.pid);
	for (; l.execs == 0; live_patience())
		live_tick(&l);
	ck_assert_int_eq(live_status(l.pid, "TracerPid:"), getpid());
	close_fd(&l.in);
	ck_assert_int_eq(end_of(l.pid), 't');
}

/*
 * A parent that waits for the end by a pidfd, and then calls waitpid(2) with WNOHANG, as Rust's
 * tokio does.
 */
struct parent {
	pid_t pid, child;
	int orders, answers;
};

static void *wait_for_ever(void *unused)
{
	for (;;)
		(void)pause();
	return unused;
}

enum { WITH_THREADS = 1, KILLED = 2, NOT_TOLD = 4, KINDS = 8 };

/* More mappings than capture searches for FUSE files, if the process has a FUSE mount. */
#define MAPPINGS 13000

/* Mounts a FUSE file system that only the caller sees and that no process serves. */
static bool mount_fuse(void)
{
	const int device = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	char text[64];

	(void)snprintf(text, sizeof(text), "fd=%d,rootmode=40000,user_id=0,group_id=0", device);
	return unshare(CLONE_NEWNS) == 0 &&
	       mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
	       mount("check_reap", "/tmp", "fuse", 0, text) == 0;
}

/* NOT_TOLD requires root. */
static int kinds(void)
{
	return geteuid() == 0 && access("/dev/fuse", R_OK | W_OK) == 0 ? KINDS : NOT_TOLD;
}

static void be_child(int kind, int ready, int end)
{
	pthread_t thread;
	char byte = 0;

	for (int i = 0; i < (kind & WITH_THREADS ? 3 : 0); i++)
		if (pthread_create(&thread, NULL, wait_for_ever, NULL) != 0)
			_exit(2);
	if ((kind & NOT_TOLD) != 0 && !mount_fuse())
		_exit(2);
	for (int i = 0; i < (kind & NOT_TOLD ? MAPPINGS : 0); i++)
		if (mmap(NULL, 4096, i % 2 ? PROT_READ : PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			 0) == MAP_FAILED)
			_exit(2);
	(void)!write(ready, &byte, 1);
	(void)!read(end, &byte, 1);
	_exit(1);
}

static void be_parent(int kind, int orders, int answers)
{
	struct pollfd ended = {.events = POLLIN};
	int ready[2], end[2];
	char byte = 0;
	pid_t child;

	if (pipe(ready) < 0 || pipe(end) < 0)
		_exit(1);
	child = fork();
	if (child == 0)
		be_child(kind, ready[1], end[0]);
	ended.fd = (int)syscall(SYS_pidfd_open, child, 0);
	if (ended.fd < 0 || read(ready[0], &byte, 1) != 1 ||
	    write(answers, &child, sizeof(child)) != sizeof(child) || read(orders, &byte, 1) != 1)
		_exit(1);
	if ((kind & KILLED) != 0)
		(void)kill(child, SIGKILL);
	else
		(void)!write(end[1], &byte, 1);
	(void)poll(&ended, 1, -1);
	child = waitpid(child, NULL, WNOHANG);
	(void)!write(answers, &child, sizeof(child));
	_exit(0);
}

static struct parent start_parent(int kind)
{
	struct parent p;
	int orders[2], answers[2];

	OK(pipe2(orders, O_CLOEXEC));
	OK(pipe2(answers, O_CLOEXEC));
	p.pid = fork();
	ck_assert_int_ge(p.pid, 0);
	if (p.pid == 0)
		be_parent(kind, orders[0], answers[1]);
	close_fd(&orders[0]);
	close_fd(&answers[1]);
	p.orders = orders[1];
	p.answers = answers[0];
	ck_assert_int_eq(read(p.answers, &p.child, sizeof(p.child)), sizeof(p.child));
	return p;
}

/*
 * The parent finds the status, however late capture handles the end. Without an exit stop
 * (NOT_TOLD) the child is dead for the pidfd before capture has reaped it, and the parent may find
 * no status.
 */
TESTS(the_parent_of_a_dying_process_gets_its_status, kinds())
{
	struct parent p = start_parent(_i);
	struct pollfd answered = {.fd = p.answers, .events = POLLIN};
	const bool mended = (_i & NOT_TOLD) == 0;
	pid_t found;

	l = (struct live){.child = p.pid, .pid = p.child, .in = -1, .out = -1};
	l.pidfd = (int)syscall(SYS_pidfd_open, l.pid, 0);
	live_open(&l, 1u << 24);
	live_attach(&l);
	ck_assert_uint_eq(l.counters.threads, _i & WITH_THREADS ? 4 : 1);
	ck_assert_int_eq(write(p.orders, "", 1), 1);
	ck_assert_int_eq(end_of(l.pid), mended ? 't' : 'Z');
	while (poll(&answered, 1, 0) == 0) {
		/*
		 * Without other threads, and without the exit stop, there is nothing to reap before
		 * the parent has answered.
		 */
		if ((_i & WITH_THREADS) != 0 || mended)
			live_reap(&l);
		live_patience();
	}
	ck_assert_int_eq(read(p.answers, &found, sizeof(found)), sizeof(found));
	if (mended)
		ck_assert_int_eq(found, p.child);
	else if ((_i & WITH_THREADS) == 0)
		ck_assert_int_eq(found, 0);
	for (; l.gone == 0; live_patience())
		live_tick(&l);
	ck_assert(l.ended);
	live_check_sum(&l);
	close_fd(&p.orders);
	close_fd(&p.answers);
}
