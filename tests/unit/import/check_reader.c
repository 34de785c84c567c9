#include "proto/import/reader.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tests/unit/suite.h"

#define PAYLOAD(id)                                                   \
	"{\"version\":\"2\",\"profiler_id\":\"p\",\"chunk_id\":\"" id \
	"\",\"profile\":{\"frames\":[],\"stacks\":[],\"samples\":[]}}"
#define HEADER "{\"event_id\":\"e\",\"sdk\":{\"name\":\"s\"}}\n"
#define REPORT "{\"type\":\"client_report\",\"length\":7}\n{\"a\":1}\n"

static char ids[64];
static struct import_fault fault;

/* Reads all chunks, and appends their chunk_ids to ids. Returns the last result. */
static int read_bytes(const char *bytes, size_t n)
{
	struct import_chunk chunk;
	struct import_reader t;
	int r;

	ids[0] = fault.text[0] = '\0';
	import_reader_init(&t, bytes, n);
	while ((r = import_reader_next(&t, &chunk, &fault)) == 1) {
		ck_assert_uint_lt(strlen(ids) + strlen(chunk.chunk_id), sizeof(ids));
		(void)strncat(ids, chunk.chunk_id, 8);
		import_chunk_fini(&chunk);
	}
	if (r < 0) {
		/* After an error the reader is at its end. */
		ck_assert_int_eq(import_reader_next(&t, &chunk, &fault), 0);
	}
	return r;
}

static int read_text(const char *text)
{
	return read_bytes(text, strlen(text));
}

static const char *item(const char *payload)
{
	static char text[1024];

	(void)snprintf(text, sizeof(text),
		       HEADER "{\"type\":\"profile_chunk\",\"platform\":"
			      "\"rust\",\"length\":%zu}\n%s\n" REPORT,
		       strlen(payload), payload);
	return text;
}

TEST(the_chunks_of_an_envelope_are_read)
{
	OK(read_text(item(PAYLOAD("x"))));
	ck_assert_str_eq(ids, "x");
	/* Without a length an item ends with its line. */
	OK(read_text(HEADER "{\"type\":\"profile_chunk\"}\n" PAYLOAD(
		"x") "\n\n{\"type\":\"profile_chunk\"}\n" PAYLOAD("y")));
	ck_assert_str_eq(ids, "xy");
	OK(read_text(HEADER REPORT));
	ck_assert_str_eq(ids, "");
}

TEST(payloads_without_an_envelope_are_read)
{
	OK(read_text(PAYLOAD("x")));
	ck_assert_str_eq(ids, "x");
	OK(read_text("\n" PAYLOAD("x") "\n" PAYLOAD("y") "\r\n"));
	ck_assert_str_eq(ids, "xy");
	/* On several lines, of which the first alone is not a JSON object. */
	OK(read_text("{\n \"version\": \"2\", \"profiler_id\": \"p\",\n"
		     "\"chunk_id\": \"z\", \"profile\": {\"frames\": [],"
		     "\n\"stacks\": [], \"samples\": []}\n}\n"));
	ck_assert_str_eq(ids, "z");
	OK(read_text(""));
	OK(read_text(" \n"));
}

TEST(a_truncated_envelope_is_refused)
{
	const char *whole = item(PAYLOAD("x"));
	const size_t begin = strlen(HEADER) + 1;
	const size_t end = strlen(whole) - strlen(REPORT) - 1;

	for (size_t n = begin; n < end; n++) {
		ck_assert_msg(read_bytes(whole, n) == -EBADMSG, "%zu", n);
		ck_assert_str_ne(fault.text, "");
		ck_assert_str_eq(ids, "");
	}
	OK(read_bytes(whole, end));
	ck_assert_str_eq(ids, "x");
}

TEST(other_contents_are_refused)
{
	static const char *const texts[] = {
		"hello",
		"{",
		"\x1f\x8b\x08",
		HEADER "hello\n",
		HEADER "[]\n",
		HEADER "{\"length\":1}\nx",
		HEADER "{\"type\":\"profile_chunk\",\"length\":-1}\nx",
		HEADER "{\"type\":\"profile_chunk\",\"length\":1e9}\nx",
		HEADER "{\"type\":\"x\",\"length\":9223372036854775807}\nx",
		PAYLOAD("x") "x",
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		ck_assert_msg(read_text(texts[i]) == -EBADMSG, "%s", texts[i]);
		ck_assert_str_ne(fault.text, "");
	}
}
