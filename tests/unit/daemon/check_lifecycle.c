/* Each line of the specification's "Profile Lifecycle Modes" is a test. */
#include "daemon/lifecycle.h"

#include <string.h>

#include "daemon/instance.h"
#include "tests/unit/suite.h"

#define CHUNK_NS (60 * NS_PER_SEC)

static struct instance i;

static void set(enum lifecycle mode, bool is_sampled)
{
	memset(&i, 0, sizeof(i));
	i.config.lifecycle = mode;
	i.is_sampled = is_sampled;
}

/* The calls: none changes what is wanted, and each says why. */
static void check_no_op(enum lifecycle_result result,
			enum lifecycle_result expected, bool wanted)
{
	ck_assert_int_eq(result, expected);
	ck_assert_str_ne(lifecycle_result_text(result), "");
	ck_assert_int_eq(lifecycle_wants(&i), wanted);
}

/* "The profiler is controlled via start_profiler() and stop_profiler()." */
START_TEST(manual_start_and_stop)
{
	set(LIFECYCLE_MANUAL, true);
	ck_assert(!lifecycle_wants(&i));
	ck_assert_int_eq(lifecycle_start(&i), LIFECYCLE_OK);
	ck_assert(lifecycle_wants(&i));
	ck_assert_int_eq(lifecycle_stop(&i), LIFECYCLE_OK);
	ck_assert(!lifecycle_wants(&i));
	/* "The profiler can be started again by calling startProfiler()." */
	ck_assert_int_eq(lifecycle_start(&i), LIFECYCLE_OK);
	ck_assert(lifecycle_wants(&i));
	ck_assert_str_eq(lifecycle_result_text(LIFECYCLE_OK), "");
}
END_TEST

/* "... respects profile_session_sample_rate (independent of spans)." */
START_TEST(manual_has_nothing_to_do_with_spans)
{
	set(LIFECYCLE_MANUAL, true);
	check_no_op(lifecycle_span(&i, true), LIFECYCLE_MANUAL_SPAN, false);
	check_no_op(lifecycle_span(&i, false), LIFECYCLE_MANUAL_SPAN, false);
	ck_assert_int_eq(lifecycle_start(&i), LIFECYCLE_OK);
	check_no_op(lifecycle_span(&i, true), LIFECYCLE_MANUAL_SPAN, true);
	check_no_op(lifecycle_span(&i, false), LIFECYCLE_MANUAL_SPAN, true);
}
END_TEST

/* "This is a no-op if ... the profiler is already running." */
START_TEST(start_of_what_runs)
{
	set(LIFECYCLE_MANUAL, true);
	ck_assert_int_eq(lifecycle_start(&i), LIFECYCLE_OK);
	check_no_op(lifecycle_start(&i), LIFECYCLE_RUNS_ALREADY, true);
	ck_assert_int_eq(lifecycle_stop(&i), LIFECYCLE_OK);
	check_no_op(lifecycle_stop(&i), LIFECYCLE_NOT_RUNNING, false);
}
END_TEST

/* "... The profiling session is not sampled." */
START_TEST(start_of_a_session_that_is_not_sampled)
{
	set(LIFECYCLE_MANUAL, false);
	check_no_op(lifecycle_start(&i), LIFECYCLE_NOT_SAMPLED, false);
	check_no_op(lifecycle_stop(&i), LIFECYCLE_NOT_RUNNING, false);
	/* Nor by configuration. */
	i.is_started = true;
	ck_assert(!lifecycle_wants(&i));
}
END_TEST

/* "... profileLifecycle is set to 'trace'", "'trace': This is a no-op." */
START_TEST(start_and_stop_in_trace_mode)
{
	for (int sampled = 0; sampled < 2; sampled++) {
		set(LIFECYCLE_TRACE, sampled);
		check_no_op(lifecycle_start(&i), LIFECYCLE_TRACE_START, false);
		(void)lifecycle_span(&i, true);
		check_no_op(lifecycle_start(&i), LIFECYCLE_TRACE_START,
			    sampled);
		check_no_op(lifecycle_stop(&i), LIFECYCLE_TRACE_STOP, sampled);
	}
}
END_TEST

/*
 * "The profiler starts automatically when there is at least one active root
 * span and stops when there are no active root spans (letting the current chunk
 * finish)."
 */
START_TEST(trace_starts_and_stops_with_root_spans)
{
	set(LIFECYCLE_TRACE, true);
	ck_assert(!lifecycle_wants(&i));
	ck_assert_int_eq(lifecycle_span(&i, true), LIFECYCLE_OK);
	ck_assert(lifecycle_wants(&i));
	ck_assert_int_eq(lifecycle_span(&i, false), LIFECYCLE_OK);
	ck_assert(lifecycle_wants(&i));
	lifecycle_chunk(&i);
	ck_assert(!lifecycle_wants(&i));
	/* "Profile sampling is re-evaluated for each root span." */
	ck_assert_int_eq(lifecycle_span(&i, true), LIFECYCLE_OK);
	ck_assert(lifecycle_wants(&i));
}
END_TEST

/* A chunk's end while spans are open is nothing but that. */
START_TEST(trace_runs_through_chunks)
{
	set(LIFECYCLE_TRACE, true);
	(void)lifecycle_span(&i, true);
	lifecycle_chunk(&i);
	ck_assert(lifecycle_wants(&i));
	(void)lifecycle_span(&i, false);
	/* A span in the rest of the chunk: it goes on, with the next one. */
	(void)lifecycle_span(&i, true);
	lifecycle_chunk(&i);
	ck_assert(lifecycle_wants(&i));
	(void)lifecycle_span(&i, false);
	lifecycle_chunk(&i);
	ck_assert(!lifecycle_wants(&i));
}
END_TEST

/*
 * "If multiple root spans overlap, profiling continues until the last sampled
 * root span finishes."
 */
START_TEST(trace_with_root_spans_that_overlap)
{
	set(LIFECYCLE_TRACE, true);
	(void)lifecycle_span(&i, true);
	(void)lifecycle_span(&i, true);
	(void)lifecycle_span(&i, false);
	lifecycle_chunk(&i);
	ck_assert(lifecycle_wants(&i));
	(void)lifecycle_span(&i, true);
	(void)lifecycle_span(&i, false);
	lifecycle_chunk(&i);
	ck_assert(lifecycle_wants(&i));
	(void)lifecycle_span(&i, false);
	lifecycle_chunk(&i);
	ck_assert(!lifecycle_wants(&i));
}
END_TEST

/*
 * "profile_session_sample_rate is checked first. If the session is not sampled,
 * no profiling will occur."
 */
START_TEST(trace_in_a_session_that_is_not_sampled)
{
	set(LIFECYCLE_TRACE, false);
	check_no_op(lifecycle_span(&i, true), LIFECYCLE_NOT_SAMPLED, false);
	check_no_op(lifecycle_span(&i, false), LIFECYCLE_NOT_SAMPLED, false);
}
END_TEST

START_TEST(the_end_of_a_span_that_was_not_open)
{
	set(LIFECYCLE_TRACE, true);
	check_no_op(lifecycle_span(&i, false), LIFECYCLE_NO_SPAN, false);
	(void)lifecycle_span(&i, true);
	(void)lifecycle_span(&i, false);
	check_no_op(lifecycle_span(&i, false), LIFECYCLE_NO_SPAN, true);
}
END_TEST

/* In CPU mode a chunk of one that sleeps is never made. */
START_TEST(a_chunk_that_does_not_come)
{
	uint64_t now = 1000;

	set(LIFECYCLE_TRACE, true);
	(void)lifecycle_span(&i, true);
	ck_assert(!lifecycle_time(&i, now, CHUNK_NS));
	(void)lifecycle_span(&i, false);
	ck_assert(!lifecycle_time(&i, now, CHUNK_NS));
	now += 2 * CHUNK_NS - 1;
	ck_assert(!lifecycle_time(&i, now, CHUNK_NS));
	ck_assert(lifecycle_wants(&i));
	/* Another span: from its end on it counts anew. */
	(void)lifecycle_span(&i, true);
	(void)lifecycle_span(&i, false);
	now += 1;
	ck_assert(!lifecycle_time(&i, now, CHUNK_NS));
	ck_assert(lifecycle_wants(&i));
	now += 2 * CHUNK_NS;
	ck_assert(!lifecycle_time(&i, now, CHUNK_NS));
	ck_assert(!lifecycle_wants(&i));
}
END_TEST

/* "... if profile_lifecycle is set to 'trace' but tracing is disabled." */
START_TEST(a_target_that_never_reports_a_span)
{
	const uint64_t since = 5 * NS_PER_SEC;

	set(LIFECYCLE_TRACE, true);
	ck_assert(!lifecycle_time(&i, since, CHUNK_NS));
	ck_assert(
		!lifecycle_time(&i, since + LIFECYCLE_SILENT_NS - 1, CHUNK_NS));
	ck_assert(lifecycle_time(&i, since + LIFECYCLE_SILENT_NS, CHUNK_NS));
	ck_assert(
		!lifecycle_time(&i, since + 2 * LIFECYCLE_SILENT_NS, CHUNK_NS));
	/* One with tracing, all of whose root spans are not sampled. */
	set(LIFECYCLE_TRACE, true);
	ck_assert(!lifecycle_time(&i, since, CHUNK_NS));
	lifecycle_traced(&i);
	ck_assert(!lifecycle_time(&i, since + LIFECYCLE_SILENT_NS, CHUNK_NS));
	/* Those of which none is expected. */
	set(LIFECYCLE_TRACE, false);
	ck_assert(!lifecycle_time(&i, since, CHUNK_NS));
	ck_assert(!lifecycle_time(&i, since + LIFECYCLE_SILENT_NS, CHUNK_NS));
	set(LIFECYCLE_MANUAL, true);
	ck_assert(!lifecycle_time(&i, since, CHUNK_NS));
	ck_assert(!lifecycle_time(&i, since + LIFECYCLE_SILENT_NS, CHUNK_NS));
}
END_TEST

/*
 * "SDKs SHOULD log a warning in debug mode if this function is called but
 * results in a no-op", "... if this function is called while profileLifecycle
 * is 'trace'": a line for each of the reasons that the specification lists.
 */
START_TEST(what_is_said_of_calls_without_effect)
{
	static const struct {
		enum lifecycle_result result;
		const char *text;
	} v[] = {
		{LIFECYCLE_OK, ""},
		{LIFECYCLE_RUNS_ALREADY,
		 "start has no effect: the profiler is already running"},
		{LIFECYCLE_NOT_SAMPLED,
		 "the profiler does not start: the session is not sampled "
		 "(profile_session_sample_rate)"},
		{LIFECYCLE_TRACE_START,
		 "start has no effect: profile_lifecycle is trace, the "
		 "profiler starts with the first sampled root span"},
		{LIFECYCLE_TRACE_STOP,
		 "stop has no effect: profile_lifecycle is trace, the "
		 "profiler stops after the last sampled root span"},
		/* And those that it does not list. */
		{LIFECYCLE_NOT_RUNNING,
		 "stop has no effect: the profiler is not running"},
		{LIFECYCLE_MANUAL_SPAN,
		 "a root span has no effect: profile_lifecycle is manual"},
		{LIFECYCLE_NO_SPAN,
		 "the end of a root span has no effect: none is open"},
	};

	for (size_t k = 0; k < array_size(v); k++)
		ck_assert_str_eq(lifecycle_result_text(v[k].result), v[k].text);
}
END_TEST

/* The configuration was changed: what is open counts. */
START_TEST(another_mode)
{
	set(LIFECYCLE_MANUAL, true);
	(void)lifecycle_span(&i, true);
	ck_assert(!lifecycle_wants(&i));
	i.config.lifecycle = LIFECYCLE_TRACE;
	ck_assert(lifecycle_wants(&i));
	(void)lifecycle_span(&i, false);
	i.config.lifecycle = LIFECYCLE_MANUAL;
	ck_assert(!lifecycle_wants(&i));
}
END_TEST

Suite *suite(void)
{
	Suite *s = suite_create("lifecycle");
	TCase *t = tcase_create("lifecycle");

	tcase_add_test(t, manual_start_and_stop);
	tcase_add_test(t, manual_has_nothing_to_do_with_spans);
	tcase_add_test(t, start_of_what_runs);
	tcase_add_test(t, start_of_a_session_that_is_not_sampled);
	tcase_add_test(t, start_and_stop_in_trace_mode);
	tcase_add_test(t, trace_starts_and_stops_with_root_spans);
	tcase_add_test(t, trace_runs_through_chunks);
	tcase_add_test(t, trace_with_root_spans_that_overlap);
	tcase_add_test(t, trace_in_a_session_that_is_not_sampled);
	tcase_add_test(t, the_end_of_a_span_that_was_not_open);
	tcase_add_test(t, a_chunk_that_does_not_come);
	tcase_add_test(t, a_target_that_never_reports_a_span);
	tcase_add_test(t, what_is_said_of_calls_without_effect);
	tcase_add_test(t, another_mode);
	suite_add_tcase(s, t);
	return s;
}
