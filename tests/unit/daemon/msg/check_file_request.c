/*
 * Tests both sides with one table of requests: the verdict of file_request_check() on each, and
 * whether the functions of daemon/unwind/request.h send it. The test takes the broker's part.
 */
#include "daemon/msg/file_request.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "daemon/msg/msg_io.h"
#include "daemon/unwind/request.h"
#include "tests/unit/suite.h"

#define TARGET 7
#define PAGE   4096
#define LAST   UINT64_C(0xfffffffffffff000)

/* 32 and 128 digits. */
#define HEX_32	"0123456789abcdef0123456789abcdef"
#define HEX_128 HEX_32 HEX_32 HEX_32 HEX_32
/* 250 letters. */
#define X_50  "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
#define X_250 X_50 X_50 X_50 X_50 X_50

static const struct {
	uint32_t kind;
	uint64_t start, end;
	const char *name;
	enum file_request_verdict verdict;
} cases[] = {
	{FILE_KIND_MAPS, 0, 0, "", FILE_REQUEST_VALID},
	{FILE_KIND_PROGRAM, 0, 0, "", FILE_REQUEST_VALID},
	{FILE_KIND_CMDLINE, 0, 0, "", FILE_REQUEST_VALID},
	{FILE_KIND_PERF_MAP, 0, 0, "", FILE_REQUEST_VALID},
	/* Ranges. */
	{FILE_KIND_IMAGE, 0, PAGE, "", FILE_REQUEST_VALID},
	{FILE_KIND_IMAGE, PAGE, LAST, "", FILE_REQUEST_VALID},
	{FILE_KIND_IMAGE, 0, 0, "", FILE_REQUEST_REFUSED},
	{FILE_KIND_IMAGE, PAGE, PAGE, "", FILE_REQUEST_REFUSED},
	{FILE_KIND_IMAGE, 2 * PAGE, PAGE, "", FILE_REQUEST_REFUSED},
	{FILE_KIND_IMAGE, PAGE + 1, 2 * PAGE, "", FILE_REQUEST_REFUSED},
	{FILE_KIND_IMAGE, PAGE, 2 * PAGE - 1, "", FILE_REQUEST_REFUSED},
	{FILE_KIND_IMAGE, 0, UINT64_MAX, "", FILE_REQUEST_REFUSED},
	/* Build-ids of 0, 1, 2, 16 and 64 bytes, and texts that are no build-ids. */
	{FILE_KIND_DEBUG, 0, 0, "", FILE_REQUEST_REFUSED},
	{FILE_KIND_DEBUG, 0, 0, "ab", FILE_REQUEST_REFUSED},
	{FILE_KIND_DEBUG, 0, 0, "abc", FILE_REQUEST_REFUSED},
	{FILE_KIND_DEBUG, 0, 0, "abcd", FILE_REQUEST_VALID},
	{FILE_KIND_DEBUG, 0, 0, HEX_32, FILE_REQUEST_VALID},
	{FILE_KIND_DEBUG, 0, 0, HEX_128, FILE_REQUEST_VALID},
	{FILE_KIND_DEBUG, 0, 0, "ABCD", FILE_REQUEST_REFUSED},
	{FILE_KIND_DEBUG, 0, 0, "../../etc/passwd", FILE_REQUEST_REFUSED},
	{FILE_KIND_DEBUG, 0, 0, "abcd/", FILE_REQUEST_REFUSED},
	/* Names of debug links. tests/unit/base/check_file_name.c tests more names. */
	{FILE_KIND_DEBUG_LINK, 0, PAGE, "program.debug", FILE_REQUEST_VALID},
	{FILE_KIND_DEBUG_LINK, 0, PAGE, X_250 "xxxxx", FILE_REQUEST_VALID},
	{FILE_KIND_DEBUG_LINK, 0, PAGE, X_250 "xxxxxx", FILE_REQUEST_REFUSED},
	{FILE_KIND_DEBUG_LINK, 0, PAGE, X_250 X_250, FILE_REQUEST_REFUSED},
	{FILE_KIND_DEBUG_LINK, 0, PAGE, "", FILE_REQUEST_REFUSED},
	{FILE_KIND_DEBUG_LINK, 0, PAGE, "..", FILE_REQUEST_REFUSED},
	{FILE_KIND_DEBUG_LINK, 0, PAGE, "a/b", FILE_REQUEST_REFUSED},
	{FILE_KIND_DEBUG_LINK, 0, PAGE, "a\nb", FILE_REQUEST_REFUSED},
	{FILE_KIND_DEBUG_LINK, 0, PAGE, "\xc3\xa4", FILE_REQUEST_REFUSED},
	{FILE_KIND_DEBUG_LINK, 0, 0, "program.debug", FILE_REQUEST_REFUSED},
	{FILE_KIND_DEBUG_LINK, 1, PAGE, "program.debug", FILE_REQUEST_REFUSED},
};

static int broker;

/* Occupies MSG_FD, so that no file that Check opens gets this number. */
__attribute__((constructor)) static void take_descriptor(void)
{
	(void)dup2(STDERR_FILENO, MSG_FD);
}

static void set_up(void)
{
	int fds[2];

	OK(ipc_pair(fds));
	OK(fcntl(fds[0], F_SETFL, O_NONBLOCK));
	OK(fcntl(fds[1], F_SETFL, O_NONBLOCK));
	broker = fds[0];
	ck_assert_int_eq(dup2(fds[1], MSG_FD), MSG_FD);
	close_fd(&fds[1]);
}

static void tear_down(void)
{
	int fd = MSG_FD;

	close_fd(&broker);
	close_fd(&fd);
}

FIXTURE(set_up, tear_down)

TESTS(verdict_on_each_request, array_size(cases))
{
	struct msg_file_request request = {
		.kind = cases[_i].kind, .start = cases[_i].start, .end = cases[_i].end};
	const size_t n = strlen(cases[_i].name);

	memcpy(request.name, cases[_i].name, min_size(n, sizeof(request.name)));
	ck_assert_int_eq(file_request_check(&request), cases[_i].verdict);
}

/* Makes request i by the function that unwind uses for its kind. */
static int make_request(size_t i, int *ret_fd)
{
	const uint64_t start = cases[i].start, end = cases[i].end;
	const char *name = cases[i].name;

	switch (cases[i].kind) {
	case FILE_KIND_IMAGE:
		return request_image(TARGET, start, end, ret_fd);
	case FILE_KIND_DEBUG:
		return request_debug(TARGET, name, ret_fd);
	case FILE_KIND_DEBUG_LINK:
		return request_debug_link(TARGET, start, end, name, ret_fd);
	default:
		return request_file(cases[i].kind, TARGET, ret_fd);
	}
}

/* The broker's answer is in the socket before the request, since the request waits for it. */
TESTS(unwind_sends_valid_requests_only, array_size(cases))
{
	const struct msg_file_reply no_file = {
		.h = MSG_HEADER(MSG_FILE_REPLY),
		.request = 1,
		.error = EACCES,
	};
	const struct msg_file_request *sent;
	struct ipc_message m;
	int fd = -1;

	OK(ipc_send(broker, &no_file, sizeof(no_file), NULL, 0));
	if (cases[_i].verdict != FILE_REQUEST_VALID) {
		ck_assert_int_eq(make_request((size_t)_i, &fd), -ENOENT);
		ck_assert_int_eq(ipc_recv(broker, &m), -EAGAIN);
		return;
	}
	ck_assert_int_eq(make_request((size_t)_i, &fd), -EACCES);
	ck_assert_int_eq(ipc_recv(broker, &m), 1);
	ck_assert_uint_eq(msg_type_of(&m), MSG_FILE_REQUEST);
	sent = msg_as(&m, MSG_FILE_REQUEST);
	ck_assert_ptr_nonnull(sent);
	ck_assert_int_eq(file_request_check(sent), FILE_REQUEST_VALID);
	ck_assert_uint_eq(sent->kind, cases[_i].kind);
	ck_assert_uint_eq(sent->request, 1);
}

TEST(kinds_that_unwind_never_requests_are_violations)
{
	static const uint32_t kinds[] = {0, FILE_KIND_PID_FILE, FILE_KIND_END, FILE_KIND_END + 1,
					 UINT32_MAX};

	for (size_t i = 0; i < array_size(kinds); i++) {
		const struct msg_file_request request = {
			.kind = kinds[i], .end = PAGE, .name = "abcd"};

		ck_assert_int_eq(file_request_check(&request), FILE_REQUEST_VIOLATION);
	}
}

TEST(names_without_a_nul_are_refused)
{
	struct msg_file_request request = {.kind = FILE_KIND_DEBUG, .end = PAGE};

	memset(request.name, 'a', sizeof(request.name));
	ck_assert_int_eq(file_request_check(&request), FILE_REQUEST_REFUSED);
	request.kind = FILE_KIND_DEBUG_LINK;
	ck_assert_int_eq(file_request_check(&request), FILE_REQUEST_REFUSED);
}
