/* Which ship a DSN gets. */
#include <string.h>

#include "daemon/broker/children/children.h"
#include "proto/dsn.h"
#include "tests/unit/suite.h"

#define TEXT "https://key@host/1"

static struct children c;
static struct ship ships[SHIPS_MAX];

/* SHIPS_MAX ships, the last one for TEXT. */
static void set_up(void)
{
	struct ship *last = &ships[SHIPS_MAX - 1];
	struct dsn dsn;

	memset(&c, 0, sizeof(c));
	memset(ships, 0, sizeof(ships));
	for (size_t i = 0; i < SHIPS_MAX; i++)
		c.ships[i] = &ships[i];
	c.n_ships = SHIPS_MAX;
	memcpy(last->dsn, TEXT, sizeof(TEXT));
	ck_assert_int_eq(dsn_parse(&dsn, TEXT), DSN_OK);
	last->spool_dsn = dsn_hash(&dsn);
}

FIXTURE(set_up, NULL)

/* A second ship would read and send the same files of the spool. */
TEST(texts_of_one_dsn_have_one_ship)
{
	static const char *const texts[] = {
		TEXT,
		"HTTPS://key@host/1",
		"https://key@host//1",
		"https://key:secret@host/1",
	};
	struct ship *s;

	for (size_t i = 0; i < array_size(texts); i++) {
		OK(children_get_ship(&c, texts[i], &s));
		ck_assert_ptr_eq(s, &ships[SHIPS_MAX - 1]);
	}
}

TEST(another_dsn_has_another_ship)
{
	struct ship *s;

	ck_assert_int_eq(children_get_ship(&c, "http://key@host/1", &s), -ENOSPC);
	ck_assert_int_eq(children_get_ship(&c, "https://k@host/1", &s), -ENOSPC);
	OK(children_get_ship(&c, "", &s));
	ck_assert_ptr_eq(s, &ships[0]);
}
