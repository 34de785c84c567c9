#include "lib/ship/spool.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/base/array.h"
#include "lib/ship/spool_mend.h"

struct spool {
	struct spool_options options;
	struct spool_entry *entries; /* by time; those before first are gone */
	size_t first, end, capacity;
	uint64_t bytes;
};

static void tell(const struct spool *s, enum spool_event event, const char *name, int error)
{
	s->options.event(s->options.ctx, event, name, error);
}

/* Forgets an entry; its file is the caller's to remove. */
static void forget(struct spool *s, size_t at)
{
	if (at == s->first)
		s->first++;
	else
		memmove(s->entries + at, s->entries + at + 1,
			(--s->end - at) * sizeof(*s->entries));
	if (s->first == s->end)
		s->first = s->end = 0;
}

/* A place behind the last. */
static int make_place(struct spool *s)
{
	if (s->end < s->capacity)
		return 0;
	if (s->first >= s->capacity / 2 && s->first > 0) {
		memmove(s->entries, s->entries + s->first,
			(s->end - s->first) * sizeof(*s->entries));
		s->end -= s->first;
		s->first = 0;
		return 0;
	}
	return array_grow(s->entries, s->end, s->capacity);
}

/* On the disk, or a power failure undoes what was done to the names. */
static int sync_names(const struct spool *s)
{
	return fsync(s->options.dir_fd) < 0 ? -errno : 0;
}

static void drop_oldest(struct spool *s, enum spool_event why)
{
	const struct spool_entry *e = &s->entries[s->first];
	char name[SPOOL_NAME_SIZE];
	bool is_there;

	spool_name(e, name);
	/* Another process has it now: it is not lost. */
	is_there = unlinkat(s->options.dir_fd, name, 0) == 0 || errno != ENOENT;
	s->bytes -= e->size;
	forget(s, s->first);
	if (is_there)
		tell(s, why, name, 0);
}

void spool_expire(struct spool *s, uint64_t now_ms)
{
	while (spool_count(s) > 0 &&
	       s->entries[s->first].time_ms + s->options.limits.age_ms < now_ms)
		drop_oldest(s, SPOOL_EXPIRED);
}

static bool is_there(const struct spool *s, const struct spool_entry *e)
{
	char name[SPOOL_NAME_SIZE];
	struct stat st;

	spool_name(e, name);
	return fstatat(s->options.dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT;
}

void spool_forget_taken(struct spool *s, uint64_t dsn)
{
	size_t i = s->first;

	while (i < s->end) {
		const struct spool_entry *e = &s->entries[i];

		if (e->dsn == dsn || is_there(s, e)) {
			i++;
			continue;
		}
		s->bytes -= e->size;
		forget(s, i);
		/* The first of them leaves its place behind. */
		if (i < s->first)
			i = s->first;
	}
}

/* Until so many files and bytes more are within the limits. */
static void drop_for(struct spool *s, size_t count, uint64_t bytes)
{
	const struct spool_limits *limits = &s->options.limits;

	while (spool_count(s) > 0 &&
	       (spool_count(s) + count > limits->count || s->bytes + bytes > limits->bytes))
		drop_oldest(s, SPOOL_OVERFLOW);
}

struct taking {
	struct spool *spool;
	uint64_t now_ms;
};

/* What is there now. */
static int take_name(void *ctx, const char *name)
{
	const struct taking *t = ctx;
	struct spool *s = t->spool;
	struct spool_entry e;
	struct stat st;
	int r;

	if (fstatat(s->options.dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode))
		return 0;
	s->bytes += (uint64_t)st.st_size;
	if (spool_name_parse(name, &e) < 0 || e.time_ms > t->now_ms)
		return 0;
	r = make_place(s);
	if (r < 0)
		return r;
	e.size = (uint64_t)st.st_size;
	s->entries[s->end++] = e;
	return 0;
}

static int by_age(const void *a, const void *b)
{
	const struct spool_entry *x = a, *y = b;

	if (x->time_ms != y->time_ms)
		return x->time_ms < y->time_ms ? -1 : 1;
	return memcmp(x->id, y->id, sizeof(x->id));
}

int spool_new(struct spool **ret, const struct spool_options *o, uint64_t now_ms)
{
	struct spool *s = calloc(1, sizeof(*s));
	int r;

	if (s == NULL)
		return -ENOMEM;
	s->options = *o;
	/* First: what is renamed may be met under both names. */
	r = spool_mend(o, now_ms);
	if (r == 0)
		r = spool_names(o->dir_fd, take_name, &(struct taking){s, now_ms});
	if (r < 0) {
		spool_free(s);
		return r;
	}
	if (s->end > 0)
		qsort(s->entries, s->end, sizeof(*s->entries), by_age);
	spool_expire(s, now_ms);
	drop_for(s, 0, 0);
	*ret = s;
	return 0;
}

void spool_free(struct spool *s)
{
	if (s == NULL)
		return;
	free(s->entries);
	free(s);
}

/* All of it under the name that begins with a dot, then under the other. */
static int create_file(const struct spool *s, const struct spool_entry *e, const void *bytes)
{
	const int dir = s->options.dir_fd;
	char name[1 + SPOOL_NAME_SIZE];
	int fd, r;

	name[0] = '.';
	spool_name(e, name + 1);
	fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	r = write_all(fd, bytes, e->size);
	if (r == 0 && fsync(fd) < 0)
		r = -errno;
	/* An error that came late, by NFS for one. */
	if (close(fd) < 0 && r == 0)
		r = -errno;
	if (r == 0 && renameat(dir, name, dir, name + 1) < 0)
		r = -errno;
	if (r < 0) {
		(void)unlinkat(dir, name, 0);
		return r;
	}
	r = sync_names(s);
	if (r < 0)
		(void)unlinkat(dir, name + 1, 0);
	return r;
}

const struct spool_entry *spool_find(const struct spool *s, const uint8_t id[SPOOL_ID_BYTES])
{
	for (size_t i = s->first; i < s->end; i++)
		if (memcmp(s->entries[i].id, id, SPOOL_ID_BYTES) == 0)
			return &s->entries[i];
	return NULL;
}

int spool_add(struct spool *s, const uint8_t id[SPOOL_ID_BYTES], uint64_t dsn,
	      enum envelope_kind kind, const void *bytes, size_t size, uint64_t now_ms)
{
	struct spool_entry e = {.time_ms = now_ms, .dsn = dsn, .size = size, .kind = kind};
	int r;

	memcpy(e.id, id, sizeof(e.id));
	if (spool_find(s, id) != NULL)
		return -EEXIST;
	if (size > s->options.limits.bytes || s->options.limits.count == 0)
		return -E2BIG;
	/* They stay in order when the clock is set back. */
	if (spool_count(s) > 0)
		e.time_ms = max_u64(now_ms, s->entries[s->end - 1].time_ms);
	spool_expire(s, now_ms);
	drop_for(s, 1, size);
	/* Those that are set aside take the rest. */
	if (s->bytes + size > s->options.limits.bytes)
		return -E2BIG;
	r = make_place(s);
	if (r == 0)
		r = create_file(s, &e, bytes);
	if (r < 0)
		return r;
	s->entries[s->end++] = e;
	s->bytes += size;
	return 0;
}

const struct spool_entry *spool_oldest(const struct spool *s, uint64_t dsn, enum envelope_kind kind)
{
	for (size_t i = s->first; i < s->end; i++)
		if (s->entries[i].dsn == dsn && s->entries[i].kind == kind)
			return &s->entries[i];
	return NULL;
}

size_t spool_span(const struct spool *s, uint64_t dsn, uint64_t *ret_ms)
{
	uint64_t oldest_ms = 0;
	size_t n = 0;

	*ret_ms = 0;
	for (size_t i = s->first; i < s->end; i++) {
		if (s->entries[i].dsn != dsn)
			continue;
		if (n++ == 0)
			oldest_ms = s->entries[i].time_ms;
		*ret_ms = s->entries[i].time_ms - oldest_ms;
	}
	return n;
}

int spool_open(const struct spool *s, const struct spool_entry *e, int *ret_fd)
{
	char name[SPOOL_NAME_SIZE];
	struct stat st;
	int fd;

	spool_name(e, name);
	fd = openat(s->options.dir_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || (uint64_t)st.st_size != e->size) {
		close_fd(&fd);
		return -EBADMSG;
	}
	*ret_fd = fd;
	return 0;
}

static size_t place_of(const struct spool *s, const struct spool_entry *e)
{
	return (size_t)(e - s->entries);
}

void spool_remove(struct spool *s, const struct spool_entry *e)
{
	char name[SPOOL_NAME_SIZE];

	spool_name(e, name);
	(void)unlinkat(s->options.dir_fd, name, 0);
	(void)sync_names(s);
	s->bytes -= e->size;
	forget(s, place_of(s, e));
}

void spool_set_aside(struct spool *s, const struct spool_entry *e, int error)
{
	char name[SPOOL_NAME_SIZE];

	spool_name(e, name);
	/* Somebody has removed it. */
	if (error == ENOENT)
		s->bytes -= e->size;
	spool_put_aside(&s->options, name, error);
	forget(s, place_of(s, e));
}

size_t spool_count(const struct spool *s)
{
	return s->end - s->first;
}

uint64_t spool_bytes(const struct spool *s)
{
	return s->bytes;
}
