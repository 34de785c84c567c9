#include "proto/import/reader.h"

#include <errno.h>
#include <string.h>

static size_t line_length(const struct import_reader *t)
{
	const char *at = t->bytes + t->at;
	const char *end = memchr(at, '\n', t->size - t->at);

	return end != NULL ? (size_t)(end - at) : t->size - t->at;
}

void import_reader_init(struct import_reader *t, const char *bytes, size_t size)
{
	json_t *first = NULL;
	size_t n;

	*t = (struct import_reader){.bytes = bytes, .size = size};
	n = line_length(t);
	if (n <= IMPORT_LINE_MAX)
		first = json_loadb(bytes, n, 0, NULL);
	/* A payload may be one short line, too: it has the member "profile". */
	t->is_envelope = json_is_object(first) && json_object_get(first, "profile") == NULL &&
			 json_object_get(first, "version") == NULL;
	if (t->is_envelope)
		t->at = n < size ? n + 1 : n;
	json_decref(first);
}

static void skip_blanks(struct import_reader *t)
{
	while (t->at < t->size && strchr(" \t\r\n", t->bytes[t->at]) != NULL &&
	       t->bytes[t->at] != '\0')
		t->at++;
}

static int parse(const char *bytes, size_t n, size_t flags, json_t **ret, size_t *ret_used,
		 struct import_fault *fault)
{
	json_error_t error;
	json_t *v = json_loadb(bytes, n, flags, &error);

	if (v == NULL && json_error_code(&error) == json_error_out_of_memory)
		return -ENOMEM;
	if (v == NULL)
		return import_fault_set(fault, "is not JSON: line %d, column %d: %.120s",
					error.line, error.column, error.text);
	*ret = v;
	*ret_used = (size_t)error.position;
	return 0;
}

/*
 * Reads an item: the header line and the payload, which has "length" bytes or, without that
 * member, ends at the end of the line.
 */
static int next_item(struct import_reader *t, const char **ret, size_t *ret_n, bool *ret_is_chunk,
		     struct import_fault *fault)
{
	size_t n = line_length(t), left, used;
	json_t *header = NULL;
	const json_t *length;
	const char *type;
	int r;

	if (n > IMPORT_LINE_MAX)
		return import_fault_set(fault, "has an item header of %zu bytes", n);
	r = parse(t->bytes + t->at, n, 0, &header, &used, fault);
	if (r < 0)
		return r;
	t->at += n < t->size - t->at ? n + 1 : n;
	left = t->size - t->at;
	length = json_object_get(header, "length");
	type = json_string_value(json_object_get(header, "type"));
	n = length == NULL ? line_length(t) : left + 1;
	if (json_is_integer(length) && json_integer_value(length) >= 0 &&
	    (uint64_t)json_integer_value(length) <= left)
		n = (size_t)json_integer_value(length);
	if (type == NULL)
		r = import_fault_set(fault, "has an item without a type");
	else if (n > left)
		r = import_fault_set(fault, "ends within an item: the file is incomplete");
	if (type != NULL && r == 0) {
		*ret_is_chunk = strcmp(type, "profile_chunk") == 0;
		*ret = t->bytes + t->at;
		*ret_n = n;
		t->at += n;
	}
	json_decref(header);
	return r;
}

static int next_of_envelope(struct import_reader *t, json_t **ret, struct import_fault *fault)
{
	bool is_chunk = false;
	const char *bytes;
	size_t n, used;
	int r;

	while (!is_chunk) {
		skip_blanks(t);
		if (t->at == t->size)
			return 0;
		r = next_item(t, &bytes, &n, &is_chunk, fault);
		if (r < 0)
			return r;
	}
	t->payload = bytes;
	t->payload_size = n;
	r = parse(bytes, n, 0, ret, &used, fault);
	return r < 0 ? r : 1;
}

static int next_bare(struct import_reader *t, json_t **ret, struct import_fault *fault)
{
	size_t used = 0;
	int r;

	skip_blanks(t);
	if (t->at == t->size)
		return 0;
	r = parse(t->bytes + t->at, t->size - t->at, JSON_DISABLE_EOF_CHECK, ret, &used, fault);
	if (r < 0)
		return r;
	t->payload = t->bytes + t->at;
	t->payload_size = used;
	t->at += used;
	return 1;
}

int import_reader_next(struct import_reader *t, struct import_chunk *ret,
		       struct import_fault *fault)
{
	json_t *payload = NULL;
	int r = t->is_envelope ? next_of_envelope(t, &payload, fault)
			       : next_bare(t, &payload, fault);

	if (r == 1) {
		r = import_chunk_read(payload, ret, fault);
		if (r == 0)
			return 1;
	}
	if (r < 0)
		t->at = t->size;
	return r;
}
