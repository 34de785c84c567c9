/*
 * What lies in a spool when it is opened: a line for each file, its name. Of a
 * name that ends with "/" a directory, of one that ends with "//" a link. Each
 * file has as many bytes as its name.
 */
#include "tests/fuzz/fuzz.h"

#include <assert.h>
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/ship/spool.h"

#define FILES_MAX 24

/* Names have times of all kinds; most are of some days around this one. */
#define NOW_MS	UINT64_C(0x1a0000000000)
#define DAY_MS	(UINT64_C(24) * 3600 * 1000)
#define COUNT	16
#define BYTES	1200
#define ANY_DSN UINT64_C(0xd5)

/* In memory: thousands of files come and go in a second. */
static char dir_path[] = "/dev/shm/sentry-profd-fuzz.XXXXXX";

struct events {
	size_t n[SPOOL_IGNORED + 1];
};

static void on_event(void *ctx, enum spool_event event, const char *name, int error)
{
	struct events *events = ctx;

	assert(strlen(name) > 0 && strchr(name, '/') == NULL);
	assert((error > 0) == (event == SPOOL_SET_ASIDE || event == SPOOL_IGNORED));
	events->n[event]++;
}

static void make_file(int dir, const char *name)
{
	int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	/* It is there already, or no name of a file. */
	if (fd < 0)
		return;
	assert(write_all(fd, name, strlen(name)) == 0);
	(void)close(fd);
}

static void make(int dir, char *name)
{
	size_t n = strlen(name);

	if (n > 2 && strcmp(name + n - 2, "//") == 0) {
		name[n - 2] = '\0';
		if (strchr(name, '/') == NULL)
			(void)!symlinkat("/dev/null", dir, name);
	} else if (n > 1 && name[n - 1] == '/') {
		name[n - 1] = '\0';
		if (strchr(name, '/') == NULL)
			(void)mkdirat(dir, name, 0700);
	} else if (strchr(name, '/') == NULL) {
		make_file(dir, name);
	}
}

static bool ends_with(const char *text, const char *end)
{
	size_t n = strlen(text), m = strlen(end);

	return n > m && strcmp(text + n - m, end) == 0;
}

/* All that is in it, by what it is. */
struct listing {
	size_t entries, aside, others;
	uint64_t bytes;
};

static void look_at(int dir, const char *name, struct listing *l)
{
	struct spool_entry e;
	char again[SPOOL_NAME_SIZE];
	struct stat st;

	assert(fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0);
	if (!S_ISREG(st.st_mode)) {
		l->others++;
		return;
	}
	l->bytes += (uint64_t)st.st_size;
	if (ends_with(name, ".bad")) {
		l->aside++;
		return;
	}
	/* What cannot be set aside: its name would be too long. */
	if (spool_name_parse(name, &e) < 0) {
		assert(strlen(name) + strlen(".bad") > NAME_MAX);
		l->others++;
		return;
	}
	spool_name_format(&e, again);
	assert(strcmp(name, again) == 0);
	l->entries++;
}

/* With remove it is empty afterwards. */
static struct listing list(int dir, bool remove)
{
	DIR *d = fdopendir(openat(dir, ".", O_RDONLY | O_CLOEXEC));
	struct listing l = {0};
	const struct dirent *e;

	assert(d != NULL);
	while ((e = readdir(d)) != NULL) {
		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		if (!remove)
			look_at(dir, e->d_name, &l);
		else if (unlinkat(dir, e->d_name, 0) < 0)
			assert(unlinkat(dir, e->d_name, AT_REMOVEDIR) == 0);
	}
	(void)closedir(d);
	return l;
}

static struct spool *open_spool(int dir, struct events *ret)
{
	const struct spool_options options = {
		.dir_fd = dir,
		.limits = {.bytes = BYTES, .count = COUNT, .age_ms = DAY_MS},
		.event = on_event,
		.ctx = ret,
	};
	struct spool *s;

	*ret = (struct events){0};
	assert(spool_new(&s, &options, NOW_MS) == 0);
	return s;
}

/* Oldest first, each with its file, until none is left. */
static void check_entries(struct spool *s, enum envelope_kind kind)
{
	const struct spool_entry *e;
	uint64_t last_ms = 0;

	while ((e = spool_oldest(s, ANY_DSN, kind)) != NULL) {
		int fd = -1;
		int r = spool_open(s, e, &fd);

		assert(e->dsn == ANY_DSN && e->kind == kind);
		assert(e->time_ms >= last_ms && e->time_ms >= NOW_MS - DAY_MS);
		last_ms = e->time_ms;
		assert(spool_find(s, e->id) != NULL);
		assert(r == 0 && fd >= 0);
		(void)close(fd);
		spool_remove(s, e);
	}
}

static void check(int dir)
{
	struct events first, second;
	struct listing l;
	struct spool *s;
	int r;

	s = open_spool(dir, &first);
	r = spool_add(s, (const uint8_t[SPOOL_ID_BYTES]){1}, ANY_DSN, ENVELOPE_CHUNK, "x", 1,
		      NOW_MS);
	assert(r == -ENOTEMPTY || r == -EEXIST || r == 0);
	l = list(dir, false);
	assert(r != 0 || (spool_count(s) <= COUNT && spool_bytes(s) <= BYTES));
	assert(spool_count(s) == l.entries);
	assert(spool_bytes(s) == l.bytes);
	assert(l.aside >= first.n[SPOOL_SET_ASIDE]);
	spool_free(s);

	/* All is said and done. */
	s = open_spool(dir, &second);
	assert(spool_count(s) == l.entries && spool_bytes(s) == l.bytes);
	assert(second.n[SPOOL_SET_ASIDE] == 0);
	assert(second.n[SPOOL_OVERFLOW] == 0 && second.n[SPOOL_EXPIRED] == 0);
	assert(second.n[SPOOL_IGNORED] == first.n[SPOOL_IGNORED]);
	check_entries(s, ENVELOPE_CHUNK);
	check_entries(s, ENVELOPE_V1);
	spool_free(s);
}

static void remove_dir(void)
{
	(void)rmdir(dir_path);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static int dir = -1;
	char *text = malloc(size + 1), *rest = text, *name;

	assert(text != NULL);
	if (size > 0)
		memcpy(text, data, size);
	text[size] = '\0';
	if (dir < 0) {
		assert(mkdtemp(dir_path) != NULL && atexit(remove_dir) == 0);
		dir = open(dir_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		assert(dir >= 0);
	}
	for (int i = 0; i < FILES_MAX && (name = strsep(&rest, "\n")); i++)
		make(dir, name);
	check(dir);
	(void)list(dir, true);
	free(text);
	return 0;
}
