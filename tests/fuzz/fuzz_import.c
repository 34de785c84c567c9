/*
 * A file that somebody gives to sentry-profctl convert or compare, and every format. An input that
 * begins as the data of a page do is put into one, since hardly a mutation of compressed data can
 * be unpacked.
 */
#include "tests/fuzz/fuzz.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/export/compare.h"
#include "proto/export/export.h"
#include "proto/export/html/html.h"
#include "proto/export/html/svg.h"
#include "proto/import/page.h"
#include "proto/import/reader.h"
#include "tests/unit/import/page_of.h"

static void check_chunk(const struct import_chunk *c)
{
	assert(c->profiler_id != NULL && c->chunk_id != NULL);
	for (size_t i = 0; i < c->n_stacks; i++) {
		assert(c->stack_starts[i] <= c->stack_starts[i + 1]);
		assert(c->stack_starts[i + 1] - c->stack_starts[i] <= IMPORT_STACK_FRAMES_MAX);
	}
	for (size_t i = 0; i < c->stack_starts[c->n_stacks]; i++)
		assert(c->stack_frames[i] < c->n_frames);
	for (size_t i = 0; i < c->n_samples; i++) {
		const struct import_sample *s = &c->samples[i];

		assert(s->thread < c->n_threads && s->stack < c->n_stacks);
		assert(i == 0 || s->time_ns >= c->samples[i - 1].time_ns);
		assert(s->time_ns + s->duration_ns <= c->samples[c->n_samples - 1].time_ns);
	}
	for (size_t i = 0; i < c->n_threads; i++)
		assert(c->threads[i].id != NULL && c->threads[i].name != NULL);
}

static void check_fault(int r, const struct import_fault *fault)
{
	assert(r == 0 || r == -EBADMSG);
	assert((r == 0) == (fault->text[0] == '\0'));
	for (const char *p = fault->text; *p != '\0'; p++)
		assert(*p >= 0x20 && *p < 0x7f);
}

/* Adds the chunks of a page to m. */
static void read_page(const char *text, size_t size, struct merge *m)
{
	struct import_fault fault = {""};
	struct import_page *page = NULL;
	struct import_chunk chunk;
	int r = import_page_open(text, size, &page, &fault);

	while (r >= 0 && (r = import_page_next(page, &chunk, &fault)) == 1) {
		check_chunk(&chunk);
		assert(merge_add(m, &chunk) == 0);
		import_chunk_fini(&chunk);
	}
	check_fault(r, &fault);
	import_page_free(page);
}

/* Puts the data into a page. */
static void read_wrapped(const uint8_t *data, size_t size, struct merge *m)
{
	char *text = page_of(data, size);

	assert(text != NULL);
	read_page(text, strlen(text), m);
	free(text);
}

/* Adds the chunks of data to m. */
static void read_side(const uint8_t *data, size_t size, struct merge *m)
{
	struct import_fault fault = {""};
	struct import_chunk chunk;
	struct import_reader text;
	int r;

	if (size >= 4 && memcmp(data, "SPH2", 4) == 0) {
		read_wrapped(data, size, m);
		return;
	}
	if (import_is_page((const char *)data, size)) {
		read_page((const char *)data, size, m);
		return;
	}
	import_reader_init(&text, (const char *)data, size);
	while ((r = import_reader_next(&text, &chunk, &fault)) == 1) {
		check_chunk(&chunk);
		assert(merge_add(m, &chunk) == 0);
		import_chunk_fini(&chunk);
	}
	check_fault(r, &fault);
}

static void read_all(const uint8_t *data, size_t size, struct merge *m)
{
	read_side(data, size, m);
	assert(merge_finish(m) == 0);
}

static uint64_t total_ns(const struct merge *m)
{
	uint64_t ns = 0;

	for (size_t i = 0; i < m->n_bars; i++)
		ns += m->bars[i].duration_ns;
	return ns;
}

/* Each thread's bars stand behind each other. */
static void check_order(const struct merge *m)
{
	for (size_t i = 0; i < m->n_bars; i++) {
		assert(m->bars[i].node < m->n_nodes);
		if (i > 0 && m->bars[i].thread == m->bars[i - 1].thread)
			assert(m->bars[i].start_ns >= export_end(&m->bars[i - 1]));
	}
	for (size_t i = 0; i < m->n_nodes; i++)
		assert(m->nodes[i].parent == PROFILE_NONE || m->nodes[i].parent < i);
}

typedef int writer(const struct merge *m, const struct export_options *o, FILE *out);

static void write_json(writer *write, const struct merge *m)
{
	const struct export_options o = {.version = "1"};
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	json_t *v;

	assert(out != NULL);
	assert(write(m, &o, out) == 0);
	(void)fclose(out);
	v = json_loads(text, JSON_DISABLE_EOF_CHECK, NULL);
	assert(v != NULL || size == 0);
	json_decref(v);
	free(text);
}

static void write_other(writer *write, const struct merge *m)
{
	const struct export_options o = {.with_threads = true};
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	assert(out != NULL);
	assert(write(m, &o, out) == 0);
	(void)fclose(out);
	free(text);
}

/* A profile does not differ from itself. */
static void compare(const uint8_t *data, size_t size)
{
	const struct merge_options options = {.until_ns = UINT64_MAX, .keep_extra = true};
	const char *const names[] = {"a", "b"};
	struct compare c;
	const struct export_options o = {.comparison = &c};
	struct merge m;
	char *text = NULL;
	size_t length = 0;
	FILE *out = open_memstream(&text, &length);

	assert(out != NULL);
	merge_init(&m, &options);
	for (; m.side < COMPARE_SIDES; m.side++)
		read_side(data, size, &m);
	assert(merge_finish(&m) == 0);
	assert(compare_init(&c, &m, names, NULL, 0) == 0);
	for (size_t i = 0; i < c.n_functions; i++)
		assert(c.functions[i].self_ns[0] == c.functions[i].self_ns[1]);
	assert(compare_write_folded(&c, out) == 0);
	assert(export_html(&m, &o, out) == 0);
	(void)fclose(out);
	free(text);
	compare_fini(&c);
	merge_fini(&m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct merge_options options = {
		.is_ordered = true,
		.keep_extra = true,
		.until_ns = UINT64_MAX,
	};
	uint64_t ordered_ns;
	struct merge m;

	if (size == 0)
		return 0;
	merge_init(&m, &options);
	read_all(data, size, &m);
	check_order(&m);
	ordered_ns = total_ns(&m);
	write_json(export_json, &m);
	write_json(export_speedscope, &m);
	write_json(export_firefox, &m);
	write_json(export_self_profiling, &m);
	write_other(export_html, &m);
	merge_fini(&m);

	options.is_ordered = false;
	options.by_function = true;
	merge_init(&m, &options);
	read_side(data, size, &m);
	/* Again: nothing counts twice. */
	read_all(data, size, &m);
	assert(total_ns(&m) == ordered_ns);
	write_other(export_folded, &m);
	write_other(export_pprof, &m);
	write_other(export_svg, &m);
	merge_fini(&m);
	compare(data, size);
	return 0;
}
