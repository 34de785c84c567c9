#include "lib/ship/spool.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/base/array.h"
#include "lib/base/digits.h"

static const char *const suffixes[ENVELOPE_KIND_N] = {
	[ENVELOPE_CHUNK] = ".gz",
	[ENVELOPE_V1] = ".v1.gz",
};

/* Offsets of the fields in a name. */
#define ID_AT  (16 + 1)
#define DSN_AT (ID_AT + 2 * SPOOL_ID_BYTES + 1)
#define END_AT (DSN_AT + 16)

static int parse_hex(const char *text, size_t digits, uint64_t *ret)
{
	uint64_t value = 0;

	for (size_t i = 0; i < digits; i++) {
		int d = digits_value(text[i]);

		if (d < 0)
			return -EINVAL;
		value = value << 4 | (uint64_t)d;
	}
	*ret = value;
	return 0;
}

int spool_id_parse(const char *text, uint8_t ret[SPOOL_ID_BYTES])
{
	uint8_t id[SPOOL_ID_BYTES];
	uint64_t byte;

	for (size_t i = 0; i < SPOOL_ID_BYTES; i++) {
		if (parse_hex(text + 2 * i, 2, &byte) < 0)
			return -EINVAL;
		id[i] = (uint8_t)byte;
	}
	memcpy(ret, id, sizeof(id));
	return 0;
}

static int parse_suffix(const char *text, enum envelope_kind *ret)
{
	for (int kind = 0; kind < ENVELOPE_KIND_N; kind++) {
		if (strcmp(text, suffixes[kind]) == 0) {
			*ret = (enum envelope_kind)kind;
			return 0;
		}
	}
	return -EINVAL;
}

int spool_name_parse(const char *name, struct spool_entry *ret)
{
	struct spool_entry e = {0};

	if (strlen(name) < END_AT || name[ID_AT - 1] != '-' || name[DSN_AT - 1] != '-' ||
	    parse_suffix(name + END_AT, &e.kind) < 0 || parse_hex(name, 16, &e.time_ms) < 0 ||
	    parse_hex(name + DSN_AT, 16, &e.dsn) < 0 || spool_id_parse(name + ID_AT, e.id) < 0)
		return -EINVAL;
	*ret = e;
	return 0;
}

void spool_name_format(const struct spool_entry *e, char ret[SPOOL_NAME_SIZE])
{
	char id[2 * SPOOL_ID_BYTES + 1];

	digits_of_bytes(e->id, SPOOL_ID_BYTES, id);
	(void)snprintf(ret, SPOOL_NAME_SIZE, "%016llx-%s-%016llx%s", (unsigned long long)e->time_ms,
		       id, (unsigned long long)e->dsn, suffixes[e->kind]);
}

int spool_for_each_name(int dir_fd, int (*fn)(void *ctx, const char *name), void *ctx)
{
	struct dirent *entry;
	int fd, r = 0;
	DIR *dir;

	/* Opened anew: a duplicate of dir_fd would share its read position. */
	fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	dir = fdopendir(fd);
	if (dir == NULL) {
		close_fd(&fd);
		return -ENOMEM;
	}
	while (r == 0 && (errno = 0, entry = readdir(dir)) != NULL)
		r = fn(ctx, entry->d_name);
	if (r == 0)
		r = -errno;
	(void)closedir(dir);
	return r;
}

static void report_event(const struct spool_options *o, enum spool_event event, const char *name,
			 int error)
{
	o->event(o->ctx, event, name, error);
}

static void set_aside(const struct spool_options *o, const char *name, int error)
{
	char aside[NAME_MAX + 1];
	int n = snprintf(aside, sizeof(aside), "%s" SPOOL_ASIDE, name);

	if (n < 0 || (size_t)n >= sizeof(aside) || renameat(o->dir_fd, name, o->dir_fd, aside) < 0)
		report_event(o, SPOOL_IGNORED, name, error);
	else
		report_event(o, SPOOL_SET_ASIDE, name, error);
}

static bool is_aside(const char *name)
{
	size_t n = strlen(name);

	return n > strlen(SPOOL_ASIDE) && strcmp(name + n - strlen(SPOOL_ASIDE), SPOOL_ASIDE) == 0;
}

/* Removes or sets aside the file of one name in the directory. */
static int repair_name(void *ctx, const char *name)
{
	const struct spool_options *o = ctx;
	struct spool_entry e;
	struct stat st;
	int r;

	if (fstatat(o->dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || S_ISDIR(st.st_mode) ||
	    is_aside(name))
		return 0;
	if (!S_ISREG(st.st_mode)) {
		report_event(o, SPOOL_IGNORED, name, EINVAL);
		return 0;
	}
	if (name[0] == '.' && spool_name_parse(name + 1, &e) == 0) {
		(void)unlinkat(o->dir_fd, name, 0);
		return 0;
	}
	r = spool_name_parse(name, &e);
	if (r < 0)
		set_aside(o, name, -r);
	return 0;
}

struct spool {
	struct spool_options options;
	struct spool_entry *entries; /* by time; valid from first to end */
	size_t first, end, capacity;
	uint64_t bytes; /* of the entries' files */
	uint64_t aside; /* bytes of the other files */
};

/* Removes an entry from the array; the caller removes its file. */
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

/* Makes room for one more entry at the end of the array. */
static int make_room(struct spool *s)
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

/* Writes changes of names to the disk: else a power failure undoes them. */
static int sync_names(const struct spool *s)
{
	return fsync(s->options.dir_fd) < 0 ? -errno : 0;
}

static void drop_oldest(struct spool *s, enum spool_event why)
{
	const struct spool_entry *e = &s->entries[s->first];
	char name[SPOOL_NAME_SIZE];
	bool is_lost;

	spool_name_format(e, name);
	/* Another DSN's file that is gone was moved by that DSN's ship. */
	is_lost = unlinkat(s->options.dir_fd, name, 0) == 0 || errno != ENOENT ||
		  e->dsn == s->options.dsn;
	s->bytes -= e->size;
	forget(s, s->first);
	if (is_lost)
		report_event(&s->options, why, name, 0);
}

void spool_expire(struct spool *s, uint64_t now_ms)
{
	while (spool_count(s) > 0 && s->entries[s->first].time_ms < now_ms &&
	       now_ms - s->entries[s->first].time_ms > s->options.limits.age_ms)
		drop_oldest(s, SPOOL_EXPIRED);
}

static bool file_exists(const struct spool *s, const struct spool_entry *e)
{
	char name[SPOOL_NAME_SIZE];
	struct stat st;

	spool_name_format(e, name);
	return fstatat(s->options.dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT;
}

void spool_forget_moved(struct spool *s)
{
	size_t i = s->first;

	while (i < s->end) {
		const struct spool_entry *e = &s->entries[i];

		if (e->dsn == s->options.dsn || file_exists(s, e)) {
			i++;
			continue;
		}
		s->bytes -= e->size;
		forget(s, i);
		/* forget() has moved first on, past i. */
		if (i < s->first)
			i = s->first;
	}
}

/* Drops the oldest envelopes until count more files with bytes more fit. */
static void drop_until_fits(struct spool *s, size_t count, uint64_t bytes)
{
	const struct spool_limits *limits = &s->options.limits;

	while (spool_count(s) > 0 && (spool_count(s) + count > limits->count ||
				      s->bytes + s->aside + bytes > limits->bytes))
		drop_oldest(s, SPOOL_OVERFLOW);
}

/* Adds the bytes of the file of one name in the directory to s->aside, if it is no envelope. */
static int add_aside(void *ctx, const char *name)
{
	struct spool *s = ctx;
	struct spool_entry e;
	struct stat st;

	if (spool_name_parse(name, &e) < 0 &&
	    fstatat(s->options.dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode))
		s->aside += (uint64_t)st.st_size;
	return 0;
}

/* Counts the bytes of the files that are set aside again: the user may have removed some. */
static void count_aside(struct spool *s)
{
	const uint64_t before = s->aside;

	s->aside = 0;
	if (spool_for_each_name(s->options.dir_fd, add_aside, s) < 0)
		s->aside = before;
}

/*
 * Returns 0 if an envelope of size bytes fits into the spool without others, else the error of
 * spool_add().
 */
static int check_size(struct spool *s, size_t size)
{
	const struct spool_limits *limits = &s->options.limits;

	if (size > limits->bytes || limits->count == 0)
		return -E2BIG;
	if (s->aside > 0 && s->bytes + s->aside + size > limits->bytes)
		count_aside(s);
	return s->aside + size > limits->bytes ? -ENOTEMPTY : 0;
}

/* Adds the file of one name in the directory to the array. */
static int scan_name(void *ctx, const char *name)
{
	struct spool *s = ctx;
	struct spool_entry e;
	struct stat st;
	int r;

	if (spool_name_parse(name, &e) < 0)
		return add_aside(s, name);
	if (fstatat(s->options.dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode))
		return 0;
	r = make_room(s);
	if (r < 0)
		return r;
	e.size = (uint64_t)st.st_size;
	s->bytes += e.size;
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
	/* Before the scan: readdir(3) may return a file under its old and its new name. */
	r = spool_for_each_name(o->dir_fd, repair_name, &s->options);
	if (r == 0)
		r = spool_for_each_name(o->dir_fd, scan_name, s);
	if (r < 0) {
		spool_free(s);
		return r;
	}
	if (s->end > 0)
		qsort(s->entries, s->end, sizeof(*s->entries), by_age);
	spool_expire(s, now_ms);
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

/*
 * Writes the file of an entry under its name with a dot in front, which a later start removes if
 * this process ends before it renames the file.
 */
static int write_file(const struct spool *s, const struct spool_entry *e, const void *bytes,
		      char ret_name[1 + SPOOL_NAME_SIZE])
{
	const int dir = s->options.dir_fd;
	int fd, r;

	ret_name[0] = '.';
	spool_name_format(e, ret_name + 1);
	fd = openat(dir, ret_name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	r = write_all(fd, bytes, e->size);
	if (r == 0 && fsync(fd) < 0)
		r = -errno;
	/* NFS, for one, reports write errors at close(2). */
	if (close(fd) < 0 && r == 0)
		r = -errno;
	if (r < 0)
		(void)unlinkat(dir, ret_name, 0);
	return r;
}

int spool_try(struct spool *s, size_t size)
{
	const struct spool_entry e = {.size = size};
	char name[1 + SPOOL_NAME_SIZE];
	void *bytes;
	int r;

	r = check_size(s, size);
	if (r < 0)
		return r;
	bytes = calloc(1, size);
	if (bytes == NULL)
		return -ENOMEM;
	r = write_file(s, &e, bytes, name);
	if (r == 0)
		(void)unlinkat(s->options.dir_fd, name, 0);
	free(bytes);
	return r;
}

static int create_file(const struct spool *s, const struct spool_entry *e, const void *bytes)
{
	const int dir = s->options.dir_fd;
	char name[1 + SPOOL_NAME_SIZE];
	int r = write_file(s, e, bytes, name);

	if (r < 0)
		return r;
	if (renameat(dir, name, dir, name + 1) < 0) {
		r = -errno;
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

/* Returns now_ms, or a time after the newest one if that is later. */
static uint64_t time_after(uint64_t newest_ms, uint64_t now_ms)
{
	return newest_ms == UINT64_MAX ? UINT64_MAX : max_u64(now_ms, newest_ms + 1);
}

int spool_add(struct spool *s, const uint8_t id[SPOOL_ID_BYTES], uint64_t dsn,
	      enum envelope_kind kind, const void *bytes, size_t size, uint64_t now_ms)
{
	struct spool_entry e = {.time_ms = now_ms, .dsn = dsn, .size = size, .kind = kind};
	int r;

	memcpy(e.id, id, sizeof(e.id));
	if (spool_find(s, id) != NULL)
		return -EEXIST;
	r = check_size(s, size);
	if (r < 0)
		return r;
	/* The array stays sorted when the clock is set back, and over a restart. */
	if (spool_count(s) > 0)
		e.time_ms = time_after(s->entries[s->end - 1].time_ms, now_ms);
	spool_expire(s, now_ms);
	drop_until_fits(s, 1, size);
	r = make_room(s);
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
	const struct spool_entry *first = NULL;

	for (size_t i = s->first; i < s->end && (first == NULL || first->held_back > 0); i++) {
		const struct spool_entry *e = &s->entries[i];

		if (e->dsn == dsn && e->kind == kind &&
		    (first == NULL || e->held_back < first->held_back))
			first = e;
	}
	return first;
}

const struct spool_entry *spool_other(const struct spool *s, const struct spool_entry *e,
				      uint64_t random)
{
	const size_t n = spool_count(s);

	for (size_t i = 0; i < n; i++) {
		const struct spool_entry *o = &s->entries[s->first + (random % n + i) % n];

		if (o != e && o->dsn == e->dsn && o->kind == e->kind && o->held_back == 0)
			return o;
	}
	return NULL;
}

void spool_hold_back(struct spool *s, const uint8_t id[SPOOL_ID_BYTES])
{
	for (size_t i = s->first; i < s->end; i++) {
		struct spool_entry *e = &s->entries[i];

		if (memcmp(e->id, id, SPOOL_ID_BYTES) == 0 && e->held_back < UINT8_MAX)
			e->held_back++;
	}
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

	spool_name_format(e, name);
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

static size_t index_of(const struct spool *s, const struct spool_entry *e)
{
	return (size_t)(e - s->entries);
}

void spool_remove(struct spool *s, const struct spool_entry *e)
{
	char name[SPOOL_NAME_SIZE];

	spool_name_format(e, name);
	(void)unlinkat(s->options.dir_fd, name, 0);
	(void)sync_names(s);
	s->bytes -= e->size;
	forget(s, index_of(s, e));
}

void spool_set_aside(struct spool *s, const struct spool_entry *e, int error)
{
	char name[SPOOL_NAME_SIZE];

	spool_name_format(e, name);
	s->bytes -= e->size;
	/* After ENOENT the file does not exist any more. */
	if (error != ENOENT)
		s->aside += e->size;
	set_aside(&s->options, name, error);
	forget(s, index_of(s, e));
}

size_t spool_count(const struct spool *s)
{
	return s->end - s->first;
}

uint64_t spool_bytes(const struct spool *s)
{
	return s->bytes + s->aside;
}
