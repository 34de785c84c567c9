#include "lib/base/sealed.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define ALL_SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL)

int sealed_open(struct sealed *s, const char *name)
{
	int copy, r;

	*s = (struct sealed){.fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING)};
	if (s->fd < 0)
		return -errno;
	/* fclose(3) closes this duplicate. */
	copy = fcntl(s->fd, F_DUPFD_CLOEXEC, 0);
	s->out = copy < 0 ? NULL : fdopen(copy, "w");
	if (s->out != NULL)
		return 0;
	r = -errno;
	close_fd(&copy);
	close_fd(&s->fd);
	return r;
}

int sealed_close(struct sealed *s, int result, int *ret_fd, uint64_t *ret_size)
{
	const bool failed = ferror(s->out) != 0;
	off_t size = 0;
	int r = result;

	if (fclose(s->out) != 0 && r == 0)
		r = -errno;
	if (failed && r == 0)
		r = -EIO;
	if (r == 0) {
		size = lseek(s->fd, 0, SEEK_END);
		if (size < 0 || lseek(s->fd, 0, SEEK_SET) < 0 ||
		    fcntl(s->fd, F_ADD_SEALS, ALL_SEALS) < 0)
			r = -errno;
	}
	if (r < 0) {
		close_fd(&s->fd);
		return r;
	}
	*ret_fd = s->fd;
	*ret_size = (uint64_t)size;
	return 0;
}

int sealed_copy(const char *name, const void *bytes, size_t size, int *ret_fd)
{
	struct sealed s;
	uint64_t written;
	int r = sealed_open(&s, name);

	if (r != 0)
		return r;
	(void)fwrite(bytes, 1, size, s.out);
	return sealed_close(&s, 0, ret_fd, &written);
}

bool sealed_is(int fd, uint64_t size)
{
	const int seals = fcntl(fd, F_GET_SEALS);
	struct stat st;

	return seals >= 0 && (seals & ALL_SEALS) == ALL_SEALS && fstat(fd, &st) == 0 &&
	       (uint64_t)st.st_size == size;
}

uint64_t sealed_memory(int fd, uint64_t size)
{
	struct stat st;

	/* A hole, or the end of a file that has none. */
	if (lseek(fd, 0, SEEK_HOLE) != (off_t)size || fstat(fd, &st) < 0)
		return UINT64_MAX;
	/* In units of 512 bytes (inode(7)). */
	return max_u64(size, (uint64_t)st.st_blocks * 512);
}
