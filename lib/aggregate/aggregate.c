#include "lib/aggregate/aggregate.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/array.h"
#include "lib/aggregate/open_chunk.h"
#include "lib/base/utf8.h"

/*
 * Nodes at which a chunk is cut. Threads whose stacks have little in common
 * make a trie that is larger than its text: this keeps it, with its table of
 * 2^19 slots, below 16 MB. Deep stacks of 100 busy threads that do share their
 * callers stay below it for a minute.
 */
#define NODES_DUE 350000

void aggregate_exec(struct aggregate *a, struct unwind_space *space, const char *main_path,
		    const char *main_argv0)
{
	a->space = space;
	utf8_clean(main_path, true, a->main_path, sizeof(a->main_path));
	a->options.main_path = a->main_path;
	/* Bytes that are compared, and never shown. */
	(void)snprintf(a->main_argv0, sizeof(a->main_argv0), "%s", main_argv0);
	a->options.main_argv0 = a->main_argv0;
}

static const char *or_empty(const char *text)
{
	return text == NULL ? "" : text;
}

int aggregate_new(const struct aggregate_options *options, struct unwind_space *space,
		  struct aggregate **ret)
{
	struct aggregate *a;

	if (options->chunk_us == 0 || options->chunk_us > SPAN_CHUNK_MAX_US)
		return -EINVAL;
	a = calloc(1, sizeof(*a));
	if (a == NULL)
		return -ENOMEM;
	a->options = *options;
	aggregate_exec(a, space, options->main_path, options->main_argv0);
	span_init(&a->span, options->chunk_us * NS_PER_US);
	threads_init(&a->threads, options->hash_seed);
	functions_init(&a->functions, options->hash_seed);
	stacks_init(&a->stacks, options->hash_seed);
	lookup_init(&a->lookup, options->hash_seed);
	a->lookup.demangle = options->demangle;
	a->lookup.inlined_too = options->inlined;
	a->lookup.name_starts = options->name_starts;
	a->lookup.by_function = options->by_function;
	a->lookup.in_app = (struct in_app_rules){
		.include = or_empty(options->in_app_include),
		.exclude = or_empty(options->in_app_exclude),
	};
	*ret = a;
	return 0;
}

void aggregate_free(struct aggregate *a)
{
	if (a == NULL)
		return;
	threads_fini(&a->threads);
	functions_fini(&a->functions);
	stacks_fini(&a->stacks);
	lookup_fini(&a->lookup);
	expand_fini(&a->expand);
	fold_fini(&a->fold);
	free(a->samples);
	free(a->ahead);
	free(a->profile_threads);
	free(a);
}

/* The thread as it is in from, whose stacks are in another trie. */
static int copy_thread(struct aggregate *a, const struct aggregate *from, const struct thread *t)
{
	struct thread *copy;
	uint32_t node;
	int r = threads_get(&a->threads, t->tid, &copy);

	if (r == 0)
		r = stacks_copy(&a->stacks, &from->stacks, t->node, &node);
	if (r < 0)
		return r;
	*copy = *t;
	copy->node = node;
	copy->last = PROFILE_NONE;
	copy->since_ns = max_u64(t->since_ns, a->span.start_ns);
	return open_chunk_emit(a, copy, open_chunk_unix_us(a, a->span.start_ns), node, !t->running);
}

int aggregate_new_beside(const struct aggregate *from, const struct aggregate_options *options,
			 struct aggregate **ret)
{
	struct aggregate *a;
	int r;

	assert(!from->closed);
	r = aggregate_new(options, from->space, &a);
	if (r < 0)
		return r;
	aggregate_exec(a, from->space, from->main_path, from->main_argv0);
	a->span = from->span;
	a->span.chunk_ns = options->chunk_us * NS_PER_US;
	if (from->span.started)
		span_restart(&a->span, from->span.newest_ns);
	for (size_t i = 0; i < from->threads.n && r == 0; i++)
		if (!from->threads.list[i].exited)
			r = copy_thread(a, from, &from->threads.list[i]);
	if (r < 0)
		aggregate_free(a);
	else
		*ret = a;
	return r;
}

static int append(struct aggregate *a, const struct thread *t, uint64_t time_us, uint32_t node,
		  bool is_waiting)
{
	if (array_grow(a->samples, a->n_samples, a->cap_samples) < 0)
		return -ENOMEM;
	a->samples[a->n_samples] = (struct profile_sample){
		.time_us = time_us,
		.tid = t->tid,
		.node = node,
		.is_waiting = is_waiting,
	};
	a->sample_bytes +=
		profile_sample_bytes(&a->samples[a->n_samples++], t->id != 0 ? t->id : t->tid);
	return 0;
}

int open_chunk_emit(struct aggregate *a, struct thread *t, uint64_t time_us, uint32_t node,
		    bool is_waiting)
{
	int r;

	is_waiting = is_waiting && node != PROFILE_NONE;
	if (t->last == PROFILE_NONE && node == PROFILE_NONE)
		return 0;
	if (t->last != PROFILE_NONE && a->samples[t->last].time_us >= time_us) {
		a->samples[t->last].node = node;
		a->samples[t->last].is_waiting = is_waiting;
		return 0;
	}
	r = append(a, t, time_us, node, is_waiting);
	if (r == 0)
		t->last = (uint32_t)(a->n_samples - 1);
	return r;
}

/* Ends a wait: its last sample is at the tick before time_ns. */
static int end_wait(struct aggregate *a, struct thread *t, uint64_t time_ns)
{
	uint64_t last_ns =
		max_u64(span_tick_before(&a->span, time_ns), min_u64(t->seen_ns, time_ns));
	uint64_t last_us = open_chunk_unix_us(a, last_ns);

	if (last_ns == time_ns || last_us <= a->samples[t->last].time_us)
		return 0;
	return open_chunk_emit(a, t, last_us, t->node, true);
}

/*
 * Adds the samples of a running thread at the ticks between its last sample and
 * time_ns. Usually there is no such tick: capture samples a running thread at
 * each. There are some where capture left ticks out, or came late.
 */
static int fill_ticks(struct aggregate *a, struct thread *t, uint64_t time_ns)
{
	uint64_t at_us = a->samples[t->last].time_us;
	int r = 0;

	while (r == 0) {
		/* The end of that microsecond. */
		uint64_t at_ns = (at_us - a->options.wall_offset_us + 1) * NS_PER_US - 1;
		uint64_t next_ns = span_tick_after(&a->span, at_ns, time_ns);

		if (next_ns == 0)
			break;
		at_us = open_chunk_unix_us(a, next_ns);
		r = open_chunk_emit(a, t, at_us, t->node, false);
	}
	return r;
}

int open_chunk_end_run(struct aggregate *a, struct thread *t, uint64_t time_ns)
{
	if (t->node == PROFILE_NONE || t->last == PROFILE_NONE)
		return 0;
	return t->running ? fill_ticks(a, t, time_ns) : end_wait(a, t, time_ns);
}

/* The thread's time until time_ns belongs to its stack. */
static void charge(struct aggregate *a, struct thread *t, uint64_t time_ns)
{
	uint64_t ns = span_between(&a->span, t->since_ns, time_ns);

	if (t->node != PROFILE_NONE && ns > 0)
		stacks_charge(&a->stacks, t->node, ns, t->running);
	t->since_ns = max_u64(t->since_ns, time_ns);
}

/* The thread, and *time_ns moved into the open chunk and behind its last. */
static int take(struct aggregate *a, uint32_t tid, uint64_t *time_ns, struct thread **ret)
{
	int r;

	assert(!a->closed);
	r = threads_get(&a->threads, tid, ret);
	if (r < 0)
		return r;
	span_note(&a->span, *time_ns);
	*time_ns = max_u64(*time_ns, a->span.start_ns);
	*time_ns = max_u64(*time_ns, (*ret)->since_ns);
	return 0;
}

/*
 * A thread that was gone is there again: its number was given to a new one, or
 * a new capture has found it. The copy at its exit must not last until its next
 * sample, so it becomes an empty stack; the last sample of the run is then at
 * the tick before that, where no sample was needed until now. A run with one
 * sample only would be dropped by the server.
 */
static int revive(struct aggregate *a, struct thread *t)
{
	int r = 0;

	if (t->exited && t->last != PROFILE_NONE) {
		const struct profile_sample last = a->samples[t->last];

		if (t->before_us != 0)
			r = append(a, t, t->before_us, last.node, last.is_waiting);
		a->samples[t->last].node = PROFILE_NONE;
		a->samples[t->last].is_waiting = false;
	}
	t->exited = false;
	return r;
}

int aggregate_thread(struct aggregate *a, uint32_t tid, bool is_main, const char *comm,
		     size_t comm_size)
{
	struct thread *t;
	int r;

	assert(!a->closed);
	r = threads_get(&a->threads, tid, &t);
	if (r == 0)
		r = revive(a, t);
	if (r < 0)
		return r;
	names_thread(comm, comm_size, is_main, a->main_path, a->main_argv0, t->name);
	return 0;
}

int aggregate_thread_id(struct aggregate *a, uint32_t tid, uint64_t id)
{
	struct thread *t;
	int r;

	assert(!a->closed);
	r = threads_get(&a->threads, tid, &t);
	if (r == 0)
		t->id = id;
	return r;
}

/*
 * The stack's node and how many frames it has. Where it begins at the root as
 * the thread's last one did, only the rest is looked up.
 */
static int add_stack(struct aggregate *a, const struct thread *t, const struct unwind_stack *stack,
		     uint32_t *ret_node, size_t *ret_depth)
{
	uint32_t base = PROFILE_NONE;
	size_t n = stack->n, depth = 0;

	if (stack->shared_n > 0 && stack->shared_id == t->stack_id && t->node != PROFILE_NONE &&
	    stack->shared_n <= t->depth) {
		depth = stack->shared_n;
		base = stacks_caller(&a->stacks, t->node, t->depth - depth);
		n -= depth;
	}
	for (size_t i = 0; i < n; i++)
		depth += stack->frames[i].addr != 0;
	*ret_depth = depth;
	return stacks_add(&a->stacks, base, stack->frames, n, ret_node);
}

int aggregate_sample(struct aggregate *a, uint32_t tid, uint64_t time_ns,
		     const struct unwind_stack *stack, bool running)
{
	struct thread *t;
	size_t depth = 0;
	uint32_t node;
	bool goes_on;
	int r = take(a, tid, &time_ns, &t);

	if (r == 0)
		r = add_stack(a, t, stack, &node, &depth);
	if (r == 0)
		r = revive(a, t);
	if (r < 0)
		return r;
	goes_on = node == t->node && (node == PROFILE_NONE || (!running && !t->running));
	if (!goes_on) {
		r = open_chunk_end_run(a, t, time_ns);
		if (r == 0)
			r = open_chunk_emit(a, t, open_chunk_unix_us(a, time_ns), node, !running);
		if (r < 0)
			return r;
	}
	charge(a, t, time_ns);
	t->node = node;
	t->depth = depth;
	t->stack_id = stack->id;
	t->running = running;
	t->seen_ns = time_ns;
	return 0;
}

int aggregate_waiting(struct aggregate *a, uint32_t tid, uint64_t time_ns)
{
	struct thread *t;
	int r = take(a, tid, &time_ns, &t);

	if (r == 0 && t->running && t->node != PROFILE_NONE) {
		r = open_chunk_end_run(a, t, time_ns);
		if (r == 0)
			r = open_chunk_emit(a, t, open_chunk_unix_us(a, time_ns), t->node, true);
	}
	if (r < 0)
		return r;
	charge(a, t, time_ns);
	t->running = false;
	t->seen_ns = time_ns;
	return 0;
}

int aggregate_missed(struct aggregate *a, uint32_t tid, uint64_t time_ns)
{
	struct thread *t;
	int r = take(a, tid, &time_ns, &t);

	if (r < 0 || t->node == PROFILE_NONE)
		return r;
	r = open_chunk_end_run(a, t, time_ns);
	if (r == 0)
		r = open_chunk_emit(a, t, open_chunk_unix_us(a, time_ns), PROFILE_NONE, false);
	if (r < 0)
		return r;
	charge(a, t, time_ns);
	t->node = PROFILE_NONE;
	return 0;
}

/* The tick before time_ns, if the run has no sample there; else 0. */
static uint64_t tick_without_sample(const struct aggregate *a, const struct thread *t,
				    uint64_t time_ns)
{
	uint64_t us = open_chunk_unix_us(a, span_tick_before(&a->span, time_ns));

	return t->node != PROFILE_NONE && t->last != PROFILE_NONE &&
			       a->samples[t->last].time_us < us
		       ? us
		       : 0;
}

int aggregate_exit(struct aggregate *a, uint32_t tid, uint64_t time_ns)
{
	struct thread *t;
	int r = take(a, tid, &time_ns, &t);

	if (r < 0 || t->exited)
		return r;
	if (t->running)
		r = open_chunk_end_run(a, t, time_ns);
	t->before_us = tick_without_sample(a, t, time_ns);
	if (r == 0 && t->node != PROFILE_NONE)
		r = open_chunk_emit(a, t, open_chunk_unix_us(a, time_ns), t->node, !t->running);
	if (r < 0)
		return r;
	charge(a, t, time_ns);
	t->node = PROFILE_NONE;
	t->exited = true;
	t->exit_us = open_chunk_unix_us(a, time_ns);
	return 0;
}

int aggregate_exit_all(struct aggregate *a, uint64_t time_ns)
{
	for (size_t i = 0; i < a->threads.n; i++) {
		int r = aggregate_exit(a, a->threads.list[i].tid, time_ns);

		if (r < 0)
			return r;
	}
	return 0;
}

/*
 * Too large, and at least twice what it was when it was opened: the stacks of
 * very many threads are large from the start, and a chunk a tick does not make
 * them smaller.
 */
static bool is_large(const struct aggregate *a)
{
	size_t bytes = open_chunk_bytes(a), nodes = a->stacks.n_nodes;

	return (bytes >= a->options.chunk_bytes && bytes / 2 >= a->open_bytes) ||
	       (nodes >= NODES_DUE && nodes / 2 >= a->open_nodes);
}

int aggregate_tick(struct aggregate *a, uint64_t time_ns, uint64_t settled_ns, uint64_t due,
		   bool *ret_due)
{
	assert(!a->closed);
	span_tick(&a->span, time_ns, settled_ns, due);
	*ret_due =
		span_due(&a->span) || (is_large(a) && span_closable(&a->span) > a->span.start_ns);
	return 0;
}

int open_chunk_count(struct aggregate *a, uint64_t time_ns)
{
	int r;

	for (size_t i = 0; i < a->threads.n; i++)
		charge(a, &a->threads.list[i], time_ns);
	r = lookup_update(&a->lookup, &a->stacks, a->space, a->main_path);
	if (r < 0)
		return r;
	return functions_add(&a->functions, &a->stacks, a->lookup.frames);
}

int aggregate_write_table(struct aggregate *a, size_t max_rows, FILE *out)
{
	int r = 0;

	if (!a->closed)
		r = open_chunk_count(a, span_closable(&a->span));
	return r < 0 ? r : functions_write(&a->functions, max_rows, out);
}
