#include "lib/aggregate/open_chunk.h"

#include <assert.h>
#include <stdlib.h>

#include "lib/aggregate/thread_names.h"

/*
 * What is set aside for a frame's strings while they are not known; most
 * are shorter together. LOOKUP_PAYLOAD_MAX bounds what they really take.
 */
#define FRAME_TEXT_BYTES 160

size_t open_chunk_bytes(const struct aggregate *a)
{
	/* Each thread may get one more sample at the end. */
	return a->stacks.payload_bytes + a->stacks.n_frames * FRAME_TEXT_BYTES + a->sample_bytes +
	       a->threads.n * (PROFILE_SAMPLE_BYTES + PROFILE_THREAD_BYTES);
}

static int compare_samples(const void *a, const void *b)
{
	const struct profile_sample *x = a, *y = b;

	if (x->time_us != y->time_us)
		return x->time_us < y->time_us ? -1 : 1;
	return x->tid < y->tid ? -1 : x->tid > y->tid;
}

static void sort_samples(struct profile_sample *samples, size_t n)
{
	if (n > 0)
		qsort(samples, n, sizeof(samples[0]), compare_samples);
}

/*
 * Who is missed from the chunk's first tick on has nothing in it: the last
 * chunk has ended its run.
 */
static void drop_starts_missed(struct aggregate *a)
{
	const uint64_t start_us = open_chunk_unix_us(a, a->span.start_ns);
	size_t n = 0;

	for (size_t i = 0; i < a->threads.n; i++) {
		struct thread *t = &a->threads.list[i];

		if (t->last != PROFILE_NONE && a->samples[t->last].node == PROFILE_NONE &&
		    a->samples[t->last].time_us <= start_us)
			t->last = PROFILE_NONE;
	}
	for (size_t i = 0; i < a->n_samples; i++) {
		const struct profile_sample *s = &a->samples[i];

		if (s->node != PROFILE_NONE || s->time_us > start_us)
			a->samples[n++] = *s;
	}
	a->n_samples = n;
}

/*
 * Moves the samples from end_us on to a->ahead, and finds out for each thread
 * which stack it has at the end.
 */
static int split(struct aggregate *a, uint64_t end_us)
{
	size_t n = a->n_samples, n_ahead;

	for (size_t i = 0; i < a->threads.n; i++) {
		struct thread *t = &a->threads.list[i];

		t->ahead = false;
		t->ends = false;
		t->carry = t->node;
		t->carry_waits = !t->running;
	}
	sort_samples(a->samples, a->n_samples);
	while (n > 0 && a->samples[n - 1].time_us >= end_us)
		n--;
	n_ahead = a->n_samples - n;
	a->n_samples = n;
	if (n_ahead == 0)
		return 0;
	a->ahead = calloc(n_ahead, sizeof(a->ahead[0]));
	if (a->ahead == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < n_ahead; i++) {
		const struct profile_sample *s = &a->samples[n + i];
		struct thread *t = threads_find(&a->threads, s->tid);

		t->carry = PROFILE_NONE;
		t->ahead = true;
		if ((t->exited && t->exit_us == end_us) ||
		    (s->node == PROFILE_NONE && s->time_us == end_us))
			t->ends = true;
		else
			a->ahead[a->n_ahead++] = *s;
	}
	for (size_t i = 0; i < n; i++) {
		struct thread *t = threads_find(&a->threads, a->samples[i].tid);

		if (!t->ahead)
			continue;
		t->carry = a->samples[i].node;
		t->carry_waits = a->samples[i].is_waiting;
	}
	return 0;
}

/* Adds the samples of running threads at ticks that capture left out. */
static int end_runs(struct aggregate *a, uint64_t end_ns)
{
	for (size_t i = 0; i < a->threads.n; i++) {
		struct thread *t = &a->threads.list[i];
		int r = t->running ? open_chunk_end_run(a, t, end_ns) : 0;

		if (r < 0)
			return r;
	}
	return 0;
}

/* Ends the chunk with a copy of each thread's stack. */
static int add_closing(struct aggregate *a, uint64_t end_us)
{
	size_t first = a->n_samples;

	for (size_t i = 0; i < a->threads.n; i++) {
		struct thread *t = &a->threads.list[i];
		int r;

		if (t->carry == PROFILE_NONE)
			continue;
		t->last = PROFILE_NONE;
		r = open_chunk_emit(a, t, end_us, t->carry, t->carry_waits);
		if (r < 0)
			return r;
		if (t->ends)
			t->carry = PROFILE_NONE;
		if (t->exited && t->exit_us == end_us)
			t->ahead = false;
	}
	sort_samples(a->samples + first, a->n_samples - first);
	return 0;
}

static int compare_threads(const void *a, const void *b)
{
	const struct profile_thread *x = a, *y = b;

	return x->tid < y->tid ? -1 : x->tid > y->tid;
}

static int list_threads(struct aggregate *a)
{
	size_t n = 0;

	/* One more: calloc(0) may be NULL. */
	a->profile_threads = calloc(a->threads.n + 1, sizeof(a->profile_threads[0]));
	if (a->profile_threads == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < a->threads.n; i++) {
		const struct thread *t = &a->threads.list[i];

		if (t->last == PROFILE_NONE)
			continue;
		a->profile_threads[n].tid = t->tid;
		a->profile_threads[n].id = t->id;
		a->profile_threads[n++].name = t->name;
	}
	qsort(a->profile_threads, n, sizeof(a->profile_threads[0]), compare_threads);
	a->n_profile_threads = n;
	return thread_names_tell_apart(a->profile_threads, n, &a->lookup.text);
}

int aggregate_close(struct aggregate *a, uint64_t end_ns, struct profile *ret)
{
	uint64_t end_us;
	int r;

	assert(!a->closed);
	a->closed = true;
	span_end(&a->span, end_ns, &end_ns, &a->next_ns);
	end_us = open_chunk_unix_us(a, end_ns);
	r = end_runs(a, end_ns);
	drop_starts_missed(a);
	if (r == 0)
		r = split(a, end_us);
	if (r == 0)
		r = add_closing(a, end_us);
	if (r == 0)
		r = open_chunk_count(a, end_ns);
	if (r == 0)
		r = lookup_finish(&a->lookup, &a->stacks, a->space);
	if (r == 0)
		r = list_threads(a);
	if (r < 0)
		return r;
	*ret = (struct profile){
		.images = a->lookup.profile_images,
		.n_images = a->lookup.n_profile_images,
		.frames = a->lookup.frames,
		.n_frames = a->lookup.n_frames,
		.nodes = a->stacks.nodes,
		.n_nodes = a->stacks.n_nodes,
		.samples = a->samples,
		.n_samples = a->n_samples,
		.threads = a->profile_threads,
		.n_threads = a->n_profile_threads,
	};
	r = expand_inlined(&a->expand, &a->lookup, &a->stacks, a->samples, ret);
	if (r == 0 && a->options.by_function)
		r = fold_equal(&a->fold, a->options.hash_seed, a->samples, ret);
	return r;
}

/* Copies the stacks that are still needed into a trie of their own. */
static int renew_stacks(struct aggregate *a)
{
	struct stacks fresh;
	int r = 0;

	stacks_init(&fresh, a->options.hash_seed);
	for (size_t i = 0; i < a->threads.n && r == 0; i++) {
		struct thread *t = &a->threads.list[i];

		r = stacks_copy(&fresh, &a->stacks, t->node, &t->node);
		if (r == 0)
			r = stacks_copy(&fresh, &a->stacks, t->carry, &t->carry);
	}
	for (size_t i = 0; i < a->n_ahead && r == 0; i++)
		r = stacks_copy(&fresh, &a->stacks, a->ahead[i].node, &a->ahead[i].node);
	stacks_fini(&a->stacks);
	a->stacks = fresh;
	return r;
}

/* The chunk's first samples: threads' stacks as it starts, and what is ahead.
 */
static int start_samples(struct aggregate *a)
{
	uint64_t start_us = open_chunk_unix_us(a, a->next_ns);

	for (size_t i = 0; i < a->threads.n; i++) {
		struct thread *t = &a->threads.list[i];
		int r;

		t->last = PROFILE_NONE;
		t->since_ns = max_u64(t->since_ns, a->next_ns);
		r = open_chunk_emit(a, t, start_us, t->carry, t->carry_waits);
		if (r < 0)
			return r;
	}
	for (size_t i = 0; i < a->n_ahead; i++) {
		const struct profile_sample *s = &a->ahead[i];
		struct thread *t = threads_find(&a->threads, s->tid);
		int r = open_chunk_emit(a, t, max_u64(s->time_us, start_us), s->node,
					s->is_waiting);

		if (r < 0)
			return r;
	}
	return 0;
}

/* Without memory: an empty chunk. */
static void forget_stacks(struct aggregate *a)
{
	for (size_t i = 0; i < a->threads.n; i++) {
		a->threads.list[i].node = PROFILE_NONE;
		a->threads.list[i].last = PROFILE_NONE;
	}
	a->n_samples = a->sample_bytes = 0;
	stacks_fini(&a->stacks);
}

int aggregate_next(struct aggregate *a)
{
	int r;

	assert(a->closed);
	/* Not kept for reuse: one busy minute must not cost memory for ever. */
	free(a->samples);
	a->samples = NULL;
	a->n_samples = a->cap_samples = a->sample_bytes = 0;
	lookup_fini(&a->lookup);
	expand_fini(&a->expand);
	fold_fini(&a->fold);
	free(a->profile_threads);
	a->profile_threads = NULL;
	r = threads_drop_exited(&a->threads);
	if (r == 0)
		r = renew_stacks(a);
	if (r == 0)
		r = start_samples(a);
	if (r < 0)
		forget_stacks(a);
	free(a->ahead);
	a->ahead = NULL;
	a->n_ahead = 0;
	span_restart(&a->span, a->next_ns);
	a->open_bytes = open_chunk_bytes(a);
	a->open_nodes = a->stacks.n_nodes;
	a->closed = false;
	return r;
}
