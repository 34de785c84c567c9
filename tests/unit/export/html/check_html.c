#include "proto/export/html/html.h"

#include <stdlib.h>
#include <string.h>

#include <zlib.h>

#include "proto/export/compare.h"
#include "tests/unit/export/made_chunks.h"
#include "tests/unit/suite.h"

#define DATA_MAX 8192

static char *page;
static uint8_t data[DATA_MAX]; /* decoded */
static size_t data_size, at;
static char strings[DATA_MAX], *string[64];
static uint64_t n_strings;

static void write_page(const struct merge *m, int expected)
{
	const struct export_options o = {.version = "1.2.3"};
	size_t size;
	FILE *out = open_memstream(&page, &size);

	ck_assert_ptr_nonnull(out);
	ck_assert_int_eq(export_html(m, &o, out), expected);
	(void)fclose(out);
}

static size_t decode_base64(const char *text, uint8_t *ret)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				     "abcdefghijklmnopqrstuvwxyz0123456789+/";
	uint32_t bits = 0;
	size_t n = 0;

	for (size_t i = 0; text[i] != '<' && text[i] != '='; i++) {
		const char *digit = strchr(digits, text[i]);

		ck_assert_ptr_nonnull(digit);
		bits = bits << 6 | (uint32_t)(digit - digits);
		if (i % 4 != 0)
			ret[n++] = (uint8_t)(bits >> (6 - i % 4 * 2));
	}
	return n;
}

static uint64_t number(void)
{
	uint64_t value = 0;

	for (unsigned int shift = 0;; shift += 7) {
		ck_assert_uint_lt(at, data_size);
		value |= (uint64_t)(data[at] & 127) << shift;
		if ((data[at++] & 128) == 0)
			return value;
	}
}

static const char *text(void)
{
	const uint64_t index = number();

	ck_assert_uint_lt(index, n_strings);
	return string[index];
}

/* Reads the beginning of a block of this kind. Returns the offset of its end. */
static size_t block(char kind)
{
	size_t size = 0;

	ck_assert_int_eq(data[at++], kind);
	for (unsigned int i = 0; i < 4; i++)
		size |= (size_t)data[at++] << 8 * i;
	ck_assert_uint_le(at + size, data_size);
	return at + size;
}

static void read_strings(void)
{
	char *to = strings;

	n_strings = 0;
	for (const size_t end = block('S'); at < end;) {
		const uint64_t size = number();

		memcpy(to, data + at, size);
		to[size] = '\0';
		string[n_strings++] = to;
		to += size + 1;
		at += size;
	}
}

/* Finds the data in the page, and unpacks them up to the block of processes. */
static void unpack(void)
{
	static uint8_t packed[DATA_MAX];
	const char *begin = strstr(page, "id=\"data\">");
	uLongf size = sizeof(data);

	ck_assert_ptr_nonnull(begin);
	ck_assert_int_eq(
		uncompress(data, &size, packed, decode_base64(strchr(begin, '>') + 1, packed)),
		Z_OK);
	data_size = size;
	at = 4;
	ck_assert_mem_eq(data, "SPH2", 4);
	read_strings();
	ck_assert_str_eq(string[0], "");
}

static void check_processes(const struct merge *m)
{
	const size_t end = block('P');

	for (size_t i = 0; i < m->n_processes; i++) {
		ck_assert_str_eq(text(), m->processes[i].profiler_id);
		ck_assert_str_eq(text(), "rust");
		ck_assert_str_eq(text(), "app@1");
		ck_assert_str_eq(text(), ""); /* environment */
	}
	ck_assert_uint_eq(at, end);
}

static void check_main_programs(const struct merge *m)
{
	const size_t end = block('M');

	for (size_t i = 0; i < m->n_processes; i++)
		ck_assert_str_eq(text(), "/opt/app");
	ck_assert_uint_eq(at, end);
}

static const char *known(const char *s)
{
	return s != NULL ? s : "";
}

static void check_frames(const struct merge *m)
{
	const size_t end = block('F');

	for (size_t i = 0; i < m->n_frames; i++) {
		const struct merge_frame *f = &m->frames[i];
		uint64_t address = 0;

		ck_assert_str_eq(text(), f->name);
		ck_assert_str_eq(text(), known(f->package));
		ck_assert_str_eq(text(), known(f->file));
		ck_assert_uint_eq(number(), f->line);
		ck_assert_uint_eq(data[at++], f->in_app);
		for (unsigned int k = 0; k < 8; k++)
			address |= (uint64_t)data[at++] << 8 * k;
		ck_assert_uint_eq(address, f->addr);
	}
	ck_assert_uint_eq(at, end);
}

static void check_nodes(const struct merge *m)
{
	const size_t end = block('N');

	for (size_t i = 0; i < m->n_nodes; i++) {
		const uint64_t back = number();

		ck_assert_uint_le(back, i);
		ck_assert_uint_eq(back == 0 ? PROFILE_NONE : i - back, m->nodes[i].parent);
		ck_assert_uint_eq(number(), m->nodes[i].frame);
	}
	ck_assert_uint_eq(at, end);
}

static void check_threads(const struct merge *m)
{
	const size_t end = block('T');

	for (size_t i = 0; i < m->n_threads; i++) {
		ck_assert_uint_eq(number(), m->threads[i].process);
		ck_assert_str_eq(text(), m->threads[i].id);
		ck_assert_str_eq(text(), m->threads[i].name);
	}
	ck_assert_uint_eq(at, end);
}

/* An expected bar. leaf: the innermost function; NULL: a gap. */
struct made_bar {
	uint64_t lasts_us;
	const char *leaf;
	enum profile_state state;
};

static void check_bars(const struct merge *m, const char *id, uint64_t start_us,
		       const struct made_bar *bars, uint64_t n)
{
	const size_t end = block('R');
	uint64_t node = 0;

	ck_assert_str_eq(m->threads[number()].id, id);
	ck_assert_uint_eq(number(), start_us);
	ck_assert_uint_eq(number(), n);
	for (uint64_t i = 0; i < n; i++)
		ck_assert_uint_eq(number(), bars[i].lasts_us);
	for (uint64_t i = 0; i < n; i++) {
		const uint64_t value = number(), zigzag = value / 3;

		ck_assert_uint_eq(value % 3, bars[i].state);
		node += zigzag % 2 == 0 ? zigzag / 2 : -((zigzag + 1) / 2);
		if (bars[i].leaf == NULL)
			ck_assert_uint_eq(node, 0);
		else
			ck_assert_str_eq(m->frames[m->nodes[node - 1].frame].name, bars[i].leaf);
	}
	ck_assert_uint_eq(at, end);
}

/*
 * Thread 7 runs twice in one stack, waits in another, has no samples from 101 to 101.5, and runs
 * again. Thread 9 of another process runs in two stacks, and is ready in the second before.
 */
static void add_chunks(struct merge *m)
{
	made_add(m, "p", "a",
		 MADE_RUNS("100.0", "7", "1") MADE_RUNS("100.01", "7", "1")
			 MADE_WAITS("100.25", "7", "2") MADE_END("101.0", "7", "2"),
		 "\"7\":{\"name\":\"main\"}");
	made_add(m, "p", "b", MADE_RUNS("101.5", "7", "0") MADE_END("102.000001", "7", "0"),
		 "\"7\":{\"name\":\"main\"}");
	made_add(m, "q", "a",
		 MADE_RUNS("100.1", "9", "0") MADE_READY("100.2", "9", "1")
			 MADE_RUNS("100.24", "9", "1") MADE_END("100.3", "9", "1"),
		 "\"9\":{\"name\":\"</script><b>\"}");
}

/* Makes a finished merge of these chunks, or of none. */
static void make(struct merge *m, bool is_empty)
{
	const struct merge_options options = {
		.is_ordered = true, .keep_extra = true, .until_ns = UINT64_MAX};

	merge_init(m, &options);
	if (!is_empty)
		add_chunks(m);
	OK(merge_finish(m));
}

TEST(the_data_have_all_of_a_profile)
{
	static const struct made_bar bars_7[] = {{250000, "hash", PROFILE_RUNNING},
						 {750000, "[libc.so.6]", PROFILE_WAITING},
						 {500000, NULL, PROFILE_RUNNING},
						 {500001, "_Zwork", PROFILE_RUNNING}};
	static const struct made_bar bars_9[] = {{100000, "_Zwork", PROFILE_RUNNING},
						 {40000, "hash", PROFILE_READY},
						 {60000, "hash", PROFILE_RUNNING}};
	struct merge m;
	size_t end;

	make(&m, false);
	write_page(&m, 0);
	unpack();
	check_processes(&m);
	check_main_programs(&m);
	check_frames(&m);
	check_nodes(&m);
	check_threads(&m);
	check_bars(&m, "7", 100000000, bars_7, array_size(bars_7));
	check_bars(&m, "9", 100100000, bars_9, array_size(bars_9));
	end = block('E');
	ck_assert_uint_eq(number(), 7);	  /* the last sample of a thread does not count */
	ck_assert_uint_eq(data[at++], 1); /* states */
	ck_assert_uint_eq(data[at++], 1); /* of an older version: waiting may be ready */
	ck_assert_uint_eq(at, end);
	ck_assert_uint_eq(at, data_size);
	free(page);
	merge_fini(&m);
}

TEST(the_data_have_command_lines)
{
	struct merge m;
	size_t end;

	make(&m, false);
	m.processes[0].command_line = "app --fast";
	write_page(&m, 0);
	unpack();
	check_processes(&m);
	check_main_programs(&m);
	end = block('A');
	ck_assert_str_eq(text(), "app --fast");
	ck_assert_str_eq(text(), ""); /* unknown */
	ck_assert_uint_eq(at, end);
	check_frames(&m);
	free(page);
	merge_fini(&m);
}

TEST(the_data_have_short_names)
{
	struct merge m;
	size_t end;

	make(&m, false);
	m.frames[0].name = "Pool<long>::take(unsigned)";
	m.frames[1].name = "Pool<char>::take(unsigned)";
	m.frames[2].name = m.frames[0].name;
	write_page(&m, 0);
	unpack();
	check_processes(&m);
	check_main_programs(&m);
	check_frames(&m);
	end = block('L');
	ck_assert_str_eq(text(), "Pool<long>::take(unsigned)");
	ck_assert_str_eq(text(), "Pool<long>::take(...)");
	ck_assert_str_eq(text(), "Pool<char>::take(unsigned)");
	ck_assert_str_eq(text(), "Pool<char>::take(...)");
	ck_assert_uint_eq(at, end);
	check_nodes(&m);
	free(page);
	merge_fini(&m);
}

/*
 * A runs hash for 250 ms and waits for 750; B runs hash for 100 ms, and _Zwork
 * for 100 ms between.
 */
TEST(the_data_of_a_comparison_have_both_sides)
{
	static const struct made_bar bars_7[] = {{250000, "hash", PROFILE_RUNNING},
						 {750000, "libc.so.6+0x10", PROFILE_WAITING}};
	static const struct made_bar bars_9[] = {{100000, "_Zwork", PROFILE_RUNNING},
						 {100000, "hash", PROFILE_RUNNING}};
	static const char *const names[] = {"old", "new"};
	const struct merge_options options = {.keep_extra = true, .until_ns = UINT64_MAX};
	struct compare c;
	const struct export_options o = {.version = "1", .comparison = &c};
	struct merge m;
	size_t size, end;
	FILE *out = open_memstream(&page, &size);

	ck_assert_ptr_nonnull(out);
	merge_init(&m, &options);
	made_add(&m, "p", "a",
		 MADE_RUNS("100.0", "7", "1") MADE_WAITS("100.25", "7", "2")
			 MADE_END("101.0", "7", "2"),
		 "");
	m.side = 1;
	made_add(&m, "p", "a",
		 MADE_RUNS("500.0", "9", "1") MADE_RUNS("500.05", "9", "0")
			 MADE_RUNS("500.15", "9", "1") MADE_END("500.2", "9", "1"),
		 "");
	OK(merge_finish(&m));
	OK(compare_init(&c, &m, names, NULL, 0));
	OK(export_html(&m, &o, out));
	(void)fclose(out);
	unpack();
	check_processes(&m);
	check_frames(&m);
	check_nodes(&m);
	check_threads(&m);
	end = block('C');
	ck_assert_str_eq(text(), "old");
	ck_assert_uint_eq(number(), 1000000);
	ck_assert_str_eq(text(), "new");
	ck_assert_uint_eq(number(), 200000);
	ck_assert_uint_eq(data[at++], 0);
	ck_assert_uint_eq(data[at++], 1);
	ck_assert_uint_eq(at, end);
	check_bars(&m, "7", 0, bars_7, array_size(bars_7));
	check_bars(&m, "9", 0, bars_9, array_size(bars_9));
	compare_fini(&c);
	merge_fini(&m);
	free(page);
}

/* Each once. */
TEST(texts_of_a_target_are_in_the_data_only)
{
	struct merge m;
	int scripts = 0;

	make(&m, false);
	write_page(&m, 0);
	LACKS(page, "_Zwork");
	LACKS(page, "</script><b>");
	HAS(page, "default-src 'none'; script-src "
		  "'sha256-");
	for (const char *p = page; (p = strstr(p, "</script>")) != NULL; p++)
		scripts++;
	ck_assert_int_eq(scripts, 2); /* the data, and the page's own */
	unpack();
	for (uint64_t i = 0; i < n_strings; i++)
		for (uint64_t k = 0; k < i; k++)
			ck_assert(strcmp(string[i], string[k]) != 0 ||
				  strcmp(string[i], "rust") == 0 ||
				  strcmp(string[i], "app@1") == 0);
	free(page);
	merge_fini(&m);
}

/* Returns true if the data have a block of this kind before the end. */
static bool has_block(char kind)
{
	while (data[at] != 'E') {
		if (data[at] == kind)
			return true;
		at = block((char)data[at]);
	}
	return false;
}

TESTS(lines_that_the_profiler_did_not_look_for, 2)
{
	struct merge m;

	make(&m, false);
	m.lacks_lines = _i == 1;
	write_page(&m, 0);
	unpack();
	ck_assert_int_eq(has_block('W'), _i == 1);
	if (_i == 1)
		ck_assert_uint_eq(block('W'), at);
	free(page);
	merge_fini(&m);
}

TEST(a_page_without_chunks_is_complete)
{
	struct merge m;

	make(&m, true);
	write_page(&m, 0);
	unpack();
	check_processes(&m);
	check_main_programs(&m);
	check_frames(&m);
	check_nodes(&m);
	check_threads(&m);
	ck_assert_uint_eq(block('E'), at + 3);
	ck_assert_mem_eq(data + at, "\0\0\0", 3); /* no samples, no states, none hidden */
	free(page);
	merge_fini(&m);
}

TEST(a_full_disk_is_an_error)
{
	const struct export_options o = {.version = "1.2.3"};
	FILE *full = fopen("/dev/full", "w");
	struct merge m;

	ck_assert_ptr_nonnull(full);
	make(&m, false);
	ck_assert_int_eq(export_html(&m, &o, full), -ENOSPC);
	(void)fclose(full);
	merge_fini(&m);
}
