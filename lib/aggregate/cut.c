#include "lib/aggregate/cut.h"

#include <stdlib.h>

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
 * Drops the samples with an empty stack at the chunk's first tick. The last chunk ended with
 * the thread's stack at this tick, so the empty stack ends nothing in this chunk.
 */
static void drop_empty_starts(struct open_chunk *c)
{
	const uint64_t start_us = open_chunk_unix_us(c, c->window.start_ns);
	size_t n = 0;

	for (size_t i = 0; i < c->n_threads; i++) {
		struct thread *t = &c->threads[i];

		if (t->last != PROFILE_NONE && c->samples[t->last].node == PROFILE_NONE &&
		    c->samples[t->last].time_us <= start_us)
			t->last = PROFILE_NONE;
	}
	for (size_t i = 0; i < c->n_samples; i++) {
		const struct profile_sample *s = &c->samples[i];

		if (s->node != PROFILE_NONE || s->time_us > start_us)
			c->samples[n++] = *s;
	}
	c->n_samples = n;
}

/*
 * Moves the samples from end_us on to cut->ahead, and sets carry, carry_state,
 * ahead and has_ended of each thread.
 */
static int separate_ahead(struct cut *cut, struct open_chunk *c, uint64_t end_us)
{
	size_t n = c->n_samples, n_ahead;

	for (size_t i = 0; i < c->n_threads; i++) {
		struct thread *t = &c->threads[i];

		t->ahead = false;
		t->has_ended = false;
		t->carry = t->stack.node;
		t->carry_state = t->state;
	}
	sort_samples(c->samples, c->n_samples);
	while (n > 0 && c->samples[n - 1].time_us >= end_us)
		n--;
	n_ahead = c->n_samples - n;
	c->n_samples = n;
	if (n_ahead == 0)
		return 0;
	cut->ahead = calloc(n_ahead, sizeof(cut->ahead[0]));
	if (cut->ahead == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < n_ahead; i++) {
		const struct profile_sample *s = &c->samples[n + i];
		struct thread *t = open_chunk_find(c, s->tid);

		t->carry = PROFILE_NONE;
		t->ahead = true;
		if ((t->exited && t->exit_us == end_us) ||
		    (s->node == PROFILE_NONE && s->time_us == end_us))
			t->has_ended = true;
		else
			cut->ahead[cut->n_ahead++] = *s;
	}
	for (size_t i = 0; i < n; i++) {
		struct thread *t = open_chunk_find(c, c->samples[i].tid);

		if (!t->ahead)
			continue;
		t->carry = c->samples[i].node;
		t->carry_state = c->samples[i].state;
	}
	return 0;
}

/* Adds the samples of running threads at ticks that capture skipped. */
static int end_runs(struct open_chunk *c, uint64_t end_ns)
{
	for (size_t i = 0; i < c->n_threads; i++) {
		struct thread *t = &c->threads[i];
		int r = t->state == PROFILE_RUNNING ? open_chunk_end_run(c, t, end_ns) : 0;

		if (r < 0)
			return r;
	}
	return 0;
}

/* Ends the chunk with a copy of each thread's stack. */
static int add_closing(struct open_chunk *c, uint64_t end_us)
{
	size_t first = c->n_samples;

	for (size_t i = 0; i < c->n_threads; i++) {
		struct thread *t = &c->threads[i];
		int r;

		if (t->carry == PROFILE_NONE)
			continue;
		t->last = PROFILE_NONE;
		r = open_chunk_emit(c, t, end_us, t->carry, t->carry_state);
		if (r < 0)
			return r;
		if (t->has_ended)
			t->carry = PROFILE_NONE;
		if (t->exited && t->exit_us == end_us)
			t->ahead = false;
	}
	sort_samples(c->samples + first, c->n_samples - first);
	return 0;
}

int cut_end(struct cut *cut, struct open_chunk *c, uint64_t end_ns)
{
	uint64_t end_us;
	int r;

	window_end(&c->window, end_ns, &cut->end_ns, &cut->next_ns);
	end_us = open_chunk_unix_us(c, cut->end_ns);
	r = end_runs(c, cut->end_ns);
	drop_empty_starts(c);
	if (r == 0)
		r = separate_ahead(cut, c, end_us);
	return r < 0 ? r : add_closing(c, end_us);
}

/* Replaces the trie by one that has only the stacks that the next chunk needs. */
static int renew_stacks(struct cut *cut, struct open_chunk *c)
{
	struct stacks fresh;
	int r = 0;

	stacks_init(&fresh, c->by_tid.seed);
	for (size_t i = 0; i < c->n_threads && r == 0; i++) {
		struct thread *t = &c->threads[i];

		r = stacks_copy(&fresh, &c->stacks, t->stack.node, &t->stack.node);
		t->ran.node = t->state == PROFILE_RUNNING ? t->stack.node : PROFILE_NONE;
		if (r == 0)
			r = stacks_copy(&fresh, &c->stacks, t->carry, &t->carry);
	}
	for (size_t i = 0; i < cut->n_ahead && r == 0; i++)
		r = stacks_copy(&fresh, &c->stacks, cut->ahead[i].node, &cut->ahead[i].node);
	stacks_fini(&c->stacks);
	c->stacks = fresh;
	return r;
}

/* Adds the new chunk's first samples: the threads' stacks, and cut->ahead. */
static int start_samples(const struct cut *cut, struct open_chunk *c)
{
	uint64_t start_us = open_chunk_unix_us(c, cut->next_ns);

	for (size_t i = 0; i < c->n_threads; i++) {
		struct thread *t = &c->threads[i];
		int r;

		t->last = PROFILE_NONE;
		t->since_ns = max_u64(t->since_ns, cut->next_ns);
		r = open_chunk_emit(c, t, start_us, t->carry, t->carry_state);
		if (r < 0)
			return r;
	}
	for (size_t i = 0; i < cut->n_ahead; i++) {
		const struct profile_sample *s = &cut->ahead[i];
		struct thread *t = open_chunk_find(c, s->tid);
		const size_t n = c->n_samples;
		int r = open_chunk_emit(c, t, max_u64(s->time_us, start_us), s->node, s->state);

		if (r < 0)
			return r;
		/* Unless it replaced the thread's first sample. */
		if (c->n_samples > n)
			c->samples[n].is_for_files = s->is_for_files;
	}
	return 0;
}

/* Empties the chunk, after a failed allocation. */
static void forget_stacks(struct open_chunk *c)
{
	for (size_t i = 0; i < c->n_threads; i++) {
		c->threads[i].stack.node = c->threads[i].ran.node = PROFILE_NONE;
		c->threads[i].last = PROFILE_NONE;
	}
	c->n_samples = c->sample_bytes = 0;
	stacks_fini(&c->stacks);
}

int cut_next(struct cut *cut, struct open_chunk *c)
{
	int r;

	/* Freed, not kept for reuse: one busy minute must not cost memory for ever. */
	free(c->samples);
	c->samples = NULL;
	c->n_samples = c->cap_samples = c->sample_bytes = 0;
	r = open_chunk_drop_exited(c);
	if (r == 0)
		r = renew_stacks(cut, c);
	if (r == 0)
		r = start_samples(cut, c);
	if (r < 0)
		forget_stacks(c);
	window_restart(&c->window, cut->next_ns);
	c->first_bytes = open_chunk_bytes(c);
	c->first_nodes = c->stacks.n_nodes;
	cut_fini(cut);
	return r;
}

void cut_fini(struct cut *cut)
{
	free(cut->ahead);
	*cut = (struct cut){0};
}
