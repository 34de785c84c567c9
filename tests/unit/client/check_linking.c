/* The ids and names that link a transaction to its profile, tested through sentry_profd.h. */
#include "lib/client/sentry_profd.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "lib/base/ipc.h"
#include "lib/client/connection.h"
#include "lib/client/state.h"
#include "tests/unit/client/fake_daemon.h"
#include "tests/unit/suite.h"

static struct fake_daemon d;
static char text[SENTRY_PROFD_JSON_SIZE];

static void set_up(void)
{
	fake_connect(&d);
}

static void tear_down(void)
{
	sentry_profd_disconnect();
	fake_end(&d);
}

/* Returns a member of the JSON object in text; NULL if it has no such member. */
static const char *member(const char *name)
{
	static char value[SENTRY_PROFD_JSON_SIZE];
	json_t *object = json_loads(text, 0, NULL);
	const char *found;

	ck_assert_ptr_nonnull(object);
	found = json_string_value(json_object_get(object, name));
	(void)snprintf(value, sizeof(value), "%s", found == NULL ? "" : found);
	json_decref(object);
	return found == NULL ? NULL : value;
}

static void check_span_data(void)
{
	int n = sentry_profd_span_data(text, sizeof(text));

	ck_assert_int_gt(n, 0);
	ck_assert_uint_eq(strlen(text), (size_t)n);
}

FIXTURE(set_up, tear_down)

TEST(the_profiler_id_is_known_as_soon_as_a_span_is_open)
{
	sentry_profd_span span;

	ck_assert_int_eq(sentry_profd_profiler_id(text, sizeof(text)), 0);
	ck_assert_int_eq(sentry_profd_profile_context(text, sizeof(text)), 0);
	span = sentry_profd_root_span_begin(1);
	ck_assert_int_eq(sentry_profd_profiler_id(text, sizeof(text)), 32);
	ck_assert_str_eq(text, FAKE_ID);
	ck_assert_int_gt(sentry_profd_profile_context(text, sizeof(text)), 0);
	ck_assert_str_eq(text, "{\"profiler_id\":\"" FAKE_ID "\"}");
	check_span_data();
	ck_assert_str_eq(member("profiler_id"), FAKE_ID);
	sentry_profd_root_span_end(span);
	ck_assert_int_eq(sentry_profd_profiler_id(text, sizeof(text)), 0);
	/* The profiler runs until the end of the chunk. */
	d.page->state = PROTOCOL_STATE_PROFILING;
	ck_assert_int_eq(sentry_profd_profiler_id(text, sizeof(text)), 32);
}

TEST(a_process_that_is_not_profiled_has_no_profiler_id)
{
	static const uint32_t states[] = {
		PROTOCOL_STATE_NONE,	 PROTOCOL_STATE_UNSAMPLED,
		PROTOCOL_STATE_LIMITED,	 PROTOCOL_STATE_TRACED_BY_OTHER,
		PROTOCOL_STATE_LEFT_OUT, PROTOCOL_STATE_DETACHING,
		PROTOCOL_STATE_WAITING,
	};

	(void)sentry_profd_root_span_begin(1);
	for (size_t i = 0; i < array_size(states); i++) {
		d.page->state = states[i];
		ck_assert_int_eq(sentry_profd_profiler_id(text, sizeof(text)), 0);
		check_span_data();
		ck_assert_ptr_null(member("profiler_id"));
	}
	d.page->state = PROTOCOL_STATE_STOPPED;
	d.page->is_sampled = 0;
	ck_assert_int_eq(sentry_profd_profiler_id(text, sizeof(text)), 0);
	/* An odd sequence: the daemon is writing the page, and does not finish. */
	d.page->is_sampled = 1;
	d.page->sequence = 1;
	ck_assert_int_eq(sentry_profd_profiler_id(text, sizeof(text)), 0);
	ck_assert_int_eq(sentry_profd_trace_data(text, sizeof(text)), 0);
	d.page->sequence = 2;
	ck_assert_int_eq(sentry_profd_profiler_id(text, sizeof(text)), 32);
}

TEST(the_profiler_id_is_known_as_soon_as_a_start_is_requested)
{
	d.page->lifecycle = PROTOCOL_MANUAL;
	(void)sentry_profd_root_span_begin(1);
	ck_assert_int_eq(sentry_profd_profiler_id(text, sizeof(text)), 0);
	(void)sentry_profd_start_profiler();
	ck_assert_int_eq(sentry_profd_profiler_id(text, sizeof(text)), 32);
	d.page->handled = 1;
	d.page->state = PROTOCOL_STATE_PROFILING;
	ck_assert_int_eq(sentry_profd_profiler_id(text, sizeof(text)), 32);
	(void)sentry_profd_stop_profiler();
	ck_assert_int_eq(sentry_profd_profiler_id(text, sizeof(text)), 0);
}

TEST(a_thread_id_has_the_configured_format)
{
	char number[32];

	ck_assert_int_gt(sentry_profd_thread_id(text, sizeof(text)), 0);
	(void)snprintf(number, sizeof(number), "%d", gettid());
	ck_assert_str_eq(text, number);
	d.page->thread_id = PROTOCOL_PTHREAD;
	ck_assert_int_gt(sentry_profd_thread_id(text, sizeof(text)), 0);
	(void)snprintf(number, sizeof(number), "%" PRIuPTR, (uintptr_t)pthread_self());
	ck_assert_str_eq(text, number);
}

static void answer_thread(uint32_t tag, int32_t pid)
{
	const struct protocol_answer answer = {
		.h = {PROTOCOL_ANSWER, sizeof(answer), tag},
		.pid = pid,
	};

	OK(ipc_send(d.connection, &answer, sizeof(answer), NULL, 0));
}

static void *begin_span(void *ctx)
{
	(void)ctx;
	(void)sentry_profd_root_span_begin(1);
	return NULL;
}

static void *request_thread_id(void *ctx)
{
	struct protocol_request m;

	(void)ctx;
	ck_assert_int_eq(sentry_profd_thread_id(text, sizeof(text)), 0);
	ck_assert_int_eq(sentry_profd_trace_data(text, sizeof(text)), 0);
	m = fake_receive(&d);
	ck_assert_uint_eq(m.h.type, PROTOCOL_THREAD);
	ck_assert_int_eq(m.pid, gettid());
	/* The request is sent once. */
	ck_assert_int_eq(sentry_profd_thread_id(text, sizeof(text)), 0);
	fake_receive_nothing(&d);
	answer_thread(m.h.tag, 123456);
	ck_assert_int_gt(sentry_profd_thread_id(text, sizeof(text)), 0);
	ck_assert_str_eq(text, "123456");
	/* Another thread takes the slot: the id stays known. */
	store(state_thread_slot(state_get(), (uint32_t)gettid()), 0);
	ck_assert_int_gt(sentry_profd_thread_id(text, sizeof(text)), 0);
	ck_assert_str_eq(text, "123456");
	fake_receive_nothing(&d);
	/* A new daemon may be in another pid namespace. */
	fake_stop(&d);
	sentry_profd_disconnect();
	fake_connect(&d);
	d.page->is_other_ns = 1;
	d.page->wants_open = 0;
	ck_assert_int_eq(sentry_profd_thread_id(text, sizeof(text)), 0);
	ck_assert_uint_eq(fake_receive(&d).h.type, PROTOCOL_THREAD);
	return NULL;
}

TEST(thread_ids_of_another_pid_namespace_are_requested_from_the_daemon)
{
	struct protocol_request m;
	pthread_t thread;

	d.page->is_other_ns = 1;
	d.page->pid = 4711;
	d.page->wants_open = 0;
	/* The id of the main thread is the pid, which the page has. */
	ck_assert_int_gt(sentry_profd_thread_id(text, sizeof(text)), 0);
	ck_assert_str_eq(text, "4711");
	fake_receive_nothing(&d);
	OK(pthread_create(&thread, NULL, request_thread_id, NULL));
	OK(pthread_join(thread, NULL));
	/* A new thread may have the id of an earlier thread, so its id is requested again. */
	OK(pthread_create(&thread, NULL, begin_span, NULL));
	OK(pthread_join(thread, NULL));
	m = fake_receive(&d);
	ck_assert_uint_eq(m.h.type, PROTOCOL_THREAD);
	ck_assert_int_ne(m.pid, gettid());
}

static void *request_cancelled(void *ctx)
{
	/* Not on the stack: AddressSanitizer does not notice that a cancelled thread leaves it. */
	static char id[SENTRY_PROFD_THREAD_ID_SIZE];

	(void)ctx;
	/* Without OK(), which may write to a file: the thread would end there. */
	(void)pthread_cancel(pthread_self());
	(void)sentry_profd_thread_id(id, sizeof(id));
	pthread_testcancel();
	return NULL;
}

TEST(a_thread_that_is_cancelled_while_it_asks_for_its_id_does_not_keep_others_out)
{
	pthread_t thread;
	void *result;

	d.page->is_other_ns = 1;
	OK(pthread_create(&thread, NULL, request_cancelled, NULL));
	OK(pthread_join(thread, &result));
	ck_assert_ptr_eq(result, PTHREAD_CANCELED);
	ck_assert_uint_eq(fake_receive(&d).h.type, PROTOCOL_THREAD);
	(void)sentry_profd_root_span_begin(1);
	ck_assert_uint_eq(fake_receive(&d).h.type, PROTOCOL_SPANS_OPEN);
}

/* The thread has the id of an ended thread, and its first request cannot be sent. */
static void *request_while_busy(void *ctx)
{
	struct state *s = state_get();
	const uint32_t tid = (uint32_t)gettid();
	char id[SENTRY_PROFD_THREAD_ID_SIZE];

	(void)ctx;
	store(state_thread_slot(s, tid), (uint64_t)tid << 32 | 999);
	ck_assert(state_enter(s));
	ck_assert_int_eq(sentry_profd_thread_id(id, sizeof(id)), 0);
	state_leave(s, connection_work);
	ck_assert_int_eq(sentry_profd_thread_id(id, sizeof(id)), 0);
	return NULL;
}

TEST(the_id_of_an_ended_thread_is_not_used_if_the_request_could_not_be_sent)
{
	pthread_t thread;

	d.page->is_other_ns = 1;
	OK(pthread_create(&thread, NULL, request_while_busy, NULL));
	OK(pthread_join(thread, NULL));
	ck_assert_uint_eq(fake_receive(&d).h.type, PROTOCOL_THREAD);
}

static void check_name(const char *comm, const char *expected)
{
	OK(prctl(PR_SET_NAME, comm, 0, 0, 0));
	ck_assert_int_eq(sentry_profd_thread_name(text, sizeof(text)), (int)strlen(expected));
	ck_assert_str_eq(text, expected);
	ck_assert_int_gt(sentry_profd_trace_data(text, sizeof(text)), 0);
	if (expected[0] == '\0')
		ck_assert_ptr_null(member("thread.name"));
	else
		ck_assert_str_eq(member("thread.name"), expected);
	ck_assert_ptr_null(member("profiler_id"));
	check_span_data();
}

TEST(thread_names_are_those_of_the_profile)
{
#define BAD "\xef\xbf\xbd"
	check_name("worker", "worker");
	check_name("a \"b\" \\c\\", "a \"b\" \\c\\");
	check_name("\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"", "\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"");
	check_name("\t\n\x7f\xc2\x85.", BAD BAD BAD BAD ".");
	check_name("\xff\xc0\x80\xed\xa0\x80", BAD BAD BAD BAD BAD BAD);
	check_name("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
		   BAD BAD BAD BAD BAD BAD BAD BAD BAD BAD BAD BAD BAD BAD BAD);
	check_name("\xc3\xa4\xe2\x82\xac\xf0\x9f\x94\xa5", "\xc3\xa4\xe2\x82\xac\xf0\x9f\x94\xa5");
	check_name("\xe0\x9f\x80\xf4\x90\x80\x80\xf0\x8f\x80",
		   BAD BAD BAD BAD BAD BAD BAD BAD BAD BAD);
	check_name("", "");
	/* The name of the executable is not a name that the main thread has set. */
	check_name("check_linking", "main");
	check_name("check_linkin", "check_linkin");
}

TEST(a_buffer_that_is_too_small_gets_an_empty_text)
{
	int (*const all[])(char *, size_t) = {
		sentry_profd_profiler_id,     sentry_profd_thread_id,  sentry_profd_thread_name,
		sentry_profd_profile_context, sentry_profd_trace_data, sentry_profd_span_data,
	};

	(void)sentry_profd_root_span_begin(1);
	(void)prctl(PR_SET_NAME, "\"\\\xff", 0, 0, 0);
	for (size_t i = 0; i < array_size(all); i++) {
		int n = all[i](text, sizeof(text));

		ck_assert_int_gt(n, 0);
		for (size_t size = 0; size <= (size_t)n; size++) {
			memset(text, 'x', sizeof(text));
			ck_assert_int_eq(all[i](text, size), -ENOBUFS);
			ck_assert(size == 0 || text[0] == '\0');
			ck_assert_int_eq(text[size], 'x');
		}
		ck_assert_int_eq(all[i](text, (size_t)n + 1), n);
	}
}
