#include "proto/import/page.h"

#include <errno.h>
#include <stdio.h>

#include "tests/unit/import/page_of.h"
#include "tests/unit/suite.h"

/* The data of a page: a letter, the size and the content of each block. */
static uint8_t data[40 << 20];
static size_t size;
static struct import_fault fault;

static void begin(void)
{
	memcpy(data, "SPH2", 4);
	size = 4;
}

static void add(char kind, const void *content, size_t n)
{
	data[size++] = (uint8_t)kind;
	for (unsigned int shift = 0; shift < 32; shift += 8)
		data[size++] = (uint8_t)(n >> shift);
	memcpy(data + size, content, n);
	size += n;
}
#define ADD(kind, ...) add(kind, (uint8_t[]){__VA_ARGS__}, sizeof((uint8_t[]){__VA_ARGS__}))

static void begin_with_tables(void)
{
	begin();
	/* 0 "", 1 p, 2 rust, 3 lib.so, 4 main, 5 [lib.so], 6 7, 7 /in.c */
	add('S',
	    "\0\1p\4rust\6lib.so\4main\10[lib.so]\1"
	    "7\5/in.c",
	    37);
	/* The process: profiler_id p, platform rust, no release, no environment. */
	ADD('P', 1, 2, 0, 0);
	ADD('M', 3);
	ADD('A', 4);
	/* main, in /in.c:300, in_app; [lib.so] in lib.so at 0x1000. */
	ADD('F', 4, 0, 7, 0xac, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 5, 3, 0, 0, 0, 0, 16, 0, 0, 0, 0, 0,
	    0);
	/* main; main, lib.so. */
	ADD('N', 0, 0, 1, 1);
	ADD('T', 0, 6, 0);
}

static void end(void)
{
	ADD('E', 9, 1, 0);
}

static int open_page(struct import_page **ret)
{
	char *page = page_of(data, size);
	int r;

	ck_assert_ptr_nonnull(page);
	ck_assert(import_is_page(page, strlen(page)));
	fault.text[0] = '\0';
	r = import_page_open(page, strlen(page), ret, &fault);
	free(page);
	return r;
}

/* Reads all chunks. Returns 0 or the error. */
static int read_page(void)
{
	struct import_page *page;
	struct import_chunk chunk;
	int r = open_page(&page);

	if (r < 0)
		return r;
	while ((r = import_page_next(page, &chunk, &fault)) == 1)
		import_chunk_fini(&chunk);
	import_page_free(page);
	return r;
}

TEST(a_page_becomes_a_chunk)
{
	struct import_page *page;
	struct import_chunk c;

	begin_with_tables();
	/* From 5 us: 10 us in main, 3 us unknown, 2 us waiting in lib.so. */
	ADD('R', 0, 5, 3, 10, 3, 2, 3 * 2 + 0, 3 * 1 + 0, 3 * 4 + 2);
	add('W', "", 0);
	end();
	OK(open_page(&page));
	ck_assert_int_eq(import_page_next(page, &c, &fault), 1);
	ck_assert_str_eq(c.profiler_id, "p");
	ck_assert_str_eq(c.platform, "rust");
	ck_assert_str_eq(c.main_program, "lib.so");
	ck_assert_str_eq(c.command_line, "main");
	ck_assert_ptr_null(json_object_get(c.payload, PROFILE_COMMAND_LINE));
	ck_assert(c.has_states && !c.hides_ready && c.lacks_lines);
	ck_assert_uint_eq(c.n_threads, 1);
	ck_assert_str_eq(c.threads[0].id, "7");
	ck_assert_uint_eq(c.n_samples, 4);
	ck_assert_uint_eq(c.samples[0].time_ns, 5000);
	ck_assert_uint_eq(c.samples[0].duration_ns, 10000);
	ck_assert_int_eq(c.samples[0].state, PROFILE_RUNNING);
	ck_assert_uint_eq(c.stack_starts[c.samples[1].stack],
			  c.stack_starts[c.samples[1].stack + 1]);
	ck_assert_int_eq(c.samples[2].state, PROFILE_WAITING);
	ck_assert_uint_eq(c.samples[2].time_ns, 18000);
	ck_assert(c.samples[3].is_last && c.samples[3].time_ns == 20000);
	/* The leaf is first. It has no name but that of its module. */
	{
		const size_t first = c.stack_starts[c.samples[2].stack];
		const struct import_frame *leaf = &c.frames[c.stack_frames[first]];
		const struct import_frame *root = &c.frames[c.stack_frames[first + 1]];

		ck_assert_uint_eq(c.stack_starts[c.samples[2].stack + 1], first + 2);
		ck_assert_ptr_null(leaf->function);
		ck_assert_str_eq(leaf->package, "lib.so");
		ck_assert_uint_eq(leaf->addr, 0x1000);
		ck_assert_str_eq(root->function, "main");
		ck_assert_str_eq(root->file, "/in.c");
		ck_assert_uint_eq(root->line, 300);
		ck_assert(root->in_app && !leaf->in_app);
	}
	import_chunk_fini(&c);
	ck_assert_int_eq(import_page_next(page, &c, &fault), 0);
	import_page_free(page);
}

/* Each row damages a page in another way. */
static const struct {
	char kind;
	uint8_t content[16];
	size_t n;
	const char *fault;
} damages[] = {
	{'C', {0}, 1, "compares two profiles"},
	{'S', {9, 'x'}, 2, "damaged: block S"},
	{'S', {1, 0xff}, 2, "damaged: block S"},
	{'S', {1, 0}, 2, "damaged: block S"},
	{'P', {1, 2, 0}, 3, "damaged: block P"},
	{'P', {8, 0, 0, 0}, 4, "damaged: block P"},
	{'M', {0}, 1, "damaged: block M"}, /* of a second process */
	{'M', {8}, 1, "damaged: block M"},
	{'A', {0}, 1, "damaged: block A"},
	{'A', {8}, 1, "damaged: block A"},
	{'F', {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, 12, "damaged: block F"},
	{'F', {0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0x7f, 0}, 16, "damaged: block F"},
	{'N', {3, 0}, 2, "damaged: block N"},
	{'N', {0, 2}, 2, "damaged: block N"},
	{'N', {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2}, 10, "damaged: block N"},
	{'T', {1, 0, 0}, 3, "damaged: block T"},
	{'R', {1, 0, 0}, 3, "damaged: block R"},
	{'R', {0, 5, 2, 1, 1, 6}, 6, "damaged: bars"},
	{'R', {0, 5, 1, 1, 18}, 5, "damaged: bars"},   /* node 2 of 2 */
	{'R', {0, 5, 1, 1, 3}, 5, "damaged: bars"},    /* before the gap */
	{'R', {0, 5, 1, 1, 6, 0}, 6, "damaged: bars"}, /* more than the bars */
	{'R', {0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 1, 1, 6}, 12, "damaged: bars"},
	{'R', {0, 5, 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 6}, 12, "damaged: bars"},
	{'E', {0}, 1, "damaged: block E"},
};

TESTS(damaged_data_are_faults, array_size(damages))
{
	begin_with_tables();
	add(damages[_i].kind, damages[_i].content, damages[_i].n);
	end();
	ck_assert_int_eq(read_page(), -EBADMSG);
	HAS(fault.text, damages[_i].fault);
}

TEST(data_without_an_end_are_faults)
{
	begin_with_tables();
	ck_assert_int_eq(read_page(), -EBADMSG);
	HAS(fault.text, "end early");
	end();
	size--;
	ck_assert_int_eq(read_page(), -EBADMSG);
	begin();
	data[3] = '1';
	end();
	ck_assert_int_eq(read_page(), -EBADMSG);
	HAS(fault.text, "another version");
}

/* A block of a later version is skipped. */
TEST(unknown_blocks_are_skipped)
{
	begin_with_tables();
	ADD('Z', 1, 2, 3);
	end();
	OK(read_page());
}

TEST(texts_that_are_no_page)
{
	static const char *const pages[] = {"<!DOCTYPE html>", "<!DOCTYPE html><p id=\"data\">",
					    "<!DOCTYPE html><p id=\"data\">AAAA",
					    "<!DOCTYPE html><p id=\"data\">eJw="};
	struct import_page *page;

	ck_assert(!import_is_page("{}", 2));
	ck_assert(!import_is_page("<!DOCTYPE htm", 13));
	for (size_t i = 0; i < array_size(pages); i++) {
		ck_assert_int_eq(import_page_open(pages[i], strlen(pages[i]), &page, &fault),
				 -EBADMSG);
		HAS(fault.text, "is a page");
	}
}

/* A chain of nodes is as deep as a stack may be, and no deeper. */
TESTS(deep_stacks, 2)
{
	static uint8_t nodes[2 * (IMPORT_STACK_FRAMES_MAX + 1)];

	begin_with_tables();
	for (size_t i = 0; i < IMPORT_STACK_FRAMES_MAX; i++)
		nodes[2 * i] = i > 0;
	nodes[2 * IMPORT_STACK_FRAMES_MAX] = 1;
	add('N', nodes, 2 * (IMPORT_STACK_FRAMES_MAX + (size_t)_i));
	end();
	ck_assert_int_eq(read_page(), _i == 0 ? 0 : -EBADMSG);
}

/* A thousand bytes unpack to a million. */
TEST(data_that_unpack_to_too_much)
{
	const size_t n = IMPORT_PAGE_MAX + 1;
	uint8_t *zeros = calloc(n, 1);
	struct import_page *page;
	char *text;

	ck_assert_ptr_nonnull(zeros);
	text = page_of(zeros, n);
	free(zeros);
	ck_assert_ptr_nonnull(text);
	ck_assert_uint_lt(strlen(text), 1 << 20);
	ck_assert_int_eq(import_page_open(text, strlen(text), &page, &fault), -EBADMSG);
	HAS(fault.text, "more than 128 MiB");
	free(text);
}

static size_t put_number(uint8_t *at, uint64_t value)
{
	size_t n = 0;

	for (; value > 127; value >>= 7)
		at[n++] = (uint8_t)(value | 128);
	at[n++] = (uint8_t)value;
	return n;
}

/* Adds as many processes, each with a thread, whose ids are the same. */
static void add_processes(size_t n)
{
	uint8_t *rows = calloc(n, 8);
	size_t used = 0;

	ck_assert_ptr_nonnull(rows);
	for (size_t i = 0; i < n; i++)
		rows[4 * i] = 1;
	add('P', rows, 4 * n);
	for (size_t i = 0; i < n; i++) {
		used += put_number(rows + used, i);
		rows[used++] = 6;
		rows[used++] = 0;
	}
	add('T', rows, used);
	free(rows);
}

/* Adds a run of n bars of 1 us to a thread: the first at the node, the others also. */
static void add_bars(size_t thread, size_t n, size_t node)
{
	uint8_t *run = calloc(n + 16, 2);
	size_t used;

	ck_assert_ptr_nonnull(run);
	used = put_number(run, thread);
	used += put_number(run + used, 5);
	used += put_number(run + used, n);
	memset(run + used, 1, n);
	used += n;
	used += put_number(run + used, 6 * (node + 1));
	add('R', run, used + n - 1);
	free(run);
}

/* The limit counts for all chunks of a page together, so the test needs little memory. */
TESTS(rows_that_are_too_many, 3)
{
	const size_t n = 17, deep = IMPORT_STACK_FRAMES_MAX;
	uint8_t *rows = calloc(IMPORT_PAGE_ROWS_MAX, 1);

	ck_assert_ptr_nonnull(rows);
	begin_with_tables();
	switch (_i) {
	case 0: /* strings */
		add('S', rows, IMPORT_PAGE_ROWS_MAX);
		break;
	case 1: /* bars */
		add_processes(n);
		for (size_t i = 0; i < n; i++)
			add_bars(1 + i, IMPORT_PAGE_ROWS_MAX / 16, 0);
		break;
	default: /* nodes: each process uses all of a deep stack */
		for (size_t i = 1; i < deep; i++)
			rows[2 * i] = 1;
		add('N', rows, 2 * deep);
		add_processes(IMPORT_PAGE_ROWS_MAX / deep);
		for (size_t i = 0; i < IMPORT_PAGE_ROWS_MAX / deep; i++)
			add_bars(1 + i, 1, 1 + deep);
	}
	end();
	free(rows);
	ck_assert_int_eq(read_page(), -EBADMSG);
	HAS(fault.text, "more than 16777216 bars, frames and names");
}

/* Each node of a chain has a bar, so the stacks have more frames than all bytes of the page. */
TEST(stacks_that_are_too_many)
{
	const size_t n = 20000, deep = IMPORT_STACK_FRAMES_MAX - 1;
	uint8_t *nodes = calloc(n + deep, 4), *bars = calloc(n, 4);
	size_t at = 0, used = 0;

	ck_assert_ptr_nonnull(nodes);
	ck_assert_ptr_nonnull(bars);
	begin_with_tables();
	size -= sizeof((uint8_t[]){0, 0, 1, 1}) + 5 + sizeof((uint8_t[]){0, 6, 0}) + 5;
	for (size_t i = 0; i < deep; i++) {
		nodes[at++] = i > 0;
		nodes[at++] = 0;
	}
	/* Leaves of the last one of the chain. */
	for (size_t up = 1; up <= n; up++) {
		for (size_t v = up; v > 127; v >>= 7)
			nodes[at++] = (uint8_t)(v | 128);
		nodes[at++] = (uint8_t)(up > 16383 ? up >> 14 : up > 127 ? up >> 7 : up);
		nodes[at++] = 0;
	}
	add('N', nodes, at);
	ADD('T', 0, 6, 0);
	/* The first bar is at the first leaf, the next ones at the next. */
	bars[used++] = 0;
	bars[used++] = 5;
	for (size_t v = n; v > 127; v >>= 7)
		bars[used++] = (uint8_t)(v | 128);
	bars[used++] = (uint8_t)(n >> 14);
	memset(bars + used, 1, n);
	used += n;
	for (uint64_t code = 6 * (deep + 1); code > 0; code >>= 7)
		bars[used++] = (uint8_t)(code > 127 ? code | 128 : code);
	memset(bars + used, 6, n - 1);
	used += n - 1;
	add('R', bars, used);
	end();
	free(nodes);
	free(bars);
	ck_assert_int_eq(read_page(), -EBADMSG);
	HAS(fault.text, "too many stacks");
}
