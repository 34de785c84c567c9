#include "daemon/capture/readers.h"

#include <fcntl.h>
#include <stdlib.h>

#include "daemon/common/resource_shortage.h"
#include "daemon/msg/msg.h"
#include "daemon/msg/msg_capture.h"
#include "daemon/msg/msg_io.h"

/* A ring for each unwind process. */
#define RINGS_MAX HEARTBEAT_SLOTS

/*
 * 16 MiB: 64 busy threads with 16 KiB of stack each make 1 MiB a tick, so the
 * reader may be away for 150 ms. Memory is only used where records lie.
 */
#define RING_BYTES (16u << 20)

/*
 * A reader gets the head of its ring when this many bytes are unread, or after this time. A wake
 * costs the reader more than some twenty samples, since its caches are cold by then; HEAD_BYTES are
 * some ninety. HEAD_BYTES is also how far the reader is behind, and so a third of the memory that
 * both sides keep using (ring.c). While something is new the reader has questions and hints, and
 * gets heads more often.
 */
#define HEAD_BYTES   (RING_BYTES / 64)
#define HEAD_NS	     (500 * NS_PER_MS)
#define HEAD_NEWS_NS (100 * NS_PER_MS)

/*
 * The first samples of a program are announced at once: the program may end soon, and its files are
 * available until then only. A sleeping thread has a sample at the first tick; a running thread is
 * interrupted at the second, and has a sample at the third. Then it reaches files that it has not
 * used before; after FIRST_NS heads are sent often enough.
 */
#define FIRST_TICKS    3
#define FIRST_NS       HEAD_NEWS_NS
#define FIRST_EVERY_NS (5 * NS_PER_MS)

/*
 * A change of watched memory is announced as soon, but so seldom: another library has been loaded,
 * and may be gone soon.
 */
#define WATCHED_EVERY_NS (50 * NS_PER_MS)

/* How long a target counts as new, or a thread for which the reader has sent a hint. */
#define NEWS_NS (2 * NS_PER_SEC)

/*
 * So many messages of one reader are read at a time, before other readers and the next tick have
 * their turn. A reader sends a credit for each 128 KiB at most, and hints for new threads; a faulty
 * one may send without end.
 */
#define MESSAGES_MAX 64

struct reader {
	struct readers *all;
	uint32_t ring;
	int fd; /* to the unwind process; -1: none */
	struct loop_source *source;
	struct capture_sink sink;
	uint64_t sent_head; /* the last head that was sent to the reader */
	bool has_news;
	/* The newest program: ticks left of FIRST_TICKS, and the end of FIRST_NS; 0: not known yet.
	 */
	unsigned int first_ticks;
	uint64_t first_until_ns;
	uint64_t first_sent_ns; /* when the last of its heads was sent */
	uint64_t execs;		/* sink.execs at the last tick */
	uint64_t watched;	/* sink.watched at the last of the first heads */
};

struct readers {
	struct readers_options options;
	struct reader *list[RINGS_MAX];
	size_t n;
	uint64_t sent_ns; /* when the heads of all rings were last sent */
	uint64_t news_ns; /* something counts as new until then */
};

int readers_new(const struct readers_options *options, struct readers **ret)
{
	struct readers *r = calloc(1, sizeof(*r));

	if (r == NULL)
		return -ENOMEM;
	r->options = *options;
	*ret = r;
	return 0;
}

static void send_head(struct reader *reader)
{
	const uint64_t head = reader->sink.ring.head;

	if (reader->fd < 0 || reader->sent_head == head)
		return;
	/* If the reader is gone or does not read, the broker handles that. */
	if (msg_send_number(reader->fd, MSG_RING_HEAD, head) == 0)
		reader->sent_head = head;
}

void readers_send_heads(struct readers *r)
{
	for (size_t i = 0; i < r->n; i++)
		send_head(r->list[i]);
}

/* A new program begins at the next tick. */
static void expect_first_samples(struct reader *reader)
{
	reader->has_news = true;
	reader->first_ticks = FIRST_TICKS;
	reader->first_until_ns = 0;
}

void readers_send_first_heads(struct readers *r, uint64_t now_ns)
{
	for (size_t i = 0; i < r->n; i++) {
		struct reader *reader = r->list[i];
		const uint64_t age_ns = now_ns - reader->first_sent_ns;

		if (reader->first_until_ns == 0)
			reader->first_until_ns = now_ns + FIRST_NS;
		if (reader->first_ticks > 0)
			reader->first_ticks--;
		else if ((now_ns >= reader->first_until_ns || age_ns < FIRST_EVERY_NS) &&
			 (reader->watched == reader->sink.watched || age_ns < WATCHED_EVERY_NS))
			continue;
		reader->first_sent_ns = now_ns;
		reader->watched = reader->sink.watched;
		send_head(reader);
	}
}

void readers_tick(struct readers *r, uint64_t now_ns)
{
	bool all_due;

	for (size_t i = 0; i < r->n; i++) {
		struct reader *reader = r->list[i];

		if (reader->execs != reader->sink.execs)
			expect_first_samples(reader);
		reader->execs = reader->sink.execs;
		if (reader->has_news)
			r->news_ns = now_ns + NEWS_NS;
		reader->has_news = false;
	}
	all_due = now_ns - r->sent_ns >= (now_ns < r->news_ns ? HEAD_NEWS_NS : HEAD_NS);
	if (all_due)
		r->sent_ns = now_ns;
	for (size_t i = 0; i < r->n; i++) {
		struct reader *reader = r->list[i];

		if (all_due ||
		    ring_bytes_since(&reader->sink.ring, reader->sent_head) >= HEAD_BYTES)
			send_head(reader);
	}
}

static void close_link(struct reader *reader)
{
	loop_remove(reader->all->options.loop, &reader->source);
	close_fd(&reader->fd);
}

/*
 * The reader is gone. Its targets go on writing, and new ones may come, until there is another
 * reader.
 */
static void lose_reader(struct reader *reader)
{
	close_link(reader);
	reader->sink.reader_is_gone = true;
	ring_writer_detach(&reader->sink.ring);
}

static int take_credit(void *ctx, struct ipc_message *message)
{
	const struct msg_number *m = (const void *)message->bytes;
	struct reader *reader = ctx;

	return ring_credit(&reader->sink.ring, m->n);
}

static int take_hint(void *ctx, struct ipc_message *message)
{
	const struct msg_stack_hint *m = (const void *)message->bytes;
	struct reader *reader = ctx;

	reader->has_news = true;
	capture_hint(reader->all->options.capture, &reader->sink, m->target, m->tid, m->sp, m->top,
		     m->second);
	return 0;
}

static int take_want_registers(void *ctx, struct ipc_message *message)
{
	const struct msg_want_registers *m = (const void *)message->bytes;
	struct reader *reader = ctx;

	reader->has_news = true;
	capture_want_registers(reader->all->options.capture, &reader->sink, m->target, m->tid,
			       m->sp, m->pc);
	return 0;
}

static int take_watch(void *ctx, struct ipc_message *message)
{
	const struct msg_watch *m = (const void *)message->bytes;
	struct reader *reader = ctx;

	if (m->n > WATCH_PARTS)
		return -EPROTO;
	for (size_t i = 0; i < m->n; i++)
		if (m->parts[i].size == 0 || m->parts[i].size > WATCH_BYTES)
			return -EPROTO;
	reader->has_news = true;
	capture_watch(reader->all->options.capture, &reader->sink, m->target, m->list, m->parts,
		      m->n);
	return 0;
}

static void on_reader(void *ctx)
{
	static const struct msg_rule rules[] = {
		{MSG_RING_CREDIT, take_credit},
		{MSG_STACK_HINT, take_hint},
		{MSG_WANT_REGISTERS, take_want_registers},
		{MSG_WATCH, take_watch},
	};
	struct reader *reader = ctx;
	struct ipc_message m;
	int r;

	for (int i = 0; i < MESSAGES_MAX; i++) {
		r = ipc_recv(reader->fd, &m);
		if (r == -EAGAIN)
			return;
		if (r < 0 && resource_shortage_is(-r)) {
			/* A message without descriptors stays in the socket: the loop calls this
			 * handler again.
			 */
			resource_shortage_note(-r, "a message of sentry-profd-unwind");
			return;
		}
		if (r == 0) {
			lose_reader(reader);
			return;
		}
		if (r < 0 || m.n_fds != 0 || msg_handle(rules, array_size(rules), reader, &m) < 0) {
			if (r > 0)
				ipc_close_fds(&m);
			lose_reader(reader);
			reader->all->options.broken(reader->ring);
			return;
		}
	}
}

static struct reader *reader_of(struct readers *r, uint32_t ring)
{
	for (size_t i = 0; i < r->n; i++)
		if (r->list[i]->ring == ring)
			return r->list[i];
	return NULL;
}

/*
 * Returns the reader of this number, new or emptied, without a ring; NULL if there are too many, or
 * without memory.
 */
static struct reader *empty_reader(struct readers *r, uint32_t ring)
{
	struct reader *reader = reader_of(r, ring);

	if (reader != NULL) {
		close_link(reader);
		ring_writer_fini(&reader->sink.ring);
		capture_reset(r->options.capture, &reader->sink);
	} else if (r->n == RINGS_MAX || (reader = calloc(1, sizeof(*reader))) == NULL) {
		return NULL;
	} else {
		r->list[r->n++] = reader;
	}
	*reader = (struct reader){.all = r, .ring = ring, .fd = -1, .has_news = true};
	return reader;
}

int readers_make(struct readers *r, uint32_t ring, int link_fd, int *ret_fd)
{
	struct reader *reader = empty_reader(r, ring);
	int e;

	if (reader == NULL) {
		close_fd(&link_fd);
		return r->n == RINGS_MAX ? -EPROTO : -ENOMEM;
	}
	reader->fd = link_fd;
	e = ring_writer_init(&reader->sink.ring, RING_BYTES);
	if (e == 0 && fcntl(reader->fd, F_SETFL, O_NONBLOCK) < 0)
		e = -errno;
	if (e == 0)
		e = loop_add(r->options.loop, reader->fd, on_reader, reader, &reader->source);
	if (e < 0)
		return e;
	*ret_fd = reader->sink.ring.fd;
	reader->sink.ring.fd = -1;
	return 0;
}

struct capture_sink *readers_sink(struct readers *r, uint32_t ring)
{
	struct reader *reader = reader_of(r, ring);

	if (reader == NULL)
		return NULL;
	expect_first_samples(reader);
	return &reader->sink;
}
