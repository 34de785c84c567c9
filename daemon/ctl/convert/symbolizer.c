#include "daemon/ctl/convert/symbolizer.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "daemon/common/log.h"
#include "daemon/ctl/common/file_reader.h"
#include "daemon/ctl/convert/debug_files.h"
#include "daemon/ctl/convert/debuginfod.h"
#include "daemon/msg/symbolized.h"
#include "lib/base/array.h"
#include "lib/base/string_pool.h"
#include "proto/profile.h"

#define NONE UINT32_MAX

/* The files that may have the names of an image, in the order in which they are tried. */
enum candidate {
	CANDIDATE_FILE,	 /* the file at the path of the image */
	CANDIDATE_DEBUG, /* a debug file of its build-id */
	CANDIDATE_N	 /* none is left */
};

/* An image of chunks, and whether its names are demangled. */
struct image {
	/* Interned; NULL: not known. */
	const char *path, *build_id, *debug_id;
	bool demangle;
	enum candidate candidate; /* the one in use, or the next to try */
	bool warned_no_names;	  /* a line has said that the image has no names */
};

/* An address in an image, with the frames that were found for it. */
struct location {
	uint32_t image;
	uint64_t offset;
	uint32_t first, n; /* in symbolizer.frames, innermost first; n 0: no names */
};

struct symbolizer {
	struct file_reader reader;
	bool is_unwind_started;
	struct debuginfod debuginfod;
	struct string_pool text;
	struct image *images;
	size_t n_images, cap_images;
	struct location *locations;
	size_t n_locations, cap_locations;
	struct symbolized_frame *frames;
	size_t n_frames, cap_frames;
	struct table by_image, by_location;
};

/* A frame of the chunk as a leaf or as a caller: the two have different addresses. */
struct frame_use {
	bool is_used;
	uint32_t location; /* NONE: not looked up */
	uint32_t first, n; /* in work.frames; n 0: not made yet */
};

/* The state of one call of symbolizer_chunk(). */
struct work {
	struct symbolizer *s;
	const struct import_chunk *c;
	bool demangle;
	uint32_t *by_address;	/* images of c, sorted */
	uint32_t *images;	/* by image of c: the image of s; NONE: not looked up */
	bool *is_expanded;	/* by frame: the chunk has its inlined functions already */
	struct frame_use *uses; /* two for each frame: as a caller, as a leaf */
	struct import_frame *frames;
	size_t n_frames, cap_frames;
};

void symbolizer_free(struct symbolizer *s)
{
	if (s == NULL)
		return;
	file_reader_end(&s->reader);
	debuginfod_end(&s->debuginfod);
	string_pool_fini(&s->text);
	free(s->images);
	free(s->locations);
	free(s->frames);
	table_fini(&s->by_image);
	table_fini(&s->by_location);
	free(s);
}

static int start_unwind(struct symbolizer *s)
{
	int r;

	if (s->is_unwind_started)
		return 0;
	r = file_reader_start(&s->reader);
	if (r < 0) {
		file_reader_end(&s->reader);
		log_error("sentry-profd-unwind cannot be started: %s; no names are looked up",
			  strerror(-r));
		return r;
	}
	s->is_unwind_started = true;
	return 0;
}

struct symbolizer *symbolizer_new(void)
{
	struct symbolizer *s = calloc(1, sizeof(*s));
	uint64_t seed;

	if (s == NULL) {
		log_error("no memory to look up names (--symbolize): nothing is written");
		return NULL;
	}
	if (getrandom(&seed, sizeof(seed), 0) < 0)
		seed = 0;
	string_pool_init(&s->text, seed);
	table_init(&s->by_image, seed);
	table_init(&s->by_location, seed);
	if (start_unwind(s) == 0)
		return s;
	symbolizer_free(s);
	return NULL;
}

static uint64_t mix(uint64_t key, uint64_t value)
{
	return (key ^ value) * UINT64_C(0x9e3779b97f4a7c15) + (key >> 29);
}

/* Interns text; NULL and "" give NULL. in_lower_case is for hex digits. */
static int intern(struct symbolizer *s, const char *text, bool in_lower_case, const char **ret)
{
	char lower[MSG_NAME_MAX];
	size_t n;

	*ret = NULL;
	if (text == NULL || text[0] == '\0')
		return 0;
	if (!in_lower_case)
		return string_pool_intern(&s->text, text, ret);
	n = strlen(text);
	/* No file has an id of this length: it is treated as unknown. */
	if (n >= sizeof(lower))
		return 0;
	for (size_t i = 0; i <= n; i++)
		lower[i] = text[i] >= 'A' && text[i] <= 'Z' ? (char)(text[i] - 'A' + 'a') : text[i];
	return string_pool_intern(&s->text, lower, ret);
}

/* Finds or adds the image of s for an image of a chunk. */
static int find_image(struct symbolizer *s, const struct import_image *from, bool demangle,
		      uint32_t *ret)
{
	struct image image = {.demangle = demangle};
	uint64_t key;
	int r = intern(s, from->code_file, false, &image.path);

	if (r == 0)
		r = intern(s, from->code_id, true, &image.build_id);
	if (r == 0)
		r = intern(s, from->debug_id, true, &image.debug_id);
	if (r < 0)
		return r;
	/* [vdso] is not a file; without an id no file can be matched. */
	if (image.path == NULL || image.path[0] != '/' ||
	    (image.build_id == NULL && image.debug_id == NULL))
		image.candidate = CANDIDATE_N;
	key = mix(mix((uintptr_t)image.path, (uintptr_t)image.build_id),
		  (uintptr_t)image.debug_id + demangle);
	for (; table_get(&s->by_image, key, ret); key++) {
		const struct image *i = &s->images[*ret];

		if (i->path == image.path && i->build_id == image.build_id &&
		    i->debug_id == image.debug_id && i->demangle == demangle)
			return 0;
	}
	if (array_grow(s->images, s->n_images, s->cap_images) < 0)
		return -ENOMEM;
	*ret = (uint32_t)s->n_images;
	r = table_put(&s->by_image, key, *ret);
	if (r == 0)
		s->images[s->n_images++] = image;
	return r;
}

static int find_location(struct symbolizer *s, uint32_t image, uint64_t offset, uint32_t *ret)
{
	uint64_t key = mix(mix(image, offset), offset);
	int r;

	for (; table_get(&s->by_location, key, ret); key++)
		if (s->locations[*ret].image == image && s->locations[*ret].offset == offset)
			return 0;
	if (array_grow(s->locations, s->n_locations, s->cap_locations) < 0)
		return -ENOMEM;
	*ret = (uint32_t)s->n_locations;
	r = table_put(&s->by_location, key, *ret);
	if (r == 0)
		s->locations[s->n_locations++] =
			(struct location){.image = image, .offset = offset};
	return r;
}

static int add_frame(struct symbolizer *s, const struct symbolized_frame *from)
{
	struct symbolized_frame frame = {.line = from->line};
	int r = intern(s, from->function, false, &frame.function);

	if (r == 0)
		r = intern(s, from->file, false, &frame.file);
	if (r < 0)
		return r;
	if (array_grow(s->frames, s->n_frames, s->cap_frames) < 0)
		return -ENOMEM;
	s->frames[s->n_frames++] = frame;
	return 0;
}

/* Stores the answer of unwind for n locations. Returns 0, -EPROTO or -ENOMEM. */
static int take_answer(struct symbolizer *s, const struct buf *answer, const uint32_t *locations,
		       size_t n)
{
	struct symbolized_cursor cursor = {(const uint8_t *)answer->data, answer->len};
	struct symbolized_pc location;

	for (size_t i = 0; i < n; i++) {
		struct location *p = &s->locations[locations[i]];
		const size_t first = s->n_frames;

		if (symbolized_next(&cursor, &location) < 0)
			return -EPROTO;
		for (size_t k = 0; k < location.n; k++) {
			int r = add_frame(s, &location.frames[k]);

			if (r < 0)
				return r;
		}
		p->first = (uint32_t)first;
		p->n = (uint32_t)location.n;
	}
	return cursor.left == 0 ? 0 : -EPROTO;
}

struct search {
	struct symbolizer *s;
	struct image *image;
};

/*
 * Opens the debug file of a build-id: of this machine, else from a server. A server is
 * asked only for the build-id of the chunk: one that unwind sends may be made up by a file.
 */
static int find_by_id(const struct search *search, const char *build_id, int *ret_fd)
{
	const char *wanted = search->image->build_id;
	int r = debug_files_by_id(build_id, ret_fd);

	if (r == 0 || wanted == NULL || strcmp(wanted, build_id) != 0)
		return r;
	return debuginfod_find(&search->s->debuginfod, build_id, ret_fd);
}

static int find_debug(void *ctx, const struct msg_file_request *request, int *ret_fd)
{
	const struct search *search = ctx;

	return request->kind == FILE_KIND_DEBUG
		       ? find_by_id(search, request->name, ret_fd)
		       : debug_files_by_link(search->image->path, request->name, ret_fd);
}

/* The path is .build-id/XX/YYYY.debug, so only hex digits, and more than two, are valid. */
static bool is_build_id(const char *text)
{
	const size_t n = strspn(text, "0123456789abcdef");

	return n >= 4 && n % 2 == 0 && text[n] == '\0';
}

static int open_candidate(const struct search *search, int *ret_fd)
{
	const struct image *image = search->image;

	if (image->candidate == CANDIDATE_FILE)
		return debug_files_open(image->path, ret_fd);
	return image->build_id != NULL && is_build_id(image->build_id)
		       ? find_by_id(search, image->build_id, ret_fd)
		       : -ENOENT;
}

static void copy_name(char out[MSG_NAME_MAX], const char *text)
{
	const size_t n = text == NULL ? 0 : strnlen(text, MSG_NAME_MAX - 1);

	if (n > 0)
		memcpy(out, text, n);
	out[n] = '\0';
}

static const char *verdict_text(enum symbolize_verdict verdict)
{
	switch (verdict) {
	case SYMBOLIZE_NOT_ELF:
		return "is not an ELF file for this processor";
	case SYMBOLIZE_OTHER_ID:
		return "is another file than the one that was profiled: its "
		       "build-id differs";
	case SYMBOLIZE_NO_MEMORY:
		return "needs too much memory to be read";
	case SYMBOLIZE_NO_NAMES:
		return "has no names and no lines for the profiled code, and "
		       "no debug file was found";
	case SYMBOLIZE_DONE:
		break;
	}
	return "is fine";
}

/*
 * Asks unwind for n locations of the file behind fd. *ret_reason is NULL if the file is the
 * right one, else the reason, for a line after the path of the image. Returns 0, or an error that
 * ends the conversion.
 */
static int ask_file(struct search *search, int fd, const uint32_t *locations, size_t n,
		    const char **ret_reason)
{
	/* 9 KB: too much for the stack. */
	static struct msg_symbolize m;
	struct image *image = search->image;
	struct symbolizer *s = search->s;
	enum symbolize_verdict verdict = SYMBOLIZE_DONE;
	struct buf answer;
	int r = start_unwind(s);

	if (r < 0)
		return r;
	m = (struct msg_symbolize){
		.h = MSG_HEADER(MSG_SYMBOLIZE),
		.n = (uint32_t)n,
		.demangle = image->demangle,
	};
	copy_name(m.build_id, image->build_id);
	copy_name(m.debug_id, image->debug_id);
	copy_name(m.name, strrchr(image->path, '/') + 1);
	for (size_t i = 0; i < n; i++)
		m.offsets[i] = s->locations[locations[i]].offset;
	buf_init(&answer, SYMBOLIZED_BYTES_MAX);
	r = file_reader_symbolize(&s->reader, &m, fd, find_debug, search, &verdict, &answer);
	if (r == 0 && msg_symbolized_has_answer(verdict))
		r = take_answer(s, &answer, locations, n);
	buf_fini(&answer);
	if (r == -ENOMEM)
		return r;
	*ret_reason = msg_symbolized_has_answer(verdict) ? NULL : verdict_text(verdict);
	if (r < 0) {
		file_reader_end(&s->reader);
		s->is_unwind_started = false;
		*ret_reason = "cannot be read: sentry-profd-unwind has died reading it";
	} else if (verdict == SYMBOLIZE_NO_NAMES && !image->warned_no_names) {
		image->warned_no_names = true;
		log_list_entry(true, "%s %s", image->path, verdict_text(verdict));
	}
	return 0;
}

/* Asks for n locations of one image, at most MSG_SYMBOLIZE_MAX, trying its candidates. */
static int ask_image(struct symbolizer *s, const uint32_t *locations, size_t n)
{
	struct image *image = &s->images[s->locations[locations[0]].image];
	struct search search = {s, image};
	const char *first = "";

	if (image->candidate == CANDIDATE_N)
		return 0;
	for (; image->candidate < CANDIDATE_N; image->candidate++) {
		const char *reason = NULL;
		int fd = -1, r = open_candidate(&search, &fd);

		if (r < 0)
			reason = r == -ENXIO ? "is not a regular file" : strerror(-r);
		else
			r = ask_file(&search, fd, locations, n, &reason);
		close_fd(&fd);
		if (reason == NULL)
			return r;
		if (first[0] == '\0')
			first = reason;
	}
	log_list_entry(true, "%s%s%s", image->path, strncmp(first, "is ", 3) == 0 ? " " : ": ",
		       first);
	return 0;
}

static const struct symbolizer *comparing;

static int compare_locations(const void *a, const void *b)
{
	const struct location *x = &comparing->locations[*(const uint32_t *)a];
	const struct location *y = &comparing->locations[*(const uint32_t *)b];

	if (x->image != y->image)
		return x->image < y->image ? -1 : 1;
	return x->offset < y->offset ? -1 : x->offset > y->offset;
}

/* Asks for all locations with an index of first or more, image by image. */
static int ask_locations(struct symbolizer *s, size_t first)
{
	const size_t n = s->n_locations - first;
	uint32_t *locations = calloc(n + 1, sizeof(*locations));
	int r = 0;

	if (locations == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		locations[i] = (uint32_t)(first + i);
	comparing = s;
	qsort(locations, n, sizeof(*locations), compare_locations);
	for (size_t i = 0, end; i < n && r == 0; i = end) {
		const uint32_t image = s->locations[locations[i]].image;

		for (end = i + 1; end < n && end - i < MSG_SYMBOLIZE_MAX &&
				  s->locations[locations[end]].image == image;
		     end++)
			;
		r = ask_image(s, locations + i, end - i);
	}
	free(locations);
	return r;
}

static struct frame_use *use_of(const struct work *w, uint32_t frame, bool is_leaf)
{
	return &w->uses[2 * (size_t)frame + is_leaf];
}

static bool same_text(const char *a, const char *b)
{
	return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

/*
 * Finds out which frames the stacks use as leaf and as caller, and which frames have
 * inlined functions in the chunk already: neighbours with one address and two names.
 */
static void find_uses(struct work *w)
{
	const struct import_chunk *c = w->c;

	for (size_t i = 0; i < c->n_stacks; i++)
		for (size_t k = c->stack_starts[i]; k < c->stack_starts[i + 1]; k++) {
			const uint32_t f = c->stack_frames[k];
			const uint32_t before = k > c->stack_starts[i] ? c->stack_frames[k - 1] : f;

			use_of(w, f, k == c->stack_starts[i])->is_used = true;
			if (c->frames[f].addr != c->frames[before].addr ||
			    same_text(c->frames[f].function, c->frames[before].function))
				continue;
			w->is_expanded[f] = true;
			w->is_expanded[before] = true;
		}
}

static const struct import_chunk *sorting;

static int compare_images(const void *a, const void *b)
{
	const uint64_t x = sorting->images[*(const uint32_t *)a].addr;
	const uint64_t y = sorting->images[*(const uint32_t *)b].addr;

	return x < y ? -1 : x > y;
}

/* Returns the index in c of the image that addr lies in, or NONE. */
static uint32_t image_at(const struct work *w, uint64_t addr)
{
	size_t low = 0, high = w->c->n_images;
	const struct import_image *image;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (w->c->images[w->by_address[middle]].addr <= addr)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == 0)
		return NONE;
	image = &w->c->images[w->by_address[low - 1]];
	return addr - image->addr < image->size ? w->by_address[low - 1] : NONE;
}

/* Finds or adds the location of each frame. ask_locations() fills in the new ones. */
static int find_locations(struct work *w)
{
	for (size_t i = 0; i < 2 * w->c->n_frames; i++) {
		const struct import_frame *f = &w->c->frames[i / 2];
		const bool is_leaf = i % 2 == 1;
		const uint64_t addr = is_leaf ? f->addr : f->addr - 1;
		uint32_t image;
		int r = 0;

		w->uses[i].location = NONE;
		if (!w->uses[i].is_used || w->is_expanded[i / 2] || f->addr == 0)
			continue;
		image = image_at(w, addr);
		if (image == NONE)
			continue;
		if (w->images[image] == NONE)
			r = find_image(w->s, &w->c->images[image], w->demangle, &w->images[image]);
		if (r == 0)
			r = find_location(w->s, w->images[image], addr - w->c->images[image].addr,
					  &w->uses[i].location);
		if (r < 0)
			return r;
	}
	return 0;
}

/* True for "libc.so.6+0x2724a", which stands for an unknown function (docs/FORMATS.md). */
static bool is_offset_name(const struct import_frame *f)
{
	const char *plus = strrchr(f->function, '+');
	const char *file = f->package == NULL ? "unknown" : f->package;
	const char *slash = strrchr(file, '/');
	size_t n;

	if (plus == NULL || strncmp(plus, "+0x", 3) != 0 || plus[3] == '\0' ||
	    plus[3 + strspn(plus + 3, "0123456789abcdef")] != '\0')
		return false;
	file = slash == NULL ? file : slash + 1;
	n = (size_t)(plus - f->function);
	return strlen(file) == n && memcmp(file, f->function, n) == 0;
}

static int add_new(struct work *w, const struct import_frame *frame)
{
	if (array_grow(w->frames, w->n_frames, w->cap_frames) < 0)
		return -ENOMEM;
	w->frames[w->n_frames++] = *frame;
	return 0;
}

/* Makes the new frames for one use of a frame, innermost first. */
static int expand(struct work *w, const struct import_frame *frame, struct frame_use *use)
{
	const struct location *location =
		use->location == NONE ? NULL : &w->s->locations[use->location];
	const size_t n = location == NULL ? 0 : location->n;
	struct import_frame own = *frame;

	use->first = (uint32_t)w->n_frames;
	for (size_t i = 0; i + 1 < n; i++) {
		const struct symbolized_frame *from = &w->s->frames[location->first + i];
		struct import_frame inlined = *frame;
		int r;

		inlined.function = from->function;
		inlined.file = from->file;
		inlined.line = from->line;
		r = add_new(w, &inlined);
		if (r < 0)
			return r;
	}
	if (n > 0) {
		const struct symbolized_frame *from = &w->s->frames[location->first + n - 1];

		if (from->function != NULL && (own.function == NULL || is_offset_name(&own)))
			own.function = from->function;
		if (own.file == NULL) {
			own.file = from->file;
			own.line = from->line;
		}
	}
	use->n = n > 0 ? (uint32_t)n : 1;
	return add_new(w, &own);
}

static int expand_all(struct work *w)
{
	for (size_t i = 0; i < 2 * w->c->n_frames; i++) {
		int r = 0;

		if (w->uses[i].is_used)
			r = expand(w, &w->c->frames[i / 2], &w->uses[i]);
		if (r < 0)
			return r;
	}
	return 0;
}

/*
 * Writes the new frames of stack i of c to out, unless that is NULL. Returns how many there
 * are. Leaves out inlined functions where the stack would exceed IMPORT_STACK_FRAMES_MAX.
 */
static size_t write_stack(const struct work *w, size_t i, uint32_t *out)
{
	const struct import_chunk *c = w->c;
	const size_t first = c->stack_starts[i], end = c->stack_starts[i + 1];
	size_t n = 0;

	for (size_t k = first; k < end; k++) {
		const struct frame_use *use = use_of(w, c->stack_frames[k], k == first);
		uint32_t at = 0;

		if (n + use->n + (end - k - 1) > IMPORT_STACK_FRAMES_MAX)
			at = use->n - 1;
		for (; at < use->n; at++, n++)
			if (out != NULL)
				out[n] = use->first + at;
	}
	return n;
}

static int make_stacks(const struct work *w, struct import_chunk *ret)
{
	size_t n = 0;

	for (size_t i = 0; i < w->c->n_stacks; i++)
		n += write_stack(w, i, NULL);
	ret->stack_starts = calloc(w->c->n_stacks + 1, sizeof(*ret->stack_starts));
	ret->stack_frames = calloc(n + 1, sizeof(*ret->stack_frames));
	if (ret->stack_starts == NULL || ret->stack_frames == NULL)
		return -ENOMEM;
	n = 0;
	for (size_t i = 0; i < w->c->n_stacks; i++) {
		ret->stack_starts[i] = n;
		n += write_stack(w, i, ret->stack_frames + n);
	}
	ret->stack_starts[w->c->n_stacks] = n;
	return 0;
}

static int work_init(struct work *w)
{
	const struct import_chunk *c = w->c;

	w->by_address = calloc(c->n_images + 1, sizeof(*w->by_address));
	w->images = calloc(c->n_images + 1, sizeof(*w->images));
	w->is_expanded = calloc(c->n_frames + 1, sizeof(*w->is_expanded));
	w->uses = calloc(2 * (c->n_frames + 1), sizeof(*w->uses));
	if (w->by_address == NULL || w->images == NULL || w->is_expanded == NULL || w->uses == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < c->n_images; i++) {
		w->by_address[i] = (uint32_t)i;
		w->images[i] = NONE;
	}
	sorting = c;
	qsort(w->by_address, c->n_images, sizeof(*w->by_address), compare_images);
	return 0;
}

int symbolizer_chunk(struct symbolizer *s, const struct import_chunk *c, struct import_chunk *ret)
{
	struct work w = {
		.s = s,
		.c = c,
		.demangle = c->platform == NULL || strcmp(c->platform, "rust") != 0,
	};
	const size_t known = s->n_locations;
	int r = work_init(&w);

	*ret = *c;
	ret->stack_starts = NULL;
	ret->stack_frames = NULL;
	if (r == 0) {
		find_uses(&w);
		r = find_locations(&w);
	}
	if (r == 0)
		r = ask_locations(s, known);
	if (r == 0)
		r = expand_all(&w);
	if (r == 0)
		r = make_stacks(&w, ret);
	ret->frames = w.frames;
	ret->n_frames = w.n_frames;
	free(w.by_address);
	free(w.images);
	free(w.is_expanded);
	free(w.uses);
	if (r < 0)
		symbolizer_release(ret);
	return r;
}

void symbolizer_release(struct import_chunk *c)
{
	free(c->frames);
	free(c->stack_starts);
	free(c->stack_frames);
	c->frames = NULL;
	c->stack_starts = NULL;
	c->stack_frames = NULL;
}
