#include "proto/export/html/html.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>
#include <zlib.h>

#include "lib/base/buf.h"
#include "lib/base/short_names.h"
#include "proto/export/compare.h"
#include "proto/export/html/html_page.h"

/* The size of the output buffer of zlib: a multiple of 3, for base64. */
#define PIECE_BYTES (24 * 1024)

/* The default level: level 9 takes twice the time to save 1 % of a test profile. */
#define LEVEL 6

/* A 64-bit number in LEB128. */
#define NUMBER_BYTES_MAX 10

struct writer {
	FILE *out;
	z_stream stream;
	uint8_t piece[PIECE_BYTES]; /* compressed bytes that are not written yet */
	int error;		    /* the first: 0 or -errno */

	struct buf strings;
	struct table by_string; /* from the address of a string to its index */
	uint32_t n_strings;
	struct buf block; /* the content of the current block */
	struct string_pool short_text;
	/* The names of the frames, each once, and their short forms. */
	const char **names, **short_names;
	size_t n_names;
	bool has_short_names; /* some differ from the names */
	bool has_command_lines;
	const struct merge *merge;
	const struct compare *comparison; /* NULL: none */
};

static void fail(struct writer *w, int error)
{
	if (w->error == 0)
		w->error = error;
}

static void write_bytes(struct writer *w, const void *bytes, size_t n)
{
	errno = 0;
	if (w->error == 0 && fwrite(bytes, 1, n, w->out) != n)
		fail(w, errno != 0 ? -errno : -EIO);
}

static void write_base64(struct writer *w, const uint8_t *bytes, size_t n)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				     "abcdefghijklmnopqrstuvwxyz0123456789+/";
	char text[PIECE_BYTES / 3 * 4];
	size_t len = 0;

	for (size_t i = 0; i < n; i += 3) {
		const size_t left = n - i;
		const uint32_t bits = (uint32_t)bytes[i] << 16 |
				      (left > 1 ? (uint32_t)bytes[i + 1] << 8 : 0) |
				      (left > 2 ? bytes[i + 2] : 0);

		text[len++] = digits[bits >> 18];
		text[len++] = digits[bits >> 12 & 63];
		text[len++] = left > 1 ? digits[bits >> 6 & 63] : '=';
		text[len++] = left > 2 ? digits[bits & 63] : '=';
	}
	write_bytes(w, text, len);
}

/* Compresses bytes and writes the result. flush is Z_NO_FLUSH, or Z_FINISH at the end. */
static void write_compressed(struct writer *w, const void *bytes, size_t n, int flush)
{
	int r = Z_OK;

	w->stream.next_in = (Bytef *)(uintptr_t)bytes;
	w->stream.avail_in = (uInt)n;
	while (w->error == 0 && r != Z_STREAM_END &&
	       (w->stream.avail_in > 0 || flush == Z_FINISH)) {
		r = deflate(&w->stream, flush);
		if (w->stream.avail_out > 0 && r != Z_STREAM_END)
			continue;
		write_base64(w, w->piece, PIECE_BYTES - w->stream.avail_out);
		w->stream.next_out = w->piece;
		w->stream.avail_out = PIECE_BYTES;
	}
}

static void put(struct writer *w, const void *bytes, size_t n, struct buf *b)
{
	int r = buf_add(b, bytes, n);

	if (r < 0)
		fail(w, r);
}

static size_t encode(uint64_t value, uint8_t ret[NUMBER_BYTES_MAX])
{
	size_t n = 0;

	for (; value > 127; value >>= 7)
		ret[n++] = (uint8_t)(value | 128);
	ret[n++] = (uint8_t)value;
	return n;
}

static void put_number(struct writer *w, uint64_t value)
{
	uint8_t bytes[NUMBER_BYTES_MAX];

	put(w, bytes, encode(value, bytes), &w->block);
}

static void put_byte(struct writer *w, uint8_t value)
{
	put(w, &value, 1, &w->block);
}

static void put_address(struct writer *w, uint64_t address)
{
	for (unsigned int shift = 0; shift < 64; shift += 8)
		put_byte(w, (uint8_t)(address >> shift));
}

static uint32_t add_string(struct writer *w, const char *s)
{
	uint8_t bytes[NUMBER_BYTES_MAX];
	const size_t len = strlen(s);

	put(w, bytes, encode(len, bytes), &w->strings);
	put(w, s, len, &w->strings);
	return w->n_strings++;
}

/*
 * Writes the index of a string to the block; NULL is "". Strings of a merge are interned, so
 * equal strings have one address and are written once.
 */
static void put_string(struct writer *w, const char *s)
{
	uint32_t index = 0;

	if (s != NULL && s[0] != '\0' && !table_get(&w->by_string, (uintptr_t)s, &index)) {
		index = add_string(w, s);
		if (table_put(&w->by_string, (uintptr_t)s, index) < 0)
			fail(w, -ENOMEM);
	}
	put_number(w, index);
}

static void write_block(struct writer *w, uint8_t kind, const struct buf *b)
{
	const uint32_t n = (uint32_t)b->len;
	const uint8_t head[] = {kind, (uint8_t)n, (uint8_t)(n >> 8), (uint8_t)(n >> 16),
				(uint8_t)(n >> 24)};

	write_compressed(w, head, sizeof(head), Z_NO_FLUSH);
	write_compressed(w, b->data, b->len, Z_NO_FLUSH);
}

static void put_processes(struct writer *w)
{
	for (size_t i = 0; i < w->merge->n_processes; i++) {
		const struct merge_process *p = &w->merge->processes[i];

		put_string(w, p->profiler_id);
		put_string(w, json_string_value(json_object_get(p->extra, "platform")));
		put_string(w, p->release);
		put_string(w, json_string_value(json_object_get(p->extra, "environment")));
	}
}

/* So that `compare` matches the main programs of two pages, whatever their names are. */
static void put_main_programs(struct writer *w)
{
	for (size_t i = 0; i < w->merge->n_processes && w->comparison == NULL; i++)
		put_string(w, merge_main_program(&w->merge->processes[i]));
}

static void put_command_lines(struct writer *w)
{
	for (size_t i = 0; i < w->merge->n_processes; i++) {
		w->has_command_lines |= w->merge->processes[i].command_line != NULL;
		put_string(w, w->merge->processes[i].command_line);
	}
}

static void put_frames(struct writer *w)
{
	for (size_t i = 0; i < w->merge->n_frames; i++) {
		const struct merge_frame *f = &w->merge->frames[i];

		put_string(w, f->name);
		put_string(w, f->package);
		put_string(w, f->file);
		put_number(w, f->line);
		put_byte(w, f->in_app ? 1 : 0);
		put_address(w, f->addr);
	}
}

static void put_short_names(struct writer *w)
{
	for (size_t i = 0; i < w->n_names; i++) {
		if (strcmp(w->names[i], w->short_names[i]) == 0)
			continue;
		w->has_short_names = true;
		put_string(w, w->names[i]);
		put_string(w, w->short_names[i]);
	}
}

static void put_nodes(struct writer *w)
{
	for (size_t i = 0; i < w->merge->n_nodes; i++) {
		const struct profile_node *node = &w->merge->nodes[i];

		put_number(w, node->parent == PROFILE_NONE ? 0 : i - node->parent);
		put_number(w, node->frame);
	}
}

static void put_threads(struct writer *w)
{
	for (size_t i = 0; i < w->merge->n_threads; i++) {
		const struct merge_thread *t = &w->merge->threads[i];

		put_number(w, t->process);
		put_string(w, t->id);
		put_string(w, t->name);
	}
}

static void put_comparison(struct writer *w)
{
	const struct compare *c = w->comparison;

	for (unsigned int side = 0; side < COMPARE_SIDES && c != NULL; side++) {
		put_string(w, c->names[side]);
		put_number(w, c->duration_ns[side] / NS_PER_US);
	}
	for (size_t i = 0; i < w->merge->n_processes && c != NULL; i++)
		put_byte(w, (uint8_t)w->merge->processes[i].side);
}

/* A bar as it is written, or a gap between bars. */
struct bar {
	uint64_t start_us, end_us;
	uint64_t node; /* the node plus 1; 0: a gap */
	enum profile_state state;
};

/* Iterates over the bars of a thread, with equal neighbours joined, and over the gaps. */
struct bars {
	const struct merge_bar *next, *end;
	uint64_t at_us; /* the end of the last bar or gap */
};

static bool bars_next(struct bars *b, struct bar *ret)
{
	const struct merge_bar *first = b->next;

	if (first == b->end)
		return false;
	ret->start_us = b->at_us;
	ret->end_us = first->start_ns / NS_PER_US;
	ret->node = 0;
	ret->state = PROFILE_RUNNING;
	if (ret->end_us <= b->at_us) {
		ret->node = (uint64_t)first->node + 1;
		ret->state = first->state;
		do {
			ret->end_us = export_end(b->next++) / NS_PER_US;
		} while (b->next < b->end && b->next->start_ns / NS_PER_US == ret->end_us &&
			 b->next->node == first->node && b->next->state == first->state);
	}
	b->at_us = ret->end_us;
	return true;
}

static struct bars bars_of(const struct merge *m, const struct merge_thread *t)
{
	const struct merge_bar *first = m->bars + t->first_bar;

	return (struct bars){first, first + t->n_bars, first->start_ns / NS_PER_US};
}

static uint64_t zigzag(uint64_t from, uint64_t to)
{
	return to >= from ? 2 * (to - from) : 2 * (from - to) - 1;
}

/* Writes the block of a thread. Iterates three times, instead of keeping the bars. */
static void put_bars(struct writer *w, uint32_t thread)
{
	const struct merge_thread *t = &w->merge->threads[thread];
	struct bars bars = bars_of(w->merge, t);
	struct bar bar;
	uint64_t n = 0, node = 0;

	put_number(w, thread);
	put_number(w, bars.at_us);
	while (bars_next(&bars, &bar))
		n++;
	put_number(w, n);
	bars = bars_of(w->merge, t);
	while (bars_next(&bars, &bar))
		put_number(w, bar.end_us - bar.start_us);
	bars = bars_of(w->merge, t);
	while (bars_next(&bars, &bar)) {
		put_number(w, PROFILE_STATES * zigzag(node, bar.node) + bar.state);
		node = bar.node;
	}
}

static void write_threads(struct writer *w)
{
	for (uint32_t i = 0; i < w->merge->n_threads; i++) {
		if (w->merge->threads[i].n_bars == 0)
			continue;
		buf_clear(&w->block);
		put_bars(w, i);
		write_block(w, 'R', &w->block);
	}
}

static void write_table(struct writer *w, uint8_t kind, void (*put_rows)(struct writer *w))
{
	buf_clear(&w->block);
	put_rows(w);
	write_block(w, kind, &w->block);
}

static void put_end(struct writer *w)
{
	uint64_t samples = 0;

	for (size_t i = 0; i < w->merge->n_bars; i++)
		samples += w->merge->bars[i].samples;
	put_number(w, samples);
	put_byte(w, w->merge->has_states ? 1 : 0);
	put_byte(w, w->merge->hides_ready ? 1 : 0);
}

/*
 * Writes all blocks. The block of strings has to be the first, but the strings are known only
 * when the tables are made: so the tables with strings are made twice.
 */
static void write_data(struct writer *w)
{
	(void)add_string(w, "");
	put_processes(w);
	put_main_programs(w);
	put_command_lines(w);
	put_frames(w);
	put_short_names(w);
	put_threads(w);
	put_comparison(w);
	write_compressed(w, "SPH2", 4, Z_NO_FLUSH);
	write_block(w, 'S', &w->strings);
	write_table(w, 'P', put_processes);
	if (w->comparison == NULL)
		write_table(w, 'M', put_main_programs);
	if (w->has_command_lines)
		write_table(w, 'A', put_command_lines);
	write_table(w, 'F', put_frames);
	if (w->has_short_names)
		write_table(w, 'L', put_short_names);
	write_table(w, 'N', put_nodes);
	write_table(w, 'T', put_threads);
	if (w->comparison != NULL)
		write_table(w, 'C', put_comparison);
	write_threads(w);
	buf_clear(&w->block);
	if (w->merge->lacks_lines)
		write_block(w, 'W', &w->block);
	write_table(w, 'E', put_end);
	write_compressed(w, NULL, 0, Z_FINISH);
}

static int make_short_names(struct writer *w)
{
	const size_t n = w->merge->n_frames;
	struct table seen;
	int r = 0;

	w->names = calloc(n + 1, sizeof(*w->names));
	w->short_names = calloc(n + 1, sizeof(*w->short_names));
	if (w->names == NULL || w->short_names == NULL)
		return -ENOMEM;
	table_init(&seen, w->merge->options.hash_seed);
	for (size_t i = 0; i < n && r == 0; i++) {
		const char *name = w->merge->frames[i].name;
		uint32_t index;

		if (table_get(&seen, (uintptr_t)name, &index))
			continue;
		r = table_put(&seen, (uintptr_t)name, 0);
		w->names[w->n_names++] = name;
	}
	table_fini(&seen);
	if (r == 0)
		r = short_names_make(w->names, w->n_names, &w->short_text, w->short_names);
	return r;
}

int export_html(const struct merge *m, const struct export_options *o, FILE *out)
{
	struct writer w = {.out = out, .merge = m, .comparison = o->comparison};

	if (deflateInit(&w.stream, LEVEL) != Z_OK)
		return -ENOMEM;
	w.stream.next_out = w.piece;
	w.stream.avail_out = PIECE_BYTES;
	buf_init(&w.strings, HTML_BLOCK_MAX);
	buf_init(&w.block, HTML_BLOCK_MAX);
	table_init(&w.by_string, m->options.hash_seed);
	string_pool_init(&w.short_text, m->options.hash_seed);

	w.error = make_short_names(&w);
	write_bytes(&w, html_page_head, html_page_head_size);
	if (w.error == 0)
		write_data(&w);
	write_bytes(&w, html_page_tail, html_page_tail_size);
	errno = 0;
	if (w.error == 0 && fflush(out) != 0)
		fail(&w, errno != 0 ? -errno : -EIO);

	free(w.names);
	free(w.short_names);
	string_pool_fini(&w.short_text);
	table_fini(&w.by_string);
	buf_fini(&w.block);
	buf_fini(&w.strings);
	(void)deflateEnd(&w.stream);
	return w.error;
}
