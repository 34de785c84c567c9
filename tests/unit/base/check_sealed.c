/* Memory of sealed files: of an honest one, and of those that their maker has made otherwise. */
#include "lib/base/sealed.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/unit/suite.h"

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL)
#define MB    (UINT64_C(1) << 20)
#define PAGE  ((uint64_t)sysconf(_SC_PAGESIZE))

/* Returns a file of one byte, which is not sealed. */
static int open_memfd(void)
{
	int fd = memfd_create("sealed", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	ck_assert_int_eq(write(fd, "a", 1), 1);
	return fd;
}

TEST(a_file_has_the_memory_of_its_pages)
{
	static char bytes[MB];
	int fd;

	OK(sealed_copy("sealed", bytes, sizeof(bytes), &fd));
	ck_assert(sealed_is(fd, MB) && !sealed_is(fd, MB - 1));
	ck_assert_uint_ge(sealed_memory(fd, MB), MB);
	ck_assert_uint_lt(sealed_memory(fd, MB), UINT64_MAX);
	close_fd(&fd);
	OK(sealed_copy("sealed", bytes, 1, &fd));
	ck_assert_uint_ge(sealed_memory(fd, 1), PAGE);
	close_fd(&fd);
}

TEST(pages_behind_the_end_count)
{
	int fd = open_memfd();

	OK(fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, 4 * MB));
	OK(fcntl(fd, F_ADD_SEALS, SEALS));
	ck_assert(sealed_is(fd, 1));
	ck_assert_uint_eq(sealed_memory(fd, 1), 4 * MB);
	/* The seals forbid more. */
	ck_assert_int_eq(fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, 8 * MB), -1);
	ck_assert_int_eq(errno, EPERM);
	close_fd(&fd);
}

/* The seals do not forbid to fill a hole. */
TEST(the_memory_of_a_file_with_a_hole_is_not_known)
{
	int fd = open_memfd();

	OK(ftruncate(fd, MB));
	OK(fcntl(fd, F_ADD_SEALS, SEALS));
	ck_assert(sealed_is(fd, MB));
	ck_assert_uint_eq(sealed_memory(fd, MB), UINT64_MAX);
	OK(fallocate(fd, 0, 0, MB));
	close_fd(&fd);
}

TEST(a_descriptor_of_no_file_has_no_known_memory)
{
	int fds[2];

	OK(pipe(fds));
	ck_assert_uint_eq(sealed_memory(fds[0], 1), UINT64_MAX);
	for (size_t i = 0; i < 2; i++)
		close_fd(&fds[i]);
}
