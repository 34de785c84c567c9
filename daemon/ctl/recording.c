#include "daemon/ctl/recording.h"

#include <stdio.h>
#include <string.h>

#include "daemon/log.h"
#include "lib/base/ipc.h"

static void name_target(int32_t pid, const char *name, char ret[96])
{
	if (name != NULL)
		(void)snprintf(ret, 96, "[target \"%s\"]", name);
	else
		(void)snprintf(ret, 96, "process %d", pid);
}

int recording_open(struct ask *a, enum protocol_type type, int32_t pid,
		   const char *name, struct recording *ret)
{
	struct protocol_answer answer;
	enum protocol_result result;
	char target[96];
	int fd, r = ask(a, type, pid, name, &answer, &fd);

	if (r < 0)
		return r;
	result = (enum protocol_result)answer.result;
	name_target(pid, name, target);
	if (result != PROTOCOL_OK || fd < 0) {
		log_error("%s: %s", target,
			  answer.text[0] != '\0' ? answer.text
						 : ask_result_text(result));
		close_fd(&fd);
		return -EINVAL;
	}
	*ret = (struct recording){.ask = a, .fd = fd, .pid = answer.pid};
	return 0;
}

static int take(struct recording *r, struct ipc_message *message, int *ret_fd,
		size_t *ret_size)
{
	struct protocol_recorded m;

	if (message->size != sizeof(m))
		return -EPROTO;
	memcpy(&m, message->bytes, sizeof(m));
	r->n_lost = m.lost;
	if (m.end == PROTOCOL_RECORD_GOES_ON) {
		*ret_fd = ipc_take_fd(message, 0);
		*ret_size = m.bytes;
		return *ret_fd < 0 ? -EPROTO : 1;
	}
	r->has_ended = true;
	r->end = (enum protocol_record_end)m.end;
	m.text[sizeof(m.text) - 1] = '\0';
	memcpy(r->text, m.text, sizeof(r->text));
	return 0;
}

int recording_next(struct recording *r, int *ret_fd, size_t *ret_size)
{
	struct ipc_message m;
	int n;

	if (r->has_ended)
		return 0;
	n = ipc_recv(r->fd, &m);
	if (n < 0)
		return n;
	if (n == 0) {
		/* The daemon has died. */
		r->has_ended = true;
		r->end = PROTOCOL_RECORD_SHUTDOWN;
		return 0;
	}
	n = take(r, &m, ret_fd, ret_size);
	ipc_close_fds(&m);
	return n;
}

int recording_finish(struct recording *r)
{
	struct protocol_answer answer;
	int fd, n = ask(r->ask, PROTOCOL_RECORD_END, 0, NULL, &answer, &fd);

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
		return r->text[0] != '\0' ? r->text
					  : "sentry-profd has let go of it";
	case PROTOCOL_RECORD_GOES_ON:
	case PROTOCOL_RECORD_DONE:
		break;
	}
	return "it was to end";
}

void recording_close(struct recording *r)
{
	close_fd(&r->fd);
}
