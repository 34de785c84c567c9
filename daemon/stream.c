#include "daemon/stream.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/child.h"
#include "daemon/chunk.h"
#include "daemon/chunk_threads.h"
#include "daemon/exec_budget.h"
#include "daemon/hints.h"
#include "daemon/maps_age.h"
#include "daemon/measures.h"
#include "daemon/program.h"
#include "lib/aggregate/aggregate.h"
#include "lib/base/clock.h"

/* 20 MB of payload: a chunk of 60 s rarely has 1. The server takes 50. */
#define CHUNK_BYTES_MAX (20u * 1000 * 1000)

struct stream {
	struct msg_session_open open;
	struct unwind_cache *cache;
	struct program program;
	struct aggregate *aggregate;
	struct thread_keys keys;
	struct hints hints;
	stream_hint_fn send_hint;

	struct maps_age maps_age;
	struct exec_budget execs;
	uint64_t time_ns; /* of the last record */
	/* When the first chunk ends; 0: it has not begun, UINT64_MAX: it has.
	 */
	uint64_t first_end_ns;
	bool closed;
	bool was_away; /* capture was: nobody told of an exec */
	struct work work;
	struct msg_unwind_stats stats;
	struct measures measures;
};

void stream_work(struct stream *s, uint64_t now_ns)
{
	work_begin(&s->work, now_ns);
}

void stream_rest(struct stream *s, uint64_t now_ns)
{
	work_end(&s->work, now_ns);
}

/* A new program, or the first: nothing that was known of the old one holds. */
static int open_program(struct stream *s)
{
	const struct aggregate_options options = {
		.chunk_us = s->open.chunk_us,
		.chunk_bytes = CHUNK_BYTES_MAX,
		.wall_offset_us = s->open.wall_offset_us,
		.hash_seed = s->open.hash_seed,
		/* Where the server symbolicates it demangles, too. */
		.demangle = strcmp(s->open.platform, "rust") != 0,
		/* There it also finds what was inlined, for every frame. */
		.inlined = strcmp(s->open.platform, "rust") != 0,
		.name_starts = s->open.symbols != UNWIND_SYMBOLS_NONE,
		.by_function = s->open.by_function != 0,
		.in_app_include = s->open.in_app_include,
		.in_app_exclude = s->open.in_app_exclude,
		.main_path = "",
		.main_argv0 = "",
	};
	struct program *p = &s->program;
	int r;

	r = program_open(p, &s->open, &s->work, s->cache);
	if (r == 0 && s->aggregate == NULL)
		r = aggregate_new(&options, p->space, &s->aggregate);
	if (r == 0)
		aggregate_exec(s->aggregate, p->space, buf_string(&p->runs.exe),
			       buf_string(&p->runs.cmdline));
	return r;
}

int stream_new(const struct msg_session_open *open, struct unwind_cache *cache,
	       stream_hint_fn hint, struct stream **ret)
{
	struct stream *s = calloc(1, sizeof(*s));
	int r;

	if (s == NULL)
		return -ENOMEM;
	s->open = *open;
	s->cache = cache;
	s->send_hint = hint;
	s->stats = (struct msg_unwind_stats){
		.h = MSG_HEADER(MSG_UNWIND_STATS, msg_unwind_stats),
		.target = open->target,
	};
	thread_keys_init(&s->keys, open->thread_pointers != 0, open->hash_seed);
	measures_init(&s->measures);
	exec_budget_init(&s->execs);
	stream_work(s, clock_mono_ns());
	r = open_program(s);
	if (r < 0) {
		stream_free(s);
		return r;
	}
	stream_rest(s, clock_mono_ns());
	*ret = s;
	return 0;
}

void stream_free(struct stream *s)
{
	if (s == NULL)
		return;
	aggregate_free(s->aggregate);
	program_fini(&s->program);
	thread_keys_fini(&s->keys);
	free(s);
}

uint32_t stream_target(const struct stream *s)
{
	return s->open.target;
}

static void send_stats(struct stream *s)
{
	work_update(&s->work);
	s->stats.cost_ns = s->work.sum_ns;
	s->stats.without_lines += unwind_space_take_cut(s->program.space);
	if (ipc_send(MSG_FD, &s->stats, sizeof(s->stats), NULL, 0) < 0)
		exit(EXIT_SUCCESS);
}

static bool has_stack(const struct profile *p)
{
	for (size_t i = 0; i < p->n_samples; i++)
		if (p->samples[i].node != PROFILE_NONE)
			return true;
	return false;
}

static int next_chunk(struct stream *s)
{
	int r = aggregate_next(s->aggregate);

	return r < 0 ? r : thread_keys_next(&s->keys);
}

/*
 * Closes the chunk at end_ns, sends it, and opens the next; by_exec: that of
 * another program.
 */
static int cut_chunk(struct stream *s, uint64_t end_ns, bool by_exec)
{
	struct profile profile;
	int r;

	r = aggregate_close(s->aggregate, end_ns, &profile);
	if (r < 0) {
		if (r != -ENOMEM)
			return r;
		chunk_is_lost(s->open.target, CHUNK_LOST_MEMORY);
		return next_chunk(s);
	}
	if (s->open.cpu_only && !has_stack(&profile))
		chunk_is_lost(s->open.target, CHUNK_LOST_IDLE);
	else if (profile.n_samples > 0 && by_exec &&
		 !exec_budget_take(&s->execs, s->open.pid, end_ns))
		chunk_is_lost(s->open.target, CHUNK_LOST_EXEC_BUDGET);
	else if (profile.n_samples > 0) {
		char name[PROGRAM_NAME_SIZE];
		const struct chunk_program program = {
			.name = name,
			.release = program_release(&s->program),
			.environment = program_environment(&s->program),
		};

		program_name(&s->program, name);
		measures_give(&s->measures, &profile);
		chunk_send(&s->open, &program, &profile);
		s->stats.unknown_releases += s->program.release_is_unknown;
	}
	send_stats(s);
	return next_chunk(s);
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
		r = cut_chunk(s, s->time_ns, false);
	if (r == 0)
		r = program_set_maps(&s->program, &maps);
	buf_fini(&maps);
	/* Maps that are no maps are the target's own loss. */
	return r == -ENOMEM ? r : 0;
}

static int take_sample(struct stream *s, const struct unwind_sample *sample)
{
	/* 64 KiB: kept off the stack. */
	static struct unwind_stack stack;
	struct msg_stack_hint hint;
	uint32_t key;
	int r;

	r = chunk_threads_find(&s->keys, s->aggregate, sample->tid, s->time_ns,
			       &key);
	if (r < 0)
		return r;
	/* Of processor time: it has none now, as if it were not there. */
	if (s->open.cpu_only && !(sample->flags & SAMPLE_RUNNING))
		return aggregate_missed(s->aggregate, key, sample->time_ns);
	if (maps_age_sample(&s->maps_age, s->time_ns) || !s->program.has_maps) {
		r = read_maps(s);
		if (r < 0)
			return r;
	}
	unwind_walk_sample(s->program.space, sample, s->open.max_frames,
			   &stack);
	if (stack.end == UNWIND_END_NO_MAP &&
	    maps_age_unknown(&s->maps_age, s->time_ns)) {
		r = read_maps(s);
		if (r < 0)
			return r;
		unwind_walk_sample(s->program.space, sample, s->open.max_frames,
				   &stack);
	}
	s->stats.stacks++;
	s->stats.ends[stack.end]++;
	s->stats.frame_pointer += stack.frame_pointer;
	if (hint_wanted(s->open.target, sample, &stack, &hint) &&
	    hints_begin(&s->hints, hint.tid, sample->time_ns, clock_mono_ns()))
		s->send_hint(&hint);
	return aggregate_sample(s->aggregate, key, sample->time_ns, &stack,
				sample->flags & SAMPLE_RUNNING);
}

static int take_tick(struct stream *s, const struct record_tick *record)
{
	bool due;
	int r;

	r = aggregate_tick(s->aggregate, record->h.time_ns, record->settled_ns,
			   record->due, &due);
	if (s->first_end_ns == 0)
		s->first_end_ns =
			record->h.time_ns + s->open.first_chunk_us * NS_PER_US;
	if (record->settled_ns >= s->first_end_ns) {
		s->first_end_ns = UINT64_MAX;
		due = true;
	}
	exec_budget_check(&s->execs, s->open.pid, record->h.time_ns);
	if (r == 0 && due)
		r = cut_chunk(s, record->settled_ns, false);
	return r;
}

/* From time_ns on. */
static int change_program(struct stream *s, uint64_t time_ns)
{
	int r = chunk_threads_exit(&s->keys, s->aggregate, time_ns);

	program_ended(&s->program, time_ns);
	if (r == 0)
		r = cut_chunk(s, time_ns, true);
	exec_budget_begin(&s->execs, time_ns);
	return r < 0 ? r : open_program(s);
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
		if (unwind_sample_read((const void *)record, size,
				       &ret->sample) < 0)
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
		s->stats.malformed++;
		return r;
	}
	s->time_ns = max_u64(s->time_ns, t.r.h.time_ns);
	r = s->was_away ? look_again(s, last_ns) : 0;
	if (r < 0)
		return r;
	switch (t.r.h.ring.type) {
	case RECORD_TICK:
		return take_tick(s, &t.r.tick);
	case RECORD_THREAD:
		return chunk_threads_take(&s->keys, s->aggregate, &t.r.thread,
					  s->time_ns);
	case RECORD_SAMPLE:
		return take_sample(s, &t.sample);
	case RECORD_MISSED:
	case RECORD_EXIT:
		return chunk_threads_lose(&s->keys, s->aggregate, &t.r.h);
	case RECORD_WAITING:
		return chunk_threads_wait(&s->keys, s->aggregate, &t.r.h,
					  s->open.cpu_only);
	case RECORD_RESET:
		return chunk_threads_exit(&s->keys, s->aggregate,
					  t.r.h.time_ns);
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
	return chunk_threads_exit(&s->keys, s->aggregate, s->time_ns);
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

int stream_close(struct stream *s)
{
	const struct msg_session_closed m = {
		.h = MSG_HEADER(MSG_SESSION_CLOSED, msg_session_closed),
		.target = s->open.target,
	};
	int r;

	if (s->closed)
		return 0;
	r = chunk_threads_exit(&s->keys, s->aggregate, s->time_ns);
	if (r == 0)
		r = cut_chunk(s, s->time_ns, false);
	s->closed = true;
	if (ipc_send(MSG_FD, &m, sizeof(m), NULL, 0) < 0)
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
	r = aggregate_write_table(s->aggregate, max_rows, out);
	if (fclose(out) != 0 && r == 0)
		r = -EIO;
	return r;
}
