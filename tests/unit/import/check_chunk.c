#include "proto/import/chunk.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tests/unit/suite.h"

static struct import_chunk chunk;
static struct import_fault fault;

static int read_json(const char *text)
{
	json_t *payload = json_loads(text, 0, NULL);

	ck_assert_msg(payload != NULL, "the test has invalid JSON: %s", text);
	fault.text[0] = '\0';
	return import_chunk_read(payload, &chunk, &fault);
}

/* Reads a payload with these lists. NULL: a valid list. */
static int read_parts(const char *frames, const char *stacks, const char *samples, const char *rest)
{
	char text[4096];

	(void)snprintf(text, sizeof(text),
		       "{\"version\":\"2\",\"profiler_id\":\"a\",\"chunk_id\":\"b\","
		       "\"platform\":\"rust\",\"new\":{\"x\":[1]},"
		       "\"profile\":{\"frames\":%s,\"stacks\":%s,\"samples\":%s%s}}",
		       frames != NULL ? frames : "[{\"function\":\"f\"},{\"function\":\"g\"}]",
		       stacks != NULL ? stacks : "[[0,1],[]]",
		       samples != NULL ? samples
				       : "[{\"timestamp\":5,\"thread_id\":\"1\","
					 "\"stack_id\":0}]",
		       rest != NULL ? rest : "");
	return read_json(text);
}

#define SAMPLE(time, thread, stack) \
	"{\"timestamp\":" time ",\"thread_id\":\"" thread "\",\"stack_id\":" stack "}"

TEST(all_members_of_a_chunk_are_read)
{
	OK(read_parts("[{\"instruction_addr\":\"0xfFfffFFF00000001\","
		      "\"function\":\"f\",\"package\":\"/lib/x\","
		      "\"abs_path\":\"/s/x.c\",\"filename\":\"x.c\","
		      "\"lineno\":7,\"in_app\":true},"
		      "{\"module\":\"m\",\"filename\":\"y.c\"}]",
		      "[[0,1],[],[1]]",
		      "[" SAMPLE("1.5", "7", "0") "," SAMPLE("1.500001", "8",
							     "2") "," SAMPLE("2", "7", "1") "]",
		      ",\"thread_metadata\":{\"7\":{\"name\":\"main\"},"
		      "\"8\":{}}"));
	ck_assert_uint_eq(chunk.n_frames, 2);
	ck_assert_uint_eq(chunk.frames[0].addr, 0xffffffff00000001);
	ck_assert_str_eq(chunk.frames[0].function, "f");
	ck_assert_str_eq(chunk.frames[0].file, "/s/x.c");
	ck_assert_uint_eq(chunk.frames[0].line, 7);
	ck_assert(chunk.frames[0].in_app);
	ck_assert_ptr_null(chunk.frames[1].function);
	ck_assert_str_eq(chunk.frames[1].package, "m");
	ck_assert_str_eq(chunk.frames[1].file, "y.c");
	ck_assert_uint_eq(chunk.n_stacks, 3);
	ck_assert_uint_eq(chunk.stack_starts[1], 2);
	ck_assert_uint_eq(chunk.stack_starts[2], 2);
	ck_assert_uint_eq(chunk.stack_frames[2], 1);
	ck_assert_uint_eq(chunk.n_threads, 2);
	ck_assert_str_eq(chunk.threads[0].name, "main");
	ck_assert_str_eq(chunk.threads[1].id, "8");
	ck_assert_str_eq(chunk.threads[1].name, "");
	ck_assert_uint_eq(chunk.samples[0].time_ns, 1500000000);
	ck_assert_uint_eq(chunk.samples[0].duration_ns, 500000000);
	ck_assert(!chunk.samples[0].is_last);
	ck_assert(chunk.samples[1].is_last && chunk.samples[2].is_last);
	ck_assert(!chunk.has_states && chunk.n_images == 0);
	ck_assert_str_eq(chunk.platform, "rust");
	import_chunk_fini(&chunk);
	ck_assert_ptr_null(chunk.samples);
}

TEST(inlined_functions_become_frames)
{
	OK(read_parts("[{\"function\":\"f\",\"instruction_addr\":\"0x10\",\"package\":\"/p\","
		      "\"in_app\":true,\"abs_path\":\"/own.c\",\"lineno\":3,\"lines\":["
		      "{\"function\":\"a\",\"file\":\"/a.h\",\"line\":1},{\"function\":\"b\"},{}]},"
		      "{\"function\":\"g\",\"lines\":[{\"file\":\"/g.c\",\"line\":9}]}]",
		      "[[0,1],[1]]", NULL, ",\"x\":0"));
	ck_assert_uint_eq(chunk.n_frames, 4);
	for (size_t i = 0; i < 3; i++) {
		const struct import_frame *f = &chunk.frames[i];

		ck_assert_uint_eq(chunk.stack_frames[i], i);
		ck_assert_uint_eq(f->addr, 0x10);
		ck_assert_str_eq(f->package, "/p");
		ck_assert(f->in_app);
	}
	ck_assert_str_eq(chunk.frames[0].function, "a");
	ck_assert_str_eq(chunk.frames[0].file, "/a.h");
	ck_assert_uint_eq(chunk.frames[0].line, 1);
	ck_assert_str_eq(chunk.frames[1].function, "b");
	ck_assert_ptr_null(chunk.frames[1].file);
	/* An empty element leaves the frame its own file and line. */
	ck_assert_str_eq(chunk.frames[2].function, "f");
	ck_assert_str_eq(chunk.frames[2].file, "/own.c");
	ck_assert_uint_eq(chunk.frames[2].line, 3);
	ck_assert_str_eq(chunk.frames[3].function, "g");
	ck_assert_str_eq(chunk.frames[3].file, "/g.c");
	ck_assert_uint_eq(chunk.stack_starts[1], 4);
	ck_assert_uint_eq(chunk.stack_frames[4], 3);
	import_chunk_fini(&chunk);
}

/* Inlined functions are left out where a stack would become too long. */
TEST(inlined_functions_of_a_deep_stack)
{
	static char text[8 * IMPORT_STACK_FRAMES_MAX];
	size_t n = (size_t)snprintf(
		text, sizeof(text),
		"{\"version\":\"2\",\"profiler_id\":\"a\",\"chunk_id\":\"b\",\"profile\":{"
		"\"frames\":[{\"function\":\"f\",\"lines\":[{\"function\":\"a\"},{}]}],"
		"\"samples\":[],\"stacks\":[[0");

	for (size_t i = 0; i < IMPORT_STACK_FRAMES_MAX - 2; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, ",0");
	(void)snprintf(text + n, sizeof(text) - n, "]]}}");
	OK(read_json(text));
	ck_assert_uint_eq(chunk.stack_starts[1], IMPORT_STACK_FRAMES_MAX);
	ck_assert_uint_eq(chunk.stack_frames[0], 0);
	ck_assert_uint_eq(chunk.stack_frames[1], 1);
	ck_assert_uint_eq(chunk.stack_frames[2], 1);
	import_chunk_fini(&chunk);
}

TEST(lines_that_are_wrong_are_faults)
{
	static const char *const wrong[] = {
		"[]", "{}", "1", "[1]", "[{\"function\":1}]", "[{\"file\":[]}]", "[{\"line\":-1}]"};
	char frames[1024];
	size_t n;

	for (size_t i = 0; i < array_size(wrong); i++) {
		(void)snprintf(frames, sizeof(frames), "[{\"function\":\"f\",\"lines\":%s}]",
			       wrong[i]);
		ck_assert_int_eq(read_parts(frames, "[[0]]", NULL, NULL), -EBADMSG);
		HAS(fault.text, "profile.frames[0].");
	}
	n = (size_t)snprintf(frames, sizeof(frames), "[{\"lines\":[{}");
	for (size_t i = 0; i < PROFILE_LINES_MAX; i++)
		n += (size_t)snprintf(frames + n, sizeof(frames) - n, ",{}");
	(void)snprintf(frames + n, sizeof(frames) - n, "]}]");
	ck_assert_int_eq(read_parts(frames, "[[0]]", NULL, NULL), -EBADMSG);
	HAS(fault.text, "too long");
}

/* Profilers of before the member looked for lines or not. */
TEST(what_was_not_looked_for)
{
	static const struct {
		const char *member;
		bool lacks_lines;
	} rows[] = {{"", false},
		    {",\"symbols\":\"lines\"", false},
		    {",\"symbols\":\"names\"", true},
		    {",\"symbols\":\"none\"", true},
		    {",\"symbols\":1", false}};

	for (size_t i = 0; i < array_size(rows); i++) {
		char text[512];

		(void)snprintf(text, sizeof(text),
			       "{\"version\":\"2\",\"profiler_id\":\"a\",\"chunk_id\":\"b\","
			       "\"profile\":{\"frames\":[],\"stacks\":[],\"samples\":[]}%s}",
			       rows[i].member);
		OK(read_json(text));
		ck_assert_int_eq(chunk.lacks_lines, rows[i].lacks_lines);
		import_chunk_fini(&chunk);
	}
}

TEST(samples_are_sorted)
{
	OK(read_parts(NULL, NULL,
		      "[" SAMPLE("3", "1", "1") "," SAMPLE("1", "1", "0") "," SAMPLE("2.25", "1",
										     "0") "]",
		      NULL));
	ck_assert_uint_eq(chunk.samples[0].time_ns, 1000000000);
	ck_assert_uint_eq(chunk.samples[0].duration_ns, 1250000000);
	ck_assert_uint_eq(chunk.samples[1].duration_ns, 750000000);
	ck_assert(chunk.samples[2].is_last);
	import_chunk_fini(&chunk);
}

/* A double represents the times of today with a precision of 0.24 microseconds. */
TEST(times_are_whole_microseconds)
{
	OK(read_parts(NULL, NULL,
		      "[" SAMPLE("1795619614.497309", "1", "0") "," SAMPLE("1795619614."
									   "507211",
									   "1", "0") "]",
		      NULL));
	ck_assert_uint_eq(chunk.samples[0].time_ns, 1795619614497309000);
	ck_assert_uint_eq(chunk.samples[0].duration_ns, 9902000);
	import_chunk_fini(&chunk);
}

TEST(states_of_samples_are_read)
{
	OK(read_parts(NULL, NULL,
		      "[{\"timestamp\":1,\"thread_id\":\"1\",\"stack_id\":"
		      "0,\"state\":\"waiting\"},{\"timestamp\":2,\"thread_"
		      "id\":\"1\",\"stack_id\":0}]",
		      NULL));
	ck_assert(chunk.has_states);
	ck_assert_int_eq(chunk.samples[0].state, PROFILE_WAITING);
	ck_assert_int_eq(chunk.samples[1].state, PROFILE_RUNNING);
	import_chunk_fini(&chunk);
	OK(read_parts(NULL, NULL,
		      "[{\"timestamp\":1,\"thread_id\":\"1\",\"stack_id\":0,\"state\":\"ready\"}]",
		      NULL));
	ck_assert_int_eq(chunk.samples[0].state, PROFILE_READY);
	import_chunk_fini(&chunk);
}

/* A profiler that told ready from waiting says so by a member of the payload. */
TEST(waiting_samples_may_hide_ready_ones)
{
	static const struct {
		const char *member, *state;
		bool hides;
	} cases[] = {
		{"", "waiting", true},
		{"", "running", false},
		{"\"ready_known\":true,", "waiting", false},
		{"\"ready_known\":false,", "waiting", true},
	};

	for (size_t i = 0; i < array_size(cases); i++) {
		char text[512];

		(void)snprintf(text, sizeof(text),
			       "{\"version\":\"2\",\"profiler_id\":\"a\",\"chunk_id\":\"b\",%s"
			       "\"profile\":{\"frames\":[],\"stacks\":[[]],\"samples\":["
			       "{\"timestamp\":1,\"thread_id\":\"1\",\"stack_id\":0,"
			       "\"state\":\"%s\"}]}}",
			       cases[i].member, cases[i].state);
		OK(read_json(text));
		ck_assert_msg(chunk.hides_ready == cases[i].hides, "%s", text);
		import_chunk_fini(&chunk);
	}
}

TEST(members_of_images_are_read)
{
	OK(read_json("{\"version\":\"2\",\"profiler_id\":\"a\",\"chunk_"
		     "id\":\"b\",\"debug_meta\":{\"images\":[{\"code_"
		     "file\":\"/x\",\"debug_id\":\"d\",\"code_id\":"
		     "\"c0\",\"image_addr\":\"0x1000\",\"image_vmaddr\":"
		     "\"0x10\",\"image_size\":32}]},\"profile\":{"
		     "\"frames\":[],\"stacks\":[],\"samples\":[]}}"));
	ck_assert_uint_eq(chunk.n_images, 1);
	ck_assert_str_eq(chunk.images[0].code_id, "c0");
	ck_assert_uint_eq(chunk.images[0].addr, 0x1000);
	ck_assert_uint_eq(chunk.images[0].vmaddr, 0x10);
	ck_assert_uint_eq(chunk.images[0].size, 32);
	import_chunk_fini(&chunk);
}

/* Lists with one wrong element each, and the text of the fault. */
static const struct {
	const char *frames, *stacks, *samples, *rest, *where;
} wrong[] = {
	{"{}", NULL, NULL, NULL, "profile.frames is not a list"},
	{"[3]", NULL, NULL, NULL, "profile.frames[0].*"},
	{"[{},{\"function\":7}]", NULL, NULL, NULL, "profile.frames[1].function"},
	{"[{\"instruction_addr\":\"12\"}]", NULL, NULL, NULL, "profile.frames[0].instruction_addr"},
	{"[{\"instruction_addr\":\"0x\"}]", NULL, NULL, NULL, "profile.frames[0].instruction_addr"},
	{"[{\"instruction_addr\":\"0x10000000000000000\"}]", NULL, NULL, NULL, "more than 64 bits"},
	{"[{\"instruction_addr\":\"0x-1\"}]", NULL, NULL, NULL,
	 "profile.frames[0].instruction_addr"},
	{"[{\"lineno\":-1}]", NULL, NULL, NULL, "profile.frames[0].lineno"},
	{"[{\"lineno\":1.5}]", NULL, NULL, NULL, "profile.frames[0].lineno"},
	{NULL, "[[0],3]", NULL, NULL, "profile.stacks[1] is not a list"},
	{NULL, "[[0],[2]]", NULL, NULL, "profile.stacks[1][0]"},
	{NULL, "[[0,-1]]", NULL, NULL, "profile.stacks[0][1]"},
	{NULL, "[[\"0\"]]", NULL, NULL, "profile.stacks[0][0]"},
	{NULL, "[[4294967296]]", NULL, NULL, "profile.stacks[0][0]"},
	{NULL, NULL, "[[]]", NULL, "profile.samples[0].*"},
	{NULL, NULL, "[" SAMPLE("1", "1", "2") "]", NULL, "profile.samples[0].stack_id"},
	{NULL, NULL, "[" SAMPLE("1", "1", "0") "," SAMPLE("-1", "1", "0") "]", NULL,
	 "profile.samples[1].timestamp"},
	{NULL, NULL, "[" SAMPLE("1e300", "1", "0") "]", NULL, "profile.samples[0].timestamp"},
	{NULL, NULL, "[" SAMPLE("\"1\"", "1", "0") "]", NULL, "profile.samples[0].timestamp"},
	{NULL, NULL, "[{\"timestamp\":1,\"thread_id\":1,\"stack_id\":0}]", NULL,
	 "profile.samples[0].thread_id"},
	{NULL, NULL,
	 "[{\"timestamp\":1,\"thread_id\":\"1\",\"stack_id\":0,\"state\":"
	 "\"asleep\"}]",
	 NULL, "profile.samples[0].state"},
};

TESTS(a_fault_names_the_wrong_element, array_size(wrong))
{
	ck_assert_int_eq(
		read_parts(wrong[_i].frames, wrong[_i].stacks, wrong[_i].samples, wrong[_i].rest),
		-EBADMSG);
	ck_assert_msg(strstr(fault.text, wrong[_i].where) != NULL, "%s: %s", wrong[_i].where,
		      fault.text);
}

TEST(json_that_is_no_chunk_is_refused)
{
	static const char *const texts[] = {
		"[]",
		"{}",
		"{\"version\":2,\"profile\":{}}",
		"{\"version\":\"1\",\"profile\":{}}",
		"{\"version\":\"2\",\"profile\":{},\"profiler_id\":3}",
		("{\"version\":\"2\",\"profile\":[],\"profiler_id\":\"a\","
		 "\"chunk_id\":\"b\"}"),
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		ck_assert_int_eq(read_json(texts[i]), -EBADMSG);
		ck_assert_str_ne(fault.text, "");
	}
}

TEST(stacks_have_a_limit_of_frames)
{
	static char stacks[8 * IMPORT_STACK_FRAMES_MAX];

	for (unsigned int extra = 0; extra < 2; extra++) {
		char *p = stacks;
		json_t *payload;

		p = stpcpy(p, "{\"version\":\"2\",\"profiler_id\":\"a\","
			      "\"chunk_id\":\"b\",\"profile\":{\"samples\":[],"
			      "\"frames\":[{}],\"stacks\":[[0");
		for (unsigned int i = 1; i < IMPORT_STACK_FRAMES_MAX + extra; i++)
			p = stpcpy(p, ",0");
		(void)stpcpy(p, "]]}}");
		payload = json_loads(stacks, 0, NULL);
		ck_assert_int_eq(import_chunk_read(payload, &chunk, &fault),
				 extra == 0 ? 0 : -EBADMSG);
		if (extra == 0)
			import_chunk_fini(&chunk);
	}
	HAS(fault.text, "profile.stacks[0]");
}

TEST(a_fault_is_one_line_without_control_characters)
{
	ck_assert_int_eq(read_json("{\"version\":\"\\u001b[31m\\n\","
				   "\"profile\":{}}"),
			 -EBADMSG);
	for (const char *p = fault.text; *p != '\0'; p++)
		ck_assert_int_ge(*p, 0x20);
}
