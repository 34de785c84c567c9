#include "daemon/unwind/stream.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/common/log.h"
#include "daemon/msg/discard.h"
#include "daemon/msg/msg_io.h"
#include "daemon/unwind/chunk.h"
#include "daemon/unwind/exec_budget.h"
#include "daemon/unwind/hints.h"
#include "daemon/unwind/program.h"
#include "daemon/unwind/series.h"
#include "daemon/unwind/usage_buffer.h"
#include "lib/base/clock.h"

struct stream {
	struct msg_session_open open;
	struct unwind_cache *cache;
	struct program program;
	struct series series; /* of the session; followed by those of recordings */
	struct hints hints;
	struct hints requests; /* for registers; sent no more often than hints */
	const struct stream_capture *to_capture;

	struct exec_budget execs;
	bool exec_is_held_back; /* the exec budget has no room for the last program */
	uint64_t time_ns;	/* time of the last record */
	uint64_t settled_ns;	/* settled time of the last tick */
	bool closed;
	bool was_interrupted; /* no record has come since the stream began, or capture ended */
	bool lines_limit_is_logged;
	struct work work;
	struct unwind_counts counts;
	struct usage_buffer usage;
};

/* Iterates over all series. The session's series comes first. */
#define FOR_EACH_SERIES(c, s) for (struct series *c = &(s)->series; (c) != NULL; (c) = (c)->next)

void stream_begin_work(struct stream *s, uint64_t now_ns)
{
	work_begin(&s->work, now_ns);
}

void stream_end_work(struct stream *s, uint64_t now_ns)
{
	work_end(&s->work, now_ns);
}

/* Opens the program that the process runs now, in all series. */
static int open_program(struct stream *s)
{
	int r = program_open(&s->program, &s->open, &s->work, s->cache);

	if (r < 0)
		return r;
	FOR_EACH_SERIES (c, s)
		series_exec(c, &s->program);
	return 0;
}

int stream_new(const struct msg_session_open *open, struct unwind_cache *cache,
	       const struct stream_capture *to_capture, struct functions *table,
	       struct stream **ret)
{
	struct stream *s = calloc(1, sizeof(*s));
	int r;

	if (s == NULL)
		return -ENOMEM;
	s->open = *open;
	s->cache = cache;
	s->to_capture = to_capture;
	s->was_interrupted = true;
	usage_buffer_init(&s->usage);
	stream_begin_work(s, clock_mono_ns());
	r = program_open(&s->program, &s->open, &s->work, s->cache);
	if (r == 0)
		r = series_open(&s->series, &s->open, &s->program, table);
	if (r < 0) {
		stream_free(s);
		return r;
	}
	stream_end_work(s, clock_mono_ns());
	*ret = s;
	return 0;
}

static void remove_recording(struct stream *s, struct series *recording)
{
	struct series *before = &s->series;

	while (before->next != recording)
		before = before->next;
	before->next = recording->next;
	series_free(recording);
}

void stream_free(struct stream *s)
{
	if (s == NULL)
		return;
	while (s->series.next != NULL)
		remove_recording(s, s->series.next);
	series_fini(&s->series);
	program_fini(&s->program);
	free(s);
}

uint32_t stream_target(const struct stream *s)
{
	return s->open.target;
}

/*
 * Counts the addresses for which unwind found no source lines. Logs one file of the target whose
 * debug information is too large.
 */
static void count_lines_lost(struct stream *s)
{
	const char *path = unwind_space_take_lines_limited(s->program.space);

	if (path != NULL && !s->lines_limit_is_logged) {
		log_warning("process %d: the debug information of %s is too large or takes too "
			    "long to read: functions of this file have no source lines, and "
			    "inlined functions are missing",
			    s->open.pid, path);
		s->lines_limit_is_logged = true;
	}
	s->counts.without_lines += unwind_space_take_lines_lost(s->program.space);
}

static void send_stats(struct stream *s)
{
	work_update(&s->work);
	struct msg_unwind_stats m = {
		.h = MSG_HEADER(MSG_UNWIND_STATS),
		.target = s->open.target,
	};

	s->counts.cost_ns = s->work.sum_ns;
	count_lines_lost(s);
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
 * Sends a chunk that was closed at end_ns, if the reader wants it. by_exec: the
 * chunk's program ended by an exec. The session's chunk comes first; if the exec
 * budget holds it back, recordings do not get theirs either.
 */
static void send_chunk(struct stream *s, struct series *c, uint64_t end_ns, bool by_exec,
		       struct profile *profile)
{
	char name[PROGRAM_NAME_SIZE];

	if (c->open.recordings_only)
		return;
	if (c->open.cpu_only && !has_stack(profile)) {
		if (c->recording == 0)
			chunk_report_lost(s->open.target, 0, CHUNK_IDLE);
		return;
	}
	if (profile->n_samples == 0)
		return;
	if (by_exec && c->recording == 0)
		s->exec_is_held_back = !exec_budget_take(&s->execs, s->open.pid, end_ns);
	if (by_exec && s->exec_is_held_back) {
		chunk_report_lost(s->open.target, c->recording, DISCARD_EXEC_BUDGET);
		return;
	}
	if (c->recording == 0)
		usage_buffer_give(&s->usage, profile);
	program_name(&s->program, name);
	chunk_send(&c->open, c->recording,
		   &(struct chunk_program){
			   .name = name,
			   .release = program_release(&s->program),
			   .environment = program_environment(&s->program),
			   .command_line = program_command_line(&s->program),
		   },
		   profile);
	if (c->recording == 0)
		s->counts.unknown_releases += s->program.release_is_unknown;
}

/*
 * Closes the chunk at end_ns, sends it, and opens the next one. by_exec: the
 * program ended by an exec.
 */
static int cut_chunk(struct stream *s, struct series *c, uint64_t end_ns, bool by_exec)
{
	struct profile profile;
	int r = series_close(c, end_ns, &profile);

	if (r < 0 && r != -ENOMEM)
		return r;
	if (r < 0 && !c->open.recordings_only)
		chunk_report_lost(s->open.target, c->recording, DISCARD_MEMORY);
	else if (r == 0)
		send_chunk(s, c, end_ns, by_exec, &profile);
	if (r == 0 && c->recording == 0)
		send_stats(s);
	return series_next(c);
}

static int cut_all(struct stream *s, uint64_t end_ns, bool by_exec)
{
	int r = 0;

	FOR_EACH_SERIES (c, s)
		if (r == 0)
			r = cut_chunk(s, c, end_ns, by_exec);
	return r;
}

/*
 * Reads the maps. If the space would forget mappings that samples have used, the chunks are closed
 * first.
 */
static int read_maps(struct stream *s)
{
	struct buf maps;
	bool forgets;
	int r;

	if (program_get_maps(&s->program, s->time_ns, &maps) < 0)
		return 0; /* the process is ending: keep the old maps */
	r = program_would_forget(&s->program, &maps, &forgets);
	if (r == 0 && forgets)
		r = cut_all(s, s->time_ns, false);
	if (r == 0)
		r = program_set_maps(&s->program, &maps);
	buf_fini(&maps);
	/* Malformed maps are ignored: only the target's own profile suffers. */
	return r == -ENOMEM ? r : 0;
}

/* Adds a sample to every series. */
static int add_sample(struct stream *s, const struct unwind_sample *sample,
		      const struct unwind_stack *stack)
{
	int r = 0;

	FOR_EACH_SERIES (c, s)
		if (r == 0)
			r = series_sample(c, sample, s->time_ns, stack);
	return r;
}

/* Counts mappings whose code the unwinder refuses, and logs the first one. */
static void count_far_code(struct stream *s)
{
	const char *path;
	const uint64_t n = unwind_space_take_far_mappings(s->program.space, &path);

	if (n > 0 && s->counts.far_code == 0)
		log_warning(
			"process %d: code of %s that is more than 4 GiB above the first segment "
			"has no call frame information and no names: its callers may be "
			"missing (link the segments closer together)",
			s->open.pid, path == NULL ? "a file" : path);
	s->counts.far_code += n;
}

/* Sends capture the parts of memory by which images are recognised, if these have changed. */
static void send_watch(struct stream *s)
{
	struct msg_watch m = {.h = MSG_HEADER(MSG_WATCH), .target = s->open.target};
	struct unwind_watch watch;

	if (!unwind_space_needs_watch(s->program.space, &watch))
		return;
	m.list = watch.list;
	m.n = (uint32_t)watch.n;
	memcpy(m.parts, watch.parts, watch.n * sizeof(watch.parts[0]));
	if (s->to_capture->watch(&m))
		unwind_space_watch_sent(s->program.space);
}

static int take_sample(struct stream *s, const struct unwind_sample *sample)
{
	/* 64 KiB, too large for this process's stack. */
	static struct unwind_stack stack;
	struct msg_want_registers registers;
	struct msg_stack_hint hint;
	int r;

	/* In a profile of CPU time a thread that does not run has no stack. */
	if (s->open.cpu_only && !(sample->flags & SAMPLE_RUNNING))
		return add_sample(s, sample, NULL);
	if (program_maps_due(&s->program, s->time_ns)) {
		r = read_maps(s);
		if (r < 0)
			return r;
	}
	unwind_walk_sample(s->program.space, sample, s->open.max_frames, &stack);
	if (stack.end == UNWIND_END_NO_MAP &&
	    program_maps_due_after_miss(&s->program, s->time_ns)) {
		r = read_maps(s);
		if (r < 0)
			return r;
		unwind_walk_sample(s->program.space, sample, s->open.max_frames, &stack);
	}
	count_far_code(s);
	send_watch(s);
	if (hints_make(s->open.target, sample, &stack, &hint) &&
	    hints_may_send(&s->hints, hint.tid, sample->time_ns, clock_mono_ns()))
		s->to_capture->hint(&hint);
	if (hints_want_registers(s->open.target, sample, &stack, &registers) &&
	    hints_may_send(&s->requests, registers.tid, sample->time_ns, clock_mono_ns()))
		s->to_capture->want_registers(&registers);
	if (hints_must_drop(&s->hints, sample->tid, hints_lacks_own_stack(sample, &stack))) {
		s->counts.retaken++;
		return add_sample(s, sample, NULL);
	}
	s->counts.stacks++;
	s->counts.ends[stack.end]++;
	s->counts.by_heuristics += stack.has_heuristic;
	return add_sample(s, sample, &stack);
}

static int take_tick(struct stream *s, const struct record_tick *record)
{
	int r = 0;

	/* If memory has changed, what is mapped now may soon be gone. */
	if (unwind_space_has_doubt(s->program.space) &&
	    program_maps_due_after_miss(&s->program, s->time_ns))
		r = read_maps(s);
	s->settled_ns = record->settled_ns;
	exec_budget_log_end(&s->execs, s->open.pid, record->h.time_ns);
	FOR_EACH_SERIES (c, s)
		if (r == 0 && series_tick(c, record))
			r = cut_chunk(s, c, record->settled_ns, false);
	return r;
}

/* Ends all threads in every series. */
static int exit_all(struct stream *s, uint64_t time_ns)
{
	int r = 0;

	FOR_EACH_SERIES (c, s)
		if (r == 0)
			r = series_exit_all(c, time_ns);
	return r;
}

/* Ends the program at time_ns, from which on the process runs another one. */
static int change_program(struct stream *s, uint64_t time_ns)
{
	int r = exit_all(s, time_ns);

	if (!program_ended(&s->program, time_ns))
		FOR_EACH_SERIES (c, s)
			series_exec(c, &s->program);
	if (r == 0)
		r = cut_all(s, time_ns, true);
	exec_budget_begin(&s->execs, time_ns);
	return r < 0 ? r : open_program(s);
}

/* Adds a record about one thread, without a stack, to every series. */
static int take_thread(struct stream *s, const struct record_thread *record)
{
	int r = 0;

	FOR_EACH_SERIES (c, s) {
		if (r < 0)
			break;
		if (record->h.ring.type == RECORD_THREAD)
			r = series_thread(c, record, s->time_ns);
		else if (record->h.ring.type == RECORD_READY ||
			 record->h.ring.type == RECORD_WAITING ||
			 record->h.ring.type == RECORD_RUNNING)
			r = series_state(c, &record->h);
		else if (record->h.ring.type == RECORD_MISSED)
			r = series_missed(c, &record->h);
		else
			r = series_exit(c, &record->h);
	}
	return r;
}

/*
 * Handles the first record after an interruption. The process may have executed another program, or
 * changed its maps, after last_ns. 0: after stream_new() had read which program it runs.
 */
static int resume(struct stream *s, uint64_t last_ns)
{
	s->was_interrupted = false;
	if (program_is_other(&s->program))
		return last_ns == 0 ? open_program(s) : change_program(s, last_ns);
	unwind_space_watch_again(s->program.space);
	return s->program.has_maps ? read_maps(s) : 0;
}

/*
 * A copy of a record. capture can change the record in the ring at any time, so
 * each byte, except those of stacks, is read only once.
 */
struct copied_record {
	union {
		struct record h;
		struct record_tick tick;
		struct record_thread thread;
		struct record_watched watched;
	} r;
	struct unwind_sample sample; /* RECORD_SAMPLE */
};

/* Returns -EPROTO if the record is shorter than its type says, or malformed. */
static int copy_record(const struct record *record, size_t size, struct copied_record *ret)
{
	if (size < sizeof(ret->r.h))
		return -EPROTO;
	memset(&ret->r, 0, sizeof(ret->r));
	memcpy(&ret->r, record, min_size(size, sizeof(ret->r)));
	/* Keeps the compiler from reading a field from the record again. */
	__asm__ volatile("" : "+m"(ret->r));
	switch (ret->r.h.ring.type) {
	case RECORD_TICK:
		return size < sizeof(ret->r.tick) ? -EPROTO : 0;
	case RECORD_THREAD:
		return size < sizeof(ret->r.thread) ? -EPROTO : 0;
	case RECORD_WATCHED:
		return size < sizeof(ret->r.watched) ? -EPROTO : 0;
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
	struct copied_record t;
	int r;

	/* The session was closed, which capture did not know when it wrote the record. */
	if (s->closed)
		return 0;
	r = copy_record(record, size, &t);
	if (r < 0) {
		s->counts.malformed++;
		return r;
	}
	s->time_ns = max_u64(s->time_ns, t.r.h.time_ns);
	r = s->was_interrupted ? resume(s, last_ns) : 0;
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
	case RECORD_READY:
	case RECORD_WAITING:
	case RECORD_RUNNING:
		return take_thread(s, &t.r.thread);
	case RECORD_WATCHED:
		unwind_space_watched(s->program.space, t.r.watched.list, t.r.watched.number,
				     t.r.watched.hash);
		return 0;
	case RECORD_RESET:
		/* Capture may have been detached since, and may have missed an exec. */
		s->was_interrupted = true;
		return exit_all(s, t.r.h.time_ns);
	case RECORD_EXEC:
		return change_program(s, t.r.h.time_ns);
	case RECORD_END:
		return stream_close(s);
	default:
		return -EPROTO;
	}
}

int stream_capture_ended(struct stream *s)
{
	s->was_interrupted = true;
	if (s->closed)
		return 0;
	return exit_all(s, s->time_ns);
}

void stream_add_usage(struct stream *s, const struct msg_usage_entry *m)
{
	const struct profile_measurement v = {
		.time_us = s->open.wall_offset_us + m->time_ns / NS_PER_US,
		.cpu_percent_millionths = m->cpu_percent_millionths,
		.memory_bytes = m->memory_bytes,
		.anonymous_bytes = m->anonymous_bytes,
	};

	if (!s->closed)
		usage_buffer_add(&s->usage, &v);
}

static struct series *find_recording(struct stream *s, uint32_t recording)
{
	struct series *c = s->series.next;

	while (c != NULL && c->recording != recording)
		c = c->next;
	return c;
}

int stream_recording_open(struct stream *s, const struct msg_recording_open *m)
{
	struct series *c, *last = &s->series;
	size_t n = 0;
	int r;

	if (s->closed) {
		chunk_report_closed(m->target, m->recording);
		return 0;
	}
	for (; last->next != NULL; last = last->next)
		n++;
	if (n == MSG_RECORDINGS_MAX || m->recording == 0 || find_recording(s, m->recording) != NULL)
		return -EPROTO;
	r = series_open_recording(&s->series, m, s->time_ns, &c);
	if (r == 0)
		last->next = c;
	return r;
}

static int close_recording(struct stream *s, struct series *c, uint64_t end_ns)
{
	int r = cut_chunk(s, c, end_ns, false);

	chunk_report_closed(s->open.target, c->recording);
	remove_recording(s, c);
	return r;
}

int stream_recording_close(struct stream *s, uint32_t recording)
{
	struct series *c = find_recording(s, recording);

	/*
	 * The chunk ends at the settled tick, because threads can still get samples for later
	 * ticks.
	 */
	return c == NULL ? 0 : close_recording(s, c, s->settled_ns);
}

int stream_close(struct stream *s)
{
	int r;

	if (s->closed)
		return 0;
	r = exit_all(s, s->time_ns);
	while (r == 0 && s->series.next != NULL)
		r = close_recording(s, s->series.next, s->time_ns);
	if (r == 0)
		r = cut_chunk(s, &s->series, s->time_ns, false);
	s->closed = true;
	if (msg_send_id(MSG_FD, MSG_SESSION_CLOSED, s->open.target) < 0)
		exit(EXIT_SUCCESS);
	return r;
}

int stream_update_table(struct stream *s)
{
	return aggregate_update_table(s->series.aggregate);
}
