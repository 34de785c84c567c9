#include "daemon/unwind/stream.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/msg/discard.h"
#include "daemon/msg/msg_io.h"
#include "daemon/unwind/chunk.h"
#include "daemon/unwind/chunks.h"
#include "daemon/unwind/exec_budget.h"
#include "daemon/unwind/hints.h"
#include "daemon/unwind/maps_age.h"
#include "daemon/unwind/measures.h"
#include "daemon/unwind/program.h"
#include "lib/base/clock.h"

struct stream {
	struct msg_session_open open;
	struct unwind_cache *cache;
	struct program program;
	struct chunks chunks; /* the session's; after it those of recordings */
	struct hints hints;
	stream_hint_fn send_hint;

	struct maps_age maps_age;
	struct exec_budget execs;
	bool exec_is_left_out; /* the chunk of the program that has ended */
	uint64_t time_ns;      /* of the last record */
	uint64_t settled_ns;   /* of the last tick */
	bool closed;
	bool was_away; /* capture was: nobody told of an exec */
	struct work work;
	struct unwind_counts counts;
	struct measures measures;
};

/* Of every reader, the session's first. */
#define FOR_EACH_CHUNKS(c, s) for (struct chunks *c = &(s)->chunks; (c) != NULL; (c) = (c)->next)

void stream_work(struct stream *s, uint64_t now_ns)
{
	work_begin(&s->work, now_ns);
}

void stream_rest(struct stream *s, uint64_t now_ns)
{
	work_end(&s->work, now_ns);
}

/* A new program: nothing that was known of the old one holds. */
static int open_program(struct stream *s)
{
	int r = program_open(&s->program, &s->open, &s->work, s->cache);

	if (r < 0)
		return r;
	FOR_EACH_CHUNKS (c, s)
		chunks_exec(c, &s->program);
	return 0;
}

int stream_new(const struct msg_session_open *open, struct unwind_cache *cache, stream_hint_fn hint,
	       struct stream **ret)
{
	struct stream *s = calloc(1, sizeof(*s));
	int r;

	if (s == NULL)
		return -ENOMEM;
	s->open = *open;
	s->cache = cache;
	s->send_hint = hint;
	measures_init(&s->measures);
	stream_work(s, clock_mono_ns());
	r = program_open(&s->program, &s->open, &s->work, s->cache);
	if (r == 0)
		r = chunks_open(&s->chunks, &s->open, &s->program);
	if (r < 0) {
		stream_free(s);
		return r;
	}
	stream_rest(s, clock_mono_ns());
	*ret = s;
	return 0;
}

static void remove_record(struct stream *s, struct chunks *record)
{
	struct chunks *before = &s->chunks;

	while (before->next != record)
		before = before->next;
	before->next = record->next;
	chunks_free(record);
}

void stream_free(struct stream *s)
{
	if (s == NULL)
		return;
	while (s->chunks.next != NULL)
		remove_record(s, s->chunks.next);
	chunks_fini(&s->chunks);
	program_fini(&s->program);
	free(s);
}

uint32_t stream_target(const struct stream *s)
{
	return s->open.target;
}

static void send_stats(struct stream *s)
{
	work_update(&s->work);
	struct msg_unwind_stats m = {
		.h = MSG_HEADER(MSG_UNWIND_STATS),
		.target = s->open.target,
	};

	s->counts.cost_ns = s->work.sum_ns;
	s->counts.without_lines += unwind_space_take_lines_skipped(s->program.space);
	m.counts = s->counts;
	if (ipc_send(MSG_FD, &m, sizeof(m), NULL, 0) < 0)
		exit(EXIT_SUCCESS);
}

static bool has_stack(const struct profile *p)
{
	for (size_t i = 0; i < p->n_samples; i++)
		if (p->samples[i].node != PROFILE_NONE)
			return true;
	return false;
}

/*
 * Sends a chunk that was closed at end_ns, if it is wanted; by_exec: that of a
 * program which has ended. The session's comes first: where the budget of execs
 * has none left for it, recordings get none either.
 */
static void send_chunk(struct stream *s, struct chunks *c, uint64_t end_ns, bool by_exec,
		       struct profile *profile)
{
	char name[PROGRAM_NAME_SIZE];

	if (c->open.is_idle)
		return;
	if (c->open.cpu_only && !has_stack(profile)) {
		if (c->record == 0)
			chunk_is_lost(s->open.target, 0, CHUNK_IDLE);
		return;
	}
	if (profile->n_samples == 0)
		return;
	if (by_exec && c->record == 0)
		s->exec_is_left_out = !exec_budget_take(&s->execs, s->open.pid, end_ns);
	if (by_exec && s->exec_is_left_out) {
		chunk_is_lost(s->open.target, c->record, DISCARD_EXEC_BUDGET);
		return;
	}
	if (c->record == 0)
		measures_give(&s->measures, profile);
	program_name(&s->program, name);
	chunk_send(&c->open, c->record,
		   &(struct chunk_program){
			   .name = name,
			   .release = program_release(&s->program),
			   .environment = program_environment(&s->program),
		   },
		   profile);
	if (c->record == 0)
		s->counts.unknown_releases += s->program.release_is_unknown;
}

/*
 * Closes the chunk at end_ns, sends it, and opens the next; by_exec: that of
 * another program.
 */
static int cut_chunk(struct stream *s, struct chunks *c, uint64_t end_ns, bool by_exec)
{
	struct profile profile;
	int r = chunks_close(c, end_ns, &profile);

	if (r < 0 && r != -ENOMEM)
		return r;
	if (r < 0)
		chunk_is_lost(s->open.target, c->record, DISCARD_MEMORY);
	else
		send_chunk(s, c, end_ns, by_exec, &profile);
	if (r == 0 && c->record == 0)
		send_stats(s);
	return chunks_next(c);
}

static int cut_all(struct stream *s, uint64_t end_ns, bool by_exec)
{
	int r = 0;

	FOR_EACH_CHUNKS (c, s)
		if (r == 0)
			r = cut_chunk(s, c, end_ns, by_exec);
	return r;
}

/*
 * Reads the maps. Where a used range is another file now, what was recorded
 * with the old ones goes out first.
 */
static int read_maps(struct stream *s)
{
	struct buf maps;
	bool remapped;
	int r;

	maps_age_begin(&s->maps_age, s->time_ns);
	if (program_get_maps(&s->program, &maps) < 0)
		return 0; /* it is ending: go on with what is known */
	r = program_would_remap(&s->program, &maps, &remapped);
	if (r == 0 && remapped)
		r = cut_all(s, s->time_ns, false);
	if (r == 0)
		r = program_set_maps(&s->program, &maps);
	buf_fini(&maps);
	/* Maps that are no maps are the target's own loss. */
	return r == -ENOMEM ? r : 0;
}

static int each_sample(struct stream *s, const struct unwind_sample *sample,
		       const struct unwind_stack *stack)
{
	int r = 0;

	FOR_EACH_CHUNKS (c, s)
		if (r == 0)
			r = chunks_sample(c, sample, s->time_ns, stack);
	return r;
}

static int take_sample(struct stream *s, const struct unwind_sample *sample)
{
	/* 64 KiB: kept off the stack. */
	static struct unwind_stack stack;
	struct msg_stack_hint hint;
	int r;

	/* Of processor time: it has none now, as if it were not there. */
	if (s->open.cpu_only && !(sample->flags & SAMPLE_RUNNING))
		return each_sample(s, sample, NULL);
	if (maps_age_sample(&s->maps_age, s->time_ns) || !s->program.has_maps) {
		r = read_maps(s);
		if (r < 0)
			return r;
	}
	unwind_walk_sample(s->program.space, sample, s->open.max_frames, &stack);
	if (stack.end == UNWIND_END_NO_MAP && maps_age_unknown(&s->maps_age, s->time_ns)) {
		r = read_maps(s);
		if (r < 0)
			return r;
		unwind_walk_sample(s->program.space, sample, s->open.max_frames, &stack);
	}
	s->counts.stacks++;
	s->counts.ends[stack.end]++;
	s->counts.frame_pointer += stack.has_heuristic;
	if (hint_wanted(s->open.target, sample, &stack, &hint) &&
	    hints_begin(&s->hints, hint.tid, sample->time_ns, clock_mono_ns()))
		s->send_hint(&hint);
	return each_sample(s, sample, &stack);
}

static int take_tick(struct stream *s, const struct record_tick *record)
{
	int r = 0;

	s->settled_ns = record->settled_ns;
	exec_budget_check(&s->execs, s->open.pid, record->h.time_ns);
	FOR_EACH_CHUNKS (c, s) {
		bool due;

		if (r == 0)
			r = chunks_tick(c, record, &due);
		if (r == 0 && due)
			r = cut_chunk(s, c, record->settled_ns, false);
	}
	return r;
}

static int each_exit(struct stream *s, uint64_t time_ns)
{
	int r = 0;

	FOR_EACH_CHUNKS (c, s)
		if (r == 0)
			r = chunks_exit(c, time_ns);
	return r;
}

/* From time_ns on. */
static int change_program(struct stream *s, uint64_t time_ns)
{
	int r = each_exit(s, time_ns);

	program_ended(&s->program, time_ns);
	if (r == 0)
		r = cut_all(s, time_ns, true);
	exec_budget_begin(&s->execs, time_ns);
	return r < 0 ? r : open_program(s);
}

/* A record about one thread, without a stack. */
static int take_thread(struct stream *s, const struct record_thread *record)
{
	int r = 0;

	FOR_EACH_CHUNKS (c, s) {
		if (r < 0)
			break;
		if (record->h.ring.type == RECORD_THREAD)
			r = chunks_thread(c, record, s->time_ns);
		else if (record->h.ring.type == RECORD_WAITING)
			r = chunks_wait(c, &record->h);
		else
			r = chunks_lose(c, &record->h);
	}
	return r;
}

/*
 * Who was not watched may be another program now, or have other mappings. It
 * is known to have been the same up to last_ns.
 */
static int look_again(struct stream *s, uint64_t last_ns)
{
	s->was_away = false;
	if (program_is_other(&s->program))
		return change_program(s, last_ns);
	return s->program.has_maps ? read_maps(s) : 0;
}

/*
 * A record that has been read: each byte but those of stacks once. Its writer,
 * capture, can change it in the ring while it is in use.
 */
struct taken {
	union {
		struct record h;
		struct record_tick tick;
		struct record_thread thread;
	} r;
	struct unwind_sample sample; /* RECORD_SAMPLE */
};

/* -EPROTO: it is shorter than its type says, or malformed. */
static int take(const struct record *record, size_t size, struct taken *ret)
{
	if (size < sizeof(ret->r.h))
		return -EPROTO;
	memset(&ret->r, 0, sizeof(ret->r));
	memcpy(&ret->r, record, min_size(size, sizeof(ret->r)));
	/* The compiler must not take a field from the record instead. */
	__asm__ volatile("" : "+m"(ret->r));
	switch (ret->r.h.ring.type) {
	case RECORD_TICK:
		return size < sizeof(ret->r.tick) ? -EPROTO : 0;
	case RECORD_THREAD:
		return size < sizeof(ret->r.thread) ? -EPROTO : 0;
	case RECORD_SAMPLE:
		if (unwind_sample_read((const void *)record, size, &ret->sample) < 0)
			return -EPROTO;
		ret->sample.tid = ret->r.h.tid;
		ret->sample.time_ns = ret->r.h.time_ns;
		return 0;
	default:
		return 0;
	}
}

int stream_record(struct stream *s, const struct record *record, size_t size)
{
	const uint64_t last_ns = s->time_ns;
	struct taken t;
	int r;

	/* It was closed early: capture did not know yet. */
	if (s->closed)
		return 0;
	r = take(record, size, &t);
	if (r < 0) {
		s->counts.malformed++;
		return r;
	}
	s->time_ns = max_u64(s->time_ns, t.r.h.time_ns);
	r = s->was_away ? look_again(s, last_ns) : 0;
	if (r < 0)
		return r;
	switch (t.r.h.ring.type) {
	case RECORD_TICK:
		return take_tick(s, &t.r.tick);
	case RECORD_SAMPLE:
		return take_sample(s, &t.sample);
	case RECORD_THREAD:
	case RECORD_MISSED:
	case RECORD_EXIT:
	case RECORD_WAITING:
		return take_thread(s, &t.r.thread);
	case RECORD_RESET:
		return each_exit(s, t.r.h.time_ns);
	case RECORD_EXEC:
		return change_program(s, t.r.h.time_ns);
	case RECORD_END:
		return stream_close(s);
	default:
		return -EPROTO;
	}
}

int stream_interrupted(struct stream *s)
{
	s->was_away = true;
	if (s->closed)
		return 0;
	return each_exit(s, s->time_ns);
}

void stream_measure(struct stream *s, const struct msg_measure *m)
{
	const struct profile_measure v = {
		.time_us = s->open.wall_offset_us + m->time_ns / NS_PER_US,
		.cpu_percent_millionths = m->cpu_percent_millionths,
		.memory_bytes = m->memory_bytes,
		.anonymous_bytes = m->anonymous_bytes,
	};

	if (!s->closed)
		measures_add(&s->measures, &v);
}

static struct chunks *find_record(struct stream *s, uint32_t record)
{
	struct chunks *c = s->chunks.next;

	while (c != NULL && c->record != record)
		c = c->next;
	return c;
}

int stream_record_open(struct stream *s, const struct msg_record_open *m)
{
	struct chunks *c, *last = &s->chunks;
	size_t n = 0;
	int r;

	if (s->closed) {
		chunk_record_is_closed(m->target, m->record);
		return 0;
	}
	for (; last->next != NULL; last = last->next)
		n++;
	if (n == MSG_RECORDS_MAX || m->record == 0 || find_record(s, m->record) != NULL)
		return -EPROTO;
	r = chunks_open_beside(&s->chunks, m, s->time_ns, &c);
	if (r == 0)
		last->next = c;
	return r;
}

static int close_record(struct stream *s, struct chunks *c, uint64_t end_ns)
{
	int r = cut_chunk(s, c, end_ns, false);

	chunk_record_is_closed(s->open.target, c->record);
	remove_record(s, c);
	return r;
}

int stream_record_close(struct stream *s, uint32_t record)
{
	struct chunks *c = find_record(s, record);

	/* What is not settled may still get samples: it is left out. */
	return c == NULL ? 0 : close_record(s, c, s->settled_ns);
}

int stream_close(struct stream *s)
{
	int r;

	if (s->closed)
		return 0;
	r = each_exit(s, s->time_ns);
	while (r == 0 && s->chunks.next != NULL)
		r = close_record(s, s->chunks.next, s->time_ns);
	if (r == 0)
		r = cut_chunk(s, &s->chunks, s->time_ns, false);
	s->closed = true;
	if (msg_send_id(MSG_FD, MSG_SESSION_CLOSED, s->open.target) < 0)
		exit(EXIT_SUCCESS);
	return r;
}

int stream_write_table(struct stream *s, size_t max_rows, int fd)
{
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	FILE *out = copy < 0 ? NULL : fdopen(copy, "w");
	int r;

	if (out == NULL) {
		close_fd(&copy);
		return -EIO;
	}
	r = aggregate_write_table(s->chunks.aggregate, max_rows, out);
	if (fclose(out) != 0 && r == 0)
		r = -EIO;
	return r;
}
