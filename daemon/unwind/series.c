#include "daemon/unwind/series.h"

#include <stdlib.h>
#include <string.h>

/* A chunk is due at 20 MB of payload. A chunk of 60 s rarely has 1 MB; the server accepts 50. */
#define CHUNK_BYTES_MAX (20u * 1000 * 1000)
/* Of a recording, at less, so that the broker passes it on (PROTOCOL_CHUNK_MAX). */
#define RECORDING_BYTES_MAX (8u * 1000 * 1000)

static struct aggregate_options options_of(const struct msg_session_open *open)
{
	/*
	 * For platform rust the server demangles names and finds inlined functions itself: it would
	 * look for them at each frame again.
	 */
	const bool is_rust = strcmp(open->platform, "rust") == 0;

	return (struct aggregate_options){
		.chunk_us = open->chunk_us,
		.chunk_bytes = CHUNK_BYTES_MAX,
		.wall_offset_us = open->wall_offset_us,
		.hash_seed = open->hash_seed,
		.demangle = !is_rust,
		.inlined = !is_rust && !open->lines_for_files,
		.lines_for_files = open->lines_for_files != 0,
		.name_by_start = open->symbols != UNWIND_SYMBOLS_NONE,
		.by_function = open->by_function != 0,
		.in_app_include = open->in_app_include,
		.in_app_exclude = open->in_app_exclude,
		.main_path = "",
		.main_argv0 = "",
	};
}

int series_open(struct series *c, const struct msg_session_open *open, const struct program *p,
		struct functions *table)
{
	struct aggregate_options options;
	int r;

	*c = (struct series){.open = *open};
	thread_keys_init(&c->keys, open->use_pthread_self != 0, open->hash_seed);
	options = options_of(&c->open);
	options.table = table;
	r = aggregate_new(&options, p->space, &c->aggregate);
	if (r == 0)
		series_exec(c, p);
	return r;
}

/* Changes the options of a session to those of a recording: a payload for a file. */
static void open_for_file(struct msg_session_open *open, const struct msg_recording_open *recording)
{
	open->for_server = open->for_spotlight = 0;
	open->for_file = 1;
	open->with_command_line = 0;
	open->recordings_only = 0;
	open->by_function = 0;
	open->transaction[0] = '\0';
	open->chunk_us = open->first_chunk_us = recording->chunk_us;
	memcpy(open->profiler_id, recording->profiler_id, sizeof(open->profiler_id));
}

int series_open_recording(const struct series *from, const struct msg_recording_open *recording,
			  uint64_t time_ns, struct series **ret)
{
	struct series *c = calloc(1, sizeof(*c));
	struct aggregate_options options;
	int r;

	if (c == NULL)
		return -ENOMEM;
	c->recording = recording->recording;
	c->open = from->open;
	open_for_file(&c->open, recording);
	c->began_ns = time_ns;
	r = thread_keys_copy(&c->keys, &from->keys);
	options = options_of(&c->open);
	options.chunk_bytes = RECORDING_BYTES_MAX;
	if (r == 0)
		r = aggregate_new_beside(from->aggregate, &options, &c->aggregate);
	if (r < 0)
		series_free(c);
	else
		*ret = c;
	return r;
}

void series_fini(struct series *c)
{
	aggregate_free(c->aggregate);
	thread_keys_fini(&c->keys);
}

void series_free(struct series *c)
{
	if (c == NULL)
		return;
	series_fini(c);
	free(c);
}

void series_exec(struct series *c, const struct program *p)
{
	aggregate_exec(c->aggregate, p->space, buf_string(&p->identity.exe),
		       buf_string(&p->identity.cmdline));
}

/* Gives the thread its number in the chunks. */
static int assign_key(struct series *c, uint32_t tid, uint64_t pointer, uint64_t time_ns,
		      uint32_t *ret_key)
{
	struct thread_key_change change;
	int r = thread_keys_assign(&c->keys, tid, pointer, &change);

	if (r == 0 && change.old_key != 0)
		r = aggregate_exit(c->aggregate, change.old_key, time_ns);
	if (r == 0)
		r = aggregate_thread_id(c->aggregate, change.key, change.id);
	*ret_key = change.key;
	return r;
}

int series_thread(struct series *c, const struct record_thread *record, uint64_t time_ns)
{
	uint32_t key;
	int r = assign_key(c, record->h.tid, record->pointer, time_ns, &key);

	if (r < 0)
		return r;
	return aggregate_thread(c->aggregate, key, record->is_main, record->comm,
				sizeof(record->comm));
}

/* The stack of a sample that is asleep is that of a wait. */
static enum profile_state state_of(uint32_t flags)
{
	if (flags & SAMPLE_ASLEEP)
		return PROFILE_WAITING;
	if (flags & SAMPLE_RUNNING)
		return PROFILE_RUNNING;
	return flags & SAMPLE_READY ? PROFILE_READY : PROFILE_WAITING;
}

int series_sample(struct series *c, const struct unwind_sample *sample, uint64_t time_ns,
		  const struct unwind_stack *stack)
{
	uint32_t key = thread_keys_of(&c->keys, sample->tid);
	int r = key != 0 ? 0 : assign_key(c, sample->tid, 0, time_ns, &key);

	if (r < 0)
		return r;
	if (stack == NULL)
		return aggregate_missed(c->aggregate, key, sample->time_ns);
	r = aggregate_sample(c->aggregate, key, sample->time_ns, stack, state_of(sample->flags));
	if (r == 0 && (sample->flags & SAMPLE_ASLEEP))
		r = aggregate_running(c->aggregate, key, sample->time_ns);
	return r;
}

/* Ignores a thread without a key: another thread has its number now. */
int series_missed(struct series *c, const struct record *record)
{
	const uint32_t key = thread_keys_of(&c->keys, record->tid);

	return key == 0 ? 0 : aggregate_missed(c->aggregate, key, record->time_ns);
}

int series_exit(struct series *c, const struct record *record)
{
	const uint32_t key = thread_keys_of(&c->keys, record->tid);

	if (key == 0)
		return 0;
	thread_keys_end(&c->keys, record->tid);
	return aggregate_exit(c->aggregate, key, record->time_ns);
}

int series_state(struct series *c, const struct record *record)
{
	const uint32_t key = thread_keys_of(&c->keys, record->tid);

	const enum profile_state state =
		record->ring.type == RECORD_READY ? PROFILE_READY : PROFILE_WAITING;

	if (key == 0)
		return 0;
	if (record->ring.type == RECORD_RUNNING)
		return aggregate_running(c->aggregate, key, record->time_ns);
	return c->open.cpu_only ? aggregate_missed(c->aggregate, key, record->time_ns)
				: aggregate_state(c->aggregate, key, record->time_ns, state);
}

int series_exit_all(struct series *c, uint64_t time_ns)
{
	thread_keys_end_all(&c->keys);
	return aggregate_exit_all(c->aggregate, time_ns);
}

bool series_tick(struct series *c, const struct record_tick *record)
{
	bool is_due = aggregate_tick(c->aggregate, record->h.time_ns, record->settled_ns,
				     record->elapsed_ticks);

	if (c->first_end_ns == 0)
		c->first_end_ns = record->h.time_ns + c->open.first_chunk_us * NS_PER_US;
	if (record->settled_ns >= c->first_end_ns) {
		c->first_end_ns = UINT64_MAX;
		is_due = true;
	}
	return is_due;
}

int series_close(struct series *c, uint64_t end_ns, struct profile *ret)
{
	return aggregate_close(c->aggregate, max_u64(end_ns, c->began_ns), ret);
}

int series_next(struct series *c)
{
	int r = aggregate_next(c->aggregate);

	return r < 0 ? r : thread_keys_next(&c->keys);
}
