#include "daemon/ctl/debuginfod.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/common/log.h"
#include "lib/base/clock.h"

#define LIBRARY "libdebuginfod.so.1"

/* Seconds without a byte; the library's own default is 90. */
#define TIMEOUT_S     30
#define TIMEOUT_MAX_S 3600

#define MB 1e6

/*
 * From elfutils' debuginfod.h, debuginfod_find_debuginfo(3). Debian's package
 * of the header would be needed to build, and not to run.
 */
typedef int progress_fn(void *client, long done, long total);
typedef void *begin_fn(void);
typedef void end_fn(void *client);
/* size 0: the build-id is text. */
typedef int find_fn(void *client, const char *build_id, int size, char **path);
typedef void set_progress_fn(void *client, progress_fn *fn);
typedef void set_data_fn(void *client, void *data);
typedef void *get_data_fn(void *client);

static get_data_fn *get_data;

/* A function of the library; POSIX says that dlsym's result may be one. */
static bool find_symbol(void *library, const char *name, void *ret, size_t size)
{
	void *symbol = dlsym(library, name);

	memcpy(ret, &symbol, size);
	return symbol != NULL;
}

static void show(struct debuginfod *d, long done, long total)
{
	if (!isatty(STDERR_FILENO))
		return;
	d->shows = true;
	if (total > 0)
		(void)fprintf(stderr, "\rdebuginfod: %s: %.1f of %.1f MB\033[K", d->build_id,
			      (double)done / MB, (double)total / MB);
	else
		(void)fprintf(stderr, "\rdebuginfod: %s\033[K", d->build_id);
}

static void hide(struct debuginfod *d)
{
	if (d->shows)
		(void)fputs("\r\033[K", stderr);
	d->shows = false;
}

/* The library calls it about once a second. total 0: no server has answered. */
static int progress(void *client, long done, long total)
{
	struct debuginfod *d = get_data(client);
	const uint64_t now_ns = clock_mono_ns();

	if (total > 0 && done != d->bytes) {
		d->bytes = done;
		d->moved_ns = now_ns;
	}
	show(d, done, total);
	d->is_late = now_ns - d->moved_ns > d->timeout_ns;
	return d->is_late;
}

static uint64_t read_timeout(void)
{
	const char *value = getenv("DEBUGINFOD_TIMEOUT");
	const long s = value == NULL ? 0 : strtol(value, NULL, 10);

	return NS_PER_SEC * (uint64_t)(s > 0 && s <= TIMEOUT_MAX_S ? s : TIMEOUT_S);
}

static int load(struct debuginfod *d)
{
	set_progress_fn *set_progress = NULL;
	set_data_fn *set_data = NULL;
	begin_fn *begin = NULL;

	d->library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
	if (d->library == NULL) {
		log_warning("DEBUGINFOD_URLS is set, but there is no %s: no "
			    "server is asked (Debian: libdebuginfod1)",
			    LIBRARY);
		return -ENOSYS;
	}
	if (find_symbol(d->library, "debuginfod_begin", &begin, sizeof(begin)) &&
	    find_symbol(d->library, "debuginfod_set_progressfn", &set_progress,
			sizeof(set_progress)) &&
	    find_symbol(d->library, "debuginfod_set_user_data", &set_data, sizeof(set_data)) &&
	    find_symbol(d->library, "debuginfod_get_user_data", &get_data, sizeof(get_data)))
		d->client = begin();
	if (d->client == NULL) {
		log_warning("%s cannot be used: no server is asked", LIBRARY);
		return -ENOSYS;
	}
	set_data(d->client, d);
	set_progress(d->client, progress);
	d->timeout_ns = read_timeout();
	return 0;
}

void debuginfod_end(struct debuginfod *d)
{
	end_fn *end = NULL;

	if (d->client != NULL && find_symbol(d->library, "debuginfod_end", &end, sizeof(end)))
		end(d->client);
	if (d->library != NULL)
		(void)dlclose(d->library);
	*d = (struct debuginfod){0};
}

static int fetch(struct debuginfod *d, int *ret_fd)
{
	char *path = NULL;
	find_fn *find = NULL;
	int fd;

	if (!find_symbol(d->library, "debuginfod_find_debuginfo", &find, sizeof(find)))
		return -ENOSYS;
	d->bytes = 0;
	d->is_late = false;
	d->moved_ns = clock_mono_ns();
	fd = find(d->client, d->build_id, 0, &path);
	hide(d);
	free(path);
	if (fd < 0)
		return d->is_late ? -ETIMEDOUT : fd;
	*ret_fd = fd;
	return 0;
}

int debuginfod_find(struct debuginfod *d, const char *build_id, int *ret_fd)
{
	const char *urls = getenv("DEBUGINFOD_URLS");
	int r = 0;

	if (d->is_off || urls == NULL || urls[0] == '\0')
		return -ENOSYS;
	if (d->library == NULL)
		r = load(d);
	d->build_id = build_id;
	if (r == 0) {
		r = fetch(d, ret_fd);
		if (r < 0 && r != -ENOENT)
			log_warning("debuginfod: %s: no server is asked any "
				    "more",
				    strerror(-r));
	}
	d->is_off = r < 0 && r != -ENOENT;
	return r;
}
