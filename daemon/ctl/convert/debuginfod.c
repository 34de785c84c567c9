#include "daemon/ctl/convert/debuginfod.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/common/log.h"
#include "lib/base/clock.h"

#define LIBRARY "libdebuginfod.so.1"

/* Seconds without a byte. The default of the library is 90. */
#define TIMEOUT_S     30
#define TIMEOUT_MAX_S 3600

#define MB 1e6

/*
 * Declarations from elfutils' debuginfod.h, see debuginfod_find_debuginfo(3). They are
 * repeated here so that the build does not need the library's development package.
 */
typedef int progress_fn(void *client, long done, long total);
typedef void *begin_fn(void);
typedef void end_fn(void *client);
/* size 0: build_id is a string of hex digits. */
typedef int find_fn(void *client, const char *build_id, int size, char **path);
typedef void set_progress_fn(void *client, progress_fn *fn);
typedef void set_data_fn(void *client, void *data);
typedef void *get_data_fn(void *client);

static get_data_fn *get_data;

/*
 * Stores the address of a function of the library in *ret, a function pointer of this size.
 * POSIX permits the conversion from the object pointer that dlsym(3) returns.
 */
static bool find_symbol(void *library, const char *name, void *ret, size_t size)
{
	void *symbol = dlsym(library, name);

	memcpy(ret, &symbol, size);
	return symbol != NULL;
}

static void show_progress(struct debuginfod *d, long done, long total)
{
	if (!isatty(STDERR_FILENO))
		return;
	d->has_progress = true;
	if (total > 0)
		(void)fprintf(stderr, "\rdebuginfod: %s: %.1f of %.1f MB\033[K", d->build_id,
			      (double)done / MB, (double)total / MB);
	else
		(void)fprintf(stderr, "\rdebuginfod: %s\033[K", d->build_id);
}

static void clear_progress(struct debuginfod *d)
{
	if (d->has_progress)
		(void)fputs("\r\033[K", stderr);
	d->has_progress = false;
}

/* The library calls this about once a second. total is 0 until a server has answered. */
static int progress(void *client, long done, long total)
{
	struct debuginfod *d = get_data(client);
	const uint64_t now_ns = clock_mono_ns();

	if (total > 0 && done != d->bytes) {
		d->bytes = done;
		d->progress_ns = now_ns;
	}
	show_progress(d, done, total);
	d->is_timed_out = now_ns - d->progress_ns > d->timeout_ns;
	return d->is_timed_out;
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
		log_warning("DEBUGINFOD_URLS is set, but %s is not installed: no debuginfod server "
			    "is asked for debug files (Debian: libdebuginfod1)",
			    LIBRARY);
		return -ENOSYS;
	}
	d->client = NULL;
	if (find_symbol(d->library, "debuginfod_begin", &begin, sizeof(begin)) &&
	    find_symbol(d->library, "debuginfod_set_progressfn", &set_progress,
			sizeof(set_progress)) &&
	    find_symbol(d->library, "debuginfod_set_user_data", &set_data, sizeof(set_data)) &&
	    find_symbol(d->library, "debuginfod_get_user_data", &get_data, sizeof(get_data)))
		d->client = begin();
	if (d->client == NULL) {
		log_warning("%s cannot be used, probably because it is too old: no debuginfod "
			    "server is asked for debug files",
			    LIBRARY);
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
	d->is_timed_out = false;
	d->progress_ns = clock_mono_ns();
	fd = find(d->client, d->build_id, 0, &path);
	clear_progress(d);
	free(path);
	if (fd < 0)
		return d->is_timed_out ? -ETIMEDOUT : fd;
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
			log_warning("asking debuginfod servers for a debug file failed: %s: no "
				    "server is asked for further files",
				    strerror(-r));
	}
	d->is_off = r < 0 && r != -ENOENT;
	return r;
}
