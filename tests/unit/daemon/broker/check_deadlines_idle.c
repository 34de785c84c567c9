#include "daemon/broker/children/children.h"
#include "daemon/broker/deadlines.h"
#include "daemon/config/config.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "daemon/broker/children/reap.h"
#include "daemon/msg/msg_io.h"
#include "tests/unit/daemon/broker/broker_builder.h"
#include "tests/unit/suite.h"

static struct broker b;
static struct unwind *unwind;
static int end;

/* An unwind process, in whose place the test is, and a target that it serves. */
static void set_up(void)
{
	build_broker(&b);
	unwind = calloc(1, sizeof(*unwind));
	ck_assert_ptr_nonnull(unwind);
	end = build_unwind(&b, unwind);
	unwind->child.usage.cpu_s = 2;
	b.modules.targets.table[3] = (struct run){.id = 1, .slot = 3, .unwind = unwind};
}

static bool has_ended(void)
{
	char byte;

	return recv(end, &byte, 1, MSG_DONTWAIT) == 0;
}

static void idle_check_both(uint64_t now_ns)
{
	deadlines_end_unused_unwinds(&b, now_ns);
	deadlines_end_unused_ships(&b, now_ns);
}

FIXTURE(set_up, NULL)

TEST(an_unwind_process_with_a_target_stays)
{
	for (uint64_t t = 1; t < 5 * IDLE_NS; t += IDLE_NS / 4)
		idle_check_both(t);
	ck_assert(!has_ended());
	ck_assert_uint_eq(b.modules.children.n_unwinds, 1);
}

TEST(an_unwind_process_ends_a_minute_after_its_last_target)
{
	idle_check_both(10);
	b.modules.targets.table[3].id = 0;
	idle_check_both(9 + IDLE_NS);
	ck_assert(!has_ended());
	idle_check_both(10 + IDLE_NS);
	ck_assert(has_ended());
	ck_assert(!child_is_wanted(&unwind->child));
	/* The process was told to leave and has not ended yet. */
	idle_check_both(20 + IDLE_NS);
	ck_assert_uint_eq(b.modules.children.n_unwinds, 1);
	children_sweep(&b.modules.children);
	ck_assert_uint_eq(b.modules.children.n_unwinds, 1);
	unwind->child.pid = 0;
	idle_check_both(30 + IDLE_NS);
	children_sweep(&b.modules.children);
	ck_assert_uint_eq(b.modules.children.n_unwinds, 0);
	ck_assert_double_eq(b.modules.children.unwinds_gone.cpu_s, 2);
}

TEST(a_target_that_comes_back_finds_its_unwind_process)
{
	idle_check_both(10);
	b.modules.targets.table[3].id = 0;
	idle_check_both(IDLE_NS);
	b.modules.targets.table[3].id = 2;
	idle_check_both(IDLE_NS + 5);
	b.modules.targets.table[3].id = 0;
	idle_check_both(2 * IDLE_NS);
	ck_assert(!has_ended());
}

/* Adds idle unwind processes until there are n. Each was needed later than the one before. */
static void add_idle(size_t n)
{
	static struct unwind more[HEARTBEAT_SLOTS];

	while (b.modules.children.n_unwinds < n) {
		const size_t i = b.modules.children.n_unwinds;
		int other_end = build_unwind(&b, &more[i]);

		close_fd(&other_end);
		more[i].idle_since_ns = i;
	}
}

/* How many of them were told to leave: those that were needed first. */
static size_t leaving(void)
{
	size_t n = 0;

	while (n < b.modules.children.n_unwinds &&
	       b.modules.children.unwinds[n + 1]->child.is_leaving)
		n++;
	return n;
}

TEST(idle_unwind_processes_above_a_number_end)
{
	add_idle(1 + IDLE_MAX + 3);
	idle_check_both(IDLE_NS);
	ck_assert(!unwind->child.is_leaving);
	ck_assert_uint_eq(leaving(), 3);
	idle_check_both(IDLE_NS);
	ck_assert_uint_eq(leaving(), 3);
}

TEST(idle_unwind_processes_leave_places_to_others)
{
	struct unwind *needed[HEARTBEAT_SLOTS];

	add_idle(HEARTBEAT_SLOTS - 2);
	memcpy(needed, b.modules.children.unwinds, sizeof(needed));
	for (size_t i = 4; i < HEARTBEAT_SLOTS - 2; i++)
		b.modules.targets.table[i] =
			(struct run){.id = 1, .slot = (uint32_t)i, .unwind = needed[i]};
	/* Three are idle, two places are free. */
	idle_check_both(IDLE_NS);
	ck_assert(!unwind->child.is_leaving);
	ck_assert_uint_eq(leaving(), 1);
}

#define OLD "https://key@host/1"
#define NEW "https://key@host/2"

/*
 * Adds the first ship, which has no DSN, and a ship for OLD. The test has the other end of its
 * socket.
 */
static struct ship *add_ships(void)
{
	struct ship *last = NULL;
	int pair[2];

	OK(ipc_pair(pair));
	for (size_t i = 0; i < 2; i++) {
		last = calloc(1, sizeof(*last));
		ck_assert_ptr_nonnull(last);
		last->child = (struct child){.children = &b.modules.children,
					     .type = &child_types[CHILD_SHIP],
					     .fd = -1};
		last->is_first = i == 0;
		b.modules.children.ships[b.modules.children.n_ships++] = last;
	}
	memcpy(last->dsn, OLD, sizeof(OLD));
	last->child.fd = pair[0];
	last->child.pid = 1;
	last->spool_past.sent = 3;
	close_fd(&end);
	end = pair[1];
	return last;
}

static struct section_config section;

/* The configuration has a section with this DSN. */
static void configure(const char *dsn)
{
	memset(&section, 0, sizeof(section));
	memcpy(section.dsn, dsn, strlen(dsn));
	b.modules.state.options.config.sections = &section;
	b.modules.state.options.config.n_sections = 1;
}

/* Returns true if the ship gets MSG_SHIP_FINISH and then the end of the socket. */
static bool is_asked_to_finish(void)
{
	struct ipc_message m;

	return ipc_recv(end, &m) == 1 && msg_type_of(&m) == MSG_SHIP_FINISH &&
	       ipc_recv(end, &m) == 0;
}

TEST(a_ship_ends_when_no_section_has_its_dsn)
{
	struct ship *s = add_ships();

	configure(OLD);
	idle_check_both(10);
	ck_assert(!s->child.is_leaving);
	configure(NEW);
	idle_check_both(20);
	ck_assert(s->child.is_leaving);
	ck_assert(is_asked_to_finish());
	/* The broker still reads the ship's messages. */
	ck_assert_int_ge(s->child.fd, 0);
	children_sweep(&b.modules.children);
	ck_assert_uint_eq(b.modules.children.n_ships, 2);
	s->child.pid = 0;
	close_fd(&s->child.fd);
	children_sweep(&b.modules.children);
	ck_assert_uint_eq(b.modules.children.n_ships, 1);
	ck_assert(b.modules.children.ships[0]->is_first);
	ck_assert_uint_eq(b.modules.children.spool_gone.sent, 3);
}

/* A run that a user attached keeps the DSN of the time before the reload. */
TEST(a_ship_that_an_instance_uses_stays)
{
	struct ship *s = add_ships();
	struct instance i = {.ship = s}, *list[] = {&i};

	b.modules.targets.instances = list;
	b.modules.targets.n_instances = 1;
	configure(NEW);
	idle_check_both(10);
	ck_assert(!s->child.is_leaving);
	i.ship = NULL;
	idle_check_both(20);
	ck_assert(s->child.is_leaving);
}

/* As doctor asks it. */
TEST(a_ship_that_was_only_asked_to_probe_ends_after_a_minute)
{
	struct ship *s = add_ships();
	struct instance i = {.ship = s}, *list[] = {&i};

	configure(OLD);
	s->only_probed_ns = 10;
	idle_check_both(9 + IDLE_NS);
	ck_assert(!s->child.is_leaving);
	b.modules.targets.instances = list;
	b.modules.targets.n_instances = 1;
	idle_check_both(10 + IDLE_NS);
	ck_assert(!s->child.is_leaving);
	b.modules.targets.n_instances = 0;
	idle_check_both(10 + IDLE_NS);
	ck_assert(s->child.is_leaving);
	ck_assert(is_asked_to_finish());
}

TEST(a_new_dsn_waits_until_another_ship_has_ended)
{
	struct ship *s = add_ships(), *found;

	configure(NEW);
	idle_check_both(10);
	ck_assert_int_eq(children_get_ship(&b.modules.children, OLD, &found), -EAGAIN);
	for (size_t i = 2; i < SHIPS_MAX; i++)
		b.modules.children.ships[b.modules.children.n_ships++] =
			b.modules.children.ships[0];
	ck_assert_int_eq(children_get_ship(&b.modules.children, NEW, &found), -EAGAIN);
	s->child.is_leaving = false;
	ck_assert_int_eq(children_get_ship(&b.modules.children, NEW, &found), -ENOSPC);
	OK(children_get_ship(&b.modules.children, OLD, &found));
	ck_assert_ptr_eq(found, s);
}
