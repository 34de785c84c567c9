/* Spans, starts and stops, and the connection, tested through sentry_profd.h. */
#include "lib/client/sentry_profd.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/ipc.h"
#include "lib/client/connection.h"
#include "lib/client/state.h"
#include "tests/unit/client/fake_clock.h"
#include "tests/unit/client/fake_daemon.h"
#include "tests/unit/suite.h"

static struct fake_daemon d;

static void set_up(void)
{
	fake_listen(&d);
}

static void tear_down(void)
{
	sentry_profd_disconnect();
	fake_end(&d);
}

/* Connects the library, which receives the daemon's page. */
static void meet(uint32_t lifecycle, bool is_sampled)
{
	OK(sentry_profd_connect(fake_path));
	fake_accept(&d);
	ck_assert_int_eq(sentry_profd_state(), SENTRY_PROFD_NO_DAEMON);
	fake_answer(&d, lifecycle, is_sampled);
	OK(sentry_profd_wait(0));
}

static void span_after(uint64_t ns)
{
	fake_clock_ns += ns;
	(void)sentry_profd_root_span_begin(1);
}

FIXTURE(set_up, tear_down)

TEST(without_a_daemon_nothing_has_an_effect)
{
	char text[SENTRY_PROFD_JSON_SIZE] = "x";
	sentry_profd_span span;

	fake_stop(&d);
	errno = 77;
	ck_assert_int_eq(sentry_profd_connect(fake_path), -ENOENT);
	ck_assert_int_eq(sentry_profd_state(), SENTRY_PROFD_NO_DAEMON);
	ck_assert_int_eq(sentry_profd_start_profiler(), SENTRY_PROFD_LATER);
	ck_assert_int_eq(sentry_profd_stop_profiler(), SENTRY_PROFD_LATER);
	span = sentry_profd_root_span_begin(1);
	ck_assert_uint_ne(span, 0);
	ck_assert_int_eq(sentry_profd_profile_context(text, sizeof(text)), 0);
	ck_assert_str_eq(text, "");
	ck_assert_int_eq(sentry_profd_trace_data(text, sizeof(text)), 0);
	ck_assert_int_eq(sentry_profd_profiler_id(text, sizeof(text)), 0);
	sentry_profd_root_span_end(span);
	sentry_profd_root_span_end(span);
	ck_assert_int_lt(sentry_profd_wait(0), 0);
	ck_assert_int_eq(errno, 77);
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	ck_assert_int_eq(sentry_profd_connect(text), -ENAMETOOLONG);
}

TEST(only_the_first_and_the_last_open_span_change_the_page)
{
	sentry_profd_span a, b;

	meet(PROTOCOL_TRACE, true);
	ck_assert_int_eq(sentry_profd_state(), SENTRY_PROFD_STOPPED);
	fake_receive_nothing(&d);
	ck_assert_uint_eq(d.page->is_traced, 0);
	a = sentry_profd_root_span_begin(1);
	ck_assert_uint_eq(fake_receive(&d).h.type, PROTOCOL_SPANS_OPEN);
	ck_assert_uint_eq(d.page->spans_open, 1);
	ck_assert_uint_eq(d.page->is_traced, 1);
	b = sentry_profd_root_span_begin(1);
	sentry_profd_root_span_end(a);
	ck_assert_uint_eq(d.page->spans_open, 1);
	sentry_profd_root_span_end(b);
	ck_assert_uint_eq(d.page->spans_open, 0);
	fake_receive_nothing(&d);
}

TEST(no_message_is_sent_unless_the_daemon_wants_it)
{
	meet(PROTOCOL_TRACE, true);
	d.page->wants_open = 0;
	sentry_profd_root_span_end(sentry_profd_root_span_begin(1));
	ck_assert_uint_eq(d.page->spans_open, 0);
	(void)sentry_profd_root_span_begin(1);
	ck_assert_uint_eq(d.page->spans_open, 1);
	fake_receive_nothing(&d);
}

TEST(a_span_that_is_not_sampled_sets_is_traced_only)
{
	meet(PROTOCOL_TRACE, true);
	ck_assert_uint_eq(sentry_profd_root_span_begin(0), 0);
	sentry_profd_root_span_end(0);
	ck_assert_uint_eq(d.page->is_traced, 1);
	ck_assert_uint_eq(d.page->spans_open, 0);
	fake_receive_nothing(&d);
}

/* Ends the daemon, which the library notices because the beat does not change. */
static void end_daemon_unnoticed(void)
{
	fake_stop(&d);
	span_after(5 * NS_PER_SEC);
	ck_assert_int_eq(sentry_profd_state(), SENTRY_PROFD_NO_DAEMON);
}

TEST(open_spans_are_announced_again_after_a_reconnection)
{
	meet(PROTOCOL_TRACE, true);
	(void)sentry_profd_root_span_begin(1);
	(void)fake_receive(&d);
	end_daemon_unnoticed();
	fake_listen(&d);
	/* The library does not try to connect in each call. */
	span_after(NS_PER_SEC / 2);
	ck_assert(!fake_has_connection_request(&d));
	span_after(NS_PER_SEC);
	fake_accept(&d);
	fake_answer(&d, PROTOCOL_TRACE, true);
	span_after(NS_PER_SEC);
	ck_assert_int_eq(sentry_profd_state(), SENTRY_PROFD_STOPPED);
	ck_assert_uint_eq(fake_receive(&d).h.type, PROTOCOL_SPANS_OPEN);
	ck_assert_uint_eq(d.page->spans_open, 1);
}

TEST(a_daemon_that_starts_later_is_found_within_30_s)
{
	fake_stop(&d);
	ck_assert_int_eq(sentry_profd_connect(fake_path), -ENOENT);
	/* After many failures the library tries to connect every 30 s. */
	for (int i = 0; i < 10; i++) {
		span_after(31 * NS_PER_SEC);
	}
	fake_listen(&d);
	span_after(29 * NS_PER_SEC);
	(void)sentry_profd_start_profiler();
	ck_assert(!fake_has_connection_request(&d));
	span_after(2 * NS_PER_SEC);
	fake_accept(&d);
}

TEST(the_socket_is_not_read_while_the_beat_changes)
{
	meet(PROTOCOL_TRACE, true);
	d.page->wants_open = 0;
	(void)sentry_profd_root_span_begin(1);
	for (int i = 0; i < 10; i++) {
		d.page->beat++;
		span_after(3 * NS_PER_SEC);
	}
	/* Only a read of the socket would notice that the connection is closed. */
	close_fd(&d.connection);
	d.page->beat++;
	span_after(3 * NS_PER_SEC);
	ck_assert_int_eq(sentry_profd_state(), SENTRY_PROFD_STOPPED);
	span_after(5 * NS_PER_SEC);
	ck_assert_int_eq(sentry_profd_state(), SENTRY_PROFD_NO_DAEMON);
}

TEST(a_full_socket_does_not_block)
{
	meet(PROTOCOL_TRACE, true);
	for (int i = 0; i < 10000; i++)
		sentry_profd_root_span_end(sentry_profd_root_span_begin(1));
	ck_assert_int_eq(sentry_profd_state(), SENTRY_PROFD_STOPPED);
	(void)sentry_profd_root_span_begin(1);
	ck_assert_uint_eq(d.page->spans_open, 1);
}

TEST(a_closed_connection_raises_no_signal)
{
	meet(PROTOCOL_TRACE, true);
	fake_stop(&d);
	(void)signal(SIGPIPE, SIG_DFL);
	sentry_profd_root_span_end(sentry_profd_root_span_begin(1));
	ck_assert_int_eq(sentry_profd_state(), SENTRY_PROFD_NO_DAEMON);
}

TEST(a_page_that_is_not_sealed_against_shrinking_is_refused)
{
	const struct protocol_answer answer = {
		.h = {PROTOCOL_ANSWER, sizeof(answer), 1},
	};
	int fd = memfd_create("page", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	OK(sentry_profd_connect(fake_path));
	fake_accept(&d);
	OK(ftruncate(fd, 4096));
	OK(ipc_send(d.connection, &answer, sizeof(answer), &fd, 1));
	ck_assert_int_eq(sentry_profd_wait(0), -ENOTCONN);
	fake_receive_end(&d);
	close_fd(&fd);
}

/* _i: 0: the size in the header is that of the message; 1: it is not. */
TESTS(an_answer_may_have_further_members, 2)
{
	struct {
		struct protocol_answer known;
		char further[32];
	} answer = {
		.known.h = {PROTOCOL_ANSWER, sizeof(answer), 1},
		.known.version = PROTOCOL_VERSION + 1,
	};
	int fd = memfd_create("page", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (_i == 1)
		answer.known.h.size = sizeof(answer.known);
	OK(sentry_profd_connect(fake_path));
	fake_accept(&d);
	OK(ftruncate(fd, sizeof(struct protocol_page)));
	OK(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK));
	OK(ipc_send(d.connection, &answer, sizeof(answer), &fd, 1));
	ck_assert_int_eq(sentry_profd_wait(0), _i == 0 ? 0 : -ENOTCONN);
	close_fd(&fd);
}

/* A program may forbid itself all descriptors, and poll(2) then fails. */
TEST(a_wait_without_descriptors_ends)
{
	struct rlimit before, none;

	OK(sentry_profd_connect(fake_path));
	fake_accept(&d);
	OK(getrlimit(RLIMIT_NOFILE, &before));
	none = before;
	none.rlim_cur = 0;
	OK(setrlimit(RLIMIT_NOFILE, &none));
	ck_assert_int_eq(sentry_profd_wait(0), -EINVAL);
	/* LeakSanitizer opens files at the end. */
	OK(setrlimit(RLIMIT_NOFILE, &before));
}

/* Finds the library's socket: a SOCK_SEQPACKET socket that the test did not make. */
static int find_socket(void)
{
	for (int fd = 3; fd < 256; fd++) {
		socklen_t size = sizeof(int);
		int type;

		if (fd != d.listener && fd != d.connection &&
		    getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 &&
		    type == SOCK_SEQPACKET)
			return fd;
	}
	return -1;
}

/*
 * As a program that becomes a daemon: it closes all descriptors, and opens others. Connects, and
 * replaces the library's socket by pair[0], whose number it returns.
 */
static int reuse_socket(int pair[2])
{
	int fd;

	meet(PROTOCOL_TRACE, true);
	fd = find_socket();
	ck_assert_int_ge(fd, 3);
	OK(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair));
	ck_assert_int_eq(dup2(pair[0], fd), fd);
	return fd;
}

TEST(a_descriptor_that_the_program_has_reused_is_not_touched)
{
	int pair[2], fd = reuse_socket(pair);
	char byte;

	sentry_profd_root_span_end(sentry_profd_root_span_begin(1));
	ck_assert_int_eq(sentry_profd_state(), SENTRY_PROFD_NO_DAEMON);
	sentry_profd_disconnect();
	ck_assert_int_ge(fcntl(fd, F_GETFD), 0);
	ck_assert_int_lt(recv(pair[1], &byte, 1, MSG_DONTWAIT), 0);
	ck_assert_int_eq(errno, EAGAIN);
	close_fd(&fd);
	close_fd(&pair[0]);
	close_fd(&pair[1]);
}

static void check_exit_status(pid_t pid)
{
	int status;

	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFEXITED(status));
	ck_assert_int_eq(WEXITSTATUS(status), 0);
}

TEST(a_child_of_fork_keeps_a_descriptor_that_the_program_has_reused)
{
	int pair[2], fd = reuse_socket(pair);
	pid_t pid = fork();

	if (pid == 0)
		_exit(fcntl(fd, F_GETFD) >= 0 ? 0 : 1);
	check_exit_status(pid);
	close_fd(&fd);
	close_fd(&pair[0]);
	close_fd(&pair[1]);
}

/* _i: 0: fork(3) of libc; 1: the bare system call, at which handlers of libc do not run. */
TESTS(a_child_of_fork_has_its_own_state_and_connection, 2)
{
	struct fake_daemon parent;
	sentry_profd_span span;
	pid_t pid;

	meet(PROTOCOL_TRACE, true);
	span = sentry_profd_root_span_begin(1);
	(void)fake_receive(&d);
	parent = d;
	pid = _i == 0 ? fork() : (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
	if (pid == 0) {
		sentry_profd_span own;

		/* This would be the parent's state. */
		if (sentry_profd_state() == SENTRY_PROFD_STOPPED)
			_exit(1);
		own = sentry_profd_root_span_begin(1);
		sentry_profd_root_span_end(span);
		if (own == 0 || own == span || sentry_profd_wait(60000) != 0)
			_exit(2);
		_exit(sentry_profd_state() == SENTRY_PROFD_UNSAMPLED ? 0 : 3);
	}
	d.connection = d.page_fd = -1;
	fake_accept(&d);
	fake_answer(&d, PROTOCOL_TRACE, false);
	check_exit_status(pid);
	fake_receive_end(&d);
	ck_assert_uint_eq(d.page->spans_open, 1);
	ck_assert_uint_eq(parent.page->spans_open, 1);
	ck_assert_int_eq(sentry_profd_state(), SENTRY_PROFD_STOPPED);
	sentry_profd_root_span_end(span);
	ck_assert_uint_eq(parent.page->spans_open, 0);
	close_fd(&parent.connection);
	close_fd(&parent.page_fd);
}

/* _i: 1: in addition, a root span begins before the daemon has answered. */
TESTS(a_child_of_fork_connects_in_its_first_call, 2)
{
	struct fake_daemon parent;
	int answered[2];
	char byte;
	pid_t pid;

	meet(PROTOCOL_TRACE, true);
	OK(pipe(answered));
	parent = d;
	pid = fork();
	if (pid == 0) {
		char id[SENTRY_PROFD_PROFILER_ID_SIZE];

		if (_i == 1)
			(void)sentry_profd_root_span_begin(1);
		else if (sentry_profd_profiler_id(id, sizeof(id)) != 0)
			_exit(1);
		(void)!read(answered[0], &byte, 1);
		fake_clock_ns += NS_PER_SEC;
		if (sentry_profd_state() != SENTRY_PROFD_STOPPED)
			_exit(2);
		_exit((sentry_profd_profiler_id(id, sizeof(id)) > 0) == (_i == 1) ? 0 : 3);
	}
	d.connection = d.page_fd = -1;
	fake_accept(&d);
	fake_answer(&d, PROTOCOL_TRACE, true);
	ck_assert_int_eq(write(answered[1], "", 1), 1);
	check_exit_status(pid);
	close_fd(&answered[0]);
	close_fd(&answered[1]);
	close_fd(&parent.connection);
	close_fd(&parent.page_fd);
}

TEST(reading_the_state_also_connects)
{
	fake_stop(&d);
	ck_assert_int_eq(sentry_profd_connect(fake_path), -ENOENT);
	fake_listen(&d);
	ck_assert_int_eq(sentry_profd_state(), SENTRY_PROFD_NO_DAEMON);
	ck_assert(!fake_has_connection_request(&d));
	fake_clock_ns += NS_PER_SEC;
	ck_assert_int_eq(sentry_profd_state(), SENTRY_PROFD_NO_DAEMON);
	fake_accept(&d);
	fake_answer(&d, PROTOCOL_MANUAL, true);
	fake_clock_ns += NS_PER_SEC;
	ck_assert_int_eq(sentry_profd_state(), SENTRY_PROFD_STOPPED);
}

TEST(a_child_of_fork_closes_the_connection_of_its_parent)
{
	int pair[2];
	pid_t pid;

	OK(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair));
	pid = fork();
	if (pid == 0) {
		close_fd(&pair[1]);
		if (sentry_profd_connect(fake_path) < 0)
			_exit(1);
		/* The grandchild lives until the test ends, which closes pair[1]. */
		if (fork() == 0) {
			char byte;

			(void)!read(pair[0], &byte, 1);
			_exit(0);
		}
		_exit(0);
	}
	close_fd(&pair[0]);
	check_exit_status(pid);
	fake_accept(&d);
	fake_receive_end(&d);
	close_fd(&pair[1]);
}

/* A span that stays open would keep the profiler running. */
TEST(a_disconnection_is_noticed_although_a_child_has_the_socket_open)
{
	int pair[2];
	pid_t pid;

	meet(PROTOCOL_TRACE, true);
	OK(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair));
	pid = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
	if (pid == 0) {
		char byte;

		close_fd(&pair[1]);
		(void)!read(pair[0], &byte, 1);
		_exit(0);
	}
	close_fd(&pair[0]);
	sentry_profd_disconnect();
	fake_receive_end(&d);
	close_fd(&pair[1]);
	check_exit_status(pid);
}

TEST(start_and_stop_return_the_result_that_they_will_have)
{
	meet(PROTOCOL_MANUAL, true);
	ck_assert_int_eq(sentry_profd_stop_profiler(), SENTRY_PROFD_NOT_RUNNING);
	ck_assert_uint_eq(fake_receive(&d).h.type, PROTOCOL_STOP);
	d.page->handled = 1;
	ck_assert_int_eq(sentry_profd_start_profiler(), SENTRY_PROFD_OK);
	ck_assert_uint_eq(fake_receive(&d).h.type, PROTOCOL_START);
	/* The daemon has not carried out the start yet. */
	ck_assert_int_eq(sentry_profd_start_profiler(), SENTRY_PROFD_RUNS_ALREADY);
	d.page->handled = 3;
	d.page->state = PROTOCOL_STATE_PROFILING;
	ck_assert_int_eq(sentry_profd_start_profiler(), SENTRY_PROFD_RUNS_ALREADY);
	ck_assert_int_eq(sentry_profd_stop_profiler(), SENTRY_PROFD_OK);
	d.page->lifecycle = PROTOCOL_TRACE;
	ck_assert_int_eq(sentry_profd_start_profiler(), SENTRY_PROFD_TRACE_MODE);
	ck_assert_int_eq(sentry_profd_stop_profiler(), SENTRY_PROFD_TRACE_MODE);
	d.page->lifecycle = PROTOCOL_MANUAL;
	d.page->is_sampled = 0;
	d.page->state = PROTOCOL_STATE_UNSAMPLED;
	ck_assert_int_eq(sentry_profd_start_profiler(), SENTRY_PROFD_NOT_SAMPLED);
	ck_assert_int_eq(sentry_profd_state(), SENTRY_PROFD_UNSAMPLED);
}

TEST(the_last_command_is_sent_again_on_each_new_connection)
{
	fake_stop(&d);
	ck_assert_int_eq(sentry_profd_connect(fake_path), -ENOENT);
	ck_assert_int_eq(sentry_profd_stop_profiler(), SENTRY_PROFD_LATER);
	ck_assert_int_eq(sentry_profd_start_profiler(), SENTRY_PROFD_LATER);
	fake_listen(&d);
	meet(PROTOCOL_MANUAL, true);
	ck_assert_uint_eq(fake_receive(&d).h.type, PROTOCOL_START);
	fake_receive_nothing(&d);
	end_daemon_unnoticed();
	fake_listen(&d);
	meet(PROTOCOL_MANUAL, true);
	ck_assert_uint_eq(fake_receive(&d).h.type, PROTOCOL_START);
}

TEST(a_command_that_does_not_fit_into_the_socket_is_sent_later)
{
	struct protocol_request last = {0};

	meet(PROTOCOL_MANUAL, true);
	for (int i = 0; i < 10000; i++)
		(void)sentry_profd_start_profiler();
	(void)sentry_profd_stop_profiler();
	for (int i = 0; i < 10000 && last.h.type != PROTOCOL_STOP; i++) {
		last = fake_receive(&d);
		fake_clock_ns += 10 * NS_PER_MS;
		(void)sentry_profd_root_span_begin(0);
	}
	ck_assert_uint_eq(last.h.type, PROTOCOL_STOP);
	fake_receive_nothing(&d);
}

/* As a signal handler that has interrupted the thread which works on the connection. */
TEST(a_wait_ends_while_the_answer_cannot_be_read)
{
	struct state *s = state_get();

	OK(sentry_profd_connect(fake_path));
	fake_accept(&d);
	fake_answer(&d, PROTOCOL_TRACE, true);
	ck_assert(state_enter(s));
	ck_assert_int_eq(sentry_profd_wait(0), -ETIMEDOUT);
	state_leave(s, connection_work);
	OK(sentry_profd_wait(0));
}

static void *connect_cancelled(void *ctx)
{
	(void)ctx;
	OK(pthread_cancel(pthread_self()));
	(void)sentry_profd_connect(fake_path);
	pthread_testcancel();
	return NULL;
}

TEST(a_thread_that_is_cancelled_while_it_connects_does_not_keep_others_out)
{
	pthread_t thread;
	void *result;

	OK(pthread_create(&thread, NULL, connect_cancelled, NULL));
	OK(pthread_join(thread, &result));
	ck_assert_ptr_eq(result, PTHREAD_CANCELED);
	meet(PROTOCOL_MANUAL, true);
	(void)sentry_profd_start_profiler();
	ck_assert_uint_eq(fake_receive(&d).h.type, PROTOCOL_START);
}

#define ROUNDS 20000

static void *open_and_close(void *ctx)
{
	(void)ctx;
	for (int i = 0; i < ROUNDS; i++)
		sentry_profd_root_span_end(sentry_profd_root_span_begin(i % 2));
	return NULL;
}

TEST(spans_of_several_threads_are_counted_correctly)
{
	pthread_t threads[8];

	meet(PROTOCOL_TRACE, true);
	d.page->wants_open = 0;
	for (size_t i = 0; i < array_size(threads); i++)
		OK(pthread_create(&threads[i], NULL, open_and_close, NULL));
	for (size_t i = 0; i < array_size(threads); i++)
		OK(pthread_join(threads[i], NULL));
	ck_assert_uint_eq(d.page->spans_open, 0);
	(void)sentry_profd_root_span_begin(1);
	ck_assert_uint_eq(d.page->spans_open, 1);
}
