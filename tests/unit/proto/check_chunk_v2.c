/*
 * Compares the payload byte by byte with tests/golden/chunk_v2_*.json, and its types with
 * docs/FORMATS.md.
 */
#include "proto/chunk_v2.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/golden.h"
#include "tests/unit/proto/good_profile.h"
#include "tests/unit/suite.h"

static char *payload_for(const struct profile *p, enum chunk_v2_reader reader, size_t *ret_size)
{
	char *text = NULL;
	FILE *f = open_memstream(&text, ret_size);

	ck_assert_ptr_nonnull(f);
	ck_assert_int_eq(profile_check(p), PROFILE_OK);
	OK(chunk_v2_write(p, reader, f));
	OK(fclose(f));
	return text;
}

static char *payload(const struct profile *p, size_t *ret_size)
{
	return payload_for(p, CHUNK_V2_SERVER, ret_size);
}

/* Changes the profile: texts that need escapes, the largest numbers, the longest stack. */
static void extremes(struct good_profile *g)
{
	g->p.platform = "native";
	g->p.release = "a\"b\\c/d@1";
	g->p.environment = "\xc3\xbc\xe2\x82\xac\xf0\x9f\x94\xa5";
	g->p.n_images = 1;
	g->images[0].id_size = 8;
	g->images[0].code_file = "/tmp/a\nb";
	g->images[0].addr = 0;
	g->images[0].vmaddr = UINT64_C(0xffffffffff600000);
	g->images[0].size = UINT64_MAX;
	g->frames[0].function = "_ZN3foo3barIcEEvT_\x01\x1f\x7f";
	g->frames[1].addr = UINT64_MAX;
	g->frames[1].function = NULL;
	g->frames[3].function = "";
	g->threads[1].name = "\xef\xbf\xbd\t";
	g->threads[2].tid = UINT32_MAX;
	g->p.n_measurements = 1;
	g->measurements[0] = (struct profile_measurement){1, UINT64_MAX, INT64_MAX, INT64_MAX};
	for (size_t i = 0; i < g->p.n_samples; i++) {
		if (g->samples[i].tid == 101)
			g->samples[i].tid = UINT32_MAX;
		/* Times start at the first microsecond of 1970. */
		g->samples[i].time_us -= UINT64_C(1724777211000000) - 1;
	}
}

/* Changes the profile: two samples, one frame. */
static void smallest(struct good_profile *g)
{
	g->p.n_images = 0;
	g->p.n_measurements = 0;
	g->p.n_samples = 2;
	for (size_t i = 0; i < 2; i++) {
		g->samples[i].tid = 100;
		g->samples[i].node = 0;
		g->samples[i].time_us = UINT64_C(1724777211000000) + i;
	}
}

static void unchanged(struct good_profile *g)
{
	(void)g;
}

static const struct {
	void (*change)(struct good_profile *g);
	const char *golden;
} cases[] = {
	{unchanged, "tests/golden/chunk_v2_full.json"},
	{extremes, "tests/golden/chunk_v2_extremes.json"},
	{smallest, "tests/golden/chunk_v2_smallest.json"},
};

TESTS(payloads_equal_their_golden_files, array_size(cases))
{
	struct good_profile g;
	char *text;
	size_t size;

	good_profile_init(&g);
	cases[_i].change(&g);
	text = payload(&g.p, &size);
	ck_assert_uint_eq(size, strlen(text));
	golden_check(text, cases[_i].golden);
	free(text);
}

static void check_keys(const json_t *object, const char *const *keys, size_t n)
{
	ck_assert(json_is_object(object));
	ck_assert_uint_eq(json_object_size(object), n);
	for (size_t i = 0; i < n; i++)
		ck_assert_msg(json_object_get(object, keys[i]) != NULL, "no %s", keys[i]);
}
#define CHECK_KEYS(object, ...)                                \
	check_keys(object, (const char *const[]){__VA_ARGS__}, \
		   sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))

static void check_no_null(const json_t *value)
{
	const char *key;
	json_t *member;
	size_t i;

	ck_assert(!json_is_null(value));
	json_object_foreach((json_t *)(uintptr_t)value, key, member) check_no_null(member);
	json_array_foreach(value, i, member) check_no_null(member);
}

/* Checks that value is "0x" and lower-case hexadecimal digits without leading zeros. */
static void check_addr(const json_t *value)
{
	const char *s = json_string_value(value);
	char again[32];

	ck_assert_ptr_nonnull(s);
	(void)snprintf(again, sizeof(again), "0x%" PRIx64, (uint64_t)strtoull(s, NULL, 16));
	ck_assert_str_eq(s, again);
}

static void check_images(const json_t *images)
{
	const json_t *image;
	size_t i;

	json_array_foreach(images, i, image)
	{
		CHECK_KEYS(image, "type", "code_file", "debug_id", "image_addr", "image_vmaddr",
			   "image_size");
		ck_assert_str_eq(json_string_value(json_object_get(image, "type")), "symbolic");
		ck_assert_uint_eq(strlen(json_string_value(json_object_get(image, "debug_id"))),
				  36);
		check_addr(json_object_get(image, "image_addr"));
		check_addr(json_object_get(image, "image_vmaddr"));
		ck_assert(json_is_number(json_object_get(image, "image_size")));
	}
}

static void check_frames(const json_t *frames)
{
	const json_t *frame;
	size_t i;

	json_array_foreach(frames, i, frame)
	{
		const char *key;
		json_t *value;

		check_addr(json_object_get(frame, "instruction_addr"));
		ck_assert(json_is_boolean(json_object_get(frame, "in_app")));
		json_object_foreach((json_t *)(uintptr_t)frame, key, value)
			ck_assert(strcmp(key, "instruction_addr") == 0 ||
				  strcmp(key, "in_app") == 0 || strcmp(key, "lineno") == 0 ||
				  ((strcmp(key, "function") == 0 || strcmp(key, "package") == 0 ||
				    strcmp(key, "abs_path") == 0 || strcmp(key, "filename") == 0) &&
				   json_is_string(value)));
	}
}

/* Checks that every index is in range, and that every stack and frame is used. */
static void check_profile_object(const json_t *profile)
{
	const json_t *samples = json_object_get(profile, "samples");
	const json_t *stacks = json_object_get(profile, "stacks");
	const json_t *frames = json_object_get(profile, "frames");
	const json_t *threads = json_object_get(profile, "thread_metadata");
	char used_stacks[8] = "", used_frames[8] = "";
	const json_t *sample, *stack, *index;
	size_t i, j;
	json_t *thread;
	const char *key;

	CHECK_KEYS(profile, "samples", "stacks", "frames", "thread_metadata");
	check_frames(frames);
	json_array_foreach(samples, i, sample)
	{
		const json_t *id = json_object_get(sample, "stack_id");
		const json_t *tid = json_object_get(sample, "thread_id");

		CHECK_KEYS(sample, "timestamp", "thread_id", "stack_id");
		ck_assert(json_is_real(json_object_get(sample, "timestamp")));
		ck_assert(json_is_integer(id));
		ck_assert_int_ge(json_integer_value(id), 0);
		ck_assert_uint_lt((size_t)json_integer_value(id), json_array_size(stacks));
		used_stacks[json_integer_value(id)] = 1;
		ck_assert_ptr_nonnull(json_object_get(threads, json_string_value(tid)));
	}
	json_array_foreach(stacks, i, stack)
	{
		ck_assert(used_stacks[i]);
		json_array_foreach(stack, j, index)
		{
			ck_assert_uint_lt((size_t)json_integer_value(index),
					  json_array_size(frames));
			used_frames[json_integer_value(index)] = 1;
		}
	}
	for (i = 0; i < json_array_size(frames); i++)
		ck_assert(used_frames[i]);
	json_object_foreach((json_t *)(uintptr_t)threads, key, thread) ck_assert_uint_eq(
		json_object_size(thread), json_object_get(thread, "name") != NULL);
}

static void check_measurements(const json_t *measurements, size_t n)
{
	const char *name;
	json_t *curve;

	json_object_foreach((json_t *)(uintptr_t)measurements, name, curve)
	{
		const json_t *values = json_object_get(curve, "values"), *v;
		bool is_cpu = strcmp(name, "cpu_usage") == 0;
		size_t i;

		CHECK_KEYS(curve, "unit", "values");
		ck_assert_str_eq(json_string_value(json_object_get(curve, "unit")),
				 is_cpu ? "percent" : "byte");
		ck_assert_uint_eq(json_array_size(values), n);
		json_array_foreach(values, i, v)
		{
			CHECK_KEYS(v, "timestamp", "value");
			ck_assert(json_is_real(json_object_get(v, "timestamp")));
			ck_assert(json_is_number(json_object_get(v, "value")));
		}
	}
}

TESTS(members_have_the_types_of_the_format, array_size(cases))
{
	static const char *const texts[] = {"profiler_id", "chunk_id", "platform", "release",
					    "environment"};
	struct good_profile g;
	char *text;
	size_t size;
	json_t *root;

	good_profile_init(&g);
	cases[_i].change(&g);
	/* jansson's integers are signed. */
	if (g.images[0].size == UINT64_MAX)
		g.images[0].size = INT64_MAX;
	text = payload(&g.p, &size);
	ck_assert_ptr_null(strchr(text, '\n'));
	root = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
	ck_assert_ptr_nonnull(root);
	check_no_null(root);
	if (g.p.n_measurements > 0)
		CHECK_KEYS(root, "version", "profiler_id", "chunk_id", "platform", "release",
			   "environment", "client_sdk", "debug_meta", "profile", "measurements");
	else
		CHECK_KEYS(root, "version", "profiler_id", "chunk_id", "platform", "release",
			   "environment", "client_sdk", "debug_meta", "profile");
	check_measurements(json_object_get(root, "measurements"), g.p.n_measurements);
	ck_assert_str_eq(json_string_value(json_object_get(root, "version")), "2");
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		ck_assert(json_is_string(json_object_get(root, texts[i])));
	CHECK_KEYS(json_object_get(root, "client_sdk"), "name", "version");
	CHECK_KEYS(json_object_get(root, "debug_meta"), "images");
	check_images(json_object_get(json_object_get(root, "debug_meta"), "images"));
	check_profile_object(json_object_get(root, "profile"));
	json_decref(root);
	free(text);
}

/* Removes each occurrence of text, and returns how many there were. */
static size_t take_out(char *from, const char *text)
{
	size_t n = 0;

	for (char *at; (at = strstr(from, text)) != NULL; n++)
		memmove(at, at + strlen(text), strlen(at + strlen(text)) + 1);
	return n;
}

/*
 * In a payload for a file, waiting and ready samples have a state, the image with a build-id has a
 * code_id (the image with a substitute id has none), and a member says that ready is told from
 * waiting. All else equals the payload for the server.
 */
TEST(a_payload_for_a_file_has_states_and_code_ids)
{
	struct good_profile g;
	size_t size;
	char *text, *server;

	good_profile_init(&g);
	server = payload(&g.p, &size);
	text = payload_for(&g.p, CHUNK_V2_FILE, &size);
	ck_assert_uint_eq(size, strlen(text));
	golden_check(text, "tests/golden/chunk_v2_file.json");
	ck_assert_uint_eq(take_out(text, ",\"state\":\"waiting\""), 2);
	ck_assert_uint_eq(take_out(text, ",\"state\":\"ready\""), 1);
	ck_assert_uint_eq(take_out(text, ",\"ready_known\":true"), 1);
	ck_assert_uint_eq(take_out(text, ",\"code_id\":"
					 "\"15dfff3239aa7c3b16a71e6b2e3b6e40aabbccdd\""),
			  1);
	ck_assert_str_eq(text, server);
	free(text);
	free(server);
}

/* The server gets neither lines nor inlined functions that are only for files. */
TEST(only_files_have_lines)
{
	static const struct profile_frame inlined[] = {
		{.function = "unused"},
		{.function = "in\"ner", .file = "/src/in.h", .line = 7},
		{.function = "no_file"},
	};
	/* Of frames 0, 1, 3 and 4; no sample uses frame 2. */
	static const struct profile_lines lines[5] = {
		{1, 2, "/src/main.c", 43}, {0, 0, "/src/libc.c", 0}, {0, 1, "/src/unused.c", 1},
		{0, 0, NULL, 0},	   {1, 1, NULL, 0},
	};
	struct good_profile g;
	size_t size;
	char *text, *server;

	good_profile_init(&g);
	server = payload(&g.p, &size);
	g.p.lines = lines;
	g.p.inlined = inlined;
	g.p.n_inlined = 3;
	g.p.symbols = "lines";
	g.p.command_line = "app --key x";
	text = payload(&g.p, &size);
	ck_assert_str_eq(text, server);
	free(text);
	text = payload_for(&g.p, CHUNK_V2_FILE, &size);
	HAS(text, "\"lineno\":42,\"in_app\":true,\"lines\":["
		  "{\"function\":\"in\\\"ner\",\"file\":\"/src/in.h\",\"line\":7},"
		  "{\"function\":\"no_file\"},{\"file\":\"/src/main.c\",\"line\":43}]}");
	HAS(text, "\"in_app\":false,\"lines\":[{\"file\":\"/src/libc.c\"}]}");
	ck_assert_uint_eq(take_out(text, ",{}]}"), 1);
	ck_assert_uint_eq(take_out(text, "\"lines\":["), 3);
	ck_assert_uint_eq(take_out(text, ",\"symbols\":\"lines\""), 1);
	ck_assert_uint_eq(take_out(text, ",\"command_line\":\"app --key x\""), 1);
	LACKS(text, "unused");
	free(text);
	free(server);
	/* A profile with an index that is out of range is refused. */
	g.p.n_inlined = 2;
	ck_assert_int_eq(profile_check(&g.p), PROFILE_BAD_INDEX);
}

/* The state is "running". */
TEST(without_a_wait_the_first_sample_has_a_state)
{
	static const char state[] = ",\"state\":\"running\"";
	struct good_profile g;
	size_t size;
	char *text, *server, *samples;

	good_profile_init(&g);
	for (size_t i = 0; i < g.p.n_samples; i++)
		g.samples[i].state = PROFILE_RUNNING;
	server = payload(&g.p, &size);
	LACKS(server, "\"state\"");
	text = payload_for(&g.p, CHUNK_V2_FILE, &size);
	samples = strstr(text, "\"samples\"");
	ck_assert_ptr_nonnull(samples);
	ck_assert_ptr_eq(strstr(samples, state), strchr(samples, '}') - strlen(state));
	ck_assert_uint_eq(take_out(text, state), 1);
	LACKS(text, "\"state\"");
	free(text);
	free(server);
}

/* The payload for the server is the same for ready and for waiting samples. */
TEST(only_files_tell_ready_from_waiting)
{
	struct good_profile g;
	size_t size;
	char *waiting, *ready, *text;

	good_profile_init(&g);
	waiting = payload(&g.p, &size);
	for (size_t i = 0; i < g.p.n_samples; i++)
		if (g.samples[i].state == PROFILE_WAITING)
			g.samples[i].state = PROFILE_READY;
	ready = payload(&g.p, &size);
	ck_assert_str_eq(ready, waiting);
	text = payload_for(&g.p, CHUNK_V2_FILE, &size);
	ck_assert_uint_eq(take_out(text, ",\"state\":\"ready\""), 3);
	LACKS(text, "\"state\"");
	free(waiting);
	free(ready);
	free(text);
}

/* Also if it is the first one. */
TESTS(a_sample_that_is_for_files_is_left_out_for_the_server, 2)
{
	struct good_profile g;
	size_t size, n;
	char *text;

	good_profile_init(&g);
	g.samples[_i].is_for_files = true;
	text = payload_for(&g.p, CHUNK_V2_FILE, &size);
	n = take_out(text, "{\"timestamp\"");
	free(text);
	text = payload(&g.p, &size);
	LACKS(text, "[,");
	ck_assert_uint_eq(take_out(text, "{\"timestamp\""), n - 1);
	free(text);
}

TEST(the_bound_holds_for_the_longest_image)
{
	uint8_t id[64];
	struct good_profile g;
	size_t with, without;

	memset(id, 0xff, sizeof(id));
	good_profile_init(&g);
	g.images[1] = (struct profile_image){
		.code_file = "",
		.id = id,
		.id_size = sizeof(id),
		.has_build_id = true,
		.addr = UINT64_C(0xffff000000000000),
		.vmaddr = UINT64_MAX,
		.size = UINT64_C(0xffffffffffff),
	};
	free(payload_for(&g.p, CHUNK_V2_FILE, &with));
	g.p.n_images = 1;
	free(payload_for(&g.p, CHUNK_V2_FILE, &without));
	/* The size could have five digits more. */
	ck_assert_uint_le(with - without + 5, PROFILE_IMAGE_BYTES);
}

/* In samples and in the metadata. */
TEST(an_id_of_a_thread_replaces_its_tid)
{
	const uint64_t id = UINT64_C(0x7fffdeadbeef);
	struct good_profile g;
	size_t size, found = 0;
	char *text, *at;

	good_profile_init(&g);
	g.threads[1].id = id;
	text = payload(&g.p, &size);
	for (at = text; (at = strstr(at, "\"140736929316591\"")) != NULL; at++)
		found++;
	ck_assert_uint_eq(found, 1 + 4);
	LACKS(text, "\"thread_id\":\"100\"");
	HAS(text, "\"thread_id\":\"101\"");
	free(text);
}

/* The bounds of profile.h. */
TEST(the_bounds_hold_for_the_longest_elements)
{
	struct good_profile g;
	size_t size, with, fixed;

	good_profile_init(&g);
	smallest(&g);
	g.samples[0].tid = g.samples[1].tid = UINT32_MAX;
	g.threads[2] = (struct profile_thread){UINT32_MAX, "", UINT64_MAX};
	g.frames[1] = (struct profile_frame){UINT64_MAX, "", "", false, "", UINT32_MAX};
	g.samples[0].time_us = UINT64_MAX - 1;
	g.samples[1].time_us = UINT64_MAX;
	g.samples[0].state = g.samples[1].state = PROFILE_WAITING;
	free(payload_for(&g.p, CHUNK_V2_FILE, &size));

	/* "stack_id":0 is 9 digits shorter than the longest. */
	g.p.n_samples = 1;
	g.p.samples = g.samples;
	ck_assert_int_eq(profile_check(&g.p), PROFILE_NO_SAMPLES);
	{
		char *text = NULL;
		FILE *f = open_memstream(&text, &with);

		OK(chunk_v2_write(&g.p, CHUNK_V2_FILE, f));
		(void)fclose(f);
		free(text);
	}
	ck_assert_uint_le(size - with + 9, PROFILE_SAMPLE_BYTES);
	ck_assert_uint_eq(size - with, profile_sample_bytes(&g.samples[1], UINT64_MAX));

	/* Everything but the fields before the arrays. */
	fixed = strlen("{\"version\":\"2\",\"profiler_id\":\"\",\"chunk_id\":"
		       "\"\",\"platform\":\"rust\",\"release\":\"worker@1.2.3\""
		       ",\"environment\":\"production\",\"client_sdk\":{"
		       "\"name\":\"sentry.native.profd\",\"version\":\"0.1.0\"}"
		       ",\"debug_meta\":{\"images\":[]},\"ready_known\":true,\"profile\":{"
		       "\"frames\":[],\"stacks\":[],\"samples\":[],"
		       "\"thread_metadata\":{}}}") +
		64;
	ck_assert_uint_le(size + (size_t)2 * 9, fixed + 2 * PROFILE_SAMPLE_BYTES +
							PROFILE_FRAME_BYTES + PROFILE_STACK_BYTES +
							profile_index_bytes(0) +
							PROFILE_THREAD_BYTES);
}

TEST(a_full_disk_is_an_error)
{
	struct good_profile g;
	FILE *f = fopen("/dev/full", "w");

	ck_assert_ptr_nonnull(f);
	good_profile_init(&g);
	ck_assert_int_eq(chunk_v2_write(&g.p, CHUNK_V2_SERVER, f), -ENOSPC);
	(void)fclose(f);
}
