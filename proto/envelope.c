#include "proto/envelope.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <jansson.h>

/* 9999-12-31T23:59:59Z, the last time that RFC 3339 can express. */
#define TIME_MAX_S INT64_C(253402300799)
#define US_PER_S   1000000

int envelope_time(int64_t us, char ret[ENVELOPE_TIME_SIZE])
{
	time_t s = (time_t)(us / US_PER_S);
	struct tm tm;
	size_t len;

	if (us < 0 || s > TIME_MAX_S || gmtime_r(&s, &tm) == NULL)
		return -EINVAL;
	len = strftime(ret, ENVELOPE_TIME_SIZE, "%Y-%m-%dT%H:%M:%S", &tm);
	(void)snprintf(ret + len, ENVELOPE_TIME_SIZE - len, ".%06dZ", (int)(us % US_PER_S));
	return 0;
}

/* Writes the result of json_pack_ex(), an object or NULL, as a line, and releases the object. */
static int write_line(json_t *object, const json_error_t *error, char *ret, size_t size,
		      size_t *ret_len)
{
	size_t len;

	if (object == NULL)
		return json_error_code(error) == json_error_out_of_memory ? -ENOMEM : -EINVAL;
	/* json_dumpb() returns the length that is needed, and writes no NUL. */
	len = json_dumpb(object, ret, size, JSON_COMPACT);
	json_decref(object);
	if (len == 0)
		return -ENOMEM;
	if (len > size || size - len < sizeof(ENVELOPE_LINE_END))
		return -E2BIG;
	memcpy(ret + len, ENVELOPE_LINE_END, sizeof(ENVELOPE_LINE_END));
	*ret_len = len + strlen(ENVELOPE_LINE_END);
	return 0;
}

int envelope_header(const struct envelope_fields *e, char *ret, size_t size, size_t *ret_len)
{
	char id[2 * ENVELOPE_EVENT_ID_BYTES + 1];
	char sent_at[ENVELOPE_TIME_SIZE];
	bool sent = e->sent_at_us != ENVELOPE_NOT_SENT;
	json_error_t error;
	json_t *header;
	int r;

	if (sent) {
		r = envelope_time(e->sent_at_us, sent_at);
		if (r < 0)
			return r;
	}
	for (size_t i = 0; i < ENVELOPE_EVENT_ID_BYTES; i++)
		(void)snprintf(id + 2 * i, 3, "%02x", e->event_id[i]);

	header = json_pack_ex(&error, 0, "{s:s, s:s*, s:{s:s, s:s}}", "event_id", id, "sent_at",
			      sent ? sent_at : NULL, "sdk", "name", e->sdk_name, "version",
			      e->sdk_version);
	return write_line(header, &error, ret, size, ret_len);
}

static bool is_event_id(const json_t *id)
{
	const char *text = json_string_value(id);

	return text != NULL && json_string_length(id) == 2 * ENVELOPE_EVENT_ID_BYTES &&
	       strspn(text, "0123456789abcdef") == 2 * ENVELOPE_EVENT_ID_BYTES;
}

int envelope_stamp(const char *line, size_t len, int64_t sent_at_us, char *ret, size_t size,
		   size_t *ret_len)
{
	char sent_at[ENVELOPE_TIME_SIZE];
	json_error_t error;
	json_t *kept, *header = NULL;
	int r;

	r = envelope_time(sent_at_us, sent_at);
	if (r < 0)
		return r;
	kept = json_loadb(line, len, JSON_REJECT_DUPLICATES, &error);
	if (kept == NULL && json_error_code(&error) == json_error_out_of_memory)
		return -ENOMEM;
	if (is_event_id(json_object_get(kept, "event_id")) &&
	    json_is_object(json_object_get(kept, "sdk")))
		header = json_pack_ex(&error, 0, "{s:O, s:s, s:O}", "event_id",
				      json_object_get(kept, "event_id"), "sent_at", sent_at, "sdk",
				      json_object_get(kept, "sdk"));
	else
		r = -EBADMSG;
	json_decref(kept);
	return r < 0 ? r : write_line(header, &error, ret, size, ret_len);
}

int envelope_item_header(const struct envelope_item *item, char *ret, size_t size, size_t *ret_len)
{
	json_error_t error;
	json_t *header;

	/* The maximum of jansson's integers. */
	if (item->length > INT64_MAX)
		return -EINVAL;
	header = json_pack_ex(&error, 0, "{s:s, s:s*, s:I, s:s*}", "type", item->type, "platform",
			      item->platform, "length", (json_int_t)item->length, "content_type",
			      item->content_type);
	return write_line(header, &error, ret, size, ret_len);
}
