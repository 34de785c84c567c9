#include "lib/ship/spool_name.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/digits.h"

static const char *const suffixes[ENVELOPE_KIND_N] = {
	[ENVELOPE_CHUNK] = ".gz",
	[ENVELOPE_V1] = ".v1.gz",
};

/* Where digits of the name begin. */
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

void spool_name(const struct spool_entry *e, char ret[SPOOL_NAME_SIZE])
{
	char id[2 * SPOOL_ID_BYTES + 1];

	digits_of_bytes(e->id, SPOOL_ID_BYTES, id);
	(void)snprintf(ret, SPOOL_NAME_SIZE, "%016llx-%s-%016llx%s", (unsigned long long)e->time_ms,
		       id, (unsigned long long)e->dsn, suffixes[e->kind]);
}

int spool_names(int dir_fd, int (*fn)(void *ctx, const char *name), void *ctx)
{
	struct dirent *entry;
	int fd, r = 0;
	DIR *dir;

	/* Not a duplicate: that would share its position. */
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
