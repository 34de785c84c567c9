#include "daemon/oracle/live.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/msg/msg_unwind.h"
#include "daemon/process/open.h"
#include "daemon/process/threads.h"

/* Room for UNWIND_MAPS_MAX lines of usual length. */
#define MAPS_TEXT_MAX (16u << 20)

/* Enough for the unwind rows and names of a large browser. */
#define CACHE_BYTES_MAX (256u << 20)

static int open_image(void *ctx, uint64_t start, uint64_t end, int *ret_fd)
{
	const struct live *l = ctx;
	const struct open_order order = {.kind = FILE_KIND_IMAGE, .start = start, .end = end};

	return open_now(l->pid, &order, ret_fd);
}

static int open_by_name(const struct live *l, struct open_order *order, const char *name,
			int *ret_fd)
{
	size_t n = strlen(name);

	if (n >= sizeof(order->name))
		return -ENAMETOOLONG;
	memcpy(order->name, name, n + 1);
	return open_now(l->pid, order, ret_fd);
}

static int open_debug(void *ctx, const char *build_id, int *ret_fd)
{
	const struct live *l = ctx;
	struct open_order order = {.kind = FILE_KIND_DEBUG};

	return open_by_name(l, &order, build_id, ret_fd);
}

static int open_debug_link(void *ctx, uint64_t start, uint64_t end, const char *name, int *ret_fd)
{
	const struct live *l = ctx;
	struct open_order order = {.kind = FILE_KIND_DEBUG_LINK, .start = start, .end = end};

	return open_by_name(l, &order, name, ret_fd);
}

static int open_perf_map(void *ctx, int *ret_fd)
{
	const struct live *l = ctx;
	const struct open_order order = {.kind = FILE_KIND_PERF_MAP};

	return open_now(l->pid, &order, ret_fd);
}

static const struct unwind_files files = {
	.image = open_image,
	.debug = open_debug,
	.debug_link = open_debug_link,
	.perf_map = open_perf_map,
};

int live_init(struct live *l, int32_t pid)
{
	const struct unwind_cache_options options = {.max_bytes = CACHE_BYTES_MAX};
	char path[64];
	int r;

	*l = (struct live){.pid = pid, .proc_fd = -1};
	buf_init(&l->maps, MAPS_TEXT_MAX);
	(void)snprintf(path, sizeof(path), "/proc/%d", pid);
	l->proc_fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (l->proc_fd < 0)
		return -errno;
	r = unwind_cache_new(&options, &l->cache);
	if (r == 0)
		r = unwind_space_new(l->cache, &files, l, &l->space);
	return r;
}

void live_fini(struct live *l)
{
	unwind_space_free(l->space);
	unwind_cache_free(l->cache);
	buf_fini(&l->maps);
	close_fd(&l->proc_fd);
}

int live_read_maps(struct live *l, bool *ret_changed)
{
	struct buf text;
	char path[64];
	int fd, r;

	(void)snprintf(path, sizeof(path), "task/%d/maps", threads_find_living(l->pid));
	fd = openat(l->proc_fd, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	buf_init(&text, MAPS_TEXT_MAX);
	r = buf_read_fd(&text, fd);
	close_fd(&fd);
	if (r == 0 && text.len == 0)
		r = -ESRCH;
	if (r == 0)
		*ret_changed =
			text.len != l->maps.len || memcmp(text.data, l->maps.data, text.len) != 0;
	if (r == 0 && *ret_changed)
		r = unwind_space_set_maps(l->space, text.data, text.len);
	if (r == 0 && *ret_changed) {
		buf_fini(&l->maps);
		l->maps = text;
	} else {
		buf_fini(&text);
	}
	return r;
}

uint64_t live_mapping_end(const struct live *l, uint64_t addr)
{
	const char *line = buf_string(&l->maps);

	while (line != NULL && *line != '\0') {
		char *at;
		uint64_t start = strtoull(line, &at, 16);
		uint64_t end = *at == '-' ? strtoull(at + 1, NULL, 16) : 0;

		if (addr >= start && addr < end)
			return end;
		line = strchr(line, '\n');
		line = line != NULL ? line + 1 : NULL;
	}
	return 0;
}

int32_t live_next_thread(const struct live *l, int32_t previous)
{
	int fd = openat(l->proc_fd, "task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	struct dirent *entry;
	int32_t next = 0;

	if (dir == NULL) {
		close_fd(&fd);
		return 0;
	}
	while ((entry = readdir(dir)) != NULL) {
		long tid = strtol(entry->d_name, NULL, 10);

		if (tid > previous && tid <= INT32_MAX && (next == 0 || tid < next))
			next = (int32_t)tid;
	}
	(void)closedir(dir);
	return next;
}
