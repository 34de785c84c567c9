/* What a stranger sends to the daemon's socket: a byte, then the datagram. */
#include "tests/fuzz/fuzz.h"

#include <assert.h>
#include <string.h>

#include "daemon/broker/control/control_message.h"

static void check_request(const struct protocol_request *m)
{
	const size_t n = strnlen(m->name, sizeof(m->name));

	assert(m->h.size == sizeof(*m) && m->pid >= 0 && n < sizeof(m->name));
	for (size_t i = n; i < sizeof(m->name); i++)
		assert(m->name[i] == '\0');
	assert(m->pid == 0 || n == 0);
	assert(m->h.type >= PROTOCOL_START && m->h.type < PROTOCOL_TYPE_END);
	switch (m->h.type) {
	case PROTOCOL_SPANS_OPEN:
	case PROTOCOL_SPANS_CLOSED:
	case PROTOCOL_STATUS:
	case PROTOCOL_RELOAD:
	case PROTOCOL_RECORD_END:
	case PROTOCOL_METRICS:
	case PROTOCOL_OPENMETRICS:
		assert(m->pid == 0 && n == 0);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	union control_message m;

	if (size == 0)
		return 0;
	switch (control_message_check(data + 1, size - 1, data[0] & 1, &m)) {
	case CONTROL_BAD:
		return 0;
	case CONTROL_HELLO:
		assert(data[0] & 1);
		assert(m.hello.magic == PROTOCOL_MAGIC && m.hello.version > 0);
		return 0;
	case CONTROL_REQUEST:
		assert(!(data[0] & 1));
		check_request(&m.request);
		return 0;
	case CONTROL_NEWER:
		assert(m.h.size == size - 1 && m.h.type >= PROTOCOL_TYPE_END);
		return 0;
	}
	assert(0);
	return 0;
}
