#include "daemon/ctl/common/file_reader.h"

#include <string.h>

#include "daemon/msg/file_request.h"
#include "daemon/msg/msg_io.h"
#include "daemon/msg/page.h"
#include "lib/base/sealed.h"

/* Debug files for one request: one for names and one for lines, by build-id and by link. */
#define FILE_REQUESTS_MAX 16

int file_reader_start(struct file_reader *reader)
{
	int page_fd = -1;
	int r = page_new("reading", sizeof(uint32_t), &reader->page, &page_fd);

	reader->helper.fd = -1;
	if (r == 0)
		r = helper_start_unwind(&reader->helper, page_fd);
	close_fd(&page_fd);
	return r;
}

void file_reader_end(struct file_reader *reader)
{
	if (reader->page == NULL)
		return;
	helper_kill(&reader->helper);
	page_free(reader->page, sizeof(uint32_t));
	reader->page = NULL;
}

int file_reader_describe(struct file_reader *reader, int fd, struct msg_file_seen *ret)
{
	const struct msg_file_look m = {.h = MSG_HEADER(MSG_FILE_LOOK)};
	struct ipc_message answer;
	int r = ipc_send(reader->helper.fd, &m, sizeof(m), &fd, 1);

	if (r == 0)
		r = helper_receive(&reader->helper, MSG_FILE_SEEN, &answer);
	if (r < 0)
		return r;
	memcpy(ret, answer.bytes, sizeof(*ret));
	return ret->verdict < FILE_READ || ret->verdict >= FILE_VERDICT_END ||
			       ret->leaks >= FILE_LEAKS_END ||
			       memchr(ret->build_id, '\0', sizeof(ret->build_id)) == NULL ||
			       memchr(ret->debug_link, '\0', sizeof(ret->debug_link)) == NULL
		       ? -EPROTO
		       : 0;
}

static int answer_file_request(struct file_reader *reader, const struct ipc_message *message,
			       file_reader_find *find, void *ctx)
{
	const struct msg_file_request *request = msg_as(message, MSG_FILE_REQUEST);
	struct msg_file_reply file = {.h = MSG_HEADER(MSG_FILE_REPLY)};
	int fd = -1, r;

	if (request == NULL || file_request_check(request) != FILE_REQUEST_VALID ||
	    (request->kind != FILE_KIND_DEBUG && request->kind != FILE_KIND_DEBUG_LINK))
		return -EPROTO;
	r = find(ctx, request, &fd);
	file.request = request->request;
	file.error = r < 0 ? -r : 0;
	r = ipc_send(reader->helper.fd, &file, sizeof(file), &fd, r < 0 ? 0 : 1);
	close_fd(&fd);
	return r;
}

static int take_answer(struct ipc_message *message, enum symbolize_verdict *ret_verdict,
		       struct buf *ret)
{
	const struct msg_symbolized *m = msg_as(message, MSG_SYMBOLIZED);
	int fd, r = 0;

	if (m == NULL || m->verdict < SYMBOLIZE_DONE || m->verdict > SYMBOLIZE_NO_MEMORY)
		return -EPROTO;
	*ret_verdict = (enum symbolize_verdict)m->verdict;
	if (!msg_symbolized_has_answer(m->verdict))
		return 0;
	fd = ipc_take_fd(message, 0);
	/* A sealed memfd: reading it cannot block. */
	if (!sealed_is(fd, m->size))
		r = -EPROTO;
	if (r == 0)
		r = buf_read_fd(ret, fd);
	close_fd(&fd);
	return r;
}

int file_reader_symbolize(struct file_reader *reader, const struct msg_symbolize *m, int fd,
			  file_reader_find *find, void *ctx, enum symbolize_verdict *ret_verdict,
			  struct buf *ret_answer)
{
	int r = ipc_send(reader->helper.fd, m, sizeof(*m), &fd, 1);

	for (unsigned int wants = 0; r == 0; wants++) {
		struct ipc_message message;
		bool is_answer;

		r = ipc_recv(reader->helper.fd, &message);
		if (r <= 0)
			return r == 0 ? -EPIPE : r;
		is_answer = msg_type_of(&message) == MSG_SYMBOLIZED;
		if (is_answer)
			r = take_answer(&message, ret_verdict, ret_answer);
		else if (msg_type_of(&message) == MSG_FILE_REQUEST && wants < FILE_REQUESTS_MAX)
			r = answer_file_request(reader, &message, find, ctx);
		else
			r = -EPROTO;
		ipc_close_fds(&message);
		if (is_answer)
			break;
	}
	return r;
}
