/* Which datagrams of a peer are valid. Any user of the machine can send any bytes. */
#include "daemon/broker/control/control_message.h"

#include <string.h>

#include "tests/unit/suite.h"

static union control_message got;

static struct protocol_hello hello(void)
{
	return (struct protocol_hello){
		.h = {PROTOCOL_HELLO, sizeof(struct protocol_hello), 1},
		.magic = PROTOCOL_MAGIC,
		.version = PROTOCOL_VERSION,
	};
}

static struct protocol_request request(uint32_t type, int32_t pid, const char *name)
{
	struct protocol_request m = {
		.h = {type, sizeof(m), 1},
		.pid = pid,
	};

	memcpy(m.name, name, strlen(name));
	return m;
}

static enum control_kind check_hello(const struct protocol_hello *m)
{
	return control_message_check(m, sizeof(*m), true, &got);
}

static enum control_kind check(uint32_t type, int32_t pid, const char *name)
{
	struct protocol_request m = request(type, pid, name);

	return control_message_check(&m, sizeof(m), false, &got);
}

static void expect(enum control_kind expected, const void *message, size_t size, bool is_first)
{
	ck_assert_int_eq(control_message_check(message, size, is_first, &got), expected);
}

TEST(a_hello_is_valid_as_the_first_message_only)
{
	struct protocol_hello m = hello();

	m.flags = UINT32_MAX;
	m.version = 77;
	ck_assert_int_eq(check_hello(&m), CONTROL_HELLO);
	ck_assert_mem_eq(&got.hello, &m, sizeof(m));
	/* HELLO has to be the first message, and only the first. */
	expect(CONTROL_BAD, &m, sizeof(m), false);
}

TEST(a_first_message_that_is_no_valid_hello_is_bad)
{
	struct protocol_request other = request(PROTOCOL_STATUS, 0, "");
	struct protocol_hello m = hello();

	expect(CONTROL_BAD, &other, sizeof(other), true);
	m.magic++;
	ck_assert_int_eq(check_hello(&m), CONTROL_BAD);
	m = hello();
	m.version = 0;
	ck_assert_int_eq(check_hello(&m), CONTROL_BAD);
	m = hello();
	m.h.size++;
	ck_assert_int_eq(check_hello(&m), CONTROL_BAD);
	m = hello();
	m.h.size = sizeof(m) - 4;
	expect(CONTROL_BAD, &m, sizeof(m) - 4, true);
}

TEST(a_request_has_only_the_parameters_of_its_type)
{
	const struct {
		uint32_t type;
		bool nothing, pid, name;
	} v[] = {
		{PROTOCOL_START, true, true, true},
		{PROTOCOL_STOP, true, true, true},
		{PROTOCOL_PROFILER_ID, true, true, false},
		{PROTOCOL_SPANS_OPEN, true, false, false},
		{PROTOCOL_SPANS_CLOSED, true, false, false},
		{PROTOCOL_THREAD, false, true, false},
		{PROTOCOL_ATTACH, false, true, false},
		{PROTOCOL_DETACH, false, true, false},
		{PROTOCOL_STATUS, true, false, false},
		{PROTOCOL_METRICS, true, false, false},
		{PROTOCOL_OPENMETRICS, true, false, false},
		{PROTOCOL_RELOAD, true, false, false},
		{PROTOCOL_RECORD, false, true, true},
		{PROTOCOL_WATCH, false, true, true},
		{PROTOCOL_RECORD_END, true, false, false},
		{PROTOCOL_CHECK, true, true, false},
		{PROTOCOL_HELLO, false, false, false},
		{PROTOCOL_ANSWER, false, false, false},
		{0, false, false, false},
	};

	for (size_t i = 0; i < sizeof(v) / sizeof(v[0]); i++) {
		const uint32_t type = v[i].type;

		ck_assert_int_eq(check(type, 0, "") == CONTROL_REQUEST, v[i].nothing);
		ck_assert_int_eq(check(type, 7, "") == CONTROL_REQUEST, v[i].pid);
		ck_assert_int_eq(check(type, 0, "x") == CONTROL_REQUEST, v[i].name);
		ck_assert_int_eq(check(type, 7, "x"), CONTROL_BAD);
		ck_assert_int_eq(check(type, -1, ""), CONTROL_BAD);
	}
}

TEST(a_name_has_a_nul_and_bytes_after_it_are_cleared)
{
	struct protocol_request m = request(PROTOCOL_START, 0, "redis");

	/* Bytes after the NUL are cleared. */
	m.name[sizeof(m.name) - 1] = 'x';
	expect(CONTROL_REQUEST, &m, sizeof(m), false);
	ck_assert_str_eq(got.request.name, "redis");
	ck_assert_int_eq(got.request.name[sizeof(m.name) - 1], 0);
	memset(m.name, 'x', sizeof(m.name));
	expect(CONTROL_BAD, &m, sizeof(m), false);
	m.name[sizeof(m.name) - 1] = '\0';
	expect(CONTROL_REQUEST, &m, sizeof(m), false);
}

TEST(a_release_has_seconds_and_a_pid_or_none)
{
	struct protocol_request m = request(PROTOCOL_RELEASE, 7, "");

	memset(m.name, 'x', sizeof(m.name));
	m.seconds = UINT32_MAX;
	expect(CONTROL_REQUEST, &m, sizeof(m), false);
	ck_assert_uint_eq(got.request.seconds, UINT32_MAX);
	ck_assert_int_eq(got.request.pid, 7);
	for (size_t n = sizeof(m.seconds); n < sizeof(m.name); n++)
		ck_assert_int_eq(got.request.name[n], 0);
	m.pid = 0;
	expect(CONTROL_REQUEST, &m, sizeof(m), false);
	m.pid = -1;
	expect(CONTROL_BAD, &m, sizeof(m), false);
}

TEST(a_request_of_another_size_is_bad)
{
	struct protocol_request m = request(PROTOCOL_STATUS, 0, "");
	uint8_t bytes[PROTOCOL_SIZE_MAX + 8] = {0};

	for (size_t size = 0; size < sizeof(m); size++) {
		m.h.size = (uint32_t)size;
		expect(CONTROL_BAD, &m, size, false);
	}
	m.h.size = sizeof(m) + 4;
	memcpy(bytes, &m, sizeof(m));
	expect(CONTROL_BAD, bytes, sizeof(m) + 4, false);
}

TEST(a_request_of_unknown_type_is_of_a_newer_version)
{
	uint8_t bytes[PROTOCOL_SIZE_MAX + 4] = {0};
	struct protocol_header h = {PROTOCOL_TYPE_END, PROTOCOL_SIZE_MAX, 5};

	memcpy(bytes, &h, sizeof(h));
	expect(CONTROL_NEWER, bytes, PROTOCOL_SIZE_MAX, false);
	ck_assert_uint_eq(got.h.tag, 5);
	h.size = sizeof(bytes);
	memcpy(bytes, &h, sizeof(h));
	expect(CONTROL_BAD, bytes, sizeof(bytes), false);
}
