/* Each line of the specification's "Profile Lifecycle Modes" is a test. */
#include "daemon/broker/targets/lifecycle.h"

#include <string.h>

#include "daemon/broker/targets/instance.h"
#include "daemon/config/config.h"
#include "tests/unit/suite.h"

#define CHUNK_NS (60 * NS_PER_SEC)

static struct instance i;

static void set(enum lifecycle mode, bool is_sampled)
{
	memset(&i, 0, sizeof(i));
	i.config.lifecycle = mode;
	i.is_sampled = is_sampled;
}

/*
 * "SDKs SHOULD log a warning in debug mode if this function is called but
 * results in a no-op", "... if this function is called while profileLifecycle
 * is 'trace'": a line for each of the reasons that the specification lists, and
 * for some that it does not.
 */
#define RUNS_ALREADY "start has no effect: the profiler is already running"
#define NOT_RUNNING  "stop has no effect: the profiler is not running"
#define NOT_SAMPLED                                                \
	"the profiler does not start: the session is not sampled " \
	"(profile_session_sample_rate)"
#define TRACE_START                                                      \
	"start has no effect: profile_lifecycle is trace, the profiler " \
	"starts with the first sampled root span"
#define TRACE_STOP                                                      \
	"stop has no effect: profile_lifecycle is trace, the profiler " \
	"stops after the last sampled root span"
#define MANUAL_SPAN "a root span has no effect: profile_lifecycle is manual"
#define NO_SPAN	    "the end of a root span has no effect: none is open"

/* Expects that a call changes nothing and has a reason. */
static void check_no_op(struct lifecycle_result result, enum protocol_result answer,
			const char *why_not, bool wanted)
{
	ck_assert_int_eq(result.answer, answer);
	ck_assert_str_eq(result.why_not, why_not);
	ck_assert_int_eq(lifecycle_wants(&i), wanted);
}

static void check_effect(struct lifecycle_result result)
{
	ck_assert_int_eq(result.answer, PROTOCOL_OK);
	ck_assert_str_eq(result.why_not, "");
}

/* "The profiler is controlled via start_profiler() and stop_profiler()." */
TEST(in_manual_mode_start_and_stop_have_effect)
{
	set(LIFECYCLE_MANUAL, true);
	ck_assert(!lifecycle_wants(&i));
	check_effect(lifecycle_start(&i));
	ck_assert(lifecycle_wants(&i));
	check_effect(lifecycle_stop(&i));
	ck_assert(!lifecycle_wants(&i));
	/* "The profiler can be started again by calling startProfiler()." */
	check_effect(lifecycle_start(&i));
	ck_assert(lifecycle_wants(&i));
}

/* "... respects profile_session_sample_rate (independent of spans)." */
TEST(in_manual_mode_spans_have_no_effect)
{
	set(LIFECYCLE_MANUAL, true);
	check_no_op(lifecycle_span(&i, true), PROTOCOL_NOT_RUNNING, MANUAL_SPAN, false);
	check_no_op(lifecycle_span(&i, false), PROTOCOL_NOT_RUNNING, MANUAL_SPAN, false);
	check_effect(lifecycle_start(&i));
	check_no_op(lifecycle_span(&i, true), PROTOCOL_NOT_RUNNING, MANUAL_SPAN, true);
	check_no_op(lifecycle_span(&i, false), PROTOCOL_NOT_RUNNING, MANUAL_SPAN, true);
}

/* "This is a no-op if ... the profiler is already running." */
TEST(a_second_start_has_no_effect)
{
	set(LIFECYCLE_MANUAL, true);
	check_effect(lifecycle_start(&i));
	check_no_op(lifecycle_start(&i), PROTOCOL_RUNS_ALREADY, RUNS_ALREADY, true);
	check_effect(lifecycle_stop(&i));
	check_no_op(lifecycle_stop(&i), PROTOCOL_NOT_RUNNING, NOT_RUNNING, false);
}

/* "... The profiling session is not sampled." */
TEST(a_start_that_is_not_sampled_has_no_effect)
{
	set(LIFECYCLE_MANUAL, false);
	check_no_op(lifecycle_start(&i), PROTOCOL_NOT_SAMPLED, NOT_SAMPLED, false);
	check_no_op(lifecycle_stop(&i), PROTOCOL_NOT_RUNNING, NOT_RUNNING, false);
	/* autostart does not start it either. */
	i.is_started = true;
	ck_assert(!lifecycle_wants(&i));
}

/* "... profileLifecycle is set to 'trace'", "'trace': This is a no-op." */
TEST(in_trace_mode_start_and_stop_have_no_effect)
{
	for (int sampled = 0; sampled < 2; sampled++) {
		set(LIFECYCLE_TRACE, sampled);
		check_no_op(lifecycle_start(&i), PROTOCOL_TRACE_MODE, TRACE_START, false);
		(void)lifecycle_span(&i, true);
		check_no_op(lifecycle_start(&i), PROTOCOL_TRACE_MODE, TRACE_START, sampled);
		check_no_op(lifecycle_stop(&i), PROTOCOL_TRACE_MODE, TRACE_STOP, sampled);
	}
}

/*
 * "The profiler starts automatically when there is at least one active root
 * span and stops when there are no active root spans (letting the current chunk
 * finish)."
 */
TEST(in_trace_mode_root_spans_start_and_stop)
{
	set(LIFECYCLE_TRACE, true);
	ck_assert(!lifecycle_wants(&i));
	check_effect(lifecycle_span(&i, true));
	ck_assert(lifecycle_wants(&i));
	check_effect(lifecycle_span(&i, false));
	ck_assert(lifecycle_wants(&i));
	lifecycle_chunk_finished(&i);
	ck_assert(!lifecycle_wants(&i));
	/* "Profile sampling is re-evaluated for each root span." */
	check_effect(lifecycle_span(&i, true));
	ck_assert(lifecycle_wants(&i));
}

/* The end of a chunk while spans are open has no effect. */
TEST(in_trace_mode_the_profiler_runs_until_the_last_chunk_is_finished)
{
	set(LIFECYCLE_TRACE, true);
	(void)lifecycle_span(&i, true);
	lifecycle_chunk_finished(&i);
	ck_assert(lifecycle_wants(&i));
	(void)lifecycle_span(&i, false);
	/* A span begins before the chunk is finished: profiling goes on. */
	(void)lifecycle_span(&i, true);
	lifecycle_chunk_finished(&i);
	ck_assert(lifecycle_wants(&i));
	(void)lifecycle_span(&i, false);
	lifecycle_chunk_finished(&i);
	ck_assert(!lifecycle_wants(&i));
}

/*
 * "If multiple root spans overlap, profiling continues until the last sampled
 * root span finishes."
 */
TEST(root_spans_may_overlap)
{
	set(LIFECYCLE_TRACE, true);
	(void)lifecycle_span(&i, true);
	(void)lifecycle_span(&i, true);
	(void)lifecycle_span(&i, false);
	lifecycle_chunk_finished(&i);
	ck_assert(lifecycle_wants(&i));
	(void)lifecycle_span(&i, true);
	(void)lifecycle_span(&i, false);
	lifecycle_chunk_finished(&i);
	ck_assert(lifecycle_wants(&i));
	(void)lifecycle_span(&i, false);
	lifecycle_chunk_finished(&i);
	ck_assert(!lifecycle_wants(&i));
}

/*
 * "profile_session_sample_rate is checked first. If the session is not sampled,
 * no profiling will occur."
 */
TEST(in_trace_mode_an_unsampled_instance_is_not_profiled)
{
	set(LIFECYCLE_TRACE, false);
	check_no_op(lifecycle_span(&i, true), PROTOCOL_NOT_SAMPLED, NOT_SAMPLED, false);
	check_no_op(lifecycle_span(&i, false), PROTOCOL_NOT_SAMPLED, NOT_SAMPLED, false);
}

TEST(the_end_of_a_span_that_was_not_open_has_no_effect)
{
	set(LIFECYCLE_TRACE, true);
	check_no_op(lifecycle_span(&i, false), PROTOCOL_NOT_RUNNING, NO_SPAN, false);
	(void)lifecycle_span(&i, true);
	(void)lifecycle_span(&i, false);
	check_no_op(lifecycle_span(&i, false), PROTOCOL_NOT_RUNNING, NO_SPAN, true);
}

/* In mode = cpu no chunk is made of a process that sleeps. */
TEST(a_last_chunk_that_is_not_made_is_awaited_for_two_chunk_lengths)
{
	uint64_t now = 1000;

	set(LIFECYCLE_TRACE, true);
	(void)lifecycle_span(&i, true);
	ck_assert(!lifecycle_check(&i, now, CHUNK_NS));
	(void)lifecycle_span(&i, false);
	ck_assert(!lifecycle_check(&i, now, CHUNK_NS));
	now += 2 * CHUNK_NS - 1;
	ck_assert(!lifecycle_check(&i, now, CHUNK_NS));
	ck_assert(lifecycle_wants(&i));
	/* Another span: the time counts from its end. */
	(void)lifecycle_span(&i, true);
	(void)lifecycle_span(&i, false);
	now += 1;
	ck_assert(!lifecycle_check(&i, now, CHUNK_NS));
	ck_assert(lifecycle_wants(&i));
	now += 2 * CHUNK_NS;
	ck_assert(!lifecycle_check(&i, now, CHUNK_NS));
	ck_assert(!lifecycle_wants(&i));
}

/* "... if profile_lifecycle is set to 'trace' but tracing is disabled." */
TEST(a_process_that_reports_no_span_is_reported_once)
{
	const uint64_t since = 5 * NS_PER_SEC;

	set(LIFECYCLE_TRACE, true);
	ck_assert(!lifecycle_check(&i, since, CHUNK_NS));
	ck_assert(!lifecycle_check(&i, since + LIFECYCLE_NO_SPAN_NS - 1, CHUNK_NS));
	ck_assert(lifecycle_check(&i, since + LIFECYCLE_NO_SPAN_NS, CHUNK_NS));
	ck_assert(!lifecycle_check(&i, since + 2 * LIFECYCLE_NO_SPAN_NS, CHUNK_NS));
	/* A process with tracing, none of whose root spans are sampled. */
	set(LIFECYCLE_TRACE, true);
	ck_assert(!lifecycle_check(&i, since, CHUNK_NS));
	lifecycle_span_seen(&i);
	ck_assert(!lifecycle_check(&i, since + LIFECYCLE_NO_SPAN_NS, CHUNK_NS));
	/* Instances that are not expected to report spans. */
	set(LIFECYCLE_TRACE, false);
	ck_assert(!lifecycle_check(&i, since, CHUNK_NS));
	ck_assert(!lifecycle_check(&i, since + LIFECYCLE_NO_SPAN_NS, CHUNK_NS));
	set(LIFECYCLE_MANUAL, true);
	ck_assert(!lifecycle_check(&i, since, CHUNK_NS));
	ck_assert(!lifecycle_check(&i, since + LIFECYCLE_NO_SPAN_NS, CHUNK_NS));
	set(LIFECYCLE_TRACE, true);
	i.origin = INSTANCE_RECORDED;
	ck_assert(!lifecycle_check(&i, since, CHUNK_NS));
	ck_assert(!lifecycle_check(&i, since + LIFECYCLE_NO_SPAN_NS, CHUNK_NS));
}

/* The configuration changes the mode: spans that are open count. */
TEST(spans_count_in_both_modes)
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

/* The user who records a process may not be one who may send its profile. */
TEST(nothing_profiles_a_process_that_is_only_recorded)
{
	for (int mode = LIFECYCLE_MANUAL; mode <= LIFECYCLE_TRACE; mode++) {
		set((enum lifecycle)mode, true);
		i.origin = INSTANCE_RECORDED;
		ck_assert_int_eq(lifecycle_start(&i).answer, PROTOCOL_NO_TARGET);
		ck_assert_int_eq(lifecycle_stop(&i).answer, PROTOCOL_NO_TARGET);
		(void)lifecycle_span(&i, true);
		ck_assert(!lifecycle_wants(&i));
	}
}
