#include "daemon/handed.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/procfs.h"

/* Places at first: the files of a program in C. */
#define PLACES 64

int file_shown_of(int fd, int32_t pid, uint64_t start, uint64_t end,
		  struct file_shown *ret)
{
	/* The helper's own (daemon/open.c). */
	static const char copy[] = "/memfd:copy";
	char path[PATH_MAX];
	struct stat st;
	size_t n;
	int r = procfs_link(procfs_own_fd(fd).text, path, sizeof(path));

	if (r < 0)
		return r;
	if (fstat(fd, &st) < 0)
		return -errno;
	memset(ret, 0, sizeof(*ret));
	if (strncmp(path, copy, sizeof(copy) - 1) == 0) {
		ret->identity = (struct file_identity){
			.device = (uint64_t)-pid,
			.inode = start,
			.size = end - start,
		};
		(void)snprintf(ret->name, sizeof(ret->name),
			       "memory of process %d", pid);
		return 0;
	}
	ret->identity = file_identity_of(&st);
	n = strlen(path);
	if (n >= FILE_NAME_SHOWN)
		memmove(path, path + n - FILE_NAME_SHOWN + 1, FILE_NAME_SHOWN);
	memcpy(ret->name, path, strnlen(path, FILE_NAME_SHOWN - 1));
	return 0;
}

static struct file_identity *place_of(const struct handed *h, uint32_t number)
{
	return &h->files[(number - 1) % h->size];
}

/* The first number that has not been overwritten. */
static uint32_t first_of(const struct handed *h)
{
	return h->last > h->size ? h->last - (uint32_t)h->size + 1 : 1;
}

/* Doubles the places, as long as each number has the place of its own. */
static bool make_room(struct handed *h)
{
	size_t size = h->size == 0 ? PLACES : h->size * 2;
	struct file_identity *files;

	if (h->last != h->size || h->size == HANDED_MAX)
		return true;
	files = reallocarray(h->files, size, sizeof(*files));
	if (files == NULL)
		return h->size > 0;
	h->files = files;
	h->size = size;
	return true;
}

uint32_t handed_add(struct handed *h, const struct file_identity *file)
{
	for (uint32_t n = first_of(h); h->last > 0 && n <= h->last; n++)
		if (file_identity_equal(place_of(h, n), file))
			return n;
	/* A process that asks for 2^32 different files has no more numbers. */
	if (h->last == UINT32_MAX - 1 || !make_room(h))
		return 0;
	h->last++;
	*place_of(h, h->last) = *file;
	return h->last;
}

const struct file_identity *handed_file(const struct handed *h, uint32_t number)
{
	if (number == 0 || number > h->last || number < first_of(h))
		return NULL;
	return place_of(h, number);
}

void handed_fini(struct handed *h)
{
	free(h->files);
	*h = (struct handed){0};
}
