#include "daemon/ship/certificates.h"

#include <sys/mman.h>

#include "tests/unit/suite.h"

/*
 * At a reload another program may be writing it: the certificates before stay in use. At the start
 * it counts as not set: SSL_CERT_FILE=/dev/null.
 */
TEST(an_empty_file_is_a_problem)
{
	struct certificates c;
	int fds[INIT_FILE_N];

	for (size_t i = 0; i < INIT_FILE_N; i++)
		fds[i] = -1;
	OK(certificates_read(&c, fds));
	ck_assert_ptr_null(certificates_problem(&c));
	certificates_fini(&c);
	fds[INIT_CA_CERTS] = memfd_create("empty", MFD_CLOEXEC);
	OK(certificates_read(&c, fds));
	ck_assert_str_eq(certificates_problem(&c), "ca_certs");
	certificates_fini(&c);
	close_fd(&fds[INIT_CA_CERTS]);
}
