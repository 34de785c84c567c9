#include "proto/import/chunk.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How much of a text of the payload is shown in a fault. */
#define SHOWN_MAX 40

int import_fault_set(struct import_fault *fault, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	if (vsnprintf(fault->text, sizeof(fault->text), format, args) < 0)
		fault->text[0] = '\0';
	va_end(args);
	for (char *p = fault->text; *p != '\0'; p++)
		if ((unsigned char)*p < 0x20 || (unsigned char)*p >= 0x7f)
			*p = '?';
	return -EBADMSG;
}

/* The element that is being read, for the text of a fault: "profile.frames[12]". */
struct element {
	const char *list;
	size_t index;
	struct import_fault *fault;
};

static int fail(const struct element *at, const char *member, const char *what)
{
	return import_fault_set(at->fault, "%s[%zu].%s %s", at->list, at->index, member, what);
}

/* Gets a string that may be missing or null: NULL then. */
static int get_text(const json_t *object, const char *member, const struct element *at,
		    const char **ret)
{
	const json_t *v = json_object_get(object, member);

	*ret = NULL;
	if (v == NULL || json_is_null(v))
		return 0;
	if (!json_is_string(v))
		return fail(at, member, "is not a string");
	*ret = json_string_value(v);
	return 0;
}

/* Gets an address, a string "0x...", that may be missing: 0 then. */
static int get_address(const json_t *object, const char *member, const struct element *at,
		       uint64_t *ret)
{
	const char *text;
	char *end;
	int r = get_text(object, member, at, &text);

	*ret = 0;
	if (r < 0 || text == NULL)
		return r;
	if (strncmp(text, "0x", 2) != 0 || text[2] == '\0' ||
	    strspn(text + 2, "0123456789abcdefABCDEF") != strlen(text + 2))
		return fail(at, member, "is not an address \"0x...\"");
	errno = 0;
	*ret = strtoull(text, &end, 16);
	return errno != 0 ? fail(at, member, "has more than 64 bits") : 0;
}

/* Gets an integer of 0 to max that may be missing: 0 then. */
static int get_number(const json_t *object, const char *member, const struct element *at,
		      uint64_t max, uint64_t *ret)
{
	const json_t *v = json_object_get(object, member);

	*ret = 0;
	if (v == NULL || json_is_null(v))
		return 0;
	if (!json_is_integer(v) || json_integer_value(v) < 0 ||
	    (uint64_t)json_integer_value(v) > max)
		return fail(at, member, "is not a number in its range");
	*ret = (uint64_t)json_integer_value(v);
	return 0;
}

/* Gets an index below n, which must not be missing. */
static int get_index(const json_t *v, size_t n, uint32_t *ret)
{
	if (!json_is_integer(v) || json_integer_value(v) < 0 ||
	    (uint64_t)json_integer_value(v) >= n)
		return -EBADMSG;
	*ret = (uint32_t)json_integer_value(v);
	return 0;
}

/*
 * Gets a list, which must not be missing, and allocates an array with one element more than
 * the list has. Lists of more elements than a 32-bit index can count are refused. After an error
 * *ret_room is NULL.
 */
static int get_list(const json_t *object, const char *list, size_t size, struct import_fault *fault,
		    const json_t **ret_list, void **ret_room)
{
	const char *member = strrchr(list, '.') + 1;
	const json_t *v = json_object_get(object, member);

	*ret_room = NULL;
	if (!json_is_array(v))
		return import_fault_set(fault, "%s is not a list", list);
	if (json_array_size(v) >= UINT32_MAX)
		return import_fault_set(fault, "%s is too long", list);
	*ret_room = calloc(json_array_size(v) + 1, size);
	if (*ret_room == NULL)
		return -ENOMEM;
	*ret_list = v;
	return 0;
}

static int read_frame(const json_t *v, const struct element *at, struct import_frame *ret)
{
	const json_t *in_app = json_object_get(v, "in_app");
	const char *module;
	uint64_t line = 0;
	int r;

	if (!json_is_object(v))
		return fail(at, "*", "is not an object");
	r = get_address(v, "instruction_addr", at, &ret->addr);
	if (r == 0)
		r = get_text(v, "function", at, &ret->function);
	if (r == 0)
		r = get_text(v, "package", at, &ret->package);
	if (r == 0)
		r = get_text(v, "module", at, &module);
	if (r == 0 && ret->package == NULL)
		ret->package = module;
	if (r == 0)
		r = get_text(v, "abs_path", at, &ret->file);
	if (r == 0 && ret->file == NULL)
		r = get_text(v, "filename", at, &ret->file);
	if (r == 0)
		r = get_number(v, "lineno", at, INT32_MAX, &line);
	ret->line = (uint32_t)line;
	ret->in_app = json_is_true(in_app);
	return r;
}

/*
 * Where the frames of the payload are in import_chunk.frames: frame i is the last of those from
 * starts[i] up to starts[i + 1]. The ones before it are the functions inlined there, innermost
 * first.
 */
struct places {
	size_t *starts;
	size_t n;
};

/* Reads an element of PROFILE_LINES, of an inlined function or, the last one, of the frame. */
static int read_line(const json_t *v, bool is_last, const struct element *at,
		     struct import_frame *ret)
{
	const char *file = NULL, *function = NULL;
	uint64_t line = 0;
	int r = json_is_object(v) ? 0 : fail(at, PROFILE_LINES, "has an element that is no object");

	if (r == 0)
		r = get_text(v, "function", at, &function);
	if (r == 0)
		r = get_text(v, "file", at, &file);
	if (r == 0)
		r = get_number(v, "line", at, INT32_MAX, &line);
	if (r < 0)
		return r;
	if (!is_last)
		ret->function = function;
	/* A frame may have its file and line outside of the list. */
	if (!is_last || file != NULL) {
		ret->file = file;
		ret->line = (uint32_t)line;
	}
	return 0;
}

/* Returns the number of frames that a frame of the payload becomes; 0: a fault. */
static size_t count_lines(const json_t *frame)
{
	const json_t *lines = json_object_get(frame, PROFILE_LINES);

	if (lines == NULL)
		return 1;
	return json_array_size(lines) <= PROFILE_LINES_MAX ? json_array_size(lines) : 0;
}

/* Reads a frame, and the functions inlined there, to ret, which has room for n. */
static int read_frame_and_inlined(const json_t *v, const struct element *at, size_t n,
				  struct import_frame *ret)
{
	const json_t *lines = json_object_get(v, PROFILE_LINES), *line;
	size_t i;
	int r = n > 0 ? read_frame(v, at, &ret[n - 1])
		      : fail(at, PROFILE_LINES, "is no list, empty or too long");

	if (r < 0 || lines == NULL)
		return r;
	json_array_foreach(lines, i, line)
	{
		if (i < n - 1)
			ret[i] = ret[n - 1];
		r = read_line(line, i == n - 1, at, &ret[i]);
		if (r < 0)
			return r;
	}
	return 0;
}

static int read_frames(const json_t *profile, struct import_chunk *c, struct places *ret,
		       struct import_fault *fault)
{
	struct element at = {"profile.frames", 0, fault};
	const json_t *list, *v;
	size_t n = 0;
	void *room;
	int r = get_list(profile, at.list, sizeof(*ret->starts), fault, &list, &room);

	if (room == NULL)
		return r;
	ret->starts = room;
	ret->n = json_array_size(list);
	json_array_foreach(list, at.index, v)
	{
		ret->starts[at.index] = n;
		n += count_lines(v);
	}
	ret->starts[ret->n] = n;
	if (n >= UINT32_MAX)
		return import_fault_set(fault, "%s is too long", at.list);
	c->frames = calloc(n + 1, sizeof(*c->frames));
	if (c->frames == NULL)
		return -ENOMEM;
	c->n_frames = n;
	json_array_foreach(list, at.index, v)
	{
		const size_t first = ret->starts[at.index];

		r = read_frame_and_inlined(v, &at, ret->starts[at.index + 1] - first,
					   &c->frames[first]);
		if (r < 0)
			return r;
	}
	return 0;
}

/*
 * Writes the frames of a stack of the payload to ret, unless that is NULL: with the inlined
 * functions as far as IMPORT_STACK_FRAMES_MAX permits. The indices of the payload are valid.
 * Returns how many frames there are.
 */
static size_t put_stack(const json_t *stack, const struct places *places, uint32_t *ret)
{
	const size_t n_frames = json_array_size(stack);
	size_t n = 0;

	for (size_t i = 0; i < n_frames; i++) {
		const json_int_t frame = json_integer_value(json_array_get(stack, i));
		const size_t end = places->starts[frame + 1];
		size_t first = places->starts[frame];

		if (n + (end - first) + (n_frames - i - 1) > IMPORT_STACK_FRAMES_MAX)
			first = end - 1;
		for (; first < end; first++, n++)
			if (ret != NULL)
				ret[n] = (uint32_t)first;
	}
	return n;
}

/* Checks stack i. */
static int check_stack(const json_t *stack, size_t i, const struct places *places,
		       struct import_fault *fault)
{
	const json_t *v;
	uint32_t frame;
	size_t j;

	if (!json_is_array(stack))
		return import_fault_set(fault, "profile.stacks[%zu] is not a list", i);
	if (json_array_size(stack) > IMPORT_STACK_FRAMES_MAX)
		return import_fault_set(fault, "profile.stacks[%zu] has more than %u frames", i,
					IMPORT_STACK_FRAMES_MAX);
	json_array_foreach(stack, j, v)
	{
		if (get_index(v, places->n, &frame) < 0)
			return import_fault_set(fault,
						"profile.stacks[%zu][%zu] is not an index of "
						"profile.frames",
						i, j);
	}
	return 0;
}

/* Checks the stacks, and counts how many frames they have together. */
static int measure_stacks(const json_t *list, const struct places *places,
			  struct import_fault *fault, size_t *ret)
{
	const json_t *v;
	size_t i;

	*ret = 0;
	json_array_foreach(list, i, v)
	{
		int r = check_stack(v, i, places, fault);

		if (r < 0)
			return r;
		*ret += put_stack(v, places, NULL);
	}
	return 0;
}

static int read_stacks(const json_t *profile, const struct places *places, struct import_chunk *c,
		       struct import_fault *fault)
{
	const json_t *list, *stack;
	size_t n = 0, i;
	void *room;
	int r = get_list(profile, "profile.stacks", sizeof(*c->stack_starts), fault, &list, &room);

	if (room == NULL)
		return r;
	c->stack_starts = room;
	r = measure_stacks(list, places, fault, &n);
	if (r < 0)
		return r;
	c->stack_frames = calloc(n + 1, sizeof(*c->stack_frames));
	if (c->stack_frames == NULL)
		return -ENOMEM;
	n = 0;
	json_array_foreach(list, i, stack)
	{
		c->stack_starts[i] = n;
		n += put_stack(stack, places, c->stack_frames + n);
	}
	c->n_stacks = json_array_size(list);
	c->stack_starts[c->n_stacks] = n;
	return 0;
}

static int read_frames_and_stacks(const json_t *profile, struct import_chunk *c,
				  struct import_fault *fault)
{
	struct places places = {0};
	int r = read_frames(profile, c, &places, fault);

	if (r == 0)
		r = read_stacks(profile, &places, c, fault);
	free(places.starts);
	return r;
}

/* Older profilers do not say what they looked for. */
static bool lacks_lines(const struct import_chunk *c)
{
	const char *symbols = json_string_value(json_object_get(c->payload, PROFILE_SYMBOLS));

	return symbols != NULL && strcmp(symbols, "lines") != 0;
}

/*
 * Finds or adds the thread of an id. Threads are numbered in the order of their first
 * samples; numbers maps a thread_id to the number.
 */
static int find_thread(struct import_chunk *c, json_t *numbers, const json_t *metadata,
		       const char *id, uint32_t *ret)
{
	const json_t *known = json_object_get(numbers, id);
	const json_t *name;

	if (known != NULL) {
		*ret = (uint32_t)json_integer_value(known);
		return 0;
	}
	*ret = (uint32_t)c->n_threads;
	name = json_object_get(json_object_get(metadata, id), "name");
	c->threads[c->n_threads++] = (struct import_thread){
		.id = id,
		.name = json_is_string(name) ? json_string_value(name) : "",
	};
	return json_object_set_new(numbers, id, json_integer(*ret)) < 0 ? -ENOMEM : 0;
}

static int read_time(const json_t *v, const struct element *at, uint64_t *ret_ns)
{
	const double s = json_is_number(v) ? json_number_value(v) : -1;

	if (!(s >= 0 && s < IMPORT_TIME_MAX_S))
		return fail(at, "timestamp", "is not a number of seconds since 1970");
	*ret_ns = (uint64_t)(s * 1e6 + 0.5) * 1000;
	return 0;
}

static int read_state(const json_t *v, const struct element *at, struct import_chunk *c,
		      enum profile_state *ret)
{
	const char *name;
	int r = get_text(v, "state", at, &name);

	*ret = PROFILE_RUNNING;
	if (r < 0 || name == NULL)
		return r;
	c->has_states = true;
	for (enum profile_state state = 0; state < PROFILE_STATES; state++) {
		if (strcmp(name, profile_state_name(state)) != 0)
			continue;
		*ret = state;
		return 0;
	}
	return fail(at, "state", "is neither running, ready nor waiting");
}

static int read_sample(const json_t *v, const struct element *at, struct import_chunk *c,
		       json_t *numbers, const json_t *metadata)
{
	struct import_sample *s = &c->samples[at->index];
	const json_t *id = json_object_get(v, "thread_id");
	int r;

	if (!json_is_object(v))
		return fail(at, "*", "is not an object");
	r = read_time(json_object_get(v, "timestamp"), at, &s->time_ns);
	if (r == 0 && !json_is_string(id))
		r = fail(at, "thread_id", "is not a string");
	if (r == 0 && get_index(json_object_get(v, "stack_id"), c->n_stacks, &s->stack) < 0)
		r = fail(at, "stack_id", "is not an index of profile.stacks");
	if (r == 0)
		r = read_state(v, at, c, &s->state);
	if (r == 0)
		r = find_thread(c, numbers, metadata, json_string_value(id), &s->thread);
	return r;
}

static int compare_time(const void *a, const void *b)
{
	const struct import_sample *x = a, *y = b;

	return x->time_ns < y->time_ns ? -1 : x->time_ns > y->time_ns;
}

/*
 * Sorts the samples by time. The order of samples with the same thread and time has no
 * meaning, so the sort need not be stable.
 */
void import_chunk_sort(struct import_chunk *c)
{
	for (size_t i = 1; i < c->n_samples; i++) {
		if (c->samples[i].time_ns >= c->samples[i - 1].time_ns)
			continue;
		qsort(c->samples, c->n_samples, sizeof(*c->samples), compare_time);
		return;
	}
}

/*
 * Sets duration_ns and is_last, from the last sample to the first: next[thread] is the time
 * of the following sample of that thread.
 */
static int measure_samples(struct import_chunk *c)
{
	uint64_t *next = calloc(c->n_threads + 1, sizeof(*next));
	bool *has_next = calloc(c->n_threads + 1, sizeof(*has_next));

	for (size_t i = c->n_samples; i-- > 0 && next != NULL && has_next != NULL;) {
		struct import_sample *s = &c->samples[i];

		s->is_last = !has_next[s->thread];
		if (!s->is_last)
			s->duration_ns = next[s->thread] - s->time_ns;
		next[s->thread] = s->time_ns;
		has_next[s->thread] = true;
	}
	free(next);
	free(has_next);
	return next == NULL || has_next == NULL ? -ENOMEM : 0;
}

static bool has_waiting_sample(const struct import_chunk *c)
{
	for (size_t i = 0; i < c->n_samples; i++)
		if (c->samples[i].state == PROFILE_WAITING)
			return true;
	return false;
}

static int read_samples(const json_t *profile, struct import_chunk *c, struct import_fault *fault)
{
	const json_t *metadata = json_object_get(profile, "thread_metadata");
	struct element at = {"profile.samples", 0, fault};
	const json_t *list, *v;
	json_t *numbers;
	void *room;
	int r = get_list(profile, at.list, sizeof(*c->samples), fault, &list, &room);

	if (room == NULL)
		return r;
	c->samples = room;
	numbers = json_object();
	/* There are at most as many threads as samples. */
	c->threads = calloc(json_array_size(list) + 1, sizeof(*c->threads));
	if (numbers == NULL || c->threads == NULL)
		r = -ENOMEM;
	for (; r == 0 && at.index < json_array_size(list); at.index++) {
		v = json_array_get(list, at.index);
		r = read_sample(v, &at, c, numbers, metadata);
	}
	c->n_samples = json_array_size(list);
	if (r == 0) {
		import_chunk_sort(c);
		r = measure_samples(c);
	}
	json_decref(numbers);
	return r;
}

static int read_image(const json_t *v, const struct element *at, struct import_image *ret)
{
	int r;

	if (!json_is_object(v))
		return fail(at, "*", "is not an object");
	r = get_text(v, "code_file", at, &ret->code_file);
	if (r == 0)
		r = get_text(v, "debug_id", at, &ret->debug_id);
	if (r == 0)
		r = get_text(v, "code_id", at, &ret->code_id);
	if (r == 0)
		r = get_address(v, "image_addr", at, &ret->addr);
	if (r == 0)
		r = get_address(v, "image_vmaddr", at, &ret->vmaddr);
	if (r == 0)
		r = get_number(v, "image_size", at, INT64_MAX, &ret->size);
	if (r == 0 && ret->size > UINT64_MAX - ret->addr)
		r = fail(at, "image_size", "reaches beyond 64 bits");
	return r;
}

/* Images may be missing: other SDKs do not send them. */
static int read_images(struct import_chunk *c, struct import_fault *fault)
{
	const json_t *meta = json_object_get(c->payload, "debug_meta");
	struct element at = {"debug_meta.images", 0, fault};
	const json_t *list, *v;
	void *room;
	int r;

	if (json_object_get(meta, "images") == NULL)
		return 0;
	r = get_list(meta, at.list, sizeof(*c->images), fault, &list, &room);
	if (room == NULL)
		return r;
	c->images = room;
	json_array_foreach(list, at.index, v)
	{
		r = read_image(v, &at, &c->images[at.index]);
		if (r < 0)
			return r;
	}
	c->n_images = json_array_size(list);
	return 0;
}

static int read_all(struct import_chunk *c, struct import_fault *fault)
{
	const json_t *version = json_object_get(c->payload, "version");
	const json_t *profile = json_object_get(c->payload, "profile");
	int r;

	if (!json_is_object(c->payload))
		return import_fault_set(fault, "is not a JSON object");
	if (!json_is_string(version) || !json_is_object(profile))
		return import_fault_set(fault, "is not a profile chunk: has "
					       "no version or no profile");
	if (strcmp(json_string_value(version), "2") != 0)
		return import_fault_set(fault,
					"has version %.*s: only profile chunks "
					"of version 2 can be read",
					SHOWN_MAX, json_string_value(version));
	c->profiler_id = json_string_value(json_object_get(c->payload, "profiler_id"));
	c->chunk_id = json_string_value(json_object_get(c->payload, "chunk_id"));
	c->platform = json_string_value(json_object_get(c->payload, "platform"));
	if (c->profiler_id == NULL || c->chunk_id == NULL)
		return import_fault_set(fault, "profiler_id or chunk_id is not a string");
	r = read_images(c, fault);
	if (r == 0)
		r = read_frames_and_stacks(profile, c, fault);
	if (r == 0)
		r = read_samples(profile, c, fault);
	if (r == 0 && !json_is_true(json_object_get(c->payload, PROFILE_READY_KNOWN)))
		c->hides_ready = has_waiting_sample(c);
	c->lacks_lines = lacks_lines(c);
	c->joins_samples = json_is_true(json_object_get(c->payload, PROFILE_JOINED_SAMPLES));
	c->command_line = json_string_value(json_object_get(c->payload, PROFILE_COMMAND_LINE));
	return r;
}

int import_chunk_read(json_t *payload, struct import_chunk *ret, struct import_fault *fault)
{
	struct import_chunk c = {.payload = payload};
	int r = read_all(&c, fault);

	if (r < 0)
		import_chunk_fini(&c);
	else
		*ret = c;
	return r;
}

void import_chunk_fini(struct import_chunk *c)
{
	if (c == NULL)
		return;
	free(c->images);
	free(c->frames);
	free(c->stack_starts);
	free(c->stack_frames);
	free(c->threads);
	free(c->samples);
	json_decref(c->payload);
	*c = (struct import_chunk){0};
}
