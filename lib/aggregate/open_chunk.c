#include "lib/aggregate/open_chunk.h"

#include <stdlib.h>

#include "lib/base/array.h"

/*
 * Bytes that are reserved for a frame's strings as long as they are not known.
 * Most frames need less. LOOKUP_PAYLOAD_MAX limits what the strings take.
 */
#define FRAME_TEXT_BYTES 160

void open_chunk_init(struct open_chunk *c, uint64_t chunk_us, uint64_t wall_offset_us,
		     uint64_t hash_seed)
{
	*c = (struct open_chunk){.wall_offset_us = wall_offset_us};
	window_init(&c->window, chunk_us * NS_PER_US);
	table_init(&c->by_tid, hash_seed);
	stacks_init(&c->stacks, hash_seed);
}

void open_chunk_fini(struct open_chunk *c)
{
	free(c->threads);
	table_fini(&c->by_tid);
	stacks_fini(&c->stacks);
	free(c->samples);
}

struct thread *open_chunk_find(const struct open_chunk *c, uint32_t tid)
{
	uint32_t index;

	return table_get(&c->by_tid, tid, &index) ? &c->threads[index] : NULL;
}

int open_chunk_thread(struct open_chunk *c, uint32_t tid, struct thread **ret)
{
	int r;

	*ret = open_chunk_find(c, tid);
	if (*ret != NULL)
		return 0;
	if (array_grow(c->threads, c->n_threads, c->cap_threads) < 0)
		return -ENOMEM;
	r = table_put(&c->by_tid, tid, (uint32_t)c->n_threads);
	if (r < 0)
		return r;
	*ret = &c->threads[c->n_threads++];
	**ret = (struct thread){
		.tid = tid,
		.stack.node = PROFILE_NONE,
		.ran.node = PROFILE_NONE,
		.last = PROFILE_NONE,
		.carry = PROFILE_NONE,
	};
	return 0;
}

int open_chunk_drop_exited(struct open_chunk *c)
{
	size_t kept = 0;

	table_clear(&c->by_tid);
	for (size_t i = 0; i < c->n_threads; i++) {
		int r;

		if (c->threads[i].exited && !c->threads[i].ahead)
			continue;
		c->threads[kept] = c->threads[i];
		r = table_put(&c->by_tid, c->threads[kept].tid, (uint32_t)kept);
		if (r < 0)
			return r;
		kept++;
	}
	c->n_threads = kept;
	return 0;
}

int open_chunk_append(struct open_chunk *c, const struct thread *t, uint64_t time_us, uint32_t node,
		      enum profile_state state)
{
	if (array_grow(c->samples, c->n_samples, c->cap_samples) < 0)
		return -ENOMEM;
	c->samples[c->n_samples] = (struct profile_sample){
		.time_us = time_us,
		.tid = t->tid,
		.node = node,
		.state = state,
	};
	c->sample_bytes +=
		profile_sample_bytes(&c->samples[c->n_samples++], t->id != 0 ? t->id : t->tid);
	return 0;
}

int open_chunk_emit(struct open_chunk *c, struct thread *t, uint64_t time_us, uint32_t node,
		    enum profile_state state)
{
	int r;

	if (node == PROFILE_NONE)
		state = PROFILE_RUNNING;
	if (t->last == PROFILE_NONE && node == PROFILE_NONE)
		return 0;
	if (t->last != PROFILE_NONE && c->samples[t->last].time_us >= time_us) {
		c->samples[t->last].node = node;
		c->samples[t->last].state = state;
		c->samples[t->last].is_for_files = false;
		return 0;
	}
	r = open_chunk_append(c, t, time_us, node, state);
	if (r == 0)
		t->last = (uint32_t)(c->n_samples - 1);
	return r;
}

/* Adds the last sample of a ready or waiting time, at the tick before time_ns. */
static int end_off_cpu(struct open_chunk *c, struct thread *t, uint64_t time_ns)
{
	uint64_t last_ns =
		max_u64(window_tick_before(&c->window, time_ns), min_u64(t->seen_ns, time_ns));
	uint64_t last_us = open_chunk_unix_us(c, last_ns);

	if (last_ns == time_ns)
		return 0;
	if (last_us <= c->samples[t->last].time_us) {
		c->samples[t->last].is_for_files = false;
		return 0;
	}
	return open_chunk_emit(c, t, last_us, t->stack.node, t->state);
}

/*
 * Adds samples of a running thread at the ticks between its last sample and
 * time_ns. Usually there is no such tick, because capture samples a running
 * thread at each tick. There are some where capture skipped ticks or was late.
 */
static int fill_ticks(struct open_chunk *c, struct thread *t, uint64_t time_ns)
{
	uint64_t at_us = c->samples[t->last].time_us;
	int r = 0;

	while (r == 0) {
		/* at_ns is the last nanosecond of the microsecond at_us. */
		uint64_t at_ns = (at_us - c->wall_offset_us + 1) * NS_PER_US - 1;
		uint64_t next_ns = window_tick_after(&c->window, at_ns, time_ns);

		if (next_ns == 0)
			break;
		at_us = open_chunk_unix_us(c, next_ns);
		r = open_chunk_emit(c, t, at_us, t->stack.node, PROFILE_RUNNING);
	}
	return r;
}

int open_chunk_end_run(struct open_chunk *c, struct thread *t, uint64_t time_ns)
{
	if (t->stack.node == PROFILE_NONE || t->last == PROFILE_NONE)
		return 0;
	return t->state == PROFILE_RUNNING ? fill_ticks(c, t, time_ns) : end_off_cpu(c, t, time_ns);
}

int open_chunk_change_state(struct open_chunk *c, struct thread *t, uint64_t time_ns,
			    enum profile_state state)
{
	const size_t n = c->n_samples;
	const uint32_t last = t->last;
	const bool was_for_files = last != PROFILE_NONE && c->samples[last].is_for_files;
	int r = open_chunk_end_run(c, t, time_ns);

	if (r == 0)
		r = open_chunk_emit(c, t, open_chunk_unix_us(c, time_ns), t->stack.node, state);
	if (last != PROFILE_NONE)
		c->samples[last].is_for_files = was_for_files;
	for (size_t i = n; i < c->n_samples; i++)
		c->samples[i].is_for_files = true;
	return r;
}

void open_chunk_charge(struct open_chunk *c, struct thread *t, uint64_t time_ns)
{
	uint64_t ns = window_between(&c->window, t->since_ns, time_ns);

	if (t->stack.node != PROFILE_NONE && ns > 0)
		stacks_charge(&c->stacks, t->stack.node, ns, t->state);
	t->since_ns = max_u64(t->since_ns, time_ns);
}

size_t open_chunk_bytes(const struct open_chunk *c)
{
	/* Each thread may get one more sample at the end. */
	return c->stacks.payload_bytes + c->stacks.n_frames * FRAME_TEXT_BYTES + c->sample_bytes +
	       c->n_threads * (PROFILE_SAMPLE_BYTES + PROFILE_THREAD_BYTES);
}
