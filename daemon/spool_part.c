#include "daemon/spool_part.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/log.h"
#include "daemon/spool_dir.h"
#include "lib/base/clock.h"
#include "lib/base/util.h"
#include "lib/ship/spool_name.h"

/* Whoever is there to do it, and to count it, has done it by then. */
#define GRACE_MS (3600 * UINT64_C(1000))

/* A number's digits. */
#define PART_NAME_SIZE (16 + 1)

/* Of a directory of files; returns true if this one is not there any more. */
typedef bool (*entry_fn)(void *ctx, int dir_fd, const char *name,
			 const struct spool_entry *e);

struct each {
	int dir_fd;
	entry_fn fn;
	void *ctx;
	size_t n; /* that fn has taken */
};

static int take_name(void *ctx, const char *name)
{
	struct each *each = ctx;
	struct spool_entry e;

	if (spool_name_parse(name, &e) == 0)
		each->n += each->fn(each->ctx, each->dir_fd, name, &e);
	return 0;
}

/* How many fn has taken; none where the rest cannot be read. */
static size_t for_each_entry(int dir_fd, entry_fn fn, void *ctx)
{
	struct each each = {.dir_fd = dir_fd, .fn = fn, .ctx = ctx};

	(void)!spool_names(dir_fd, take_name, &each);
	return each.n;
}

struct move {
	uint64_t dsn;
	int to;
};

static bool move_one(void *ctx, int dir_fd, const char *name,
		     const struct spool_entry *e)
{
	const struct move *m = ctx;

	return e->dsn == m->dsn &&
	       renameat2(dir_fd, name, m->to, name, RENAME_NOREPLACE) == 0;
}

static void gather(int from, int to, uint64_t dsn)
{
	struct move m = {.dsn = dsn, .to = to};
	const size_t n = for_each_entry(from, move_one, &m);

	if (n == 0)
		return;
	/* There first: a power failure leaves it in both, not in none. */
	if (fsync(to) < 0 || fsync(from) < 0)
		log_error("spool: %s", strerror(errno));
	log_warning("spool: %zu chunk%s found again of a DSN that is in "
		    "another place of the configuration now",
		    n, n == 1 ? " was" : "s were");
}

static bool remove_old(void *ctx, int dir_fd, const char *name,
		       const struct spool_entry *e)
{
	const uint64_t *before_ms = ctx;

	return e->time_ms < *before_ms && unlinkat(dir_fd, name, 0) == 0;
}

static bool is_part_name(const char *name)
{
	return strlen(name) == PART_NAME_SIZE - 1 &&
	       strspn(name, "0123456789abcdef") == PART_NAME_SIZE - 1;
}

static int open_part(int dir_fd, const char *name)
{
	return openat(dir_fd, name,
		      O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

struct expiry {
	int dir_fd;
	uint64_t before_ms;
	size_t n; /* that were removed */
};

static int expire_part(void *ctx, const char *name)
{
	struct expiry *x = ctx;
	int part = is_part_name(name) ? open_part(x->dir_fd, name) : -1;

	if (part >= 0)
		x->n += for_each_entry(part, remove_old, &x->before_ms);
	close_fd(&part);
	return 0;
}

static void expire_parts(int dir_fd, uint64_t age_s)
{
	const uint64_t now_ms = clock_wall_ns() / NS_PER_MS;
	const uint64_t age_ms =
		(age_s != 0 ? age_s : SPOOL_AGE_DEFAULT_S) * 1000 + GRACE_MS;
	struct expiry x = {
		.dir_fd = dir_fd,
		.before_ms = now_ms > age_ms ? now_ms - age_ms : 0,
	};

	(void)!spool_names(dir_fd, expire_part, &x);
	if (x.n > 0)
		log_warning("spool: %zu chunk%s of other DSNs: too old, and "
			    "removed",
			    x.n, x.n == 1 ? "" : "s");
}

int spool_part_open(int dir_fd, const struct msg_init *init)
{
	const uint64_t dsn = init->spool_dsn;
	char name[PART_NAME_SIZE];
	int part;

	if (dir_fd < 0)
		return -1;
	(void)snprintf(name, sizeof(name), "%016llx", (unsigned long long)dsn);
	if (!init->spool_is_first && mkdirat(dir_fd, name, 0700) < 0 &&
	    errno != EEXIST)
		log_error("spool: %s: %s", name, strerror(errno));
	part = open_part(dir_fd, name);
	if (init->spool_is_first) {
		if (part >= 0)
			gather(part, dir_fd, dsn);
		close_fd(&part);
		expire_parts(dir_fd, init->spool_age_s);
		return dir_fd;
	}
	if (part >= 0)
		gather(dir_fd, part, dsn);
	close_fd(&dir_fd);
	return part;
}
