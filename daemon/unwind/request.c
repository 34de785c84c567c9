#include "daemon/unwind/request.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/common/log.h"
#include "daemon/msg/file_request.h"
#include "daemon/msg/msg_io.h"
#include "daemon/msg/page.h"
#include "daemon/unwind/resource_limits.h"

/*
 * Limit of kept messages. The broker sends few before it answers: new targets, a
 * table, a ring. At most HEARTBEAT_SLOTS targets come at once, each with one
 * message.
 */
#define KEPT_MAX 512

struct kept {
	struct kept *next;
	struct ipc_message message;
};

static struct kept *kept_first, **kept_end = &kept_first;
static size_t n_kept;
static uint32_t last_request;
static uint32_t last_number;

/* Logs that the parent process has broken the protocol, and exits. */
__attribute__((noreturn)) static void fail(const char *what)
{
	log_error("internal error: %s; please report this", what);
	exit(EXIT_FAILURE);
}

__attribute__((noreturn)) static void die(const char *what, int error)
{
	log_error("%s: %s", what, strerror(error));
	exit(EXIT_FAILURE);
}

static void keep_message(const struct ipc_message *m)
{
	struct kept *k = malloc(sizeof(*k));

	if (k == NULL)
		die("cannot keep a message that came before the answer to a request for a file",
		    ENOMEM);
	if (n_kept == KEPT_MAX)
		fail("too many messages came before the answer to a request for a file");
	k->next = NULL;
	k->message = *m;
	*kept_end = k;
	kept_end = &k->next;
	n_kept++;
}

static int wait_for_answer(uint32_t request, int *ret_fd)
{
	struct ipc_message m;
	const struct msg_file_reply *file;
	int fd;

	for (;;) {
		int r = ipc_recv(MSG_FD, &m);

		if (r == 0)
			exit(EXIT_SUCCESS);
		if (r < 0)
			die("cannot receive from the parent process", -r);
		if (msg_type_of(&m) != MSG_FILE_REPLY) {
			keep_message(&m);
			continue;
		}
		file = msg_as(&m, MSG_FILE_REPLY);
		if (file == NULL || file->request != request)
			fail("an answer is not for the last request for a file");
		fd = ipc_take_fd(&m, 0);
		ipc_close_fds(&m);
		if (file->error == 0 && fd < 0)
			fail("the answer to a request for a file has no descriptor");
		if (file->error != 0) {
			close_fd(&fd);
			return file->error > 0 ? -file->error : -EIO;
		}
		last_number = file->number;
		*ret_fd = fd;
		return 0;
	}
}

static int ask(struct msg_file_request *request, int *ret_fd)
{
	if (file_request_check(request) != FILE_REQUEST_VALID)
		return -ENOENT;
	request->h = (struct msg_header)MSG_HEADER(MSG_FILE_REQUEST);
	request->request = ++last_request;
	resource_limits_renew();
	if (ipc_send(MSG_FD, request, sizeof(*request), NULL, 0) < 0)
		exit(EXIT_SUCCESS);
	return wait_for_answer(request->request, ret_fd);
}

int request_file(enum file_kind kind, uint32_t target, int *ret_fd)
{
	struct msg_file_request request = {.kind = kind, .target = target};

	return ask(&request, ret_fd);
}

int request_image(uint32_t target, uint64_t start, uint64_t end, int *ret_fd)
{
	struct msg_file_request request = {
		.kind = FILE_KIND_IMAGE, .target = target, .start = start, .end = end};

	return ask(&request, ret_fd);
}

static int ask_by_name(struct msg_file_request *request, const char *name, int *ret_fd)
{
	size_t size = strlen(name) + 1;

	if (size > sizeof(request->name))
		return -ENOENT;
	memcpy(request->name, name, size);
	return ask(request, ret_fd);
}

int request_debug(uint32_t target, const char *build_id, int *ret_fd)
{
	struct msg_file_request request = {.kind = FILE_KIND_DEBUG, .target = target};

	return ask_by_name(&request, build_id, ret_fd);
}

int request_debug_link(uint32_t target, uint64_t start, uint64_t end, const char *name, int *ret_fd)
{
	struct msg_file_request request = {
		.kind = FILE_KIND_DEBUG_LINK, .target = target, .start = start, .end = end};

	return ask_by_name(&request, name, ret_fd);
}

uint32_t *request_map_reading_page(const struct ipc_message *init)
{
	void *page;
	int r;

	if (init->n_fds < 1)
		fail("the first message has no shared page");
	r = page_map(init->fds[0], sizeof(uint32_t), &page);
	if (r < 0)
		die("cannot map the page shared with the parent process", -r);
	return page;
}

uint32_t request_last_file_number(void)
{
	return last_number;
}

bool request_has_message(void)
{
	return kept_first != NULL;
}

int request_next_message(struct ipc_message *ret)
{
	struct kept *k = kept_first;

	if (k == NULL)
		return ipc_recv(MSG_FD, ret);
	kept_first = k->next;
	if (kept_first == NULL)
		kept_end = &kept_first;
	n_kept--;
	*ret = k->message;
	free(k);
	return 1;
}
