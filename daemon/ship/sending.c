#include "daemon/ship/sending.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/common/random.h"
#include "daemon/msg/msg_ship.h"
#include "lib/base/sealed.h"
#include "lib/ship/spool_name.h"
#include "proto/chunk_v2.h"
#include "proto/sdk.h"

static int check_envelope(const struct msg_envelope *m)
{
	if (m->to_file > 1 || m->to_server > 1 || m->size == 0 || m->size > CHUNK_V2_SIZE_MAX ||
	    m->transaction_size >= m->size || m->file_size > CHUNK_V2_SIZE_MAX ||
	    (m->anchor_size > 0 && (m->to_file || m->file_size > 0 || m->transaction_size > 0)) ||
	    m->anchor_size > CHUNK_V2_SIZE_MAX || !random_id_is_valid(m->chunk_id) ||
	    m->platform[0] == '\0' || memchr(m->platform, '\0', sizeof(m->platform)) == NULL)
		return -EPROTO;
	return 0;
}

int sending_new(struct ipc_message *message, struct sending **ret)
{
	const struct msg_envelope *m = (const void *)message->bytes;
	struct sending *s;

	/* A payload is as large as its message says, and stays so. */
	if (check_envelope(m) < 0 ||
	    message->n_fds !=
		    1 + m->to_file + (size_t)(m->file_size > 0) + (size_t)(m->anchor_size > 0) ||
	    !sealed_is(message->fds[0], m->size) ||
	    (m->file_size > 0 && !sealed_is(message->fds[2], m->file_size)) ||
	    (m->anchor_size > 0 && !sealed_is(message->fds[1], m->anchor_size)))
		return -EPROTO;
	s = calloc(1, sizeof(*s));
	if (s == NULL)
		return -ENOMEM;
	memcpy(s->chunk_id, m->chunk_id, sizeof(s->chunk_id));
	memcpy(s->platform, m->platform, sizeof(s->platform));
	s->seq = m->seq;
	s->package = (struct package){
		.sdk_name = SDK_NAME,
		.sdk_version = SDK_VERSION,
		.platform = s->platform,
		.payload_fd = ipc_take_fd(message, 0),
		.payload_size = m->size,
		.transaction_size = m->transaction_size,
		.anchor_size = m->anchor_size,
		.anchor_fd = m->anchor_size > 0 ? ipc_take_fd(message, 1) : -1,
	};
	if (m->transaction_size > 0 || m->anchor_size > 0)
		(void)!spool_id_parse(m->chunk_id, s->package.event_id);
	else
		random_bytes(s->package.event_id, sizeof(s->package.event_id));
	*ret = s;
	return 0;
}

void sending_free(struct sending *s)
{
	close_fd(&s->package.payload_fd);
	if (s->package.anchor_size > 0)
		close_fd(&s->package.anchor_fd);
	free(s);
}
