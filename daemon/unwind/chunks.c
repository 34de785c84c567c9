#include "daemon/unwind/chunks.h"

#include <stdlib.h>
#include <string.h>

/* 20 MB of payload: a chunk of 60 s rarely has 1. The server takes 50. */
#define CHUNK_BYTES_MAX (20u * 1000 * 1000)

static struct aggregate_options options_of(const struct msg_session_open *open)
{
	/* Where the server symbolicates it demangles, too. */
	const bool is_rust = strcmp(open->platform, "rust") == 0;

	return (struct aggregate_options){
		.chunk_us = open->chunk_us,
		.chunk_bytes = CHUNK_BYTES_MAX,
		.wall_offset_us = open->wall_offset_us,
		.hash_seed = open->hash_seed,
		.demangle = !is_rust,
		/* There it also finds what was inlined, for every frame. */
		.inlined = !is_rust,
		.name_starts = open->symbols != UNWIND_SYMBOLS_NONE,
		.by_function = open->by_function != 0,
		.in_app_include = open->in_app_include,
		.in_app_exclude = open->in_app_exclude,
		.main_path = "",
		.main_argv0 = "",
	};
}

int chunks_open(struct chunks *c, const struct msg_session_open *open, const struct program *p)
{
	struct aggregate_options options;
	int r;

	*c = (struct chunks){.open = *open};
	thread_keys_init(&c->keys, open->thread_pointers != 0, open->hash_seed);
	options = options_of(&c->open);
	r = aggregate_new(&options, p->space, &c->aggregate);
	if (r == 0)
		chunks_exec(c, p);
	return r;
}

/* A recording's payload is one for a file: its frames keep their addresses. */
static void open_for_file(struct msg_session_open *open, const struct msg_record_open *record)
{
	open->for_server = open->for_spotlight = 0;
	open->for_file = 1;
	open->is_idle = 0;
	open->by_function = 0;
	open->transaction[0] = '\0';
	open->chunk_us = open->first_chunk_us = record->chunk_us;
	memcpy(open->profiler_id, record->profiler_id, sizeof(open->profiler_id));
}

int chunks_open_beside(const struct chunks *from, const struct msg_record_open *record,
		       uint64_t time_ns, struct chunks **ret)
{
	struct chunks *c = calloc(1, sizeof(*c));
	struct aggregate_options options;
	int r;

	if (c == NULL)
		return -ENOMEM;
	c->record = record->record;
	c->open = from->open;
	open_for_file(&c->open, record);
	c->began_ns = time_ns;
	r = thread_keys_copy(&c->keys, &from->keys);
	options = options_of(&c->open);
	if (r == 0)
		r = aggregate_new_beside(from->aggregate, &options, &c->aggregate);
	if (r < 0)
		chunks_free(c);
	else
		*ret = c;
	return r;
}

void chunks_fini(struct chunks *c)
{
	aggregate_free(c->aggregate);
	thread_keys_fini(&c->keys);
}

void chunks_free(struct chunks *c)
{
	if (c == NULL)
		return;
	chunks_fini(c);
	free(c);
}

void chunks_exec(struct chunks *c, const struct program *p)
{
	aggregate_exec(c->aggregate, p->space, buf_string(&p->runs.exe),
		       buf_string(&p->runs.cmdline));
}

static int name(struct chunks *c, uint32_t tid, uint64_t pointer, uint64_t time_ns,
		uint32_t *ret_key)
{
	struct thread_name name;
	int r = thread_keys_take(&c->keys, tid, pointer, &name);

	if (r == 0 && name.left != 0)
		r = aggregate_exit(c->aggregate, name.left, time_ns);
	if (r == 0)
		r = aggregate_thread_id(c->aggregate, name.key, name.id);
	*ret_key = name.key;
	return r;
}

int chunks_thread(struct chunks *c, const struct record_thread *record, uint64_t time_ns)
{
	uint32_t key;
	int r = name(c, record->h.tid, record->pointer, time_ns, &key);

	if (r < 0)
		return r;
	return aggregate_thread(c->aggregate, key, record->is_main, record->comm,
				sizeof(record->comm));
}

int chunks_sample(struct chunks *c, const struct unwind_sample *sample, uint64_t time_ns,
		  const struct unwind_stack *stack)
{
	uint32_t key = thread_keys_of(&c->keys, sample->tid);
	int r = key != 0 ? 0 : name(c, sample->tid, 0, time_ns, &key);

	if (r < 0)
		return r;
	if (stack == NULL)
		return aggregate_missed(c->aggregate, key, sample->time_ns);
	return aggregate_sample(c->aggregate, key, sample->time_ns, stack,
				sample->flags & SAMPLE_RUNNING);
}

/* A thread whose number has passed to another thread has no key. */
int chunks_lose(struct chunks *c, const struct record *record)
{
	const uint32_t key = thread_keys_of(&c->keys, record->tid);

	if (key == 0)
		return 0;
	if (record->ring.type == RECORD_MISSED)
		return aggregate_missed(c->aggregate, key, record->time_ns);
	thread_keys_leave(&c->keys, record->tid);
	return aggregate_exit(c->aggregate, key, record->time_ns);
}

int chunks_wait(struct chunks *c, const struct record *record)
{
	const uint32_t key = thread_keys_of(&c->keys, record->tid);

	if (key == 0)
		return 0;
	return c->open.cpu_only ? aggregate_missed(c->aggregate, key, record->time_ns)
				: aggregate_waiting(c->aggregate, key, record->time_ns);
}

int chunks_exit(struct chunks *c, uint64_t time_ns)
{
	thread_keys_leave_all(&c->keys);
	return aggregate_exit_all(c->aggregate, time_ns);
}

int chunks_tick(struct chunks *c, const struct record_tick *record, bool *ret_due)
{
	int r = aggregate_tick(c->aggregate, record->h.time_ns, record->settled_ns, record->due,
			       ret_due);

	if (c->first_end_ns == 0)
		c->first_end_ns = record->h.time_ns + c->open.first_chunk_us * NS_PER_US;
	if (record->settled_ns >= c->first_end_ns) {
		c->first_end_ns = UINT64_MAX;
		*ret_due = true;
	}
	return r;
}

int chunks_close(struct chunks *c, uint64_t end_ns, struct profile *ret)
{
	return aggregate_close(c->aggregate, max_u64(end_ns, c->began_ns), ret);
}

int chunks_next(struct chunks *c)
{
	int r = aggregate_next(c->aggregate);

	return r < 0 ? r : thread_keys_next(&c->keys);
}
