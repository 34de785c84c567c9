/*
 * When a request to detach is answered. The process is a child of the test; a second child stands
 * for capture, and traces the first if the test says so.
 */
#include "daemon/broker/control/detach.h"

#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/broker/control/attach_request.h"
#include "daemon/broker/targets/attach.h"
#include "daemon/broker/targets/instances.h"
#include "daemon/config/config.h"
#include "daemon/process/process.h"
#include "tests/unit/daemon/broker/broker_builder.h"
#include "tests/unit/suite.h"

static struct broker b;
static struct instance i;
static struct instance *list[1] = {&i};
static struct control_peer peer;
static struct control_answer answer;
static struct protocol_request request;
static pid_t tracer;
static uint64_t mono_ns;

static uint64_t mono(void)
{
	return mono_ns;
}

static pid_t start_sleeper(void)
{
	pid_t pid = fork();

	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		(void)prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
		for (;;)
			(void)pause();
	}
	return pid;
}

static void end(pid_t *pid)
{
	if (*pid != 0) {
		OK(kill(*pid, SIGKILL));
		ck_assert_int_eq(waitpid(*pid, NULL, 0), *pid);
	}
	*pid = 0;
}

/* Starts a process that traces that of the instance. */
static const char *tracer_name = "tracer";

static pid_t start_tracer(void)
{
	pid_t pid = fork();

	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		(void)prctl(PR_SET_NAME, tracer_name);
		(void)ptrace(PTRACE_SEIZE, i.pid, NULL, NULL);
		for (;;)
			(void)pause();
	}
	while (process_tracer(i.pid) != pid)
		(void)poll(NULL, 0, 1);
	return pid;
}

/* A process that is profiled as one of --pid. Its own connection is the peer. */
static void set_up(void)
{
	struct process_identity identity;

	build_broker(&b);
	b.modules.state.clocks.mono = mono;
	mono_ns = 1000 * NS_PER_SEC;
	b.modules.targets.instances = list;
	b.modules.targets.n_instances = 1;
	i = (struct instance){
		.pid = start_sleeper(),
		.origin = INSTANCE_GIVEN,
		.is_sampled = true,
		.is_started = true,
	};
	ck_assert(process_identity(i.pid, &identity));
	i.start_ticks = identity.start_ticks;
	i.pidfd = (int)syscall(SYS_pidfd_open, i.pid, 0);
	build_run(&b, &i, NULL)->in_capture = true;
	tracer = 0;
	b.modules.children.capture.pid = getpid();
	peer.identity = (struct peer){
		.pid = i.pid, .uid = geteuid(), .gid = getegid(), .is_operator = true};
	ck_assert(peer_look(&peer.identity));
}

static void tear_down(void)
{
	end(&tracer);
	if (i.pid != 0)
		end(&i.pid);
	close_fd(&i.pidfd);
}

static void ask(uint32_t type, int32_t pid, uint32_t seconds)
{
	request = (struct protocol_request){.h = {.type = type}, .pid = pid, .seconds = seconds};
	answer = (struct control_answer){.fd = -1, .work = 1};
	detach_request(&b.modules.targets, &peer, &request, &answer);
}

/* Returns true if the request is answered now. */
static bool is_answered(uint64_t waited_ns)
{
	const uint64_t note = answer.note;

	answer = (struct control_answer){.fd = -1, .work = 1, .note = note};
	detach_go_on(&b.modules.targets, &peer, &request, waited_ns, &answer);
	return !answer.is_deferred;
}

/* Capture reports that it has detached. */
static void report_detached(void)
{
	i.run->in_capture = false;
	i.run->phase = RUN_CLOSED;
}

static void check_result(enum protocol_result result)
{
	ck_assert_uint_eq(answer.m.result, result);
	ck_assert_int_eq(answer.m.pid, i.pid);
}

FIXTURE(set_up, tear_down)

TEST(the_answer_comes_when_capture_has_detached)
{
	ask(PROTOCOL_DETACH, i.pid, 0);
	ck_assert(answer.is_deferred);
	ck_assert_int_eq(i.wish, INSTANCE_WISH_DETACHED);
	ck_assert(!is_answered(1));
	instances_check(&b.modules.targets);
	ck_assert_int_eq(i.run->phase, RUN_STOPPING);
	ck_assert(!is_answered(NS_PER_SEC));
	report_detached();
	ck_assert(is_answered(2 * NS_PER_SEC));
	check_result(PROTOCOL_OK);
	ck_assert_uint_eq(answer.m.state, PROTOCOL_STATE_LEFT_OUT);
	ck_assert_str_eq(answer.m.text, "");
	/* Nothing is to be waited for any more. */
	ask(PROTOCOL_DETACH, i.pid, 0);
	ck_assert(!answer.is_deferred);
	check_result(PROTOCOL_LEFT_OUT);
}

/* In the turn of the request the broker may still tell capture to attach. */
TEST(a_run_that_is_about_to_be_attached_is_waited_for)
{
	i.run->in_capture = false;
	i.run->phase = RUN_WAITING;
	i.run->attach_due = true;
	ask(PROTOCOL_DETACH, i.pid, 0);
	ck_assert(!is_answered(1));
	instances_check(&b.modules.targets);
	ck_assert(is_answered(2));
	check_result(PROTOCOL_OK);
}

/* Capture has reported the end of its tracing, and the kernel shows the tracer still. */
TEST(a_thread_that_capture_traces_is_waited_for)
{
	ask(PROTOCOL_DETACH, i.pid, 0);
	instances_check(&b.modules.targets);
	report_detached();
	tracer = start_tracer();
	b.modules.children.capture.pid = tracer;
	ck_assert(!is_answered(1));
	end(&tracer);
	ck_assert(is_answered(2));
	check_result(PROTOCOL_OK);
}

TEST(another_tracer_is_named)
{
	char text[64];

	ask(PROTOCOL_DETACH, i.pid, 0);
	instances_check(&b.modules.targets);
	report_detached();
	tracer = start_tracer();
	ck_assert(is_answered(1));
	check_result(PROTOCOL_OK);
	ck_assert_uint_eq(answer.m.count, (uint32_t)tracer);
	(void)snprintf(text, sizeof(text), "(pid %d) traces it now", tracer);
	HAS(answer.m.text, text);
}

/* It goes to the terminal of the user who detaches. */
TEST(the_name_of_another_tracer_is_escaped)
{
	tracer_name = "\033cx";
	ask(PROTOCOL_DETACH, i.pid, 0);
	instances_check(&b.modules.targets);
	report_detached();
	tracer = start_tracer();
	ck_assert(is_answered(1));
	HAS(answer.m.text, "\\x1bcx (pid ");
	LACKS(answer.m.text, "\033");
}

TEST(after_25_s_the_answer_is_that_detaching_goes_on)
{
	ask(PROTOCOL_DETACH, i.pid, 0);
	instances_check(&b.modules.targets);
	ck_assert(!is_answered(DETACH_WAIT_NS - 1));
	ck_assert(is_answered(DETACH_WAIT_NS));
	check_result(PROTOCOL_TIMED_OUT);
	ck_assert_uint_eq(answer.m.state, PROTOCOL_STATE_DETACHING);
	HAS(answer.m.text, "within 25 s");
	ck_assert_int_eq(lifecycle_state(&i), PROTOCOL_STATE_DETACHING);
	/* A second request waits, too. */
	ask(PROTOCOL_DETACH, i.pid, 0);
	ck_assert(answer.is_deferred);
	report_detached();
	ck_assert(is_answered(1));
	check_result(PROTOCOL_OK);
	ck_assert_int_eq(lifecycle_state(&i), PROTOCOL_STATE_LEFT_OUT);
}

/* The pid may have another process by now. */
TESTS(the_end_of_the_process_is_a_success, 2)
{
	const pid_t pid = i.pid;

	ask(PROTOCOL_DETACH, i.pid, 0);
	instances_check(&b.modules.targets);
	if (_i == 0)
		end(&i.pid);
	i.life = INSTANCE_ENDED;
	i.pid = pid;
	ck_assert(!is_answered(1));
	report_detached();
	if (_i == 1) {
		answer.note--;
		tracer = start_tracer();
		b.modules.children.capture.pid = tracer;
	}
	ck_assert(is_answered(2));
	check_result(PROTOCOL_OK);
	if (_i == 0)
		i.pid = 0;
}

/* Its death ends the tracing of all processes, and no message reports the end of each. */
TEST(the_end_of_capture_is_a_success)
{
	ask(PROTOCOL_RELEASE, 0, 5);
	b.modules.state.phase = PHASE_DELIVERING;
	instances_check(&b.modules.targets);
	ck_assert(!is_answered(1));
	b.modules.children.capture.pid = 0;
	ck_assert(is_answered(2));
	check_result(PROTOCOL_OK);
}

/* SIGTSTP: the run stays open, and goes on after SIGCONT unless it was detached. */
TEST(a_suspension_of_the_broker_is_a_success)
{
	b.modules.state.is_suspended = true;
	ask(PROTOCOL_DETACH, i.pid, 0);
	instances_check(&b.modules.targets);
	ck_assert(!is_answered(1));
	i.run->in_capture = false;
	ck_assert(is_answered(2));
	check_result(PROTOCOL_OK);
	b.modules.state.is_suspended = false;
	instances_check(&b.modules.targets);
	ck_assert_int_eq(i.run->phase, RUN_CLOSED);
}

TEST(an_attach_ends_the_wait_and_the_release)
{
	struct control_answer attached = {.fd = -1};

	ask(PROTOCOL_RELEASE, 0, 5);
	instances_check(&b.modules.targets);
	ck_assert(!is_answered(1));
	attach_request_handle(&b.modules.targets, &peer.identity, i.pid, &attached);
	ck_assert_uint_eq(attached.m.result, PROTOCOL_OK);
	ck_assert_uint_eq(i.released_until_ns, 0);
	ck_assert(is_answered(2));
	check_result(PROTOCOL_FAILED);
	HAS(answer.m.text, "was attached");
	attach_request_handle(&b.modules.targets, &peer.identity, i.pid, &attached);
	ck_assert_uint_eq(attached.m.result, PROTOCOL_RUNS_ALREADY);
}

static uint64_t released_s(void)
{
	return (i.released_until_ns - mono_ns) / NS_PER_SEC;
}

TEST(the_time_of_a_release_counts_from_the_answer)
{
	ask(PROTOCOL_RELEASE, 0, 0);
	ck_assert_uint_eq(released_s(), PROTOCOL_RELEASE_S);
	instances_check(&b.modules.targets);
	mono_ns += 20 * NS_PER_SEC;
	ck_assert(!is_answered(20 * NS_PER_SEC));
	report_detached();
	mono_ns += NS_PER_SEC;
	ck_assert(is_answered(21 * NS_PER_SEC));
	check_result(PROTOCOL_OK);
	ck_assert_uint_eq(released_s(), PROTOCOL_RELEASE_S);
	/* Another request only prolongs it. */
	ask(PROTOCOL_RELEASE, i.pid, 3);
	ck_assert(is_answered(1));
	check_result(PROTOCOL_OK);
	ck_assert_uint_eq(released_s(), PROTOCOL_RELEASE_S);
	ask(PROTOCOL_RELEASE, 0, UINT32_MAX);
	ck_assert_uint_eq(released_s(), PROTOCOL_RELEASE_MAX_S);
}

TEST(a_detached_process_stays_detached)
{
	ask(PROTOCOL_RELEASE, 0, 3);
	instances_check(&b.modules.targets);
	ask(PROTOCOL_DETACH, i.pid, 0);
	report_detached();
	instances_check(&b.modules.targets);
	ask(PROTOCOL_RELEASE, 0, 3);
	check_result(PROTOCOL_LEFT_OUT);
	mono_ns += 10 * NS_PER_SEC;
	instances_check(&b.modules.targets);
	ck_assert_int_eq(lifecycle_state(&i), PROTOCOL_STATE_LEFT_OUT);
}

/* A process that the broker does not know may release itself, and no other. */
TEST(a_process_that_is_no_instance_is_not_traced)
{
	i.run->in_capture = false;
	i.run->phase = RUN_CLOSED;
	b.modules.targets.n_instances = 0;
	ask(PROTOCOL_DETACH, i.pid, 0);
	ck_assert(!answer.is_deferred);
	ck_assert_uint_eq(answer.m.result, PROTOCOL_NO_TARGET);
	ask(PROTOCOL_RELEASE, i.pid, 5);
	ck_assert_uint_eq(answer.m.result, PROTOCOL_NO_TARGET);
	ask(PROTOCOL_RELEASE, 0, 5);
	ck_assert(is_answered(1));
	check_result(PROTOCOL_OK);
	peer.identity.pid = 0;
	ask(PROTOCOL_RELEASE, 0, 5);
	ck_assert_uint_eq(answer.m.result, PROTOCOL_NO_PROCESS);
}

/* With --children capture attaches to a child before the broker knows of it. */
TEST(a_child_that_becomes_an_instance_meanwhile_is_released)
{
	i.run->in_capture = false;
	i.run->phase = RUN_CLOSED;
	b.modules.targets.n_instances = 0;
	tracer = start_tracer();
	b.modules.children.capture.pid = tracer;
	ask(PROTOCOL_RELEASE, 0, 5);
	ck_assert(!is_answered(1));
	b.modules.targets.n_instances = 1;
	ck_assert(!is_answered(2));
	ck_assert_uint_eq(released_s(), 5);
	end(&tracer);
	ck_assert(is_answered(3));
	check_result(PROTOCOL_OK);
}

TEST(other_users_may_not_detach)
{
	peer.identity.is_operator = false;
	peer.identity.uid++;
	ask(PROTOCOL_DETACH, i.pid, 0);
	ck_assert_uint_eq(answer.m.result, PROTOCOL_DENIED);
	ask(PROTOCOL_RELEASE, i.pid, 5);
	ck_assert_uint_eq(answer.m.result, PROTOCOL_DENIED);
	ck_assert(!answer.is_deferred);
	ck_assert(!instance_is_let_go(&i));
}
