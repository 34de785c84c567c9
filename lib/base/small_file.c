#include "lib/base/small_file.h"

#include <fcntl.h>
#include <unistd.h>

int small_file_read(int dir_fd, const char *name, char *ret, size_t size)
{
	int fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC), r = 0;
	ssize_t n;

	ret[0] = '\0';
	if (fd < 0)
		return -errno;
	do
		n = read(fd, ret, size - 1);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		r = -errno;
	ret[n < 0 ? 0 : n] = '\0';
	close_fd(&fd);
	return r;
}
