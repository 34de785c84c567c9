#include "daemon/ship/spool_part.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/common/log.h"
#include "daemon/common/spool_dir.h"
#include "lib/base/clock.h"
#include "lib/base/util.h"
#include "lib/ship/spool_name.h"

/* Whoever is there to do it, and to count it, has done it by then. */
#define GRACE_MS (3600 * UINT64_C(1000))

/* It is removed while it is made once in a blue moon. */
#define MAKE_MAX 3

/* A number's digits. */
#define PART_NAME_SIZE (16 + 1)

/* Of a directory of files; returns true if this one is not there any more. */
typedef bool (*entry_fn)(void *ctx, int dir_fd, const char *name, const struct spool_entry *e);

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

static bool move_one(void *ctx, int dir_fd, const char *name, const struct spool_entry *e)
{
	const struct move *m = ctx;

	return e->dsn == m->dsn && renameat2(dir_fd, name, m->to, name, RENAME_NOREPLACE) == 0;
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

static bool is_part_name(const char *name)
{
	return strlen(name) == PART_NAME_SIZE - 1 &&
	       strspn(name, "0123456789abcdef") == PART_NAME_SIZE - 1;
}

static int open_part(int dir_fd, const char *name)
{
	return openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

struct expiry {
	int dir_fd;
	uint64_t before_ms;
	bool at_start;
	const char *part; /* that is looked at */
	size_t n;	  /* files that were removed */
};

/* By its name from the spool's directory: ship's filter knows of no other. */
static bool remove_old(void *ctx, int dir_fd, const char *name, const struct spool_entry *e)
{
	const struct expiry *x = ctx;
	char path[PART_NAME_SIZE + 1 + SPOOL_NAME_SIZE];

	(void)dir_fd;
	(void)snprintf(path, sizeof(path), "%s/%s", x->part, name);
	return e->time_ms < x->before_ms && unlinkat(x->dir_fd, path, 0) == 0;
}

/* An empty one, if no ship has it. */
static void remove_part(int dir_fd, const char *name, int part)
{
	if (flock(part, LOCK_EX | LOCK_NB) == 0)
		(void)unlinkat(dir_fd, name, AT_REMOVEDIR);
}

static int expire_part(void *ctx, const char *name)
{
	struct expiry *x = ctx;
	int part = is_part_name(name) ? open_part(x->dir_fd, name) : -1;

	if (part < 0)
		return 0;
	x->part = name;
	x->n += for_each_entry(part, remove_old, x);
	if (x->at_start)
		remove_part(x->dir_fd, name, part);
	close_fd(&part);
	return 0;
}

static void expire(struct spool_parts *p, bool at_start)
{
	const uint64_t now_ms = clock_wall_ns() / NS_PER_MS;
	struct expiry x = {
		.dir_fd = p->dir_fd,
		.before_ms = now_ms > p->age_ms ? now_ms - p->age_ms : 0,
		.at_start = at_start,
	};

	p->next_ns = clock_boot_ns() + SPOOL_PARTS_PAUSE_NS;
	(void)!spool_names(p->dir_fd, expire_part, &x);
	if (x.n > 0)
		log_warning("spool: %zu chunk%s of other DSNs: too old, and "
			    "removed",
			    x.n, x.n == 1 ? "" : "s");
}

void spool_parts_check(struct spool_parts *p)
{
	if (p->dir_fd >= 0 && clock_boot_ns() >= p->next_ns)
		expire(p, false);
}

/*
 * Made if it is not there, and had until the process ends: another may have
 * found it empty meanwhile, and removed it.
 */
static int make_part(int dir_fd, const char *name)
{
	struct stat st = {0};
	int part = -1;

	for (int i = 0; i < MAKE_MAX && st.st_nlink == 0; i++) {
		close_fd(&part);
		if (mkdirat(dir_fd, name, 0700) < 0 && errno != EEXIST)
			break;
		part = open_part(dir_fd, name);
		if (part < 0 && errno == ENOENT)
			continue;
		if (part < 0 || flock(part, LOCK_SH) < 0 || fstat(part, &st) < 0)
			break;
	}
	if (part < 0)
		log_error("spool: %s: %s", name, strerror(errno));
	return part;
}

int spool_part_open(int dir_fd, const struct msg_init *init, struct spool_parts *ret)
{
	const uint64_t age_s = init->spool_age_s != 0 ? init->spool_age_s : SPOOL_AGE_DEFAULT_S;
	char name[PART_NAME_SIZE];
	int part;

	*ret = (struct spool_parts){.dir_fd = -1};
	if (dir_fd < 0)
		return -1;
	(void)snprintf(name, sizeof(name), "%016llx", (unsigned long long)init->spool_dsn);
	if (init->spool_is_first) {
		part = open_part(dir_fd, name);
		if (part >= 0)
			gather(part, dir_fd, init->spool_dsn);
		close_fd(&part);
		*ret = (struct spool_parts){
			.dir_fd = dir_fd,
			.age_ms = age_s * 1000 + GRACE_MS,
		};
		expire(ret, true);
		return dir_fd;
	}
	part = make_part(dir_fd, name);
	if (part >= 0)
		gather(dir_fd, part, init->spool_dsn);
	close_fd(&dir_fd);
	return part;
}
