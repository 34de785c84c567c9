#include "daemon/unwind/credit.h"

#include "daemon/msg/msg.h"
#include "daemon/msg/msg_io.h"

/*
 * Less than this part of the ring is not worth waking its writer. At the end of
 * what there is to read, so that it may end its lap early (ring.c); before only
 * if it is much.
 */
#define SHARE	    128
#define EARLY_SHARE 8

bool credit_is_due(struct credit *c, const struct ring_reader *reader, bool at_end)
{
	if (reader->read - c->given < reader->size / (at_end ? SHARE : EARLY_SHARE))
		return false;
	c->given = reader->read;
	return true;
}

int credit_give(struct credit *c, const struct ring_reader *reader, int link_fd)
{
	int r = msg_send_number(link_fd, MSG_RING_CREDIT, reader->tail);

	c->is_owed = r == -EAGAIN;
	return c->is_owed ? 0 : r;
}
