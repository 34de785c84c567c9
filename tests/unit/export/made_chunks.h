/* Chunks for tests of proto/export, read from JSON. */
#ifndef TESTS_UNIT_EXPORT_MADE_CHUNKS_H
#define TESTS_UNIT_EXPORT_MADE_CHUNKS_H

#include <stdio.h>

#include "proto/export/merge.h"
#include "tests/unit/suite.h"

#define MADE_SIZE 8192

/*
 * JSON of a sample with a state, and a comma. The arguments are literals: MADE_RUNS("1.5", "7",
 * "0").
 */
#define MADE_RUNS(time, thread, stack)                                             \
	"{\"timestamp\":" time ",\"thread_id\":\"" thread "\",\"stack_id\":" stack \
	",\"state\":\"running\"},"
#define MADE_READY(time, thread, stack)                                            \
	"{\"timestamp\":" time ",\"thread_id\":\"" thread "\",\"stack_id\":" stack \
	",\"state\":\"ready\"},"
#define MADE_WAITS(time, thread, stack)                                            \
	"{\"timestamp\":" time ",\"thread_id\":\"" thread "\",\"stack_id\":" stack \
	",\"state\":\"waiting\"},"
/* The last sample: without a state and without a comma. */
#define MADE_END(time, thread, stack) \
	"{\"timestamp\":" time ",\"thread_id\":\"" thread "\",\"stack_id\":" stack "}"

/* Parses text, the JSON of a payload, and adds the chunk to m. */
static inline void made_read(struct merge *m, const char *text)
{
	struct import_fault fault = {""};
	struct import_chunk chunk;
	json_error_t error;
	json_t *payload = json_loads(text, 0, &error);

	ck_assert_msg(payload != NULL, "%s in %s", error.text, text);
	ck_assert_msg(import_chunk_read(payload, &chunk, &fault) == 0, "%s: %s", fault.text, text);
	OK(merge_add(m, &chunk));
	import_chunk_fini(&chunk);
}

/* The release of the chunks to come. Tests change it. */
static const char *made_release = "app@1";

/*
 * Adds a chunk with two images. Its stacks, the root first:
 * 0: main;_Zwork. 1: main;_Zwork;hash. 2: main; a frame of libc.so.6 without a name. 3: empty.
 * samples: texts of MADE_*(), the last one of MADE_END(). threads: members of thread_metadata.
 */
static inline void made_add(struct merge *m, const char *profiler_id, const char *chunk_id,
			    const char *samples, const char *threads)
{
	char text[MADE_SIZE];

	(void)snprintf(text, sizeof(text),
		       "{\"version\":\"2\",\"profiler_id\":\"%s\",\"chunk_id\":\"%s\","
		       "\"platform\":\"rust\",\"release\":\"%s\",\"debug_meta\":{"
		       "\"images\":[{\"type\":\"symbolic\",\"code_file\":\"/lib/"
		       "libc.so.6\",\"debug_id\":\"03020100-0504-0706-0809-"
		       "0a0b0c0d0e0f\",\"image_addr\":\"0x7000\",\"image_vmaddr\":"
		       "\"0x0\",\"image_size\":4096},{\"code_file\":\"/opt/app\","
		       "\"code_id\":\"00112233445566778899aabbccddeeff00112233\","
		       "\"image_addr\":\"0x1000\",\"image_size\":4096}]},"
		       "\"profile\":{\"frames\":["
		       "{\"instruction_addr\":\"0x1010\",\"function\":\"main\","
		       "\"package\":\"/opt/app\",\"in_app\":true},"
		       "{\"instruction_addr\":\"0x1020\",\"function\":\"_Zwork\","
		       "\"package\":\"/opt/app\",\"in_app\":true,\"abs_path\":"
		       "\"/src/work.rs\",\"lineno\":12},"
		       "{\"instruction_addr\":\"0x1030\",\"function\":\"hash\","
		       "\"package\":\"/opt/app\",\"in_app\":true},"
		       "{\"instruction_addr\":\"0x7010\",\"package\":\"/lib/"
		       "libc.so.6\"}],"
		       "\"stacks\":[[1,0],[2,1,0],[3,0],[]],\"samples\":[%s],"
		       "\"thread_metadata\":{%s}}}",
		       profiler_id, chunk_id, made_release, samples, threads);
	made_read(m, text);
}

/* For merge_options.demangle: "_Zwork" becomes "work()". */
static inline bool made_demangle(const char *raw, char *out, size_t size)
{
	if (strncmp(raw, "_Z", 2) != 0)
		return false;
	(void)snprintf(out, size, "%s()", raw + 2);
	return true;
}

#endif
