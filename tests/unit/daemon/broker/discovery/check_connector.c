/* Parses messages of the kernel. The filter is tested with the kernel itself. */
#include "daemon/broker/discovery/connector.h"

#include <linux/cn_proc.h>
#include <linux/connector.h>
#include <linux/netlink.h>
#include <stddef.h>
#include <string.h>

#include "tests/unit/suite.h"

static struct {
	uint8_t bytes[sizeof(struct nlmsghdr) + sizeof(struct cn_msg) + sizeof(struct proc_event)];
	struct nlmsghdr netlink;
	struct cb_id id;
	struct proc_event event;
} m;
static struct connector_event said;

/* A message about an exec of process 7. */
static void set_up(void)
{
	m.netlink = (struct nlmsghdr){.nlmsg_type = NLMSG_DONE, .nlmsg_len = sizeof(m.bytes)};
	m.id = (struct cb_id){.idx = CN_IDX_PROC, .val = CN_VAL_PROC};
	m.event = (struct proc_event){.timestamp_ns = 12345};
	m.event.what = PROC_EVENT_EXEC;
	m.event.event_data.exec.process_pid = 7;
	m.event.event_data.exec.process_tgid = 7;
}

static bool parse(size_t n)
{
	uint8_t *at = m.bytes;

	memcpy(at, &m.netlink, sizeof(m.netlink));
	/* The other members of the header are ignored. */
	memcpy(at + sizeof(m.netlink), &m.id, sizeof(m.id));
	memcpy(at + sizeof(m.netlink) + sizeof(struct cn_msg), &m.event, sizeof(m.event));
	return connector_parse(m.bytes, n, &said);
}

FIXTURE(set_up, NULL)

TEST(an_exec_is_parsed)
{
	ck_assert(parse(sizeof(m.bytes)));
	ck_assert_int_eq(said.what, CONNECTOR_EXEC);
	ck_assert_int_eq(said.pid, 7);
	ck_assert_uint_eq(said.time_ns, 12345);
	/* exec by another thread than the leader is an exec of the process. */
	m.event.event_data.exec.process_pid = 9;
	ck_assert(parse(sizeof(m.bytes)));
	ck_assert_int_eq(said.pid, 7);
}

TEST(a_fork_is_parsed)
{
	m.event.what = PROC_EVENT_FORK;
	m.event.event_data.fork.parent_pid = 1;
	m.event.event_data.fork.parent_tgid = 1;
	m.event.event_data.fork.child_pid = 8;
	m.event.event_data.fork.child_tgid = 8;
	ck_assert(parse(sizeof(m.bytes)));
	ck_assert_int_eq(said.what, CONNECTOR_FORK);
	ck_assert_int_eq(said.pid, 8);
	/* A thread. */
	m.event.event_data.fork.child_pid = 9;
	ck_assert(!parse(sizeof(m.bytes)));
}

TEST(a_change_is_parsed)
{
	m.event.what = PROC_EVENT_UID;
	ck_assert(parse(sizeof(m.bytes)));
	ck_assert_int_eq(said.what, CONNECTOR_CHANGE);
	m.event.what = PROC_EVENT_GID;
	ck_assert(parse(sizeof(m.bytes)));
	ck_assert_int_eq(said.what, CONNECTOR_CHANGE);
	m.event.what = PROC_EVENT_COMM;
	ck_assert(parse(sizeof(m.bytes)));
	ck_assert_int_eq(said.what, CONNECTOR_CHANGE);
	/* A thread's name. */
	m.event.event_data.comm.process_pid = 9;
	ck_assert(!parse(sizeof(m.bytes)));
}

TEST(the_answer_is_parsed)
{
	m.event.what = PROC_EVENT_NONE;
	m.event.event_data.ack.err = 0;
	ck_assert(parse(sizeof(m.bytes)));
	ck_assert_int_eq(said.what, CONNECTOR_ANSWER);
	m.event.event_data.ack.err = 1;
	ck_assert(!parse(sizeof(m.bytes)));
}

TEST(other_events_are_skipped)
{
	m.event.what = PROC_EVENT_EXIT;
	ck_assert(!parse(sizeof(m.bytes)));
	m.event.what = PROC_EVENT_PTRACE;
	ck_assert(!parse(sizeof(m.bytes)));
}

TEST(invalid_messages_are_skipped)
{
	const size_t data =
		sizeof(m.bytes) - sizeof(m.event) + offsetof(struct proc_event, event_data);

	for (size_t n = 0; n < data; n++) {
		m.netlink.nlmsg_len = (uint32_t)n;
		ck_assert(!parse(n));
	}
	m.netlink.nlmsg_len = sizeof(m.bytes) + 1;
	ck_assert(!parse(sizeof(m.bytes)));
	set_up();
	m.netlink.nlmsg_type = NLMSG_ERROR;
	ck_assert(!parse(sizeof(m.bytes)));
	set_up();
	m.id.idx++;
	ck_assert(!parse(sizeof(m.bytes)));
}
