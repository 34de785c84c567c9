#include "daemon/unwind/program.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "daemon/common/log.h"
#include "daemon/unwind/release.h"
#include "daemon/unwind/request.h"
#include "lib/base/clock.h"
#include "lib/base/utf8.h"

/* The most bytes of a FILE_KIND_MAPS file: the text of maps, and the array of identities after it.
 */
#define MAPS_BYTES_MAX (MSG_MAPS_MAX + (1u << 20))

/*
 * Files that come within this time after opened_ns are early files. Later files do not change
 * early_file_ns, so that program_ended() does not remove the maps of a long chunk because of a
 * file that came just after the program's end.
 */
#define EARLY_NS (2 * NS_PER_SEC)

void work_begin(struct work *w, uint64_t now_ns)
{
	w->since_ns = now_ns;
}

void work_end(struct work *w, uint64_t now_ns)
{
	if (w->since_ns != 0)
		w->sum_ns += now_ns - w->since_ns;
	w->since_ns = 0;
}

/* Stops the work while this process waits for the broker. */
static bool pause_work(struct work *w)
{
	bool working = w->since_ns != 0;

	if (working)
		work_end(w, clock_mono_ns());
	return working;
}

static void resume_work(struct work *w, bool working)
{
	if (working)
		work_begin(w, clock_mono_ns());
}

void work_update(struct work *w)
{
	resume_work(w, pause_work(w));
}

/* Records that a file of the program has come, if it is an early file. */
static void note_early_file(struct program *p)
{
	const uint64_t now = clock_mono_ns();

	if (now - p->opened_ns < EARLY_NS)
		p->early_file_ns = now;
}

static int get_image(void *ctx, uint64_t start, uint64_t end, int *ret_fd)
{
	struct program *p = ctx;
	bool working = pause_work(p->work);
	int r = request_image(p->open->target, start, end, ret_fd);

	if (r == 0)
		note_early_file(p);
	resume_work(p->work, working);
	return r;
}

static int get_debug(void *ctx, const char *build_id, int *ret_fd)
{
	struct program *p = ctx;
	bool working = pause_work(p->work);
	int r = request_debug(p->open->target, build_id, ret_fd);

	resume_work(p->work, working);
	return r;
}

static int get_debug_link(void *ctx, uint64_t start, uint64_t end, const char *name, int *ret_fd)
{
	struct program *p = ctx;
	bool working = pause_work(p->work);
	int r = request_debug_link(p->open->target, start, end, name, ret_fd);

	resume_work(p->work, working);
	return r;
}

static int get_file(struct program *p, enum file_kind kind, int *ret_fd)
{
	bool working = pause_work(p->work);
	int r = request_file(kind, p->open->target, ret_fd);

	resume_work(p->work, working);
	return r;
}

static int get_perf_map(void *ctx, int *ret_fd)
{
	return get_file(ctx, FILE_KIND_PERF_MAP, ret_fd);
}

static uint32_t get_number(void *ctx)
{
	(void)ctx;
	return request_last_file_number();
}

static const struct unwind_files files = {
	.image = get_image,
	.debug = get_debug,
	.debug_link = get_debug_link,
	.perf_map = get_perf_map,
	.number = get_number,
};

/* Requests a file and reads it as text. The caller frees *ret. */
static int get_text(struct program *p, enum file_kind kind, size_t max, struct buf *ret)
{
	int fd, r;

	buf_init(ret, max);
	r = get_file(p, kind, &fd);
	if (r < 0)
		return r;
	r = buf_read_fd(ret, fd);
	close_fd(&fd);
	if (r < 0)
		buf_fini(ret);
	return r;
}

/* Returns the length of path without the mark that the kernel adds to a deleted file. */
static size_t length_without_mark(const char *path)
{
	static const char mark[] = " (deleted)";
	const size_t size = sizeof(mark) - 1, len = strlen(path);

	return len > size && strcmp(path + len - size, mark) == 0 ? len - size : len;
}

/* Returns the text after this one's NUL, or end. */
static const char *next_text(const char *at, const char *end)
{
	at += strlen(at);
	return at < end ? at + 1 : end;
}

static void identity_fini(struct program_identity *r)
{
	buf_fini(&r->exe);
	buf_fini(&r->file);
	buf_fini(&r->cmdline);
	buf_fini(&r->command_line);
	r->names = (struct release_names){.release = ""};
}

/* A command line is cut at this size: each byte of PATH_MAX may become U+FFFD, of 3 bytes. */
#define COMMAND_LINE_SIZE (3 * PATH_MAX)

static int get_identity(struct program *p, struct program_identity *ret)
{
	char command_line[COMMAND_LINE_SIZE];
	const char *at, *end;
	struct buf text;
	int r;

	buf_init(&ret->exe, PATH_MAX);
	buf_init(&ret->file, PATH_MAX);
	buf_init(&ret->cmdline, PATH_MAX);
	buf_init(&ret->command_line, COMMAND_LINE_SIZE);
	r = get_text(p, FILE_KIND_PROGRAM, 4 * PATH_MAX + MSG_ENVIRON_MAX, &text);
	if (r < 0)
		return r;
	at = buf_string(&text);
	end = at + text.len;
	r = buf_add(&ret->exe, at, length_without_mark(at));
	at = next_text(at, end);
	if (r == 0)
		r = buf_add_string(&ret->file, at);
	at = next_text(at, end);
	if (r == 0)
		r = buf_add_string(&ret->cmdline, at);
	at = next_text(at, end);
	utf8_clean(at, false, command_line, sizeof(command_line));
	if (r == 0)
		r = buf_add_string(&ret->command_line, command_line);
	at = next_text(at, end);
	release_of_environ(at, (size_t)(end - at), &ret->names);
	buf_fini(&text);
	if (r < 0)
		identity_fini(ret);
	return r;
}

int program_open(struct program *p, const struct msg_session_open *open, struct work *work,
		 struct unwind_cache *cache)
{
	struct unwind_space *space;
	int r = unwind_space_new(cache, &files, p, &space);

	if (r < 0)
		return r;
	unwind_space_set_symbols(space, (enum unwind_symbols)open->symbols);
	program_fini(p);
	p->open = open;
	p->work = work;
	p->opened_ns = clock_mono_ns();
	p->space = space;
	/* A process that has ended has no files. */
	if (get_identity(p, &p->identity) < 0)
		identity_fini(&p->identity);
	p->identity_ns = clock_mono_ns();
	note_early_file(p);
	return 0;
}

bool program_ended(struct program *p, uint64_t time_ns)
{
	const char *given = p->open->release_given;

	if (p->early_file_ns <= time_ns)
		return true;
	log_debug("process %d: a program ended before its files were read, so its functions have "
		  "no names",
		  p->open->pid);
	/* Empty maps cannot fail. */
	(void)!unwind_space_set_maps(p->space, "", 0);
	if (p->identity_ns > time_ns)
		identity_fini(&p->identity);
	if (given[0] == '\0')
		given = p->open->release_env;
	p->release_is_unknown = given[0] == '\0';
	if (p->release_is_unknown)
		given = "unknown";
	memcpy(p->release, given, strlen(given) + 1);
	memcpy(p->environment, p->open->environment, sizeof(p->environment));
	return p->identity_ns <= time_ns;
}

const char *program_command_line(const struct program *p)
{
	const char *text = buf_string(&p->identity.command_line);

	return text[0] != '\0' ? text : NULL;
}

bool program_is_other(struct program *p)
{
	struct program_identity now;
	bool other;

	if (get_identity(p, &now) < 0)
		return false;
	other = strcmp(buf_string(&now.exe), buf_string(&p->identity.exe)) != 0;
	identity_fini(&now);
	return other;
}

void program_fini(struct program *p)
{
	unwind_space_free(p->space);
	identity_fini(&p->identity);
	*p = (struct program){0};
}

/*
 * Returns the least time between two readings of the maps, so that the readings take at most a
 * twentieth (with MAPS_COST) of the time.
 */
static uint64_t least_age_ns(const struct program *p, uint64_t cost)
{
	return min_u64(cost * p->maps_cost_ns, MAPS_SELDOM_NS);
}

bool program_maps_due(struct program *p, uint64_t now_ns)
{
	const uint64_t age_ns = now_ns - p->maps_read_ns;

	p->maps_samples++;
	if (!p->has_maps)
		return p->maps_read_ns == 0 || program_maps_due_after_miss(p, now_ns);
	return age_ns >= max_u64(least_age_ns(p, MAPS_COST),
				 p->maps_samples >= MAPS_SAMPLES ? MAPS_EVERY_NS : MAPS_SELDOM_NS);
}

bool program_maps_due_after_miss(const struct program *p, uint64_t now_ns)
{
	const uint64_t age_ns = now_ns - p->maps_read_ns;
	const uint64_t young_ns = (p->maps_read_ns - p->maps_first_ns) / 2;

	if (p->has_maps && young_ns < MAPS_MISS_NS)
		return age_ns >= max_u64(least_age_ns(p, MAPS_YOUNG_COST), young_ns + 1);
	if (p->has_maps && unwind_space_has_doubt(p->space))
		return age_ns >= max_u64(least_age_ns(p, MAPS_DOUBT_COST), MAPS_DOUBT_NS);
	return age_ns >= max_u64(least_age_ns(p, MAPS_COST), MAPS_MISS_NS);
}

int program_get_maps(struct program *p, uint64_t now_ns, struct buf *ret)
{
	const uint64_t since_ns = clock_mono_ns();
	int r;

	p->maps_read_ns = now_ns;
	if (p->maps_first_ns == 0)
		p->maps_first_ns = now_ns;
	p->maps_samples = 0;
	r = get_text(p, FILE_KIND_MAPS, MAPS_BYTES_MAX, ret);
	p->maps_cost_ns = clock_mono_ns() - since_ns;
	return r;
}

int program_would_forget(const struct program *p, const struct buf *maps, bool *ret)
{
	*ret = false;
	if (!p->has_maps)
		return 0;
	return unwind_space_would_forget(p->space, buf_string(maps), strlen(buf_string(maps)), ret);
}

int program_set_maps(struct program *p, const struct buf *maps)
{
	const char *text = buf_string(maps);
	const size_t size = strlen(text), at = msg_maps_files(size);
	int r = unwind_space_set_maps(p->space, text, size);

	note_early_file(p);
	if (r == 0 && at < maps->len)
		unwind_space_set_identities(p->space, (const void *)(text + at),
					    (maps->len - at) / sizeof(struct mapped_file));
	if (r == 0)
		unwind_space_open_watched(p->space);
	if (r == 0 && !p->has_maps) {
		p->has_maps = true;
		/* Read now: at the end of the chunk the image's file may be gone. */
		(void)program_release(p);
		(void)program_environment(p);
		if (p->identity.names.declines)
			log_warning("process %d has SENTRY_PROFILER=off in its environment: it is "
				    "profiled because a user or the command line names it",
				    p->open->pid);
	}
	return r;
}

const char *program_release(struct program *p)
{
	const struct msg_session_open *open = p->open;

	if (p->release[0] != '\0')
		return p->release;
	if (open->release_given[0] != '\0') {
		memcpy(p->release, open->release_given, sizeof(p->release));
	} else if (p->identity.names.release[0] != '\0') {
		memcpy(p->release, p->identity.names.release, sizeof(p->release));
		log_debug("process %d: using release %s of its environment", open->pid, p->release);
	} else if (open->release_env[0] != '\0') {
		memcpy(p->release, open->release_env, sizeof(p->release));
	} else {
		p->release_is_unknown = !release_of_image(buf_string(&p->identity.exe),
							  buf_string(&p->identity.file), p->space,
							  p->release, sizeof(p->release));
		release_clean(p->release);
		/* Only a server groups profiles by release, so a file needs no warning. */
		if (open->for_server != 0 && release_is_new(p->release))
			log_warning("process %d: no release is given: using %s (--release R or "
				    "SENTRY_RELEASE sets it; trust_environment in "
				    "sentry-profd.conf(5) says whose variable counts)",
				    open->pid, p->release);
	}
	release_clean(p->release);
	return p->release;
}

const char *program_environment(struct program *p)
{
	const struct msg_session_open *open = p->open;

	if (p->environment[0] != '\0')
		return p->environment;
	if (!open->environment_given && p->identity.names.environment[0] != '\0')
		memcpy(p->environment, p->identity.names.environment, sizeof(p->environment));
	else
		memcpy(p->environment, open->environment, sizeof(p->environment));
	release_clean(p->environment);
	return p->environment;
}

void program_name(struct program *p, char ret[PROGRAM_NAME_SIZE])
{
	const char *exe = buf_string(&p->identity.exe), *slash = strrchr(exe, '/');
	const char *name = slash == NULL ? exe : slash + 1;

	(void)snprintf(ret, PROGRAM_NAME_SIZE, "%s", *name == '\0' ? "unknown" : name);
	release_clean(ret);
}
