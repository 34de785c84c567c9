/*
 * Clients: which state their pages show, and how their root spans and requests start and stop the
 * profiler. The process of every client is the test; i is the instance of this process once
 * appear() was called.
 */
#include "daemon/broker/control/clients.h"

#include <dirent.h>
#include <fcntl.h>
#include <grp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/broker/broker.h"
#include "daemon/broker/control/namespaced_tid.h"
#include "daemon/broker/targets/instance.h"
#include "daemon/broker/targets/lifecycle.h"
#include "daemon/config/config.h"
#include "daemon/process/peer.h"
#include "daemon/process/process.h"
#include "lib/base/clock.h"
#include "lib/base/procfs.h"
#include "tests/unit/daemon/broker/broker_builder.h"
#include "tests/unit/daemon/log_capture.h"
#include "tests/unit/suite.h"

#define NEXT_ID "11111111111111111111111111111111"
#define RUN_ID	"22222222222222222222222222222222"

static struct broker b;
static struct instance i;
static struct ship ship;
static struct instance *list[1] = {&i};
static struct peer peer;
static struct client *c;
static struct protocol_page *page;

static struct protocol_page *map(int fd)
{
	void *at = mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	ck_assert_ptr_ne(at, MAP_FAILED);
	close_fd(&fd);
	return at;
}

static void set_up(void)
{
	int fd;

	build_broker(&b);
	b.modules.targets.instances = list;
	b.modules.state.options.config.chunk_seconds = 60;
	/* The last beat was just now, so clients_check() increments no beat in this test. */
	b.requests.clients.beat_ns = clock_mono_ns() + 3600 * NS_PER_SEC;
	peer = (struct peer){.pid = getpid(), .uid = geteuid(), .gid = getegid()};
	ck_assert(peer_look(&peer));
	i = (struct instance){.pid = getpid(), .start_ticks = peer.start_ticks};
	i.config.lifecycle = LIFECYCLE_TRACE;
	i.is_sampled = true;
	memcpy(i.next_profiler_id, NEXT_ID, sizeof(NEXT_ID));
	OK(client_new(&b.requests.clients, &peer, &c, &fd));
	page = map(fd);
}

static void tear_down(void)
{
	client_end(c);
	clients_sweep(&b.requests.clients);
	ck_assert_ptr_null(b.requests.clients.first);
	(void)munmap(page, sizeof(*page));
}

/* Discovery finds the instance of the client's process. */
static void appear(void)
{
	b.modules.targets.n_instances = 1;
	clients_check(&b.requests.clients);
}

static struct protocol_answer ask(enum protocol_type type, int32_t pid)
{
	const struct protocol_request m = {.h = {.type = type}, .pid = pid};
	struct protocol_answer answer = {0};

	client_request(&b.requests.clients, c, &m, &answer);
	return answer;
}

FIXTURE(set_up, tear_down)

TEST(without_an_instance_the_page_has_no_state)
{
	ck_assert_uint_eq(page->sequence, 0);
	ck_assert_uint_eq(page->state, PROTOCOL_STATE_NONE);
	ck_assert_uint_eq(page->wants_open, 0);
	ck_assert_str_eq(page->profiler_id, "");
	/* An instance with the same pid and another start time. */
	i.start_ticks++;
	appear();
	ck_assert_uint_eq(page->state, PROTOCOL_STATE_NONE);
	i.start_ticks--;
	i.life = INSTANCE_ENDED;
	b.requests.clients.n_seen = 0;
	clients_check(&b.requests.clients);
	ck_assert_uint_eq(page->state, PROTOCOL_STATE_NONE);
}

TEST(the_page_has_the_state_of_the_instance)
{
	struct run run = {.phase = RUN_PROFILED};

	appear();
	ck_assert_uint_eq(page->state, PROTOCOL_STATE_STOPPED);
	ck_assert_uint_eq(page->lifecycle, PROTOCOL_TRACE);
	ck_assert_uint_eq(page->is_sampled, 1);
	ck_assert_uint_eq(page->thread_id, PROTOCOL_TID);
	ck_assert_uint_eq(page->pid, (uint32_t)getpid());
	ck_assert_uint_eq(page->is_other_ns, 0);
	ck_assert_uint_eq(page->wants_open, 1);
	ck_assert_str_eq(page->profiler_id, NEXT_ID);
	ck_assert_uint_eq(page->sequence % 2, 0);
	i.config.thread_id_format = THREAD_ID_PTHREAD;
	i.run = &run;
	memcpy(run.profile.profiler_id, RUN_ID, sizeof(RUN_ID));
	clients_check(&b.requests.clients);
	ck_assert_uint_eq(page->thread_id, PROTOCOL_PTHREAD);
	ck_assert_str_eq(page->profiler_id, RUN_ID);
	/* A START from now on is for the next target. */
	run.phase = RUN_STOPPING;
	clients_check(&b.requests.clients);
	ck_assert_str_eq(page->profiler_id, NEXT_ID);
	i.root_spans = 1;
	clients_check(&b.requests.clients);
	ck_assert_uint_eq(page->state, PROTOCOL_STATE_PROFILING);
	ck_assert_uint_eq(page->wants_open, 0);
	run.retry_ns = 1;
	clients_check(&b.requests.clients);
	ck_assert_uint_eq(page->state, PROTOCOL_STATE_TRACED_BY_OTHER);
	ship.limit.stops_sampling = true;
	i.ship = &ship;
	clients_check(&b.requests.clients);
	ck_assert_uint_eq(page->state, PROTOCOL_STATE_LIMITED);
	i.obstacle = INSTANCE_LEFT_OUT;
	clients_check(&b.requests.clients);
	ck_assert_uint_eq(page->state, PROTOCOL_STATE_LEFT_OUT);
	i.is_sampled = false;
	clients_check(&b.requests.clients);
	ck_assert_uint_eq(page->state, PROTOCOL_STATE_UNSAMPLED);
	ck_assert_uint_eq(page->is_sampled, 0);
	b.modules.state.phase = PHASE_STOPPING;
	clients_check(&b.requests.clients);
	ck_assert_uint_eq(page->state, PROTOCOL_STATE_NONE);
}

TEST(a_page_is_written_only_after_a_change)
{
	uint32_t sequence;

	appear();
	sequence = page->sequence;
	clients_check(&b.requests.clients);
	ck_assert_uint_eq(page->sequence, sequence);
	/* The client writes to the page. */
	page->sequence = 4711;
	i.is_sampled = false;
	clients_check(&b.requests.clients);
	ck_assert_uint_eq(page->sequence, sequence + 2);
}

TEST(the_beat_is_incremented_once_a_second)
{
	appear();
	clients_check(&b.requests.clients);
	ck_assert_uint_eq(page->beat, 0);
	b.requests.clients.beat_ns = clock_mono_ns() - NS_PER_SEC;
	clients_check(&b.requests.clients);
	clients_check(&b.requests.clients);
	ck_assert_uint_eq(page->beat, 1);
}

TEST(a_root_span_shown_in_the_page_starts_the_profiler)
{
	appear();
	page->spans_open = 1;
	clients_check(&b.requests.clients);
	ck_assert_uint_eq(i.root_spans, 1);
	ck_assert(i.no_span_check_done);
	ck_assert_uint_eq(page->state, PROTOCOL_STATE_PROFILING);
	ck_assert_uint_eq(page->wants_open, 0);
	page->spans_open = 0;
	clients_check(&b.requests.clients);
	ck_assert_uint_eq(i.root_spans, 0);
	/* The profiler runs on until the chunk is finished. */
	ck_assert_uint_eq(page->state, PROTOCOL_STATE_PROFILING);
	lifecycle_chunk_finished(&i);
	clients_check(&b.requests.clients);
	ck_assert_uint_eq(page->state, PROTOCOL_STATE_STOPPED);
	ck_assert_uint_eq(page->wants_open, 1);
}

TEST(a_span_that_has_already_ended_starts_the_profiler)
{
	appear();
	(void)ask(PROTOCOL_SPANS_OPEN, 0);
	ck_assert_uint_eq(i.root_spans, 0);
	ck_assert(lifecycle_wants(&i));
}

TEST(a_process_with_unsampled_spans_is_not_warned_about)
{
	appear();
	clients_check(&b.requests.clients);
	ck_assert(!i.no_span_check_done);
	page->is_traced = 1;
	clients_check(&b.requests.clients);
	ck_assert(i.no_span_check_done);
	ck_assert_uint_eq(i.root_spans, 0);
}

TEST(the_spans_of_a_client_end_with_its_connection)
{
	struct client *other;
	int fd;

	/* A span that is open before the instance is known counts when it is known. */
	page->spans_open = 1;
	clients_check(&b.requests.clients);
	appear();
	ck_assert_uint_eq(i.root_spans, 1);
	/* A second copy of the library in the same process, without a page. */
	OK(client_new(&b.requests.clients, &peer, &other, NULL));
	ck_assert_uint_eq(i.root_spans, 1);
	client_end(other);
	/* The client exists until the end of the turn, but its spans have no effect. */
	clients_check(&b.requests.clients);
	ck_assert_uint_eq(i.root_spans, 1);
	clients_sweep(&b.requests.clients);
	client_end(c);
	ck_assert_uint_eq(i.root_spans, 0);
	OK(client_new(&b.requests.clients, &peer, &c, NULL));
	(void)ask(PROTOCOL_SPANS_OPEN, 0);
	ck_assert_uint_eq(i.root_spans, 1);
	clients_check(&b.requests.clients);
	ck_assert_uint_eq(i.root_spans, 1);
	(void)ask(PROTOCOL_SPANS_CLOSED, 0);
	ck_assert_uint_eq(i.root_spans, 0);
	(void)ask(PROTOCOL_SPANS_OPEN, 0);
	client_end(c);
	ck_assert_uint_eq(i.root_spans, 0);
	OK(client_new(&b.requests.clients, &peer, &c, &fd));
	close_fd(&fd);
}

/* A user records the process before its section matches it: the START is for the section. */
TEST(a_start_waits_while_the_process_is_only_recorded)
{
	i.origin = INSTANCE_RECORDED;
	i.config.lifecycle = LIFECYCLE_MANUAL;
	appear();
	ck_assert_uint_eq(page->state, PROTOCOL_STATE_NONE);
	ck_assert_uint_eq(ask(PROTOCOL_START, 0).result, PROTOCOL_OK);
	ck_assert(!i.is_started);
	i.origin = INSTANCE_OF_SECTION;
	b.requests.clients.n_seen = 0;
	clients_check(&b.requests.clients);
	ck_assert(i.is_started);
	ck_assert_uint_eq(page->state, PROTOCOL_STATE_PROFILING);
}

TEST(a_client_leaves_an_instance_that_has_ended)
{
	appear();
	page->spans_open = 1;
	clients_check(&b.requests.clients);
	i.life = INSTANCE_REMOVED;
	clients_check(&b.requests.clients);
	ck_assert_uint_eq(i.root_spans, 0);
	ck_assert_uint_eq(page->state, PROTOCOL_STATE_NONE);
	/* Another section matches the process now. */
	i.life = INSTANCE_LIVES;
	b.requests.clients.n_seen = 0;
	clients_check(&b.requests.clients);
	ck_assert_uint_eq(i.root_spans, 1);
	clients_forget(&b.requests.clients, &i);
	b.modules.targets.n_instances = b.requests.clients.n_seen = 0;
	memset(&i, 0xff, sizeof(i));
	clients_check(&b.requests.clients);
	ck_assert_uint_eq(page->state, PROTOCOL_STATE_NONE);
}

TEST(start_and_stop_wait_for_the_instance)
{
	i.config.lifecycle = LIFECYCLE_MANUAL;
	/* The last request counts. */
	ck_assert_uint_eq(ask(PROTOCOL_STOP, 0).result, PROTOCOL_OK);
	ck_assert_uint_eq(ask(PROTOCOL_START, 0).result, PROTOCOL_OK);
	ck_assert_uint_eq(page->handled, 0);
	appear();
	ck_assert_uint_eq(page->handled, 2);
	ck_assert(i.is_started);
	ck_assert_uint_eq(page->state, PROTOCOL_STATE_PROFILING);
}

TEST(start_and_stop_are_answered_with_their_result)
{
	struct protocol_answer a;

	i.config.lifecycle = LIFECYCLE_MANUAL;
	appear();
	ck_assert_uint_eq(ask(PROTOCOL_START, 0).result, PROTOCOL_OK);
	ck_assert_uint_eq(page->state, PROTOCOL_STATE_PROFILING);
	a = ask(PROTOCOL_START, 0);
	ck_assert_uint_eq(a.result, PROTOCOL_RUNS_ALREADY);
	ck_assert_str_ne(a.text, "");
	ck_assert_str_eq(a.profiler_id, NEXT_ID);
	ck_assert_int_eq(a.pid, getpid());
	ck_assert_uint_eq(page->handled, 2);
	a = ask(PROTOCOL_STOP, 0);
	ck_assert_uint_eq(a.result, PROTOCOL_OK);
	ck_assert_uint_eq(a.state, PROTOCOL_STATE_STOPPED);
	ck_assert_str_eq(a.profiler_id, "");
	ck_assert_uint_eq(page->state, PROTOCOL_STATE_STOPPED);
	ck_assert_uint_eq(ask(PROTOCOL_STOP, 0).result, PROTOCOL_NOT_RUNNING);
	i.is_sampled = false;
	ck_assert_uint_eq(ask(PROTOCOL_START, 0).result, PROTOCOL_NOT_SAMPLED);
	i.config.lifecycle = LIFECYCLE_TRACE;
	ck_assert_uint_eq(ask(PROTOCOL_START, 0).result, PROTOCOL_TRACE_MODE);
	ck_assert_uint_eq(ask(PROTOCOL_STOP, 0).result, PROTOCOL_TRACE_MODE);
	ck_assert_uint_eq(page->handled, 7);
}

TEST(a_process_that_has_ended_gets_no_client)
{
	struct client *none;
	int fd;

	peer.start_ticks = 0;
	ck_assert_int_eq(client_new(&b.requests.clients, &peer, &none, &fd), -ESRCH);
	peer.pid = 0;
	ck_assert_int_eq(client_new(&b.requests.clients, &peer, &none, &fd), -ESRCH);
}

TEST(a_page_that_the_client_empties_does_no_harm)
{
	int fd;

	client_end(c);
	OK(client_new(&b.requests.clients, &peer, &c, &fd));
	appear();
	ck_assert_int_lt(ftruncate(fd, 0), 0);
	OK(syscall(SYS_fallocate, fd, 3 /* FALLOC_FL_PUNCH_HOLE with FALLOC_FL_KEEP_SIZE */, 0L,
		   (long)sizeof(*page)));
	i.is_sampled = false;
	clients_check(&b.requests.clients);
	ck_assert_uint_eq(ask(PROTOCOL_START, 0).result, PROTOCOL_TRACE_MODE);
	close_fd(&fd);
}

/* The line of groups stands before that of the ids. */
static void join_groups(void)
{
	gid_t groups[1000];

	for (size_t k = 0; k < array_size(groups); k++)
		groups[k] = (gid_t)(1000000000 + k);
	OK(setgroups(array_size(groups), groups));
}

/* The first process of a new pid namespace, whose id there is 1. */
TEST(thread_ids_of_another_namespace_are_translated)
{
	int32_t found;
	size_t looks;
	pid_t pid;

	ck_assert(!namespaced_tid_is_other(getpid()));
	OK(namespaced_tid_find(getpid(), gettid(), &found, &looks));
	ck_assert_int_eq(found, gettid());
	ck_assert_int_eq(namespaced_tid_find(getpid(), 1, &found, &looks), -ESRCH);
	if (geteuid() == 0)
		join_groups();
	pid = (pid_t)syscall(SYS_clone, CLONE_NEWPID | SIGCHLD, NULL, NULL, NULL, 0);
	/* Needs CAP_SYS_ADMIN; skipped if an ordinary user runs the test. */
	if (pid < 0)
		return;
	if (pid == 0)
		for (;;)
			(void)pause();
	ck_assert(namespaced_tid_is_other(pid));
	OK(namespaced_tid_find(pid, 1, &found, &looks));
	ck_assert_int_eq(found, pid);
	ck_assert_int_eq(namespaced_tid_find(pid, pid, &found, &looks), -ESRCH);
	OK(kill(pid, SIGKILL));
	ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
	ck_assert_int_eq(namespaced_tid_find(pid, 1, &found, &looks), -ESRCH);
}

static void *sleep_forever(void *ctx)
{
	for (;;)
		(void)pause();
	return ctx;
}

static size_t count_threads(pid_t pid)
{
	DIR *dir = opendir(procfs_path(pid, "task").text);
	size_t n = 0;

	while (readdir(dir) != NULL)
		n++;
	(void)closedir(dir);
	return n - 2;
}

#define SLEEPERS 63

TEST(a_thread_is_found_by_a_few_looks)
{
	pid_t pid = (pid_t)syscall(SYS_clone, CLONE_NEWPID | SIGCHLD, NULL, NULL, NULL, 0);
	pthread_t thread;
	int32_t found, before = 0;
	size_t looks;

	/* As above. */
	if (pid < 0)
		return;
	if (pid == 0) {
		for (int k = 0; k < SLEEPERS; k++)
			OK(pthread_create(&thread, NULL, sleep_forever, NULL));
		(void)sleep_forever(NULL);
	}
	while (count_threads(pid) < SLEEPERS + 1)
		(void)sched_yield();
	for (int32_t own = 1; own <= SLEEPERS + 1; own++) {
		OK(namespaced_tid_find(pid, own, &found, &looks));
		ck_assert_uint_le(looks, 7);
		ck_assert_int_gt(found, before);
		before = found;
	}
	/* The user pays for a search of all. */
	ck_assert_int_eq(namespaced_tid_find(pid, SLEEPERS + 2, &found, &looks), -ESRCH);
	ck_assert_uint_ge(looks, SLEEPERS + 1);
	OK(kill(pid, SIGKILL));
	ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
}

TEST(threads_of_a_client)
{
	struct protocol_answer answer = ask(PROTOCOL_THREAD, gettid());

	ck_assert_uint_eq(answer.result, PROTOCOL_OK);
	ck_assert_int_eq(answer.pid, gettid());
	ck_assert_uint_eq(ask(PROTOCOL_THREAD, 1).result, PROTOCOL_NO_PROCESS);
}

TEST(a_process_without_root_spans_is_warned_about)
{
	appear();
	i.no_span_since_ns = clock_mono_ns() - LIFECYCLE_NO_SPAN_NS;
	b.requests.clients.beat_ns = 0;
	log_capture_begin();
	clients_check(&b.requests.clients);
	ck_assert_uint_eq(log_capture_end("has reported no root span for 60 s"), 1);
}

/*
 * The client is a process of root that executes setpriv(1), which becomes another user; root's page
 * says that a span is open.
 */
TEST(a_connection_does_not_speak_for_a_program_with_other_credentials)
{
	struct protocol_page *of_other;
	struct client *other;
	int go[2], fd;
	pid_t pid;

	OK(pipe2(go, O_CLOEXEC));
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		char byte;

		close(go[1]);
		(void)!read(go[0], &byte, 1);
		execlp("setpriv", "setpriv", "--reuid=60001", "--clear-groups", "sleep", "1000",
		       NULL);
		_exit(127);
	}
	close(go[0]);
	peer.pid = pid;
	ck_assert(peer_look(&peer));
	i = (struct instance){.pid = pid, .start_ticks = peer.start_ticks, .is_sampled = true};
	i.config.lifecycle = LIFECYCLE_TRACE;
	OK(client_new(&b.requests.clients, &peer, &other, &fd));
	of_other = map(fd);
	appear();
	ck_assert_uint_eq(of_other->state, PROTOCOL_STATE_STOPPED);
	of_other->spans_open = 1;
	clients_check(&b.requests.clients);
	ck_assert_uint_eq(i.root_spans, 1);
	close(go[1]);
	while (process_user(pid) != 60001)
		ck_assert_int_eq(waitpid(pid, NULL, WNOHANG), 0);
	/* Once a second. */
	b.requests.clients.beat_ns = 0;
	clients_check(&b.requests.clients);
	ck_assert_uint_eq(i.root_spans, 0);
	ck_assert_uint_eq(of_other->state, PROTOCOL_STATE_NONE);
	client_end(other);
	OK(kill(pid, SIGKILL));
	ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
	(void)munmap(of_other, sizeof(*of_other));
}
