/*
 * Both sides of a ring as two threads, which are ordered only by messages, as the two processes
 * are. ThreadSanitizer reports every byte of the ring that this order does not cover. Both sides
 * use one mapping, since ThreadSanitizer knows memory by its address.
 *
 * With -DUNORDERED the head comes through a variable that orders nothing: a fault, which
 * ThreadSanitizer must find.
 */
#include "lib/base/ring.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define RING_BYTES 4096
#define RECORDS	   20000
#define BYTES_MAX  1024

static int fds[2];
static struct ring_writer writer;
static struct ring_reader reader;

static void fail(const char *what)
{
	(void)fprintf(stderr, "%s\n", what);
	exit(1);
}

static void send_position(int fd, uint64_t at)
{
	if (send(fd, &at, sizeof(at), 0) != sizeof(at))
		fail("send");
}

static uint64_t receive_position(int fd)
{
	uint64_t at;

	if (recv(fd, &at, sizeof(at), 0) != sizeof(at))
		fail("recv");
	return at;
}

#ifdef UNORDERED
static uint64_t shown;

static void show_head(uint64_t head)
{
	__atomic_store_n(&shown, head, __ATOMIC_RELAXED);
}

static uint64_t wait_for_head(uint64_t former)
{
	uint64_t head;

	do
		head = __atomic_load_n(&shown, __ATOMIC_RELAXED);
	while (head == former);
	return head;
}
#else
static void show_head(uint64_t head)
{
	send_position(fds[0], head);
}

static uint64_t wait_for_head(uint64_t former)
{
	(void)former;
	return receive_position(fds[1]);
}
#endif

/* The size of record i. */
static size_t bytes_of(unsigned int i)
{
	return sizeof(struct ring_record) + i * 37 % BYTES_MAX;
}

static void *read_all(void *arg)
{
	const struct ring_record *record;
	unsigned int n = 0;
	size_t size;

	(void)arg;
	while (n < RECORDS) {
		if (ring_advance(&reader, wait_for_head(reader.head)) < 0)
			fail("ring_advance");
		while (ring_next(&reader, &record, &size) == 1) {
			const uint8_t *bytes = (const void *)(record + 1);

			for (size_t i = 0; i < bytes_of(n) - sizeof(*record); i++)
				if (bytes[i] != (uint8_t)n)
					fail("a record has other bytes than were written");
			ring_release(&reader, size);
			n++;
		}
		send_position(fds[1], reader.tail);
	}
	return NULL;
}

int main(void)
{
	pthread_t thread;
	void *to;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fds) < 0 ||
	    ring_writer_init(&writer, RING_BYTES) < 0 || ring_reader_init(&reader, writer.fd) < 0)
		fail("the ring cannot be made");
	reader.base = writer.base;
	if (pthread_create(&thread, NULL, read_all, NULL) != 0)
		fail("pthread_create");
	for (unsigned int i = 0; i < RECORDS; i++) {
		while (ring_reserve(&writer, bytes_of(i), &to) < 0)
			if (ring_credit(&writer, receive_position(fds[0])) < 0)
				fail("ring_credit");
		memset((struct ring_record *)to + 1, (int)i,
		       bytes_of(i) - sizeof(struct ring_record));
		ring_commit(&writer, 1, bytes_of(i));
		show_head(writer.head);
	}
	(void)pthread_join(thread, NULL);
	puts("done");
	return 0;
}
