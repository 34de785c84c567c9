#include "daemon/msg/page.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

static int map(int fd, size_t size, int protection, void **ret)
{
	void *page = mmap(NULL, size, protection, MAP_SHARED, fd, 0);

	if (page == MAP_FAILED)
		return -errno;
	*ret = page;
	return 0;
}

int page_share(const char *name, size_t size, int protection, void **ret_page, int *ret_fd)
{
	int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING), r = 0;

	if (fd < 0)
		return -errno;
	if (ftruncate(fd, (off_t)size) < 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
		r = -errno;
	if (r == 0)
		r = map(fd, size, protection, ret_page);
	if (r < 0)
		close_fd(&fd);
	else
		*ret_fd = fd;
	return r;
}

int page_new(const char *name, size_t size, const void **ret_page, int *ret_fd)
{
	void *page = NULL;
	int r = page_share(name, size, PROT_READ, &page, ret_fd);

	if (r == 0)
		*ret_page = page;
	return r;
}

void page_free(const void *page, size_t size)
{
	if (page != NULL)
		(void)munmap((void *)(uintptr_t)page, size);
}

int page_map(int fd, size_t size, void **ret_page)
{
	return map(fd, size, PROT_READ | PROT_WRITE, ret_page);
}
