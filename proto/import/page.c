#include "proto/import/page.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "lib/base/array.h"
#include "lib/base/buf.h"

/* Bytes that are unpacked at a time. */
#define PIECE_BYTES 65536

#define TIME_MAX_US ((uint64_t)(IMPORT_TIME_MAX_S * 1e6))

/* 7 bits a byte: a number of 64 bits has at most 10 bytes. */
#define NUMBER_BYTES_MAX 10

struct process {
	const char *profiler_id, *platform, *release, *environment;
	const char *main_program, *command_line;
	uint32_t first_run; /* PROFILE_NONE: none */
};

struct thread {
	uint32_t process;
	const char *id, *name;
};

/* A block of bars, after the number of its thread. */
struct run {
	uint32_t thread;
	size_t at, end;
	uint32_t next; /* of the same process; PROFILE_NONE: none */
};

struct import_page {
	struct buf data;
	const char **strings;
	size_t n_strings, cap_strings;
	struct process *processes;
	size_t n_processes, cap_processes;
	size_t n_main_programs, n_command_lines;
	struct import_frame *frames;
	size_t n_frames, cap_frames;
	struct profile_node *nodes;
	uint32_t *depths; /* by node: the frames of its stack */
	size_t n_nodes, cap_nodes, cap_depths;
	struct thread *threads;
	size_t n_threads, cap_threads;
	struct run *runs;
	size_t n_runs, cap_runs;
	bool is_complete, has_states, hides_ready, lacks_lines;

	uint32_t next_process;
	size_t n_rows;	     /* IMPORT_PAGE_ROWS_MAX */
	size_t stack_frames; /* of all chunks so far */
	/* By frame and node: the number in the chunk, if the stamp is that of the process. */
	uint32_t *frame_stamps, *frame_numbers, *stack_stamps, *stack_numbers;
	uint32_t *node_stamps; /* of the process that has used the node last */
};

static int count_row(struct import_page *p, struct import_fault *fault)
{
	if (p->n_rows++ < IMPORT_PAGE_ROWS_MAX)
		return 0;
	return import_fault_set(fault, "is a page with more than %u bars, frames and names",
				IMPORT_PAGE_ROWS_MAX);
}

/* The bytes that are being read. has_failed: they end early, or a number is too large. */
struct cursor {
	const uint8_t *bytes;
	size_t at, end;
	bool has_failed;
};

static uint8_t get_byte(struct cursor *c)
{
	if (c->at >= c->end) {
		c->has_failed = true;
		return 0;
	}
	return c->bytes[c->at++];
}

static uint64_t get_number(struct cursor *c)
{
	uint64_t value = 0;

	for (unsigned int i = 0; i < NUMBER_BYTES_MAX; i++) {
		const uint8_t byte = get_byte(c);

		/* The last byte has one bit left. */
		if (i == NUMBER_BYTES_MAX - 1 && byte > 1)
			break;
		value |= (uint64_t)(byte & 127) << 7 * i;
		if (byte < 128)
			return value;
	}
	c->has_failed = true;
	return 0;
}

/* Gets an index below n. */
static uint32_t get_index(struct cursor *c, size_t n)
{
	const uint64_t value = get_number(c);

	if (value < n)
		return (uint32_t)value;
	c->has_failed = true;
	return 0;
}

static const char *get_string(struct cursor *c, const struct import_page *p)
{
	const uint32_t i = get_index(c, p->n_strings);

	return c->has_failed ? "" : p->strings[i];
}

/* The same, NULL for "". */
static const char *get_known(struct cursor *c, const struct import_page *p)
{
	const char *s = get_string(c, p);

	return s[0] != '\0' ? s : NULL;
}

static uint64_t get_address(struct cursor *c)
{
	uint64_t value = 0;

	for (unsigned int shift = 0; shift < 64; shift += 8)
		value |= (uint64_t)get_byte(c) << shift;
	return value;
}

/*
 * Makes a string of the next bytes of the data. They are moved to where their length was, since a
 * NUL has to follow.
 */
static int read_string(struct import_page *p, struct cursor *c)
{
	const size_t place = c->at;
	const uint64_t n = get_number(c);
	char *s = p->data.data + place;

	if (c->has_failed || n > c->end - c->at) {
		c->has_failed = true;
		return 0;
	}
	memmove(s, p->data.data + c->at, n);
	c->at += n;
	s[n] = '\0';
	if (strlen(s) != n || !profile_is_utf8(s)) {
		c->has_failed = true;
		return 0;
	}
	if (array_grow(p->strings, p->n_strings, p->cap_strings) < 0)
		return -ENOMEM;
	p->strings[p->n_strings++] = s;
	return 0;
}

static int read_process(struct import_page *p, struct cursor *c)
{
	struct process process = {.first_run = PROFILE_NONE};

	process.profiler_id = get_string(c, p);
	process.platform = get_known(c, p);
	process.release = get_known(c, p);
	process.environment = get_known(c, p);
	if (array_grow(p->processes, p->n_processes, p->cap_processes) < 0)
		return -ENOMEM;
	p->processes[p->n_processes++] = process;
	return 0;
}

static int read_main_program(struct import_page *p, struct cursor *c)
{
	const char *path = get_known(c, p);

	c->has_failed |= p->n_main_programs == p->n_processes;
	if (!c->has_failed)
		p->processes[p->n_main_programs++].main_program = path;
	return 0;
}

static int read_command_line(struct import_page *p, struct cursor *c)
{
	const char *text = get_known(c, p);

	c->has_failed |= p->n_command_lines == p->n_processes;
	if (!c->has_failed)
		p->processes[p->n_command_lines++].command_line = text;
	return 0;
}

/* Returns true for the name that a page shows for an unknown function: "[MODULE]". */
static bool is_no_name(const char *name, const char *package)
{
	const char *slash = package == NULL ? NULL : strrchr(package, '/');
	const char *base = package == NULL		       ? "unknown"
			   : slash == NULL || slash[1] == '\0' ? package
							       : slash + 1;
	const size_t n = strlen(name);

	return n >= 2 && name[0] == '[' && name[n - 1] == ']' && strlen(base) == n - 2 &&
	       memcmp(name + 1, base, n - 2) == 0;
}

static int read_frame(struct import_page *p, struct cursor *c)
{
	struct import_frame f = {0};
	uint64_t line;

	f.function = get_known(c, p);
	f.package = get_known(c, p);
	f.file = get_known(c, p);
	line = get_number(c);
	f.in_app = get_byte(c) == 1;
	f.addr = get_address(c);
	c->has_failed |= line > INT32_MAX;
	f.line = (uint32_t)line;
	if (f.function != NULL && is_no_name(f.function, f.package))
		f.function = NULL;
	if (array_grow(p->frames, p->n_frames, p->cap_frames) < 0)
		return -ENOMEM;
	p->frames[p->n_frames++] = f;
	return 0;
}

static int read_node(struct import_page *p, struct cursor *c)
{
	const uint64_t up = get_number(c);
	struct profile_node node = {.parent = PROFILE_NONE};
	uint32_t depth = 1;

	node.frame = get_index(c, p->n_frames);
	if (up > p->n_nodes || p->n_nodes >= PROFILE_NONE - 1)
		c->has_failed = true;
	if (c->has_failed)
		return 0;
	if (up > 0) {
		node.parent = (uint32_t)(p->n_nodes - up);
		depth = p->depths[node.parent] + 1;
	}
	if (depth > IMPORT_STACK_FRAMES_MAX) {
		c->has_failed = true;
		return 0;
	}
	if (array_grow(p->nodes, p->n_nodes, p->cap_nodes) < 0 ||
	    array_grow(p->depths, p->n_nodes, p->cap_depths) < 0)
		return -ENOMEM;
	p->nodes[p->n_nodes] = node;
	p->depths[p->n_nodes++] = depth;
	return 0;
}

static int read_thread(struct import_page *p, struct cursor *c)
{
	struct thread t = {0};

	t.process = get_index(c, p->n_processes);
	t.id = get_string(c, p);
	t.name = get_string(c, p);
	if (array_grow(p->threads, p->n_threads, p->cap_threads) < 0)
		return -ENOMEM;
	p->threads[p->n_threads++] = t;
	return 0;
}

/* Notes where the bars of a thread are; make_run() reads them. */
static int read_run(struct import_page *p, struct cursor *c)
{
	struct run run = {.thread = get_index(c, p->n_threads), .at = c->at, .end = c->end};
	struct process *process;

	c->at = c->end;
	if (c->has_failed)
		return 0;
	if (array_grow(p->runs, p->n_runs, p->cap_runs) < 0)
		return -ENOMEM;
	process = &p->processes[p->threads[run.thread].process];
	run.next = process->first_run;
	process->first_run = (uint32_t)p->n_runs;
	p->runs[p->n_runs++] = run;
	return 0;
}

static void read_end(struct import_page *p, struct cursor *c)
{
	(void)get_number(c); /* how many samples the bars were */
	p->has_states = get_byte(c) == 1;
	p->hides_ready = get_byte(c) == 1;
	p->is_complete = true;
}

static int read_rows(struct import_page *p, struct cursor *c, struct import_fault *fault,
		     int (*read_row)(struct import_page *p, struct cursor *c))
{
	int r = 0;

	while (r == 0 && c->at < c->end && !c->has_failed) {
		r = count_row(p, fault);
		if (r == 0)
			r = read_row(p, c);
	}
	return r;
}

static int read_block(struct import_page *p, uint8_t kind, struct cursor *c,
		      struct import_fault *fault)
{
	switch (kind) {
	case 'S':
		return read_rows(p, c, fault, read_string);
	case 'P':
		return read_rows(p, c, fault, read_process);
	case 'M':
		return read_rows(p, c, fault, read_main_program);
	case 'A':
		return read_rows(p, c, fault, read_command_line);
	case 'F':
		return read_rows(p, c, fault, read_frame);
	case 'N':
		return read_rows(p, c, fault, read_node);
	case 'T':
		return read_rows(p, c, fault, read_thread);
	case 'R':
		return read_rows(p, c, fault, read_run);
	case 'C':
		return import_fault_set(fault, "compares two profiles: give these instead");
	case 'W':
		p->lacks_lines = true;
		break;
	case 'E':
		read_end(p, c);
		break;
	default: /* a block of a later version */
		c->at = c->end;
	}
	return 0;
}

static int read_blocks(struct import_page *p, struct import_fault *fault)
{
	static const char magic[] = "SPH2";
	struct cursor all = {(const uint8_t *)p->data.data, sizeof(magic) - 1, p->data.len, false};

	if (p->data.len < all.at || memcmp(p->data.data, magic, all.at) != 0)
		return import_fault_set(fault, "is a page of another version");
	while (all.at < all.end) {
		const uint8_t kind = get_byte(&all);
		struct cursor block = all;
		size_t size = 0;
		int r;

		for (unsigned int shift = 0; shift < 32; shift += 8)
			size |= (size_t)get_byte(&all) << shift;
		if (all.has_failed || size > all.end - all.at)
			return import_fault_set(fault, "is a page whose data are damaged");
		block.at = all.at;
		block.end = all.at += size;
		r = read_block(p, kind, &block, fault);
		if (r < 0)
			return r;
		if (block.has_failed || block.at != block.end)
			return import_fault_set(fault, "is a page whose data are damaged: block %c",
						kind);
	}
	return p->is_complete ? 0 : import_fault_set(fault, "is a page whose data end early");
}

/* Base64: returns the value of a digit, or -1. */
static int digit_value(char digit)
{
	if (digit >= 'A' && digit <= 'Z')
		return digit - 'A';
	if (digit >= 'a' && digit <= 'z')
		return digit - 'a' + 26;
	if (digit >= '0' && digit <= '9')
		return digit - '0' + 52;
	return digit == '+' ? 62 : digit == '/' ? 63 : -1;
}

/* Decodes the digits up to the first byte that is none. */
static int decode(const char *text, size_t size, struct buf *ret)
{
	uint32_t bits = 0;
	unsigned int n_bits = 0;

	for (size_t i = 0; i < size && digit_value(text[i]) >= 0; i++) {
		uint8_t byte;
		int r;

		bits = bits << 6 | (uint32_t)digit_value(text[i]);
		n_bits += 6;
		if (n_bits < 8)
			continue;
		n_bits -= 8;
		byte = (uint8_t)(bits >> n_bits);
		r = buf_add(ret, &byte, 1);
		if (r < 0)
			return r;
	}
	return 0;
}

static int inflate_all(z_stream *z, struct buf *ret, struct import_fault *fault)
{
	uint8_t piece[PIECE_BYTES];
	int r = Z_OK;

	while (r != Z_STREAM_END) {
		int added;

		z->next_out = piece;
		z->avail_out = sizeof(piece);
		r = inflate(z, Z_NO_FLUSH);
		if (r == Z_MEM_ERROR)
			return -ENOMEM;
		if (r != Z_OK && r != Z_STREAM_END)
			return import_fault_set(fault,
						"is a page whose data are damaged or end early");
		added = buf_add(ret, piece, sizeof(piece) - z->avail_out);
		if (added == -E2BIG)
			return import_fault_set(fault, "is a page with more than %u MiB of data",
						IMPORT_PAGE_MAX >> 20);
		if (added < 0)
			return added;
	}
	return 0;
}

static int unpack(const struct buf *packed, struct buf *ret, struct import_fault *fault)
{
	z_stream z = {.next_in = (Bytef *)packed->data, .avail_in = (uInt)packed->len};
	int r;

	if (inflateInit(&z) != Z_OK)
		return -ENOMEM;
	r = inflate_all(&z, ret, fault);
	(void)inflateEnd(&z);
	return r;
}

bool import_is_page(const char *bytes, size_t size)
{
	static const char begin[] = "<!DOCTYPE html>";

	return size >= sizeof(begin) - 1 && memcmp(bytes, begin, sizeof(begin) - 1) == 0;
}

static int read_data(struct import_page *p, const char *bytes, size_t size,
		     struct import_fault *fault)
{
	static const char mark[] = "id=\"data\">";
	const char *at = memmem(bytes, size, mark, sizeof(mark) - 1);
	struct buf packed;
	int r;

	if (at == NULL)
		return import_fault_set(fault, "is a page without a profile");
	at += sizeof(mark) - 1;
	buf_init(&packed, size);
	r = decode(at, size - (size_t)(at - bytes), &packed);
	if (r == 0)
		r = unpack(&packed, &p->data, fault);
	buf_fini(&packed);
	return r;
}

static int make_stamps(struct import_page *p)
{
	p->frame_stamps = calloc(p->n_frames + 1, sizeof(uint32_t));
	p->frame_numbers = calloc(p->n_frames + 1, sizeof(uint32_t));
	p->stack_stamps = calloc(p->n_nodes + 1, sizeof(uint32_t));
	p->stack_numbers = calloc(p->n_nodes + 1, sizeof(uint32_t));
	p->node_stamps = calloc(p->n_nodes + 1, sizeof(uint32_t));
	return p->frame_stamps == NULL || p->frame_numbers == NULL || p->stack_stamps == NULL ||
			       p->stack_numbers == NULL || p->node_stamps == NULL
		       ? -ENOMEM
		       : 0;
}

int import_page_open(const char *bytes, size_t size, struct import_page **ret,
		     struct import_fault *fault)
{
	struct import_page *p = calloc(1, sizeof(*p));
	int r;

	if (p == NULL)
		return -ENOMEM;
	buf_init(&p->data, IMPORT_PAGE_MAX);
	r = read_data(p, bytes, size, fault);
	if (r == 0)
		r = read_blocks(p, fault);
	if (r == 0)
		r = make_stamps(p);
	if (r < 0)
		import_page_free(p);
	else
		*ret = p;
	return r;
}

void import_page_free(struct import_page *p)
{
	if (p == NULL)
		return;
	buf_fini(&p->data);
	free(p->strings);
	free(p->processes);
	free(p->frames);
	free(p->nodes);
	free(p->depths);
	free(p->threads);
	free(p->runs);
	free(p->frame_stamps);
	free(p->frame_numbers);
	free(p->stack_stamps);
	free(p->stack_numbers);
	free(p->node_stamps);
	free(p);
}

/* A chunk that is being made. */
struct making {
	struct import_page *p;
	struct import_chunk *c;
	uint32_t stamp; /* of the process */
	size_t n_stack_frames, cap_frames, cap_starts, cap_stack_frames, cap_threads, cap_samples;
	struct import_fault *fault;
};

static int use_frame(struct making *m, uint32_t frame, uint32_t *ret)
{
	struct import_page *p = m->p;
	struct import_chunk *c = m->c;

	if (p->frame_stamps[frame] != m->stamp) {
		int r = count_row(p, m->fault);

		if (r < 0)
			return r;
		if (array_grow(c->frames, c->n_frames, m->cap_frames) < 0)
			return -ENOMEM;
		p->frame_stamps[frame] = m->stamp;
		p->frame_numbers[frame] = (uint32_t)c->n_frames;
		c->frames[c->n_frames++] = p->frames[frame];
	}
	*ret = p->frame_numbers[frame];
	return 0;
}

/* Ends the stack that has been added. Without a stack, begins the first one. */
static int end_stack(struct making *m)
{
	struct import_chunk *c = m->c;

	if (array_grow(c->stack_starts, c->n_stacks + 1, m->cap_starts) < 0)
		return -ENOMEM;
	c->stack_starts[++c->n_stacks] = m->n_stack_frames;
	return 0;
}

static int add_stack(struct making *m, uint32_t node)
{
	struct import_chunk *c = m->c;

	m->p->stack_frames += m->p->depths[node];
	if (m->p->stack_frames > IMPORT_PAGE_FRAMES_MAX)
		return import_fault_set(m->fault, "is a page with too many stacks");
	for (; node != PROFILE_NONE; node = m->p->nodes[node].parent) {
		uint32_t frame;
		int r = use_frame(m, m->p->nodes[node].frame, &frame);

		if (r == 0 && m->p->node_stamps[node] != m->stamp)
			r = count_row(m->p, m->fault);
		m->p->node_stamps[node] = m->stamp;
		if (r < 0)
			return r;
		if (array_grow(c->stack_frames, m->n_stack_frames, m->cap_stack_frames) < 0)
			return -ENOMEM;
		c->stack_frames[m->n_stack_frames++] = frame;
	}
	return end_stack(m);
}

/* Finds or adds the stack of a bar: 0, the empty one, or the node plus 1. */
static int use_stack(struct making *m, uint64_t k, uint32_t *ret)
{
	struct import_page *p = m->p;
	int r;

	*ret = 0;
	if (k == 0)
		return 0;
	if (p->stack_stamps[k - 1] != m->stamp) {
		p->stack_stamps[k - 1] = m->stamp;
		p->stack_numbers[k - 1] = (uint32_t)m->c->n_stacks;
		r = add_stack(m, (uint32_t)(k - 1));
		if (r < 0)
			return r;
	}
	*ret = p->stack_numbers[k - 1];
	return 0;
}

static int add_sample(struct making *m, const struct import_sample *s)
{
	int r = count_row(m->p, m->fault);

	if (r < 0)
		return r;
	if (array_grow(m->c->samples, m->c->n_samples, m->cap_samples) < 0)
		return -ENOMEM;
	m->c->samples[m->c->n_samples++] = *s;
	return 0;
}

static int fail_run(const struct making *m)
{
	return import_fault_set(m->fault, "is a page whose data are damaged: bars");
}

/* Applies zigzag(d) to k, a node plus 1 or 0. Returns false if the result is out of range. */
static bool move_to(const struct import_page *p, uint64_t zigzag, uint64_t *k)
{
	const uint64_t distance = zigzag / 2 + zigzag % 2;

	if (distance > p->n_nodes || (zigzag % 2 != 0 && distance > *k))
		return false;
	*k = zigzag % 2 != 0 ? *k - distance : *k + distance;
	return *k <= p->n_nodes;
}

/* Adds the samples of n bars; lengths and codes are at the first bar. */
static int make_samples(struct making *m, uint64_t n, uint64_t start_us, struct cursor *lengths,
			struct cursor *codes)
{
	struct import_sample s = {.thread = (uint32_t)m->c->n_threads - 1,
				  .time_ns = start_us * 1000};
	uint64_t k = 0;
	int r = 0;

	for (uint64_t i = 0; i < n && r == 0; i++) {
		const uint64_t length_us = get_number(lengths), code = get_number(codes);

		if (lengths->has_failed || codes->has_failed || length_us > TIME_MAX_US ||
		    s.time_ns / 1000 + length_us > TIME_MAX_US ||
		    !move_to(m->p, code / PROFILE_STATES, &k))
			return fail_run(m);
		s.state = (enum profile_state)(code % PROFILE_STATES);
		s.duration_ns = length_us * 1000;
		r = use_stack(m, k, &s.stack);
		if (r == 0)
			r = add_sample(m, &s);
		s.time_ns += s.duration_ns;
	}
	s.duration_ns = 0;
	s.is_last = true;
	if (r == 0 && n > 0)
		r = add_sample(m, &s);
	return r;
}

/* Adds a thread and its samples. */
static int make_run(struct making *m, const struct run *run)
{
	const struct thread *t = &m->p->threads[run->thread];
	struct cursor lengths = {(const uint8_t *)m->p->data.data, run->at, run->end, false}, codes;
	const uint64_t start_us = get_number(&lengths), n = get_number(&lengths);
	int r;

	/* A bar has at least two bytes. */
	if (lengths.has_failed || start_us > TIME_MAX_US || n > (lengths.end - lengths.at) / 2)
		return fail_run(m);
	if (array_grow(m->c->threads, m->c->n_threads, m->cap_threads) < 0)
		return -ENOMEM;
	m->c->threads[m->c->n_threads++] = (struct import_thread){.id = t->id, .name = t->name};
	codes = lengths;
	for (uint64_t i = 0; i < n; i++)
		(void)get_number(&codes);
	r = make_samples(m, n, start_us, &lengths, &codes);
	return r == 0 && codes.at != codes.end ? fail_run(m) : r;
}

/*
 * The members of a payload that import_chunk has no member for, and those by which the format json
 * says what the page says.
 */
static int make_payload(const struct process *p, struct import_chunk *c)
{
	c->payload = json_pack(
		"{s:s, s:s, s:s, s:s*, s:s*, s:s*, s:s*, s:b, s:b}", "version", "2", "profiler_id",
		p->profiler_id, "chunk_id", "page", "platform", p->platform, "release", p->release,
		"environment", p->environment, PROFILE_SYMBOLS, c->lacks_lines ? "names" : NULL,
		PROFILE_READY_KNOWN, !c->hides_ready, PROFILE_JOINED_SAMPLES, c->joins_samples);
	if (c->payload == NULL)
		return -ENOMEM;
	c->profiler_id = p->profiler_id;
	c->chunk_id = json_string_value(json_object_get(c->payload, "chunk_id"));
	c->platform = p->platform;
	c->main_program = p->main_program;
	c->command_line = p->command_line;
	return 0;
}

/* Adds the first stack, the empty one, and the threads of the process. */
static int make_process(struct making *m, const struct process *process)
{
	int r = 0;

	if (array_grow(m->c->stack_starts, 0, m->cap_starts) < 0)
		return -ENOMEM;
	m->c->stack_starts[0] = 0;
	r = end_stack(m);
	for (uint32_t i = process->first_run; i != PROFILE_NONE && r == 0; i = m->p->runs[i].next)
		r = make_run(m, &m->p->runs[i]);
	if (r < 0)
		return r;
	import_chunk_sort(m->c);
	return make_payload(process, m->c);
}

int import_page_next(struct import_page *p, struct import_chunk *ret, struct import_fault *fault)
{
	struct import_chunk c = {
		.has_states = p->has_states,
		.hides_ready = p->hides_ready,
		.lacks_lines = p->lacks_lines,
		.joins_samples = true,
	};
	struct making m = {.p = p, .c = &c, .fault = fault};
	int r;

	if (p->next_process == p->n_processes)
		return 0;
	m.stamp = ++p->next_process;
	r = make_process(&m, &p->processes[m.stamp - 1]);
	if (r < 0) {
		import_chunk_fini(&c);
		p->next_process = (uint32_t)p->n_processes;
		return r;
	}
	*ret = c;
	return 1;
}
