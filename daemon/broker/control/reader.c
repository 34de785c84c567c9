#include "daemon/broker/control/reader.h"

#include <fcntl.h>
#include <linux/sockios.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/broker/delivery/delivery.h"
#include "lib/base/clock.h"
#include "lib/base/ipc.h"
#include "lib/base/sealed.h"
#include "lib/base/token_bucket.h"

/*
 * Bytes of the socket's buffer. The kernel doubles the number and counts its own overhead: the
 * buffer holds four messages of PROTOCOL_RECORDED_MAX bytes.
 */
#define BUFFER_SIZE 32768

/* Pieces in one turn of the loop, so that other events are handled, too. */
#define PIECES_AT_ONCE 4

#define BYTES_MAX (PROTOCOL_RECORDED_MAX - sizeof(struct protocol_recorded))

struct message {
	struct protocol_recorded m;
	uint8_t bytes[BYTES_MAX];
};
_Static_assert(sizeof(struct message) == PROTOCOL_RECORDED_MAX, "no padding");

static void on_writable(void *ctx);

int reader_open(struct reader *r, struct loop *loop, int *ret_fd)
{
	const int size = BUFFER_SIZE;
	int fds[2], error = ipc_pair(fds);

	if (error < 0)
		return error;
	/* The peer must not send anything, descriptors included. */
	if (shutdown(fds[0], SHUT_RD) < 0 ||
	    setsockopt(fds[0], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size)) < 0 ||
	    fcntl(fds[0], F_SETFL, O_NONBLOCK) < 0) {
		error = -errno;
		close_fd(&fds[0]);
		close_fd(&fds[1]);
		return error;
	}
	*r = (struct reader){.loop = loop, .fd = fds[0]};
	*ret_fd = fds[1];
	return 0;
}

/* Removes the first chunk. */
static void next_chunk(struct reader *r)
{
	close_fd(&r->chunks[0].fd);
	r->n_chunks--;
	memmove(&r->chunks[0], &r->chunks[1], r->n_chunks * sizeof(r->chunks[0]));
	r->at = 0;
	if (r->n_chunks == 0)
		loop_remove(r->loop, &r->source);
}

void reader_drop(struct reader *r)
{
	while (r->n_chunks > 0) {
		r->lost++;
		next_chunk(r);
	}
}

void reader_stop(struct reader *r)
{
	r->is_stopped = true;
	reader_drop(r);
}

void reader_close(struct reader *r)
{
	reader_drop(r);
	close_fd(&r->fd);
}

/* Sends the next piece of the first chunk. Returns 0 or -errno. */
static int send_piece(struct reader *r)
{
	const struct reader_chunk *c = &r->chunks[0];
	const uint32_t n = (uint32_t)min_size(c->size - r->at, BYTES_MAX);
	struct message message = {
		.m = {.lost = r->lost, .size = c->size, .at = r->at},
	};
	int error;

	/* The memfd is sealed, so it has all its bytes. */
	if (pread(c->fd, message.bytes, n, r->at) != (ssize_t)n)
		return -EIO;
	error = ipc_send(r->fd, &message, sizeof(message.m) + n, NULL, 0);
	if (error < 0)
		return error;
	r->has_moved = true;
	r->at += n;
	if (r->at == c->size)
		next_chunk(r);
	return 0;
}

static void on_writable(void *ctx)
{
	struct reader *r = ctx;

	for (int i = 0; i < PIECES_AT_ONCE && r->n_chunks > 0; i++) {
		const int error = send_piece(r);

		if (error == -EAGAIN)
			return;
		if (error == -EPIPE) {
			reader_stop(r);
		} else if (error < 0) {
			r->lost++;
			next_chunk(r);
		}
	}
}

/*
 * Takes the bytes from the budget of the reader, which is that of the chunks for Sentry. So a
 * process that was taken over cannot keep the broker busy with copying for a peer of the same user.
 */
static bool take_budget(struct reader *r, uint32_t size, uint64_t now_ns)
{
	const uint64_t ns = size * NS_PER_SEC / CHUNK_BUDGET_BYTES;

	if (!token_bucket_holds(r->budget_full_ns, CHUNK_BUDGET_LAG_NS, now_ns, ns))
		return false;
	token_bucket_take(&r->budget_full_ns, now_ns, ns);
	return true;
}

/* Adds a chunk that was checked. Returns false if a descriptor or memory is short. */
static bool append_chunk(struct reader *r, int fd, uint32_t size, uint64_t memory, uint64_t now_ns)
{
	const int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);

	if (copy < 0)
		return false;
	if (r->n_chunks == 0) {
		if (loop_add_writer(r->loop, r->fd, on_writable, r, &r->source) < 0) {
			(void)close(copy);
			return false;
		}
		r->moved_ns = now_ns;
	}
	r->chunks[r->n_chunks++] =
		(struct reader_chunk){.fd = copy, .size = size, .memory = memory};
	return true;
}

void reader_add(struct reader *r, int fd, uint32_t size, uint64_t room, uint64_t now_ns)
{
	const uint64_t memory = sealed_memory(fd, size);

	if (r->is_stopped || r->n_chunks == READER_CHUNKS_MAX || memory > room ||
	    !take_budget(r, size, now_ns) || !append_chunk(r, fd, size, memory, now_ns))
		r->lost++;
}

/* Returns the memory of the messages in the socket that the peer has neither read nor discarded. */
static uint64_t unread_of(const struct reader *r)
{
	int bytes = 0;

	return r->fd >= 0 && ioctl(r->fd, SIOCOUTQ, &bytes) == 0 ? (uint64_t)bytes : 0;
}

/*
 * The kernel reports a socket as writable only when most of its buffer is free, so a piece that the
 * peer reads is progress, too.
 */
void reader_check(struct reader *r, uint64_t now_ns)
{
	const uint64_t unread = r->n_chunks > 0 ? unread_of(r) : 0;

	if (r->has_moved || unread != r->unread)
		r->moved_ns = now_ns;
	else if (r->n_chunks > 0 && now_ns - r->moved_ns >= READER_IDLE_NS)
		reader_drop(r);
	r->has_moved = false;
	r->unread = unread;
}

static int send_text(struct reader *r, enum protocol_record_end end, const char *text)
{
	const size_t n = strnlen(text, PROTOCOL_TEXT_SIZE - 1);
	struct message message = {.m = {.end = end, .lost = r->lost}};

	if (r->is_stopped)
		return -EPIPE;
	memcpy(message.bytes, text, n);
	return ipc_send(r->fd, &message, sizeof(message.m) + n, NULL, 0);
}

int reader_end(struct reader *r, enum protocol_record_end end, const char *text)
{
	return r->n_chunks > 0 && !r->is_stopped ? -EAGAIN : send_text(r, end, text);
}

int reader_note(struct reader *r, const char *text)
{
	return send_text(r, PROTOCOL_RECORD_NOTE, text);
}

uint64_t reader_waiting(const struct reader *r)
{
	uint64_t sum = unread_of(r);

	for (size_t i = 0; i < r->n_chunks; i++)
		sum += r->chunks[i].memory;
	return sum;
}
