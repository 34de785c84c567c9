#include "daemon/control_message.h"

#include <string.h>

/* What a request may say beside its type. */
enum takes {
	TAKES_NOTHING,
	TAKES_PID, /* has to */
	TAKES_PID_OR_SELF,
	TAKES_PID_OR_NAME,
	TAKES_ANY, /* a pid, a name, or neither */
};

static bool find_takes(uint32_t type, enum takes *ret)
{
	switch ((enum protocol_type)type) {
	case PROTOCOL_START:
	case PROTOCOL_STOP:
		*ret = TAKES_ANY;
		return true;
	case PROTOCOL_PROFILER_ID:
		*ret = TAKES_PID_OR_SELF;
		return true;
	case PROTOCOL_THREAD:
	case PROTOCOL_ATTACH:
	case PROTOCOL_DETACH:
		*ret = TAKES_PID;
		return true;
	case PROTOCOL_RECORD:
	case PROTOCOL_WATCH:
		*ret = TAKES_PID_OR_NAME;
		return true;
	case PROTOCOL_SPANS_OPEN:
	case PROTOCOL_SPANS_CLOSED:
	case PROTOCOL_STATUS:
	case PROTOCOL_METRICS:
	case PROTOCOL_OPENMETRICS:
	case PROTOCOL_RELOAD:
	case PROTOCOL_RECORD_END:
		*ret = TAKES_NOTHING;
		return true;
	case PROTOCOL_HELLO:
	case PROTOCOL_ANSWER:
	case PROTOCOL_TYPE_END:
		break;
	}
	return false;
}

static bool is_request(const struct protocol_request *m, enum takes takes)
{
	const bool named = m->name[0] != '\0';

	switch (takes) {
	case TAKES_NOTHING:
		return m->pid == 0 && !named;
	case TAKES_PID:
		return m->pid > 0 && !named;
	case TAKES_PID_OR_SELF:
		return m->pid >= 0 && !named;
	case TAKES_PID_OR_NAME:
		return m->pid >= 0 && (m->pid == 0) == named;
	case TAKES_ANY:
		return m->pid >= 0 && (m->pid == 0 || !named);
	}
	return false;
}

static enum control_kind check_request(const void *bytes, size_t size,
				       struct protocol_request *ret)
{
	struct protocol_request m;
	enum takes takes;
	size_t length;

	if (size != sizeof(m))
		return CONTROL_BAD;
	memcpy(&m, bytes, sizeof(m));
	length = strnlen(m.name, sizeof(m.name));
	if (length == sizeof(m.name) || !find_takes(m.h.type, &takes) ||
	    !is_request(&m, takes))
		return CONTROL_BAD;
	memset(m.name + length, 0, sizeof(m.name) - length);
	*ret = m;
	return CONTROL_ASKS;
}

static enum control_kind check_hello(const void *bytes, size_t size,
				     struct protocol_hello *ret)
{
	struct protocol_hello m;

	if (size != sizeof(m))
		return CONTROL_BAD;
	memcpy(&m, bytes, sizeof(m));
	if (m.magic != PROTOCOL_MAGIC || m.version == 0)
		return CONTROL_BAD;
	*ret = m;
	return CONTROL_HELLO;
}

enum control_kind control_message_check(const void *bytes, size_t size,
					bool is_first,
					union control_message *ret)
{
	struct protocol_header h;

	if (size < sizeof(h) || size > PROTOCOL_SIZE_MAX)
		return CONTROL_BAD;
	memcpy(&h, bytes, sizeof(h));
	if (h.size != size || (h.type == PROTOCOL_HELLO) != is_first)
		return CONTROL_BAD;
	if (is_first)
		return check_hello(bytes, size, &ret->hello);
	if (h.type >= PROTOCOL_TYPE_END) {
		ret->h = h;
		return CONTROL_LATER;
	}
	return check_request(bytes, size, &ret->request);
}
