#include "daemon/ctl/common/recording.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

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
	*ret = (struct recording){.client = client, .fd = fd, .pid = answer.pid};
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

static int take_chunk(int fd, size_t size, recording_chunk *take, void *ctx)
{
	void *payload = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
	int r;

	if (payload == MAP_FAILED)
		return -errno;
	r = take(ctx, payload, size);
	(void)munmap(payload, size);
	return r < 0 ? r : 1;
}

static void take_end(struct recording *r, const struct protocol_recorded *m)
{
	r->has_ended = true;
	r->end = (enum protocol_record_end)m->end;
	(void)snprintf(r->text, sizeof(r->text), "%.*s", (int)sizeof(m->text) - 1, m->text);
}

static void take_note(struct recording *r, const struct protocol_recorded *m)
{
	r->has_new_note = true;
	(void)snprintf(r->note, sizeof(r->note), "%.*s", (int)sizeof(m->text) - 1, m->text);
}

void recording_log_note(struct recording *r)
{
	if (r->has_new_note)
		log_warning("process %d is %s", r->pid, r->note);
	r->has_new_note = false;
}

int recording_next(struct recording *r, recording_chunk *take, void *ctx)
{
	/* The end that holds if the socket is closed without a message: the daemon died. */
	struct protocol_recorded m = {.end = PROTOCOL_RECORD_SHUTDOWN, .lost = r->n_lost};
	struct ipc_message message;
	int n;

	if (r->has_ended)
		return 0;
	n = ipc_recv(r->fd, &message);
	if (n < 0)
		return n;
	if (n > 0 && message.size == sizeof(m))
		memcpy(&m, message.bytes, sizeof(m));
	r->n_lost = m.lost;
	if (n > 0 && message.size != sizeof(m))
		n = -EPROTO;
	else if (m.end != PROTOCOL_RECORD_GOES_ON)
		take_end(r, &m);
	else if (m.bytes == 0)
		take_note(r, &m);
	else
		n = take_chunk(message.fds[0], m.bytes, take, ctx);
	ipc_close_fds(&message);
	return r->has_ended ? 0 : n;
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
	case PROTOCOL_RECORD_DONE:
		break;
	}
	return "the recording was ended on request";
}

void recording_close(struct recording *r)
{
	close_fd(&r->fd);
}
