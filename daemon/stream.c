#include "daemon/stream.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon/child.h"
#include "daemon/id.h"
#include "daemon/log.h"
#include "daemon/release.h"
#include "daemon/request.h"
#include "lib/aggregate/aggregate.h"
#include "lib/base/buf.h"
#include "lib/base/clock.h"
#include "lib/base/table.h"
#include "proto/chunk_v2.h"
#include "proto/sdk.h"

/* UNWIND_MAPS_MAX lines of 256 bytes on average. */
#define MAPS_BYTES_MAX (16u << 20)
/* ARG_MAX is 2 MiB as a rule; what is beyond is not looked at. */
#define ENVIRON_BYTES_MAX (4u << 20)

/* 20 MB of payload: a chunk of 60 s rarely has 1. The server takes 50. */
#define CHUNK_BYTES_MAX (20u * 1000 * 1000)

/* Maps are read anew when a pc is in none of them, but not at every sample, */
#define MAPS_UNKNOWN_NS (200 * NS_PER_MS)
/* and now and then, since a library can be replaced by another in place. */
#define MAPS_EVERY_NS (5 * NS_PER_SEC)

/* Hints that a thread gets; one that changes more often has several stacks. */
#define HINTS_MAX 16

/* Beyond the bytes that a walk was short of. */
#define HINT_SLACK 16384

#define CHUNK_SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL)

struct hint {
	uint64_t top;
	uint32_t sent;
};

struct stream {
	struct msg_session_open open;
	struct unwind_cache *cache;
	struct unwind_space *space;
	struct aggregate *aggregate;
	struct buf exe;	    /* path of the main executable */
	struct buf cmdline; /* its beginning: argv[0] as a string */
	char release[MSG_TEXT_MAX];
	stream_hint_fn send_hint;

	struct table hint_of; /* tid -> index in hints */
	struct hint *hints;
	uint32_t n_hints;

	bool has_maps;
	uint64_t maps_ns; /* when they were read, in ticks' time */
	uint64_t time_ns; /* of the last record */
	bool closed;
	uint64_t working_ns; /* since when; 0: it is not */
	struct msg_unwind_stats stats;
};

static void send_broker(const void *message, size_t size, const int *fds,
			size_t n_fds)
{
	if (ipc_send(MSG_FD, message, size, fds, n_fds) < 0)
		exit(EXIT_SUCCESS);
}

void stream_work(struct stream *s, uint64_t now_ns)
{
	s->working_ns = now_ns;
}

void stream_rest(struct stream *s, uint64_t now_ns)
{
	if (s->working_ns != 0)
		s->stats.cost_ns += now_ns - s->working_ns;
	s->working_ns = 0;
}

/* Waiting for the broker costs nothing. */
static bool pause_work(struct stream *s)
{
	bool working = s->working_ns != 0;

	if (working)
		stream_rest(s, clock_mono_ns());
	return working;
}

static void resume_work(struct stream *s, bool working)
{
	if (working)
		stream_work(s, clock_mono_ns());
}

static int get_image(void *ctx, uint64_t start, uint64_t end, int *ret_fd)
{
	struct stream *s = ctx;
	bool working = pause_work(s);
	int r = request_image(s->open.target, start, end, ret_fd);

	resume_work(s, working);
	return r;
}

static int get_debug(void *ctx, const char *build_id, int *ret_fd)
{
	struct stream *s = ctx;
	bool working = pause_work(s);
	int r = request_debug(s->open.target, build_id, ret_fd);

	resume_work(s, working);
	return r;
}

static int get_debug_link(void *ctx, uint64_t start, uint64_t end,
			  const char *name, int *ret_fd)
{
	struct stream *s = ctx;
	bool working = pause_work(s);
	int r = request_debug_link(s->open.target, start, end, name, ret_fd);

	resume_work(s, working);
	return r;
}

static int get_file(struct stream *s, enum want_kind kind, int *ret_fd)
{
	bool working = pause_work(s);
	int r = request_file(kind, s->open.target, ret_fd);

	resume_work(s, working);
	return r;
}

static int get_perf_map(void *ctx, int *ret_fd)
{
	return get_file(ctx, WANT_PERF_MAP, ret_fd);
}

static const struct unwind_files files = {
	.image = get_image,
	.debug = get_debug,
	.debug_link = get_debug_link,
	.perf_map = get_perf_map,
};

/* The text behind one of the broker's answers. */
static int request_text(struct stream *s, enum want_kind kind, size_t max,
			struct buf *ret)
{
	int fd, r;

	buf_init(ret, max);
	r = get_file(s, kind, &fd);
	if (r < 0)
		return r;
	r = buf_read_fd(ret, fd);
	close_fd(&fd);
	if (r < 0)
		buf_fini(ret);
	return r;
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
		.main_path = "",
		.main_argv0 = "",
	};
	struct unwind_space *space;
	int r;

	s->has_maps = false;
	s->release[0] = '\0';
	buf_fini(&s->exe);
	buf_fini(&s->cmdline);
	if (request_text(s, WANT_EXE, PATH_MAX, &s->exe) < 0)
		buf_clear(&s->exe);
	if (request_text(s, WANT_CMDLINE, PATH_MAX, &s->cmdline) < 0)
		buf_clear(&s->cmdline);
	r = unwind_space_new(s->cache, &files, s, &space);
	if (r < 0)
		return r;
	unwind_space_want(space, (enum unwind_symbols)s->open.symbols);
	unwind_space_free(s->space);
	s->space = space;
	if (s->aggregate == NULL)
		r = aggregate_new(&options, space, &s->aggregate);
	if (r == 0)
		aggregate_exec(s->aggregate, space, buf_string(&s->exe),
			       buf_string(&s->cmdline));
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
	buf_init(&s->exe, PATH_MAX);
	buf_init(&s->cmdline, PATH_MAX);
	table_init(&s->hint_of, open->hash_seed);
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
	unwind_space_free(s->space);
	buf_fini(&s->exe);
	buf_fini(&s->cmdline);
	table_fini(&s->hint_of);
	free(s->hints);
	free(s);
}

uint32_t stream_target(const struct stream *s)
{
	return s->open.target;
}

/* SENTRY_RELEASE of the target's own environment, if it has one. */
static bool release_of_target(struct stream *s)
{
	struct buf text;
	bool found;

	if (request_text(s, WANT_ENVIRON, ENVIRON_BYTES_MAX, &text) < 0)
		return false;
	found = release_of_environ(buf_string(&text), text.len, s->release,
				   sizeof(s->release));
	buf_fini(&text);
	return found;
}

static const char *release(struct stream *s)
{
	if (s->release[0] != '\0')
		return s->release;
	if (s->open.release_given[0] != '\0') {
		memcpy(s->release, s->open.release_given, sizeof(s->release));
	} else if (release_of_target(s)) {
		log_debug("release %s: SENTRY_RELEASE of the target",
			  s->release);
	} else if (s->open.release_env[0] != '\0') {
		memcpy(s->release, s->open.release_env, sizeof(s->release));
	} else {
		release_of_image(buf_string(&s->exe), s->space, s->release,
				 sizeof(s->release));
		log_warning("no release is given: using %s (--release R or "
			    "SENTRY_RELEASE sets it)",
			    s->release);
	}
	release_clean(s->release);
	return s->release;
}

static void chunk_is_lost(const struct stream *s, uint32_t reason)
{
	const struct msg_chunk_lost m = {
		.h = MSG_HEADER(MSG_CHUNK_LOST, msg_chunk_lost),
		.target = s->open.target,
		.reason = reason,
	};

	send_broker(&m, sizeof(m), NULL, 0);
}

/* The payload in a memfd that nobody can change any more. */
static int encode(const struct profile *profile, int *ret_fd,
		  uint64_t *ret_size)
{
	FILE *out = NULL;
	off_t size;
	int fd, copy, r;

	fd = memfd_create("chunk", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return -errno;
	copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (copy >= 0)
		out = fdopen(copy, "w");
	if (out == NULL) {
		r = -errno;
		close_fd(&copy);
		goto fail;
	}
	r = chunk_v2_write(profile, out);
	if (fclose(out) != 0 && r == 0)
		r = -errno;
	if (r < 0)
		goto fail;
	size = lseek(fd, 0, SEEK_END);
	if (size < 0 || lseek(fd, 0, SEEK_SET) < 0 ||
	    fcntl(fd, F_ADD_SEALS, CHUNK_SEALS) < 0) {
		r = -errno;
		goto fail;
	}
	*ret_fd = fd;
	*ret_size = (uint64_t)size;
	return 0;
fail:
	close_fd(&fd);
	return r;
}

static void send_chunk(const struct stream *s, const struct profile *profile)
{
	struct msg_chunk m = {
		.h = MSG_HEADER(MSG_CHUNK, msg_chunk),
		.target = s->open.target,
	};
	int fd, r;

	r = encode(profile, &fd, &m.size);
	if (r < 0) {
		log_warning("a chunk is lost: %s", strerror(-r));
		chunk_is_lost(s, CHUNK_LOST_MEMORY);
		return;
	}
	if (m.size > CHUNK_V2_SIZE_MAX) {
		chunk_is_lost(s, CHUNK_LOST_TOO_LARGE);
	} else {
		memcpy(m.chunk_id, profile->chunk_id, sizeof(m.chunk_id));
		memcpy(m.platform, s->open.platform, sizeof(m.platform));
		send_broker(&m, sizeof(m), &fd, 1);
	}
	close_fd(&fd);
}

/* Closes the chunk at end_ns, sends it, and opens the next. */
static int cut_chunk(struct stream *s, uint64_t end_ns)
{
	struct profile profile;
	enum profile_fault fault;
	int r;

	r = aggregate_close(s->aggregate, end_ns, &profile);
	if (r < 0) {
		if (r != -ENOMEM)
			return r;
		chunk_is_lost(s, CHUNK_LOST_MEMORY);
		return aggregate_next(s->aggregate);
	}
	if (profile.n_samples > 0) {
		memcpy(profile.profiler_id, s->open.profiler_id,
		       sizeof(profile.profiler_id));
		id_make(profile.chunk_id);
		profile.platform = s->open.platform;
		profile.release = release(s);
		profile.environment = s->open.environment;
		profile.sdk_name = SDK_NAME;
		profile.sdk_version = SDK_VERSION;
		fault = profile_check(&profile);
		if (fault == PROFILE_OK) {
			send_chunk(s, &profile);
		} else {
			log_debug("a chunk would be rejected: %s",
				  profile_fault_name(fault));
			chunk_is_lost(s, fault);
		}
	}
	resume_work(s, pause_work(s)); /* up to now */
	send_broker(&s->stats, sizeof(s->stats), NULL, 0);
	return aggregate_next(s->aggregate);
}

/*
 * Reads the maps. Where a used range is another file now, what was recorded
 * with the old ones goes out first.
 */
static int read_maps(struct stream *s)
{
	struct buf text;
	bool remapped = false;
	int r;

	s->maps_ns = s->time_ns;
	r = request_text(s, WANT_MAPS, MAPS_BYTES_MAX, &text);
	if (r < 0)
		return 0; /* it is ending: go on with what is known */
	if (s->has_maps)
		r = unwind_space_would_remap(s->space, buf_string(&text),
					     text.len, &remapped);
	if (r == 0 && remapped)
		r = cut_chunk(s, s->time_ns);
	if (r == 0)
		r = unwind_space_set_maps(s->space, buf_string(&text),
					  text.len);
	buf_fini(&text);
	if (r == 0 && !s->has_maps) {
		s->has_maps = true;
		/* At the chunk's end the target's environment may be gone. */
		(void)release(s);
	}
	/* Maps that are no maps are the target's own loss. */
	return r == -ENOMEM ? r : 0;
}

static int hint_index(struct stream *s, uint32_t tid, uint32_t *ret)
{
	struct hint *hints;

	if (table_get(&s->hint_of, tid, ret))
		return 0;
	if ((s->n_hints & (s->n_hints + 1)) == 0) {
		hints = realloc(s->hints,
				2 * (s->n_hints + 1) * sizeof(*hints));
		if (hints == NULL)
			return -ENOMEM;
		s->hints = hints;
	}
	s->hints[s->n_hints] = (struct hint){0};
	*ret = s->n_hints;
	return table_put(&s->hint_of, tid, s->n_hints++);
}

static void hint(struct stream *s, uint32_t tid,
		 const struct unwind_stack *stack)
{
	uint64_t top = stack->end == UNWIND_END_BAD_CFA ? 0 : stack->stack_top;
	struct hint *h;
	uint32_t index;

	/* What was not there was needed: the frames above will be, too. */
	if (stack->end == UNWIND_END_UNREADABLE && top != 0)
		top += HINT_SLACK;
	if (hint_index(s, tid, &index) < 0)
		return;
	h = &s->hints[index];
	/* A shallower stack needs no new hint. */
	if (h->sent >= HINTS_MAX ||
	    (h->sent > 0 && (top == h->top || (top != 0 && top < h->top))))
		return;
	h->sent++;
	h->top = top;
	s->send_hint(s->open.target, tid, top);
}

static int take_sample(struct stream *s, const struct record_sample *record,
		       size_t size)
{
	/* 64 KiB: kept off the stack. */
	static struct unwind_stack stack;
	int r;

	if (!s->has_maps || s->time_ns - s->maps_ns >= MAPS_EVERY_NS) {
		r = read_maps(s);
		if (r < 0)
			return r;
	}
	r = unwind_walk(s->space, record, size, s->open.max_frames, &stack);
	if (r == 0 && stack.end == UNWIND_END_NO_MAP &&
	    s->time_ns - s->maps_ns >= MAPS_UNKNOWN_NS) {
		r = read_maps(s);
		if (r == 0)
			r = unwind_walk(s->space, record, size,
					s->open.max_frames, &stack);
	}
	if (r < 0) {
		s->stats.malformed++;
		return r == -EINVAL ? -EPROTO : r;
	}
	s->stats.stacks++;
	s->stats.ends[stack.end]++;
	s->stats.frame_pointer += stack.frame_pointer;
	hint(s, record->h.tid, &stack);
	return aggregate_sample(s->aggregate, record->h.tid, record->h.time_ns,
				&stack, record->flags & SAMPLE_RUNNING);
}

static int take_tick(struct stream *s, const struct record_tick *record)
{
	bool due;
	int r;

	r = aggregate_tick(s->aggregate, record->h.time_ns, record->settled_ns,
			   &due);
	if (r == 0 && due)
		r = cut_chunk(s, record->settled_ns);
	return r;
}

int stream_record(struct stream *s, const struct record *record, size_t size)
{
	const struct record_thread *thread = (const void *)record;
	uint32_t type = record->ring.type;
	int r;

	/* It was closed early: capture did not know yet. */
	if (s->closed)
		return 0;
	s->time_ns = max_u64(s->time_ns, record->time_ns);
	switch (type) {
	case RECORD_TICK:
		if (size < sizeof(struct record_tick))
			return -EPROTO;
		return take_tick(s, (const void *)record);
	case RECORD_THREAD:
		if (size < sizeof(*thread))
			return -EPROTO;
		return aggregate_thread(s->aggregate, record->tid,
					thread->is_main, thread->comm,
					sizeof(thread->comm));
	case RECORD_SAMPLE:
		if (size < sizeof(struct record_sample))
			return -EPROTO;
		return take_sample(s, (const void *)record, size);
	case RECORD_MISSED:
		return aggregate_missed(s->aggregate, record->tid,
					record->time_ns);
	case RECORD_EXIT:
		return aggregate_exit(s->aggregate, record->tid,
				      record->time_ns);
	case RECORD_RESET:
		return aggregate_exit_all(s->aggregate, record->time_ns);
	case RECORD_EXEC:
		r = aggregate_exit_all(s->aggregate, record->time_ns);
		if (r == 0)
			r = cut_chunk(s, record->time_ns);
		return r < 0 ? r : open_program(s);
	case RECORD_END:
		return stream_close(s);
	default:
		return -EPROTO;
	}
}

int stream_interrupted(struct stream *s)
{
	return s->closed ? 0 : aggregate_exit_all(s->aggregate, s->time_ns);
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
	r = aggregate_exit_all(s->aggregate, s->time_ns);
	if (r == 0)
		r = cut_chunk(s, s->time_ns);
	s->closed = true;
	send_broker(&m, sizeof(m), NULL, 0);
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
