#include "lib/aggregate/aggregate.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/aggregate/cut.h"
#include "lib/aggregate/dedup.h"
#include "lib/aggregate/expand.h"
#include "lib/aggregate/functions.h"
#include "lib/aggregate/lookup.h"
#include "lib/aggregate/names.h"
#include "lib/aggregate/open_chunk.h"
#include "lib/base/utf8.h"

/*
 * A chunk with so many nodes is due. If the stacks have little in common, the trie needs
 * more memory than the payload has bytes, so chunk_bytes does not limit it. This limit keeps
 * the trie, with its table of 2^19 slots, below 16 MB. The deep stacks of 100 busy threads
 * that share their callers stay below the limit for a minute.
 */
#define NODES_DUE 350000

struct aggregate {
	struct aggregate_options options;
	char main_path[NAME_SIZE];
	char main_argv0[NAME_SIZE];
	struct unwind_space *space;
	bool is_counted; /* the table has times of this process in its present program */
	struct open_chunk chunk;

	/* Frames of the open chunk that have been looked up; renewed with the chunk. */
	struct lookup lookup;

	/* The closed chunk, from aggregate_close() to aggregate_next(). */
	bool closed;
	struct cut cut;
	struct expand expand;
	struct dedup dedup;
	struct profile_thread *profile_threads;
};

void aggregate_exec(struct aggregate *a, struct unwind_space *space, const char *main_path,
		    const char *main_argv0)
{
	char former[NAME_SIZE];

	memcpy(former, a->main_path, sizeof(former));
	a->space = space;
	utf8_clean(main_path, true, a->main_path, sizeof(a->main_path));
	if (strcmp(names_base(former), names_base(a->main_path)) != 0)
		a->is_counted = false;
	a->options.main_path = a->main_path;
	/* The bytes are not cleaned, because they are only compared, never shown. */
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

	if (options->chunk_us == 0 || options->chunk_us > WINDOW_MAX_US)
		return -EINVAL;
	a = calloc(1, sizeof(*a));
	if (a == NULL)
		return -ENOMEM;
	a->options = *options;
	aggregate_exec(a, space, options->main_path, options->main_argv0);
	open_chunk_init(&a->chunk, options->chunk_us, options->wall_offset_us, options->hash_seed);
	lookup_init(&a->lookup, options->hash_seed);
	a->lookup.demangle = options->demangle;
	a->lookup.inlined_for_files = !options->inlined;
	a->lookup.lines_for_files = options->lines_for_files;
	a->lookup.name_by_start = options->name_by_start;
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
	open_chunk_fini(&a->chunk);
	lookup_fini(&a->lookup);
	cut_fini(&a->cut);
	expand_fini(&a->expand);
	dedup_fini(&a->dedup);
	free(a->profile_threads);
	free(a);
}

/* Adds a sample at time_ns of a tick. */
static int emit(struct open_chunk *c, struct thread *t, uint64_t time_ns, uint32_t node,
		enum profile_state state)
{
	return open_chunk_emit(c, t, open_chunk_unix_us(c, time_ns), node, state);
}

/* Copies the thread t of the chunk from, with its stacks, into c. */
static int copy_thread(struct open_chunk *c, const struct open_chunk *from, const struct thread *t)
{
	struct thread *copy;
	uint32_t node, ran;
	int r = open_chunk_thread(c, t->tid, &copy);

	if (r == 0)
		r = stacks_copy(&c->stacks, &from->stacks, t->stack.node, &node);
	if (r == 0)
		r = stacks_copy(&c->stacks, &from->stacks, t->ran.node, &ran);
	if (r != 0)
		return r;
	*copy = *t;
	copy->stack.node = node;
	copy->ran.node = ran;
	copy->last = PROFILE_NONE;
	copy->since_ns = max_u64(t->since_ns, c->window.start_ns);
	return emit(c, copy, c->window.start_ns, node, t->state);
}

int aggregate_new_beside(const struct aggregate *original, const struct aggregate_options *options,
			 struct aggregate **ret)
{
	struct aggregate *a;
	int r;

	assert(!original->closed);
	r = aggregate_new(options, original->space, &a);
	if (r < 0)
		return r;
	aggregate_exec(a, original->space, original->main_path, original->main_argv0);
	a->chunk.window = original->chunk.window;
	a->chunk.window.chunk_ns = options->chunk_us * NS_PER_US;
	if (original->chunk.window.started)
		window_restart(&a->chunk.window, original->chunk.window.newest_ns);
	for (size_t i = 0; i < original->chunk.n_threads && r == 0; i++)
		if (!original->chunk.threads[i].exited)
			r = copy_thread(&a->chunk, &original->chunk, &original->chunk.threads[i]);
	if (r < 0)
		aggregate_free(a);
	else
		*ret = a;
	return r;
}

/*
 * Finds the thread of a record. Moves *time_ns forward where it is before the
 * beginning of the chunk or before the thread's last record.
 */
static int begin_record(struct aggregate *a, uint32_t tid, uint64_t *time_ns, struct thread **ret)
{
	int r;

	assert(!a->closed);
	r = open_chunk_thread(&a->chunk, tid, ret);
	if (r < 0)
		return r;
	window_note(&a->chunk.window, *time_ns);
	*time_ns = max_u64(*time_ns, a->chunk.window.start_ns);
	*time_ns = max_u64(*time_ns, (*ret)->since_ns);
	return 0;
}

/* Adds the thread's last sample at the tick before its exit; exit: the sample at the exit. */
static int end_before_exit(struct open_chunk *c, const struct thread *t,
			   const struct profile_sample *exit)
{
	for (uint32_t i = t->last; i-- > 0;) {
		if (c->samples[i].tid != t->tid)
			continue;
		if (c->samples[i].time_us != t->before_us)
			break;
		/* Until now the sample was only in payloads for files. */
		c->samples[i].is_for_files = false;
		return 0;
	}
	return open_chunk_append(c, t, t->before_us, exit->node, exit->state);
}

/*
 * Marks a thread that had exited as alive: the kernel has given its tid to a new thread, or
 * a new capture process has found the thread. The copy of the stack at the exit must not
 * last until the next sample, so it becomes an empty stack. The stack gets its last sample
 * at the tick before the exit instead, because the server drops a thread with only one
 * sample.
 */
static int revive(struct open_chunk *c, struct thread *t)
{
	int r = 0;

	if (t->exited && t->last != PROFILE_NONE) {
		const struct profile_sample last = c->samples[t->last];

		if (t->before_us != 0)
			r = end_before_exit(c, t, &last);
		c->samples[t->last].node = PROFILE_NONE;
		c->samples[t->last].state = PROFILE_RUNNING;
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
	r = open_chunk_thread(&a->chunk, tid, &t);
	if (r == 0)
		r = revive(&a->chunk, t);
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
	r = open_chunk_thread(&a->chunk, tid, &t);
	if (r == 0)
		t->id = id;
	return r;
}

/* Adds the samples by which the thread changes to this stack and state at time_ns. */
static int change(struct open_chunk *c, struct thread *t, uint64_t time_ns, uint32_t node,
		  enum profile_state state)
{
	const bool same_stack = node == t->stack.node;
	const bool off_cpu = state != PROFILE_RUNNING && t->state != PROFILE_RUNNING;
	int r;

	if (same_stack && (node == PROFILE_NONE || (off_cpu && state == t->state)))
		return 0;
	if (same_stack && off_cpu)
		return open_chunk_change_state(c, t, time_ns, state);
	r = open_chunk_end_run(c, t, time_ns);
	return r < 0 ? r : emit(c, t, time_ns, node, state);
}

/*
 * Adds the thread's new stack and returns its node and its number of frames.
 * The frames that the unwinder found equal to those of the thread's last stack
 * (shared_n, from the root) are not looked up again.
 */
static int add_stack(struct open_chunk *c, const struct thread *t, const struct unwind_stack *stack,
		     uint32_t *ret_node, size_t *ret_depth)
{
	uint32_t base = PROFILE_NONE;
	size_t n = stack->n, depth = 0;

	if (stack->shared_n > 0 && stack->shared_id == t->stack.stack_id &&
	    t->stack.node != PROFILE_NONE && stack->shared_n <= t->stack.depth) {
		depth = stack->shared_n;
		base = stacks_caller(&c->stacks, t->stack.node, t->stack.depth - depth);
		n -= depth;
	}
	for (size_t i = 0; i < n; i++)
		depth += stack->frames[i].addr != 0;
	*ret_depth = depth;
	return stacks_add(&c->stacks, base, stack->frames, n, ret_node);
}

/* Sets the stack and the state that the thread has from time_ns on. */
static int enter(struct open_chunk *c, struct thread *t, uint64_t time_ns, struct seen_stack stack,
		 enum profile_state state)
{
	int r = change(c, t, time_ns, stack.node, state);

	if (r < 0)
		return r;
	open_chunk_charge(c, t, time_ns);
	t->stack = stack;
	t->state = state;
	t->seen_ns = time_ns;
	if (state == PROFILE_RUNNING)
		t->ran = stack;
	return 0;
}

int aggregate_sample(struct aggregate *a, uint32_t tid, uint64_t time_ns,
		     const struct unwind_stack *stack, enum profile_state state)
{
	struct seen_stack seen = {.stack_id = stack->id};
	struct thread *t;
	int r = begin_record(a, tid, &time_ns, &t);

	if (r == 0)
		r = add_stack(&a->chunk, t, stack, &seen.node, &seen.depth);
	if (r == 0)
		r = revive(&a->chunk, t);
	return r != 0 ? r : enter(&a->chunk, t, time_ns, seen, state);
}

int aggregate_state(struct aggregate *a, uint32_t tid, uint64_t time_ns, enum profile_state state)
{
	struct thread *t;
	int r = begin_record(a, tid, &time_ns, &t);

	return r < 0 ? r : enter(&a->chunk, t, time_ns, t->stack, state);
}

int aggregate_running(struct aggregate *a, uint32_t tid, uint64_t time_ns)
{
	struct thread *t;
	int r = begin_record(a, tid, &time_ns, &t);

	if (r < 0)
		return r;
	if (t->ran.node != PROFILE_NONE)
		return enter(&a->chunk, t, time_ns, t->ran, PROFILE_RUNNING);
	r = enter(&a->chunk, t, time_ns, t->stack, PROFILE_RUNNING);
	t->ran.node = PROFILE_NONE;
	return r;
}

int aggregate_missed(struct aggregate *a, uint32_t tid, uint64_t time_ns)
{
	struct thread *t;
	int r = begin_record(a, tid, &time_ns, &t);

	if (r < 0 || t->stack.node == PROFILE_NONE)
		return r;
	r = open_chunk_end_run(&a->chunk, t, time_ns);
	if (r == 0)
		r = emit(&a->chunk, t, time_ns, PROFILE_NONE, PROFILE_RUNNING);
	if (r < 0)
		return r;
	open_chunk_charge(&a->chunk, t, time_ns);
	t->stack.node = PROFILE_NONE;
	return 0;
}

/*
 * Returns the tick before time_ns if the thread has no sample at that tick, or has a sample that is
 * only for files; else 0.
 */
static uint64_t tick_without_sample(const struct open_chunk *c, const struct thread *t,
				    uint64_t time_ns)
{
	uint64_t us = open_chunk_unix_us(c, window_tick_before(&c->window, time_ns));
	const struct profile_sample *last;

	if (t->stack.node == PROFILE_NONE || t->last == PROFILE_NONE)
		return 0;
	last = &c->samples[t->last];
	return last->time_us < us || (last->time_us == us && last->is_for_files) ? us : 0;
}

int aggregate_exit(struct aggregate *a, uint32_t tid, uint64_t time_ns)
{
	struct thread *t;
	int r = begin_record(a, tid, &time_ns, &t);

	if (r < 0 || t->exited)
		return r;
	if (t->state == PROFILE_RUNNING)
		r = open_chunk_end_run(&a->chunk, t, time_ns);
	t->before_us = tick_without_sample(&a->chunk, t, time_ns);
	if (r == 0 && t->stack.node != PROFILE_NONE)
		r = emit(&a->chunk, t, time_ns, t->stack.node, t->state);
	if (r < 0)
		return r;
	open_chunk_charge(&a->chunk, t, time_ns);
	t->stack.node = PROFILE_NONE;
	t->exited = true;
	t->exit_us = open_chunk_unix_us(&a->chunk, time_ns);
	return 0;
}

int aggregate_exit_all(struct aggregate *a, uint64_t time_ns)
{
	for (size_t i = 0; i < a->chunk.n_threads; i++) {
		int r = aggregate_exit(a, a->chunk.threads[i].tid, time_ns);

		if (r < 0)
			return r;
	}
	return 0;
}

/*
 * Returns true if the chunk has reached its limit, and at least twice the size that it had
 * at its beginning. Without the second condition very many threads, whose stacks alone
 * exceed the limit, would cause a chunk at each tick.
 */
static bool is_large(const struct aggregate *a)
{
	size_t bytes = open_chunk_bytes(&a->chunk), nodes = a->chunk.stacks.n_nodes;

	return (bytes >= a->options.chunk_bytes && bytes / 2 >= a->chunk.first_bytes) ||
	       (nodes >= NODES_DUE && nodes / 2 >= a->chunk.first_nodes);
}

bool aggregate_tick(struct aggregate *a, uint64_t time_ns, uint64_t settled_ns,
		    uint64_t elapsed_ticks)
{
	assert(!a->closed);
	window_tick(&a->chunk.window, time_ns, settled_ns, elapsed_ticks);
	return window_due(&a->chunk.window) ||
	       (is_large(a) && window_closable(&a->chunk.window) > a->chunk.window.start_ns);
}

/* Adds the times of the open chunk's stacks to the program's row of the table. */
static int add_to_program(struct aggregate *a)
{
	const struct stacks *s = &a->chunk.stacks;
	uint64_t ns[PROFILE_STATES] = {0};

	for (size_t i = 0; i < s->n_times; i++)
		for (size_t state = 0; state < PROFILE_STATES; state++)
			ns[state] += s->times[i].ns[state];
	return programs_add(&a->options.table->programs,
			    a->main_path[0] == '\0' ? "unknown" : names_base(a->main_path), ns,
			    &a->is_counted);
}

/*
 * Charges all threads' time up to time_ns and adds it to the table, if there is one. Looks up the
 * names of new frames.
 */
static int add_to_table(struct aggregate *a, uint64_t time_ns)
{
	int r;

	for (size_t i = 0; i < a->chunk.n_threads; i++)
		open_chunk_charge(&a->chunk, &a->chunk.threads[i], time_ns);
	r = lookup_update(&a->lookup, &a->chunk.stacks, a->space, a->main_path);
	if (r < 0 || a->options.table == NULL)
		return r;
	r = add_to_program(a);
	if (r < 0)
		return r;
	return functions_add_inlined(a->options.table, &a->chunk.stacks, a->lookup.frames,
				     a->lookup.lines, a->lookup.inlined, a->lookup.n_inlined);
}

static int compare_threads(const void *a, const void *b)
{
	const struct profile_thread *x = a, *y = b;

	return x->tid < y->tid ? -1 : x->tid > y->tid;
}

/* Lists the threads that have a sample in the closed chunk, by tid. */
static int list_threads(struct aggregate *a, size_t *ret_n)
{
	size_t n = 0;

	/* One element more than needed, because calloc(0) may return NULL. */
	a->profile_threads = calloc(a->chunk.n_threads + 1, sizeof(a->profile_threads[0]));
	if (a->profile_threads == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < a->chunk.n_threads; i++) {
		const struct thread *t = &a->chunk.threads[i];

		if (t->last == PROFILE_NONE)
			continue;
		a->profile_threads[n].tid = t->tid;
		a->profile_threads[n].id = t->id;
		a->profile_threads[n++].name = t->name;
	}
	qsort(a->profile_threads, n, sizeof(a->profile_threads[0]), compare_threads);
	*ret_n = n;
	return names_tell_apart(a->profile_threads, n, &a->lookup.text);
}

int aggregate_close(struct aggregate *a, uint64_t end_ns, struct profile *ret)
{
	size_t n_threads = 0;
	int r;

	assert(!a->closed);
	a->closed = true;
	r = cut_end(&a->cut, &a->chunk, end_ns);
	if (r == 0)
		r = add_to_table(a, a->cut.end_ns);
	if (r == 0)
		r = lookup_finish(&a->lookup, &a->chunk.stacks, a->space);
	if (r == 0)
		r = list_threads(a, &n_threads);
	if (r < 0)
		return r;
	*ret = (struct profile){
		.images = a->lookup.profile_images,
		.n_images = a->lookup.n_profile_images,
		.frames = a->lookup.frames,
		.n_frames = a->lookup.n_frames,
		.lines = a->lookup.lines,
		.inlined = a->lookup.inlined,
		.n_inlined = a->lookup.n_inlined,
		.nodes = a->chunk.stacks.nodes,
		.n_nodes = a->chunk.stacks.n_nodes,
		.samples = a->chunk.samples,
		.n_samples = a->chunk.n_samples,
		.threads = a->profile_threads,
		.n_threads = n_threads,
	};
	if (a->options.inlined)
		r = expand_inlined(&a->expand, &a->lookup, &a->chunk.stacks, a->chunk.samples, ret);
	if (r == 0 && a->options.by_function)
		r = dedup_profile(&a->dedup, a->options.hash_seed, a->chunk.samples, ret);
	return r;
}

int aggregate_next(struct aggregate *a)
{
	assert(a->closed);
	lookup_fini(&a->lookup);
	expand_fini(&a->expand);
	dedup_fini(&a->dedup);
	free(a->profile_threads);
	a->profile_threads = NULL;
	a->closed = false;
	return cut_next(&a->cut, &a->chunk);
}

int aggregate_update_table(struct aggregate *a)
{
	if (a->closed || a->options.table == NULL)
		return 0;
	return add_to_table(a, window_closable(&a->chunk.window));
}
