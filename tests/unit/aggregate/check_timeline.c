/*
 * Random threads, records that come late, and chunks that are closed at random moments. For each
 * thread and stack, the time that a reader adds up from the chunks must be the time that the thread
 * spent in the stack. If all threads run, the number of samples must give the same time.
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
/* The longest delay of a record in ticks: less than PERIOD_LAG_NS. */
#define DELAY_MAX 400

enum what {
	SAMPLE,
	MISSED,
	EXIT,
};

struct event {
	uint64_t tick;
	enum what what;
	char stack; /* 0 to STACKS - 1 */
	bool running;
};

struct actor {
	bool alive;
	int stack; /* -1: unknown */
	bool running;
	struct event queue[QUEUE_MAX]; /* records that are written and not read yet */
	size_t n_queue;
	uint64_t held_until; /* a tick before which no record is read */
	uint64_t expected_us[STACKS], got_us[STACKS];
	uint64_t got_n[STACKS]; /* number of samples, as the server counts them */
	uint64_t expected_waiting_us, got_waiting_us;
};

static struct actor actors[THREADS];
static struct aggregate *a;
static uint64_t state;
static uint64_t expected_running_ns;
static bool all_run;

static uint64_t pick(uint64_t n)
{
	return random_next(&state) % n;
}

static void deliver(uint32_t tid, const struct event *e)
{
	static const char *const words[STACKS] = {"acm", "bcm", "cm", "m"};
	uint64_t time_ns = e->tick * TICK_NS;
	int r = 0;

	switch (e->what) {
	case SAMPLE:
		r = aggregate_sample(a, tid, time_ns, letters_stack(words[(int)e->stack]),
				     e->running);
		break;
	case MISSED:
		r = aggregate_missed(a, tid, time_ns);
		break;
	case EXIT:
		r = aggregate_exit(a, tid, time_ns);
		break;
	}
	ck_assert_int_eq(r, 0);
}

/* Lets a thread live for one tick: writes a random record, or none, and adds up the time. */
static void live(struct actor *t, uint64_t tick)
{
	struct event e = {.tick = tick};
	uint64_t dice = pick(100);

	if (dice < 40) {
		e.what = SAMPLE;
		e.stack = (char)pick(STACKS);
		e.running = pick(2) == 0 || all_run;
		t->alive = true;
		t->stack = e.stack;
		t->running = e.running;
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
	expected_running_ns += t->running ? TICK_NS : 0;
	t->expected_waiting_us += t->running ? 0 : TICK_NS / 1000;
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
			if (before->is_waiting)
				actors[s->tid].got_waiting_us += s->time_us - before->time_us;
		}
		ck_assert(s->node != PROFILE_NONE || !s->is_waiting);
		last[s->tid] = s;
	}
}

static void close_chunk(uint64_t tick)
{
	struct profile p;

	OK(aggregate_close(a, tick * TICK_NS, &p));
	read_chunk(&p);
	OK(aggregate_next(a));
}

TESTS(times_add_up_to_the_real_ones, 40)
{
	const struct fake_symbol symbol = {0, UINT64_MAX, "f"};
	struct unwind_space space = {.symbols = &symbol, .n_symbols = 1};
	const struct aggregate_options options = {
		.chunk_us = 1000000,
		.chunk_bytes = _i % 2 == 0 ? 20000000 : 20000,
		.wall_offset_us = LETTERS_WALL_US,
		.main_path = "",
		.main_argv0 = "",
	};
	size_t chunks = 0;

	state = (uint64_t)_i;
	all_run = _i % 4 >= 2;
	expected_running_ns = 0;
	memset(actors, 0, sizeof(actors));
	for (size_t i = 0; i < THREADS; i++)
		actors[i].stack = -1;
	OK(aggregate_new(&options, &space, &a));
	for (uint64_t tick = 1; tick < TICKS; tick++) {
		uint64_t settled;
		bool due;

		for (size_t i = 0; i < THREADS; i++)
			live(&actors[i], tick);
		settled = settle(tick);
		due = aggregate_tick(a, tick * TICK_NS, settled * TICK_NS, 1);
		if (due || pick(150) == 0) {
			close_chunk(settled);
			chunks++;
		}
	}
	for (size_t i = 0; i < THREADS; i++)
		actors[i].held_until = 0;
	ck_assert_uint_eq(settle(TICKS), TICKS);
	OK(aggregate_exit_all(a, TICKS * TICK_NS));
	close_chunk(TICKS);
	ck_assert_uint_gt(chunks, 20);
	for (size_t i = 0; i < THREADS; i++) {
		ck_assert_uint_eq(actors[i].got_waiting_us, actors[i].expected_waiting_us);
		for (size_t j = 0; j < STACKS; j++) {
			ck_assert_uint_eq(actors[i].got_us[j], actors[i].expected_us[j]);
			if (all_run)
				ck_assert_uint_eq(actors[i].got_n[j] * TICK_NS,
						  actors[i].got_us[j] * NS_PER_US);
		}
	}
	ck_assert_uint_eq(letters_times(a).running_ns, expected_running_ns);
	aggregate_free(a);
}
