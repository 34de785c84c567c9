/*
 * What waits for ship: who has to give way where it is too much. Nobody takes
 * it here, since there is no ship.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

#include "daemon/broker.h"
#include "daemon/child.h"
#include "proto/chunk_v2.h"
#include "tests/unit/suite.h"

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL)

enum { SMALL = 100 * 1000 };

static struct broker broker;

static void set_up(void)
{
	struct broker *b = &broker;

	memset(b, 0, sizeof(*b));
	b->ship.broker = b;
	b->ship.fd = -1;
	b->output.dir_fd = -1;
	b->has_dsn = true;
	memcpy(b->options.platform, "rust", sizeof("rust"));
	b->n_targets = 2;
	b->targets[0].id = 1;
	b->targets[1].id = 2;
}

/* A payload takes no memory: nothing is written to it. */
static void add_chunk(size_t target, off_t size)
{
	struct msg_chunk m = {
		.h = MSG_HEADER(MSG_CHUNK, msg_chunk),
		.target = broker.targets[target].id,
		.size = (uint64_t)size,
		.platform = "rust",
	};
	int fd = memfd_create("payload", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	memset(m.chunk_id, 'a', sizeof(m.chunk_id) - 1);
	ck_assert_int_eq(ftruncate(fd, size), 0);
	ck_assert_int_eq(fcntl(fd, F_ADD_SEALS, SEALS), 0);
	ck_assert_int_eq(
		delivery_chunk(&broker, &broker.targets[target], &m, fd), 0);
	close_fd(&fd);
}

static uint64_t dropped(size_t target)
{
	return broker.targets[target].chunks.discarded[DISCARD_QUEUE_OVERFLOW];
}

START_TEST(many_of_one_are_its_own_loss)
{
	for (int i = 0; i < 30; i++)
		add_chunk(1, SMALL);
	for (int i = 0; i < 600; i++)
		add_chunk(0, SMALL);
	for (int i = 0; i < 30; i++)
		add_chunk(1, SMALL);
	ck_assert_uint_eq(broker.n_envelopes, 512);
	ck_assert_uint_eq(dropped(0), 660 - 512);
	ck_assert_uint_eq(dropped(1), 0);
	delivery_give_up(&broker);
}
END_TEST

START_TEST(their_bytes_are_bounded)
{
	uint64_t waiting;

	add_chunk(1, SMALL);
	for (int i = 0; i < 100; i++)
		add_chunk(0, CHUNK_V2_SIZE_MAX);
	add_chunk(1, SMALL);
	/* Those that ship would have do not count. */
	waiting = broker.n_envelopes - broker.n_handed;
	ck_assert_uint_le(waiting * CHUNK_V2_SIZE_MAX,
			  (UINT64_C(1) << 30) + CHUNK_V2_SIZE_MAX);
	ck_assert_uint_ge((waiting + 1) * CHUNK_V2_SIZE_MAX, UINT64_C(1) << 30);
	ck_assert_uint_eq(dropped(0), 102 - broker.n_envelopes);
	ck_assert_uint_eq(dropped(1), 0);
	delivery_give_up(&broker);
}
END_TEST

Suite *suite(void)
{
	Suite *s = suite_create("delivery");
	TCase *c = tcase_create("waiting");

	tcase_add_checked_fixture(c, set_up, NULL);
	tcase_add_test(c, many_of_one_are_its_own_loss);
	tcase_add_test(c, their_bytes_are_bounded);
	suite_add_tcase(s, c);
	return s;
}
