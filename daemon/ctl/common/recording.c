#include "daemon/ctl/common/recording.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "daemon/common/log.h"
#include "lib/base/clock.h"
#include "lib/base/ipc.h"

static void name_target(int32_t pid, const char *name, char ret[96])
{
	if (name != NULL)
		(void)snprintf(ret, 96, "[target \"%s\"]", name);
	else
		(void)snprintf(ret, 96, "process %d", pid);
}

int recording_open(struct control_client *client, enum protocol_type type, int32_t pid,
		   const char *name, struct recording *ret)
{
	struct protocol_answer answer;
	enum protocol_result result;
	char target[96];
	int fd, r = control_client_request(client, type, pid, name, &answer, &fd);

	if (r < 0)
		return r;
	result = (enum protocol_result)answer.result;
	name_target(pid, name, target);
	if (result != PROTOCOL_OK || fd < 0) {
		log_error("%s: %s", target,
			  answer.text[0] != '\0' ? answer.text
						 : control_client_result_text(result));
		close_fd(&fd);
		return -EINVAL;
	}
	if (answer.version < PROTOCOL_RECORD_VERSION) {
		log_error("sentry-profd at %s is older than sentry-profctl, and its recordings "
			  "cannot be read: restart the daemon",
			  client->path);
		close_fd(&fd);
		return -EPROTO;
	}
	/* recording_next() takes all messages that have come, and does not wait for more. */
	if (fcntl(fd, F_SETFL, O_NONBLOCK) < 0) {
		r = -errno;
		log_error("%s: cannot read its recording: %s", target, strerror(-r));
		close_fd(&fd);
		return r;
	}
	*ret = (struct recording){.client = client, .fd = fd, .pid = answer.pid};
	memcpy(ret->lacks, answer.text, sizeof(ret->lacks));
	buf_init(&ret->chunk, PROTOCOL_CHUNK_MAX);
	return 0;
}

int recording_wait(const struct recording *r, uint64_t deadline_ns, const sigset_t *mask)
{
	const uint64_t now_ns = clock_mono_ns();
	const uint64_t left_ns = deadline_ns > now_ns ? deadline_ns - now_ns : 0;
	const struct timespec timeout = {
		.tv_sec = (time_t)(left_ns / NS_PER_SEC),
		.tv_nsec = (long)(left_ns % NS_PER_SEC),
	};
	struct pollfd p = {.fd = r->fd, .events = POLLIN};
	int n = ppoll(&p, 1, deadline_ns == UINT64_MAX ? NULL : &timeout, mask);

	return n < 0 ? -errno : n;
}

/*
 * Adds the piece of a message to the chunk. *ret_complete: the chunk has all its bytes. Returns 0,
 * -EPROTO or -ENOMEM.
 */
static int add_piece(struct recording *r, const struct protocol_recorded *m, const uint8_t *bytes,
		     size_t n, bool *ret_complete)
{
	/* The daemon has dropped the rest of the chunk before, and counted it as lost. */
	if (m->at == 0)
		buf_clear(&r->chunk);
	if (n == 0 || m->at != r->chunk.len || m->size > PROTOCOL_CHUNK_MAX ||
	    r->chunk.len + n > m->size)
		return -EPROTO;
	*ret_complete = r->chunk.len + n == m->size;
	return buf_add(&r->chunk, bytes, n);
}

static void take_end(struct recording *r, const struct protocol_recorded *m, const uint8_t *text,
		     size_t n)
{
	r->has_ended = true;
	r->end = (enum protocol_record_end)m->end;
	(void)snprintf(r->text, sizeof(r->text), "%.*s", (int)n, (const char *)text);
}

static void take_note(struct recording *r, const uint8_t *text, size_t n)
{
	r->has_new_note = true;
	(void)snprintf(r->note, sizeof(r->note), "%.*s", (int)n, (const char *)text);
}

/* Handles one message. Returns 0, or -errno. */
static int take_message(struct recording *r, const struct ipc_message *message, bool *ret_complete)
{
	struct protocol_recorded m;
	const uint8_t *bytes = message->bytes + sizeof(m);
	size_t n;

	if (message->size < sizeof(m))
		return -EPROTO;
	n = message->size - sizeof(m);
	memcpy(&m, message->bytes, sizeof(m));
	r->n_lost = m.lost;
	if (m.end == PROTOCOL_RECORD_GOES_ON)
		return add_piece(r, &m, bytes, n, ret_complete);
	if (m.end == PROTOCOL_RECORD_NOTE)
		take_note(r, bytes, n);
	else
		take_end(r, &m, bytes, n);
	return 0;
}

/* Handles the end of the daemon, which has sent no final message. */
static void take_shutdown(struct recording *r)
{
	r->has_ended = true;
	r->end = PROTOCOL_RECORD_SHUTDOWN;
	r->n_lost += r->chunk.len > 0;
}

void recording_log_note(struct recording *r)
{
	if (r->has_new_note)
		log_warning("process %d is %s", r->pid, r->note);
	r->has_new_note = false;
}

int recording_next(struct recording *r, recording_chunk *take, void *ctx)
{
	struct ipc_message message;
	bool is_complete = false;
	int n = 1;

	while (!r->has_ended && !is_complete) {
		n = ipc_recv(r->fd, &message);
		if (n == -EAGAIN)
			return 1;
		if (n == 0)
			take_shutdown(r);
		else if (n > 0)
			n = take_message(r, &message, &is_complete);
		ipc_close_fds(&message);
		if (n < 0)
			return n;
	}
	if (!is_complete)
		return 0;
	n = take(ctx, buf_string(&r->chunk), r->chunk.len);
	buf_clear(&r->chunk);
	return n < 0 ? n : 1;
}

int recording_finish(struct recording *r)
{
	struct protocol_answer answer;
	int fd, n = control_client_request(r->client, PROTOCOL_RECORD_END, 0, NULL, &answer, &fd);

	if (n == 0)
		close_fd(&fd);
	return n;
}

const char *recording_end_text(const struct recording *r)
{
	switch (r->end) {
	case PROTOCOL_RECORD_NO_PROCESS:
		return "the process has ended";
	case PROTOCOL_RECORD_SHUTDOWN:
		return "sentry-profd has ended";
	case PROTOCOL_RECORD_LEFT_OUT:
		return r->text[0] != '\0' ? r->text : "sentry-profd has detached from the process";
	case PROTOCOL_RECORD_GOES_ON:
	case PROTOCOL_RECORD_NOTE:
	case PROTOCOL_RECORD_DONE:
		break;
	}
	return "the recording was ended on request";
}

void recording_close(struct recording *r)
{
	close_fd(&r->fd);
	buf_fini(&r->chunk);
}
