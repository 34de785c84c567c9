#include "daemon/ship/spool_dirs.h"

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
#include "lib/ship/spool.h"

/* If the DSN has a ship, that ship has removed the file by then, and counted it. */
#define GRACE_MS (3600 * UINT64_C(1000))

/* Another ship rarely removes an empty directory while it is being made. */
#define MAKE_TRIES 3

/* A DSN's hash in hexadecimal digits, and the NUL. */
#define SUBDIR_NAME_SIZE (16 + 1)

/* Called for a file of the spool; returns true if it removed or moved the file. */
typedef bool (*entry_fn)(void *ctx, int dir_fd, const char *name, const struct spool_entry *e);

struct walk {
	int dir_fd;
	entry_fn fn;
	void *ctx;
	size_t n; /* calls of fn that returned true */
};

static int walk_name(void *ctx, const char *name)
{
	struct walk *walk = ctx;
	struct spool_entry e;

	if (spool_name_parse(name, &e) == 0)
		walk->n += walk->fn(walk->ctx, walk->dir_fd, name, &e);
	return 0;
}

/* Returns how often fn returned true. If the directory cannot be read, the walk ends early. */
static size_t for_each_entry(int dir_fd, entry_fn fn, void *ctx)
{
	struct walk walk = {.dir_fd = dir_fd, .fn = fn, .ctx = ctx};

	(void)!spool_for_each_name(dir_fd, walk_name, &walk);
	return walk.n;
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

/* Moves the files of a DSN from one directory to another. */
static void move_files(int from, int to, uint64_t dsn)
{
	struct move m = {.dsn = dsn, .to = to};
	const size_t n = for_each_entry(from, move_one, &m);

	if (n == 0)
		return;
	/* The new directory first: after a power failure a file is in both, not in none. */
	if (fsync(to) < 0 || fsync(from) < 0)
		log_error("moving chunks to another directory of the spool: cannot write the "
			  "directories to the disk: %s; a power failure may lose these chunks",
			  strerror(errno));
	log_warning("spool: %zu chunk%s found again in the directory that this DSN used before the "
		    "configuration changed: %s sent now",
		    n, n == 1 ? " was" : "s were", n == 1 ? "it is" : "they are");
}

static bool is_subdir_name(const char *name)
{
	return strlen(name) == SUBDIR_NAME_SIZE - 1 &&
	       strspn(name, "0123456789abcdef") == SUBDIR_NAME_SIZE - 1;
}

static int open_subdir(int dir_fd, const char *name)
{
	return openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

struct expiry {
	int dir_fd;
	uint64_t before_ms;
	bool at_start;
	const char *subdir; /* name of the directory that is being walked */
	size_t n;	    /* files that were removed */
};

/* The path is relative to the spool's directory: ship's seccomp filter permits no other one. */
static bool remove_old(void *ctx, int dir_fd, const char *name, const struct spool_entry *e)
{
	const struct expiry *x = ctx;
	char path[SUBDIR_NAME_SIZE + 1 + SPOOL_NAME_SIZE];

	(void)dir_fd;
	(void)snprintf(path, sizeof(path), "%s/%s", x->subdir, name);
	return e->time_ms < x->before_ms && unlinkat(x->dir_fd, path, 0) == 0;
}

/* Removes an empty directory, unless a ship has locked it. */
static void remove_subdir(int dir_fd, const char *name, int subdir)
{
	if (flock(subdir, LOCK_EX | LOCK_NB) == 0)
		(void)unlinkat(dir_fd, name, AT_REMOVEDIR);
}

static int expire_subdir(void *ctx, const char *name)
{
	struct expiry *x = ctx;
	int subdir = is_subdir_name(name) ? open_subdir(x->dir_fd, name) : -1;

	if (subdir < 0)
		return 0;
	x->subdir = name;
	x->n += for_each_entry(subdir, remove_old, x);
	if (x->at_start)
		remove_subdir(x->dir_fd, name, subdir);
	close_fd(&subdir);
	return 0;
}

static void expire(struct spool_dirs *d, bool at_start)
{
	const uint64_t now_ms = clock_wall_ns() / NS_PER_MS;
	struct expiry x = {
		.dir_fd = d->dir_fd,
		.before_ms = now_ms > d->age_ms ? now_ms - d->age_ms : 0,
		.at_start = at_start,
	};

	d->next_ns = clock_boot_ns() + SPOOL_DIRS_PAUSE_NS;
	(void)!spool_for_each_name(d->dir_fd, expire_subdir, &x);
	if (x.n > 0)
		log_warning("spool: %zu chunk%s of other DSNs removed: too old", x.n,
			    x.n == 1 ? "" : "s");
}

void spool_dirs_check(struct spool_dirs *d)
{
	if (d->dir_fd >= 0 && clock_boot_ns() >= d->next_ns)
		expire(d, false);
}

/*
 * Opens the directory, after making it if needed, and locks it until the process ends. Starts again
 * if the first DSN's ship has removed the directory, which was empty, before it was locked.
 */
static int make_subdir(int dir_fd, const char *name)
{
	struct stat st = {0};
	int subdir = -1;

	for (int i = 0; i < MAKE_TRIES && st.st_nlink == 0; i++) {
		close_fd(&subdir);
		if (mkdirat(dir_fd, name, 0700) < 0 && errno != EEXIST)
			break;
		subdir = open_subdir(dir_fd, name);
		if (subdir < 0 && errno == ENOENT)
			continue;
		if (subdir < 0 || flock(subdir, LOCK_SH) < 0 || fstat(subdir, &st) < 0)
			break;
	}
	/* Not locked, or removed. */
	if (subdir >= 0 && st.st_nlink == 0)
		close_fd(&subdir);
	if (subdir < 0)
		log_error("cannot open the directory %s of the spool: %s; chunks wait in memory, "
			  "and are lost if they are not sent before sentry-profd ends",
			  name, strerror(errno));
	return subdir;
}

int spool_dirs_open(int dir_fd, const struct msg_init *init, struct spool_dirs *ret)
{
	const uint64_t age_s = init->spool_age_s != 0 ? init->spool_age_s : SPOOL_AGE_DEFAULT_S;
	char name[SUBDIR_NAME_SIZE];
	int subdir;

	*ret = (struct spool_dirs){.dir_fd = -1};
	if (dir_fd < 0)
		return -1;
	(void)snprintf(name, sizeof(name), "%016llx", (unsigned long long)init->spool_dsn);
	if (init->spool_is_first) {
		subdir = open_subdir(dir_fd, name);
		if (subdir >= 0)
			move_files(subdir, dir_fd, init->spool_dsn);
		close_fd(&subdir);
		*ret = (struct spool_dirs){
			.dir_fd = dir_fd,
			.age_ms = age_s * 1000 + GRACE_MS,
		};
		expire(ret, true);
		return dir_fd;
	}
	subdir = make_subdir(dir_fd, name);
	if (subdir >= 0)
		move_files(dir_fd, subdir, init->spool_dsn);
	close_fd(&dir_fd);
	return subdir;
}
