#include "daemon/ship/certificates.h"

#include <sys/mman.h>

#include "tests/unit/suite.h"

/* At a reload another program may be writing it: the certificates before stay in use. */
TEST(an_empty_file_is_an_error)
{
	struct certificates c;
	int fds[INIT_FILE_N];

	for (size_t i = 0; i < INIT_FILE_N; i++)
		fds[i] = -1;
	OK(certificates_read(&c, fds));
	ck_assert_ptr_null(certificates_problem(&c));
	certificates_fini(&c);
	fds[INIT_CA_CERTS] = memfd_create("empty", MFD_CLOEXEC);
	ck_assert_int_eq(certificates_read(&c, fds), -ENODATA);
	certificates_fini(&c);
	close_fd(&fds[INIT_CA_CERTS]);
}
