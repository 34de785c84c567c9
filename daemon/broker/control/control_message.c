#include "daemon/broker/control/control_message.h"

#include <string.h>

/* What a request may contain beside its type. */
enum takes {
	IS_NO_REQUEST,
	TAKES_NOTHING,
	TAKES_PID, /* required */
	TAKES_PID_OR_NONE,
	TAKES_PID_OR_NAME,
	TAKES_ANY,     /* a pid, a name, or neither */
	TAKES_SECONDS, /* and a pid or none */
};

static const enum takes takes_of[PROTOCOL_TYPE_END] = {
	[PROTOCOL_START] = TAKES_ANY,
	[PROTOCOL_STOP] = TAKES_ANY,
	[PROTOCOL_PROFILER_ID] = TAKES_PID_OR_NONE,
	[PROTOCOL_THREAD] = TAKES_PID,
	[PROTOCOL_ATTACH] = TAKES_PID,
	[PROTOCOL_DETACH] = TAKES_PID,
	[PROTOCOL_RECORD] = TAKES_PID_OR_NAME,
	[PROTOCOL_WATCH] = TAKES_PID_OR_NAME,
	[PROTOCOL_SPANS_OPEN] = TAKES_NOTHING,
	[PROTOCOL_SPANS_CLOSED] = TAKES_NOTHING,
	[PROTOCOL_STATUS] = TAKES_NOTHING,
	[PROTOCOL_METRICS] = TAKES_NOTHING,
	[PROTOCOL_OPENMETRICS] = TAKES_NOTHING,
	[PROTOCOL_RELOAD] = TAKES_NOTHING,
	[PROTOCOL_RECORD_END] = TAKES_NOTHING,
	[PROTOCOL_CHECK] = TAKES_PID_OR_NONE,
	[PROTOCOL_RELEASE] = TAKES_SECONDS,
};

/* m->h.type < PROTOCOL_TYPE_END */
static bool is_request(const struct protocol_request *m)
{
	const bool named = m->name[0] != '\0';

	switch (takes_of[m->h.type]) {
	case IS_NO_REQUEST:
		return false;
	case TAKES_NOTHING:
		return m->pid == 0 && !named;
	case TAKES_PID:
		return m->pid > 0 && !named;
	case TAKES_PID_OR_NONE:
		return m->pid >= 0 && !named;
	case TAKES_PID_OR_NAME:
		return m->pid >= 0 && (m->pid == 0) == named;
	case TAKES_ANY:
		return m->pid >= 0 && (m->pid == 0 || !named);
	case TAKES_SECONDS:
		return m->pid >= 0;
	}
	return false;
}

static enum control_kind check_request(const void *bytes, size_t size, struct protocol_request *ret)
{
	struct protocol_request m;
	size_t length;

	if (size != sizeof(m))
		return CONTROL_BAD;
	memcpy(&m, bytes, sizeof(m));
	length = takes_of[m.h.type] == TAKES_SECONDS ? sizeof(m.seconds)
						     : strnlen(m.name, sizeof(m.name));
	if (length == sizeof(m.name) || !is_request(&m))
		return CONTROL_BAD;
	memset(m.name + length, 0, sizeof(m.name) - length);
	*ret = m;
	return CONTROL_REQUEST;
}

static enum control_kind check_hello(const void *bytes, size_t size, struct protocol_hello *ret)
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

enum control_kind control_message_check(const void *bytes, size_t size, bool is_first,
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
		return CONTROL_NEWER;
	}
	return check_request(bytes, size, &ret->request);
}
