#include "tests/unit/client/fake_daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "lib/base/ipc.h"
#include "lib/client/sentry_profd.h"
#include "tests/unit/suite.h"

/* A child of the test may get no processor time for long on a busy machine. */
#define PATIENCE_MS 60000

char fake_path[64];

void fake_listen(struct fake_daemon *d)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	char dir[] = "/tmp/check_client.XXXXXX";

	if (fake_path[0] == '\0') {
		ck_assert_ptr_nonnull(mkdtemp(dir));
		(void)snprintf(fake_path, sizeof(fake_path), "%s/socket", dir);
	}
	(void)snprintf(a.sun_path, sizeof(a.sun_path), "%s", fake_path);
	*d = (struct fake_daemon){-1, -1, NULL, -1};
	d->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	ck_assert_int_ge(d->listener, 0);
	OK(bind(d->listener, (void *)&a, sizeof(a)));
	OK(listen(d->listener, 8));
}

void fake_stop(struct fake_daemon *d)
{
	close_fd(&d->connection);
	close_fd(&d->listener);
	close_fd(&d->page_fd);
	if (d->page != NULL)
		(void)munmap(d->page, 4096);
	d->page = NULL;
	(void)unlink(fake_path);
}

void fake_end(struct fake_daemon *d)
{
	fake_stop(d);
	*strrchr(fake_path, '/') = '\0';
	OK(rmdir(fake_path));
	fake_path[0] = '\0';
}

static bool is_readable(int fd, int timeout_ms)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return poll(&p, 1, timeout_ms) == 1;
}

bool fake_has_connection_request(struct fake_daemon *d)
{
	return is_readable(d->listener, 0);
}

void fake_accept(struct fake_daemon *d)
{
	const struct protocol_hello *hello;
	struct ipc_message m;

	ck_assert(is_readable(d->listener, PATIENCE_MS));
	close_fd(&d->connection);
	d->connection = accept4(d->listener, NULL, NULL, SOCK_CLOEXEC);
	ck_assert_int_ge(d->connection, 0);
	ck_assert(is_readable(d->connection, PATIENCE_MS));
	ck_assert_int_eq(ipc_recv(d->connection, &m), 1);
	hello = (const void *)m.bytes;
	ck_assert_uint_eq(m.size, sizeof(*hello));
	ck_assert_uint_eq(hello->h.type, PROTOCOL_HELLO);
	ck_assert_uint_eq(hello->magic, PROTOCOL_MAGIC);
	ck_assert_uint_ne(hello->flags & PROTOCOL_WANT_PAGE, 0);
}

void fake_answer(struct fake_daemon *d, uint32_t lifecycle, bool is_sampled)
{
	const struct protocol_answer answer = {
		.h = {PROTOCOL_ANSWER, sizeof(answer), 1},
		.version = PROTOCOL_VERSION,
	};

	close_fd(&d->page_fd);
	d->page_fd = memfd_create("page", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	OK(ftruncate(d->page_fd, sizeof(*d->page)));
	OK(fcntl(d->page_fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL));
	d->page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, d->page_fd, 0);
	ck_assert_ptr_ne(d->page, MAP_FAILED);
	d->page->lifecycle = lifecycle;
	d->page->is_sampled = is_sampled;
	d->page->state = is_sampled ? PROTOCOL_STATE_STOPPED : PROTOCOL_STATE_UNSAMPLED;
	d->page->wants_open = is_sampled && lifecycle == PROTOCOL_TRACE;
	memcpy(d->page->profiler_id, FAKE_ID, sizeof(FAKE_ID));
	OK(ipc_send(d->connection, &answer, sizeof(answer), &d->page_fd, 1));
}

struct protocol_request fake_receive(struct fake_daemon *d)
{
	struct protocol_request request;
	struct ipc_message m;

	ck_assert(is_readable(d->connection, PATIENCE_MS));
	ck_assert_int_eq(ipc_recv(d->connection, &m), 1);
	ck_assert_uint_eq(m.size, sizeof(request));
	memcpy(&request, m.bytes, sizeof(request));
	ck_assert_uint_eq(request.h.size, sizeof(request));
	return request;
}

void fake_receive_nothing(struct fake_daemon *d)
{
	ck_assert(!is_readable(d->connection, 0));
}

void fake_receive_end(struct fake_daemon *d)
{
	struct ipc_message m;
	int r;

	ck_assert(is_readable(d->connection, PATIENCE_MS));
	r = ipc_recv(d->connection, &m);
	ck_assert(r == 0 || r == -ECONNRESET);
}

void fake_connect(struct fake_daemon *d)
{
	fake_listen(d);
	OK(sentry_profd_connect(fake_path));
	fake_accept(d);
	fake_answer(d, PROTOCOL_TRACE, true);
	OK(sentry_profd_wait(0));
}
