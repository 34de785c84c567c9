/*
 * Random threads, records that come late, and chunks that are closed at random moments. For each
 * thread and stack, the time that a reader adds up from the chunks must be the time that the thread
 * spent in the stack and in each state. If all threads run, the number of samples must give the
 * same time.
 *
 * A second aggregate gets the same records, but no ready ones: threads that are ready wait. Its
 * samples must be those of the first one without the samples that are only for files. So a payload
 * for the server does not depend on whether capture tells ready from waiting.
 */
#include "lib/aggregate/aggregate.h"

#include <string.h>

#include "tests/unit/aggregate/fake_unwind.h"
#include "tests/unit/aggregate/letters.h"
#include "tests/unit/random.h"
#include "tests/unit/suite.h"

#define THREADS	  6
#define STACKS	  4
#define TICKS	  3000
#define TICK_NS	  (10 * NS_PER_MS)
#define QUEUE_MAX 512
/* The longest delay of a record in ticks: less than WINDOW_LAG_NS. */
#define DELAY_MAX 400

enum what {
	SAMPLE,
	READY, /* RECORD_READY: the stack stays */
	MISSED,
	EXIT,
};

struct event {
	uint64_t tick;
	enum what what;
	char stack; /* 0 to STACKS - 1 */
	enum profile_state state;
};

struct actor {
	bool alive;
	int stack; /* -1: unknown */
	enum profile_state state;
	struct event queue[QUEUE_MAX]; /* records that are written and not read yet */
	size_t n_queue;
	uint64_t held_until; /* a tick before which no record is read */
	uint64_t expected_us[STACKS], got_us[STACKS];
	uint64_t got_n[STACKS]; /* number of samples, as the server counts them */
	uint64_t expected_state_us[PROFILE_STATES], got_state_us[PROFILE_STATES];
};

static struct actor actors[THREADS];
static struct aggregate *a, *without_ready;
static uint64_t state;
static uint64_t expected_state_ns[PROFILE_STATES];
static bool all_run;

static uint64_t pick(uint64_t n)
{
	return random_next(&state) % n;
}

static void deliver(uint32_t tid, const struct event *e)
{
	static const char *const words[STACKS] = {"acm", "bcm", "cm", "m"};
	const struct unwind_stack *stack = letters_stack(words[(int)e->stack]);
	uint64_t time_ns = e->tick * TICK_NS;

	switch (e->what) {
	case READY:
	case SAMPLE:
		if (e->what == READY)
			OK(aggregate_state(a, tid, time_ns, PROFILE_READY));
		else
			OK(aggregate_sample(a, tid, time_ns, stack, e->state));
		OK(aggregate_sample(without_ready, tid, time_ns, stack,
				    e->state == PROFILE_RUNNING ? PROFILE_RUNNING
								: PROFILE_WAITING));
		break;
	case MISSED:
		OK(aggregate_missed(a, tid, time_ns));
		OK(aggregate_missed(without_ready, tid, time_ns));
		break;
	case EXIT:
		OK(aggregate_exit(a, tid, time_ns));
		OK(aggregate_exit(without_ready, tid, time_ns));
		break;
	}
}

/* Lets a thread live for one tick: writes a random record, or none, and adds up the time. */
static void live(struct actor *t, uint64_t tick)
{
	struct event e = {.tick = tick};
	uint64_t dice = pick(100);

	if (dice < 40) {
		e.what = SAMPLE;
		e.stack = (char)pick(STACKS);
		e.state = all_run ? PROFILE_RUNNING : (enum profile_state)pick(PROFILE_STATES);
		t->alive = true;
		t->stack = e.stack;
		t->state = e.state;
	} else if (dice >= 90 && t->stack >= 0 && !all_run) {
		e.what = READY;
		e.stack = (char)t->stack;
		e.state = t->state = PROFILE_READY;
	} else if (dice < 50 && t->alive) {
		e.what = MISSED;
		t->stack = -1;
	} else if (dice < 53 && t->alive) {
		e.what = EXIT;
		t->alive = false;
		t->stack = -1;
	} else {
		e.tick = UINT64_MAX; /* no record is written */
	}
	if (e.tick != UINT64_MAX)
		t->queue[t->n_queue++] = e;
	if (t->stack < 0)
		return;
	t->expected_us[t->stack] += TICK_NS / 1000;
	expected_state_ns[t->state] += TICK_NS;
	t->expected_state_us[t->state] += TICK_NS / 1000;
}

/* Reads the records that are not held back. Returns the settled tick. */
static uint64_t settle(uint64_t tick)
{
	uint64_t settled = tick;

	for (uint32_t tid = 0; tid < THREADS; tid++) {
		struct actor *t = &actors[tid];

		if (t->held_until > tick) {
			if (t->n_queue > 0)
				settled = min_u64(settled, t->queue[0].tick - 1);
			continue;
		}
		for (size_t i = 0; i < t->n_queue; i++)
			deliver(tid, &t->queue[i]);
		t->n_queue = 0;
		if (pick(200) == 0)
			t->held_until = tick + pick(DELAY_MAX);
	}
	return settled;
}

static uint32_t stack_of(const struct profile *p, uint32_t node)
{
	char word[64];

	letters_of_node(p, node, word);
	return word[0] == 'm' ? 3 : (uint32_t)(word[0] - 'a');
}

static void read_chunk(struct profile *p)
{
	const struct profile_sample *last[THREADS] = {NULL};
	enum profile_fault fault;

	memset(p->profiler_id, 'a', sizeof(p->profiler_id) - 1);
	memset(p->chunk_id, 'b', sizeof(p->chunk_id) - 1);
	p->platform = p->release = p->environment = "x";
	p->sdk_name = p->sdk_version = "x";
	fault = profile_check(p);
	ck_assert_msg(fault == PROFILE_OK || fault == PROFILE_NO_SAMPLES, "%s",
		      profile_fault_name(fault));
	for (size_t i = 0; i < p->n_samples; i++) {
		const struct profile_sample *s = &p->samples[i];
		const struct profile_sample *before = last[s->tid];

		if (before != NULL && before->node != PROFILE_NONE) {
			uint32_t stack = stack_of(p, before->node);

			actors[s->tid].got_us[stack] += s->time_us - before->time_us;
			actors[s->tid].got_n[stack]++;
			actors[s->tid].got_state_us[before->state] += s->time_us - before->time_us;
		}
		ck_assert(s->node != PROFILE_NONE || s->state == PROFILE_RUNNING);
		last[s->tid] = s;
	}
}

/* Compares the samples that a payload for the server has. */
static void compare_for_server(const struct profile *p, const struct profile *expected)
{
	size_t n = 0;

	for (size_t i = 0; i < p->n_samples; i++) {
		const struct profile_sample *s = &p->samples[i], *e = &expected->samples[n];
		char word[64], expected_word[64];

		if (s->is_for_files)
			continue;
		ck_assert_uint_lt(n++, expected->n_samples);
		letters_of_node(p, s->node, word);
		letters_of_node(expected, e->node, expected_word);
		ck_assert_uint_eq(s->time_us, e->time_us);
		ck_assert_uint_eq(s->tid, e->tid);
		ck_assert_str_eq(word, expected_word);
	}
	ck_assert_uint_eq(n, expected->n_samples);
}

static void close_chunk(uint64_t tick)
{
	struct profile p, expected;

	OK(aggregate_close(a, tick * TICK_NS, &p));
	OK(aggregate_close(without_ready, tick * TICK_NS, &expected));
	read_chunk(&p);
	compare_for_server(&p, &expected);
	OK(aggregate_next(a));
	OK(aggregate_next(without_ready));
}

TESTS(times_add_up_to_the_real_ones, 40)
{
	const struct fake_symbol symbol = {0, UINT64_MAX, "f"};
	struct unwind_space space = {.symbols = &symbol, .n_symbols = 1};
	struct aggregate_options options = {
		.chunk_us = 1000000,
		.chunk_bytes = _i % 2 == 0 ? 20000000 : 20000,
		.wall_offset_us = LETTERS_WALL_US,
		.main_path = "",
		.main_argv0 = "",
	};
	size_t chunks = 0;

	state = (uint64_t)_i;
	all_run = _i % 4 >= 2;
	memset(expected_state_ns, 0, sizeof(expected_state_ns));
	memset(actors, 0, sizeof(actors));
	for (size_t i = 0; i < THREADS; i++)
		actors[i].stack = -1;
	functions_init(&letters_table, 0);
	OK(aggregate_new(&options, &space, &without_ready));
	options.table = &letters_table;
	OK(aggregate_new(&options, &space, &a));
	for (uint64_t tick = 1; tick < TICKS; tick++) {
		uint64_t settled;
		bool due;

		for (size_t i = 0; i < THREADS; i++)
			live(&actors[i], tick);
		settled = settle(tick);
		due = aggregate_tick(a, tick * TICK_NS, settled * TICK_NS, 1);
		(void)!aggregate_tick(without_ready, tick * TICK_NS, settled * TICK_NS, 1);
		if (due || pick(150) == 0) {
			close_chunk(settled);
			chunks++;
		}
	}
	for (size_t i = 0; i < THREADS; i++)
		actors[i].held_until = 0;
	ck_assert_uint_eq(settle(TICKS), TICKS);
	OK(aggregate_exit_all(a, TICKS * TICK_NS));
	OK(aggregate_exit_all(without_ready, TICKS * TICK_NS));
	close_chunk(TICKS);
	ck_assert_uint_gt(chunks, 20);
	for (size_t i = 0; i < THREADS; i++) {
		for (size_t j = 0; j < PROFILE_STATES; j++)
			ck_assert_uint_eq(actors[i].got_state_us[j],
					  actors[i].expected_state_us[j]);
		for (size_t j = 0; j < STACKS; j++) {
			ck_assert_uint_eq(actors[i].got_us[j], actors[i].expected_us[j]);
			if (all_run)
				ck_assert_uint_eq(actors[i].got_n[j] * TICK_NS,
						  actors[i].got_us[j] * NS_PER_US);
		}
	}
	ck_assert_uint_eq(letters_times(a).running_ns, expected_state_ns[PROFILE_RUNNING]);
	ck_assert_uint_eq(letters_times(a).ready_ns, expected_state_ns[PROFILE_READY]);
	ck_assert_uint_eq(letters_times(a).waiting_ns, expected_state_ns[PROFILE_WAITING]);
	aggregate_free(a);
	aggregate_free(without_ready);
	functions_fini(&letters_table);
}
