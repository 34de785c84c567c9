#include "lib/capture/proc/proc.h"

#include <fcntl.h>
#include <unistd.h>

static enum proc_outcome failed(void)
{
	return errno == ENOENT || errno == ESRCH ? PROC_GONE : PROC_LACK;
}

enum proc_outcome proc_open(int dir_fd, const char *name, int flags, int *ret_fd)
{
	const int fd = openat(dir_fd, name, flags | O_CLOEXEC);

	if (fd < 0)
		return failed();
	*ret_fd = fd;
	return PROC_READ;
}

enum proc_outcome proc_read_at(int fd, uint64_t offset, void *ret, size_t size, size_t *ret_n)
{
	const ssize_t n = pread(fd, ret, size, (off_t)offset);

	if (n < 0)
		return failed();
	*ret_n = (size_t)n;
	return PROC_READ;
}

enum proc_outcome proc_read(int dir_fd, const char *name, void *ret, size_t size, size_t *ret_n)
{
	enum proc_outcome outcome;
	int fd;

	outcome = proc_open(dir_fd, name, O_RDONLY, &fd);
	if (outcome != PROC_READ)
		return outcome;
	outcome = proc_read_at(fd, 0, ret, size, ret_n);
	close_fd(&fd);
	return outcome;
}

enum proc_outcome proc_read_text(int dir_fd, const char *name, char *ret, size_t size)
{
	enum proc_outcome outcome;
	size_t n = 0;

	outcome = proc_read(dir_fd, name, ret, size - 1, &n);
	ret[n] = '\0';
	return outcome;
}

int proc_error(enum proc_outcome outcome)
{
	switch (outcome) {
	case PROC_READ:
		return 0;
	case PROC_GONE:
		return -ESRCH;
	case PROC_LACK:
		break;
	}
	return -errno;
}
