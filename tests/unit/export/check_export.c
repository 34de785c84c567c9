/* Writes a made-up merge in each format, and compares the output with tests/golden/export_*. */
#include "proto/export/export.h"

#include <stdlib.h>
#include <string.h>

#include "proto/export/html/svg.h"
#include "tests/unit/export/made_chunks.h"
#include "tests/unit/golden.h"
#include "tests/unit/suite.h"

struct format {
	const char *golden;
	bool by_function, is_ordered, keep_extra;
	struct export_options options;
	int (*write)(const struct merge *m, const struct export_options *o, FILE *out);
};

static const struct format formats[] = {
	{"folded.txt", true, false, false, {0}, export_folded},
	{"folded_threads.txt",
	 true,
	 false,
	 false,
	 {.with_threads = true, .by_samples = true},
	 export_folded},
	{"chunk.json", false, true, true, {0}, export_json},
	{"chunk_pretty.json", false, true, true, {.is_pretty = true}, export_json},
	{"speedscope.json", true, true, false, {0}, export_speedscope},
	{"firefox.json", false, true, false, {0}, export_firefox},
	{"flame_graph.svg", true, false, false, {0}, export_svg},
	{"self_profiling.json", true, true, false, {0}, export_self_profiling},
	{"self_profiling_thread.json",
	 true,
	 true,
	 false,
	 {.thread = "a;b<script>\033[31m"},
	 export_self_profiling},
};

/*
 * Adds two chunks of a process, with a wait, a gap between them and a ready time, and one of
 * another process, whose thread has a name with characters that mean something in the formats.
 */
static void add_chunks(struct merge *m)
{
	made_add(m, "p", "a",
		 MADE_RUNS("100.0", "7", "1") MADE_RUNS("100.01", "7", "1")
			 MADE_WAITS("100.25", "7", "2") MADE_RUNS("100.25", "8", "0")
				 MADE_END("100.5", "8", "3") "," MADE_END("101.0", "7", "2"),
		 "\"7\":{\"name\":\"main\"},\"8\":{}");
	made_add(m, "p", "b",
		 MADE_RUNS("101.5", "7", "0") MADE_READY("101.75", "7", "0")
			 MADE_END("102.000001", "7", "0"),
		 "\"7\":{\"name\":\"main\"}");
	made_add(m, "q", "a", MADE_RUNS("100.1", "9", "0") MADE_END("100.3", "9", "0"),
		 "\"9\":{\"name\":\"a;b<script>\\u001b[31m\"}");
}

static char *written(const struct format *f, int *ret)
{
	const struct merge_options options = {
		.by_function = f->by_function,
		.is_ordered = f->is_ordered,
		.keep_extra = f->keep_extra,
		.until_ns = UINT64_MAX,
		.demangle = made_demangle,
	};
	struct export_options o = f->options;
	struct merge m;
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	ck_assert_ptr_nonnull(out);
	o.version = "1.2.3";
	merge_init(&m, &options);
	add_chunks(&m);
	OK(merge_finish(&m));
	*ret = f->write(&m, &o, out);
	(void)fclose(out);
	merge_fini(&m);
	return text;
}

TESTS(each_format_equals_its_golden_file, array_size(formats))
{
	char path[128];
	int r;
	char *text = written(&formats[_i], &r), *script = strstr(text, "<script><!");

	ck_assert_int_eq(r, 0);
	/* The script of the picture is no output of this code. */
	if (script != NULL)
		*script = '\0';
	(void)snprintf(path, sizeof(path), "tests/golden/export_%s", formats[_i].golden);
	golden_check(text, path);
	free(text);
}

/* The JSON formats stay valid JSON, and no output has control characters. */
TESTS(names_cannot_break_a_format, array_size(formats))
{
	int r;
	char *text = written(&formats[_i], &r);
	json_error_t error;
	json_t *v;

	if (strstr(formats[_i].golden, ".json") != NULL) {
		v = json_loads(text, JSON_DISABLE_EOF_CHECK, &error);
		ck_assert_msg(v != NULL, "%s", error.text);
		json_decref(v);
	}
	for (const char *p = text; *p != '\0'; p++)
		ck_assert(*p == '\n' || (unsigned char)*p >= 0x20);
	free(text);
}

TEST(a_thread_is_known_by_name_or_id)
{
	const struct merge_options options = {.until_ns = UINT64_MAX};
	struct merge m;

	merge_init(&m, &options);
	add_chunks(&m);
	OK(merge_finish(&m));
	ck_assert(export_has_thread(&m, m.threads[0].label));
	ck_assert(export_has_thread(&m, m.threads[0].id));
	ck_assert(!export_has_thread(&m, "nobody"));
	merge_fini(&m);
}

TESTS(a_full_disk_is_an_error, 6)
{
	struct export_options o = {.version = "1"};
	const struct merge_options options = {
		.until_ns = UINT64_MAX, .is_ordered = true, .keep_extra = true};
	int (*const writers[])(const struct merge *, const struct export_options *,
			       FILE *) = {export_folded,  export_json,		 export_speedscope,
					  export_firefox, export_self_profiling, export_pprof};
	FILE *out = fopen("/dev/full", "w");
	struct merge m;

	ck_assert_ptr_nonnull(out);
	merge_init(&m, &options);
	add_chunks(&m);
	OK(merge_finish(&m));
	ck_assert_int_lt(writers[_i](&m, &o, out), 0);
	merge_fini(&m);
	(void)fclose(out);
}
