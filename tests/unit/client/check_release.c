/* sentry_profd_release(): its request, its results, and that other functions do not wait for it. */
#include "lib/client/sentry_profd.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/ipc.h"
#include "lib/client/state.h"
#include "tests/unit/client/fake_clock.h"
#include "tests/unit/client/fake_daemon.h"
#include "tests/unit/suite.h"

static struct fake_daemon d;
/* The library's connection, while d.connection is that of the release. */
static int connection = -1;
static int result;

static void set_up(void)
{
	fake_connect(&d);
	connection = d.connection;
	d.connection = -1;
}

static void tear_down(void)
{
	sentry_profd_disconnect();
	close_fd(&connection);
	fake_end(&d);
}

/* errno after a release, which was 77 before. */
static int errno_after;

/* Calls nothing else, since a cancelled thread may end in any other call. */
static void *release(void *ctx)
{
	const unsigned int *seconds = ctx;

	errno = 77;
	result = sentry_profd_release(*seconds);
	errno_after = errno;
	return NULL;
}

static pthread_t start(unsigned int *seconds)
{
	pthread_t thread;

	OK(pthread_create(&thread, NULL, release, seconds));
	return thread;
}

/* Accepts the connection of the release. It wants no page, unlike that of fake_accept(). */
static struct protocol_request accept_release(void)
{
	struct protocol_hello hello;
	struct ipc_message m;

	d.connection = accept4(d.listener, NULL, NULL, SOCK_CLOEXEC);
	ck_assert_int_ge(d.connection, 0);
	ck_assert_int_eq(ipc_recv(d.connection, &m), 1);
	ck_assert_uint_eq(m.size, sizeof(hello));
	memcpy(&hello, m.bytes, sizeof(hello));
	ck_assert_uint_eq(hello.h.type, PROTOCOL_HELLO);
	ck_assert_uint_eq(hello.h.tag, 0);
	ck_assert_uint_eq(hello.magic, PROTOCOL_MAGIC);
	ck_assert_uint_eq(hello.flags, 0);
	return fake_receive(&d);
}

static void answer(const struct protocol_request *to, enum protocol_result with, uint32_t tracer)
{
	const struct protocol_answer m = {
		.h = {PROTOCOL_ANSWER, sizeof(m), to->h.tag},
		.result = with,
		.version = PROTOCOL_VERSION,
		.count = tracer,
	};

	OK(ipc_send(d.connection, &m, sizeof(m), NULL, 0));
}

FIXTURE(set_up, tear_down)

static const struct {
	enum protocol_result with;
	uint32_t tracer;
	int result;
} answers[] = {
	{PROTOCOL_OK, 0, 0},
	{PROTOCOL_OK, 7, -EBUSY},
	{PROTOCOL_LEFT_OUT, 0, 0},
	{PROTOCOL_TIMED_OUT, 0, -ETIMEDOUT},
	{PROTOCOL_FAILED, 0, -ECANCELED},
	{PROTOCOL_BAD_VERSION, 0, -EOPNOTSUPP},
	{PROTOCOL_NO_PROCESS, 0, -ESRCH},
	{PROTOCOL_DENIED, 0, -EPROTO},
	{PROTOCOL_TIMED_OUT + 1, 0, -EPROTO},
};

TESTS(each_answer_has_a_result, array_size(answers))
{
	struct protocol_request m;
	unsigned int seconds = 5;
	pthread_t thread = start(&seconds);

	m = accept_release();
	ck_assert_uint_eq(m.h.type, PROTOCOL_RELEASE);
	ck_assert_uint_ne(m.h.tag, 0);
	ck_assert_int_eq(m.pid, 0);
	ck_assert_uint_eq(m.seconds, 5);
	answer(&m, answers[_i].with, answers[_i].tracer);
	OK(pthread_join(thread, NULL));
	ck_assert_int_eq(result, answers[_i].result);
	ck_assert_int_eq(errno_after, 77);
	fake_receive_end(&d);
}

/* On the connection of the library, which goes on. */
TEST(other_functions_do_not_wait_for_a_release)
{
	struct protocol_request m;
	unsigned int seconds = 0;
	pthread_t thread = start(&seconds);
	struct fake_daemon of_library = d;

	m = accept_release();
	ck_assert_uint_eq(m.seconds, 0);
	of_library.connection = connection;
	(void)sentry_profd_root_span_begin(1);
	ck_assert_uint_eq(fake_receive(&of_library).h.type, PROTOCOL_SPANS_OPEN);
	ck_assert_int_eq(sentry_profd_state(), SENTRY_PROFD_STOPPED);
	(void)sentry_profd_start_profiler();
	ck_assert_uint_eq(fake_receive(&of_library).h.type, PROTOCOL_START);
	answer(&m, PROTOCOL_OK, 0);
	OK(pthread_join(thread, NULL));
	ck_assert_int_eq(result, 0);
}

static void on_signal(int number)
{
	(void)number;
}

TEST(a_signal_does_not_end_the_wait)
{
	const struct sigaction handle = {.sa_handler = on_signal};
	struct protocol_request m;
	unsigned int seconds = 0;
	pthread_t thread;

	OK(sigaction(SIGUSR1, &handle, NULL));
	thread = start(&seconds);
	m = accept_release();
	for (int n = 0; n < 100; n++)
		OK(pthread_kill(thread, SIGUSR1));
	answer(&m, PROTOCOL_OK, 0);
	OK(pthread_join(thread, NULL));
	ck_assert_int_eq(result, 0);
}

/* _i: 0: the thread waits already when it is cancelled. */
TESTS(a_release_is_no_cancellation_point, 2)
{
	struct protocol_request m;
	unsigned int seconds = 0;
	pthread_t thread = start(&seconds);

	if (_i == 1)
		OK(pthread_cancel(thread));
	m = accept_release();
	if (_i == 0)
		OK(pthread_cancel(thread));
	answer(&m, PROTOCOL_OK, 0);
	OK(pthread_join(thread, NULL));
	fake_receive_end(&d);
}

TEST(a_daemon_that_ends_or_refuses_the_connection_is_an_error)
{
	unsigned int seconds = 0;
	pthread_t thread = start(&seconds);

	(void)accept_release();
	close_fd(&d.connection);
	OK(pthread_join(thread, NULL));
	ck_assert_int_eq(result, -ECONNRESET);
	fake_stop(&d);
	ck_assert_int_eq(sentry_profd_release(0), -ENOENT);
	sentry_profd_disconnect();
	ck_assert_int_eq(sentry_profd_release(0), -ENOTCONN);
	fake_listen(&d);
}

static volatile bool has_returned;

static void *release_and_say_so(void *ctx)
{
	(void)release(ctx);
	has_returned = true;
	return NULL;
}

/* The signals end the wait of poll(2), after which the library reads the clock. */
TEST(a_daemon_that_does_not_answer_is_waited_for_30_s)
{
	const struct sigaction handle = {.sa_handler = on_signal};
	unsigned int seconds = 0;
	pthread_t thread;

	OK(sigaction(SIGUSR1, &handle, NULL));
	OK(pthread_create(&thread, NULL, release_and_say_so, &seconds));
	(void)accept_release();
	while (!has_returned) {
		__atomic_add_fetch(&fake_clock_ns, NS_PER_SEC, __ATOMIC_SEQ_CST);
		(void)pthread_kill(thread, SIGUSR1);
		(void)poll(NULL, 0, 1);
	}
	OK(pthread_join(thread, NULL));
	ck_assert_int_eq(result, -ETIMEDOUT);
}
