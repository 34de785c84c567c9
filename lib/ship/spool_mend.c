#include "lib/ship/spool_mend.h"

#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define ASIDE ".bad"

static void tell(const struct spool_options *o, enum spool_event event, const char *name, int error)
{
	o->event(o->ctx, event, name, error);
}

void spool_put_aside(const struct spool_options *o, const char *name, int error)
{
	char aside[NAME_MAX + 1];
	int n = snprintf(aside, sizeof(aside), "%s" ASIDE, name);

	if (n < 0 || (size_t)n >= sizeof(aside) || renameat(o->dir_fd, name, o->dir_fd, aside) < 0)
		tell(o, SPOOL_LEFT_ALONE, name, error);
	else
		tell(o, SPOOL_SET_ASIDE, name, error);
}

static bool is_aside(const char *name)
{
	size_t n = strlen(name);

	return n > strlen(ASIDE) && strcmp(name + n - strlen(ASIDE), ASIDE) == 0;
}

/*
 * Put there when the clock was wrong: it would never be too old. 0 or -errno;
 * the chunk may be there already, under the other name.
 */
static int make_younger(int dir, const char *name, struct spool_entry *e, uint64_t now_ms)
{
	char younger[SPOOL_NAME_SIZE];

	e->time_ms = now_ms;
	spool_name(e, younger);
	return renameat2(dir, name, dir, younger, RENAME_NOREPLACE) < 0 ? -errno : 0;
}

struct mending {
	const struct spool_options *options;
	uint64_t now_ms;
};

/* A name of the directory, at the start: it gets the one that it should have */
static int mend_name(void *ctx, const char *name)
{
	const struct mending *m = ctx;
	const struct spool_options *o = m->options;
	struct spool_entry e;
	struct stat st;
	int r;

	if (fstatat(o->dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || S_ISDIR(st.st_mode) ||
	    is_aside(name))
		return 0;
	if (!S_ISREG(st.st_mode)) {
		tell(o, SPOOL_LEFT_ALONE, name, EINVAL);
		return 0;
	}
	if (name[0] == '.' && spool_name_parse(name + 1, &e) == 0) {
		(void)unlinkat(o->dir_fd, name, 0);
		return 0;
	}
	r = spool_name_parse(name, &e);
	if (r == 0 && e.time_ms > m->now_ms)
		r = make_younger(o->dir_fd, name, &e, m->now_ms);
	if (r < 0)
		spool_put_aside(o, name, -r);
	return 0;
}

int spool_mend(const struct spool_options *o, uint64_t now_ms)
{
	return spool_names(o->dir_fd, mend_name, &(struct mending){o, now_ms});
}
