#include "daemon/unwind/capture_link.h"

#include <errno.h>
#include <fcntl.h>

#include "daemon/msg/msg_io.h"
#include "daemon/unwind/resource_limits.h"

/*
 * A credit is sent when 1/EARLY_SHARE of the ring has been read since the last one. When there is
 * nothing left to read, 1/SHARE is enough, so that the writer may end its lap early
 * (lib/base/ring.c).
 */
#define SHARE	    128
#define EARLY_SHARE 8

int capture_link_open(struct capture_link *l, struct ipc_message *m)
{
	int r;

	ring_reader_fini(&l->ring);
	*l = (struct capture_link){.fd = -1};
	r = ring_reader_init(&l->ring, m->fds[0]);
	if (r < 0)
		return r;
	if (fcntl(m->fds[1], F_SETFL, O_NONBLOCK) < 0)
		return -errno;
	l->fd = ipc_take_fd(m, 1);
	return 0;
}

void capture_link_close(struct capture_link *l)
{
	close_fd(&l->fd);
}

bool capture_link_credit_is_due(struct capture_link *l, bool at_end)
{
	const struct ring_reader *ring = &l->ring;

	if (ring->read - l->credit_read < ring->size / (at_end ? SHARE : EARLY_SHARE))
		return false;
	l->credit_read = ring->read;
	return true;
}

int capture_link_give_credit(struct capture_link *l)
{
	int r;

	resource_limits_renew();
	if (l->fd < 0)
		return 0;
	r = msg_send_number(l->fd, MSG_RING_CREDIT, l->ring.tail);
	l->owes_credit = r == -EAGAIN;
	return l->owes_credit || r == -EPIPE ? 0 : r;
}

int capture_link_send(struct capture_link *l, const void *message, size_t size)
{
	int r = l->fd < 0 ? 0 : ipc_send(l->fd, message, size, NULL, 0);

	return r == -EPIPE ? 0 : r;
}

static int read_ring(struct capture_link *l, capture_link_record_fn fn)
{
	const struct ring_record *ring_record;
	size_t size;
	int r;

	while ((r = ring_next(&l->ring, &ring_record, &size)) > 0) {
		const struct record *record = (const void *)ring_record;

		r = size < sizeof(*record) ? -EPROTO : fn(record, size);
		if (r < 0)
			return r;
		ring_release(&l->ring, size);
		if (capture_link_credit_is_due(l, false))
			r = capture_link_give_credit(l);
		if (r < 0)
			return r;
	}
	if (r == 0 && capture_link_credit_is_due(l, true))
		r = capture_link_give_credit(l);
	return r;
}

int capture_link_read(struct capture_link *l, bool all, capture_link_record_fn fn)
{
	struct ipc_message m;
	const struct msg_number *head;
	int r, received;

	do {
		received = ipc_recv(l->fd, &m);
		if (received <= 0)
			break;
		head = msg_as(&m, MSG_RING_HEAD);
		/* A head may be older than the one in the ring's memory. */
		if (head == NULL || (head->n > l->ring.head && ring_advance(&l->ring, head->n) < 0))
			return -EPROTO;
	} while (all);
	/* capture has not announced its last records yet, or was killed before it could. */
	if ((all || received == 0) && ring_advance_to_end(&l->ring) < 0)
		return -EPROTO;
	r = read_ring(l, fn);
	if (r < 0)
		return r;
	return received == -EAGAIN ? 1 : received;
}
