#include "lib/aggregate/lookup.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/aggregate/names.h"
#include "lib/base/array.h"
#include "lib/base/utf8.h"

void lookup_init(struct lookup *l, uint64_t hash_seed)
{
	*l = (struct lookup){.in_app = {.include = "", .exclude = ""}};
	string_pool_init(&l->text, hash_seed);
	table_init(&l->image_at, hash_seed);
}

void lookup_fini(struct lookup *l)
{
	struct lookup old;

	if (l == NULL)
		return;
	string_pool_fini(&l->text);
	free(l->frames);
	free(l->images);
	table_fini(&l->image_at);
	free(l->profile_images);
	free(l->details);
	free(l->lines);
	free(l->inlined);
	old = *l;
	lookup_init(l, l->image_at.seed);
	l->demangle = old.demangle;
	l->inlined_for_files = old.inlined_for_files;
	l->lines_for_files = old.lines_for_files;
	l->name_by_start = old.name_by_start;
	l->by_function = old.by_function;
	l->in_app = old.in_app;
}

/* Returns the address to look up: a caller is looked up inside its call instruction. */
static uint64_t lookup_addr(const struct stacks_frame *f)
{
	return f->is_leaf ? f->addr : f->addr - 1;
}

/* Interns s as valid UTF-8. */
static int intern(struct lookup *l, const char *s, const char **ret)
{
	char clean[NAME_SIZE];

	utf8_clean(s, true, clean, sizeof(clean));
	return string_pool_intern(&l->text, clean, ret);
}

static int add_image(struct lookup *l, const struct unwind_image *image, const char *path)
{
	struct lookup_image *entry;
	uint32_t index;
	int r;

	if (table_get(&l->image_at, image->addr, &index)) {
		if (image->size <= l->images[index].size)
			return 0;
	} else {
		if (array_grow(l->images, l->n_images, l->cap_images) < 0)
			return -ENOMEM;
		index = (uint32_t)l->n_images;
		r = table_put(&l->image_at, image->addr, index);
		if (r < 0)
			return r;
		l->n_images++;
	}
	entry = &l->images[index];
	*entry = (struct lookup_image){
		.path = path,
		.addr = image->addr,
		.vmaddr = image->vmaddr,
		.size = image->size,
	};
	if (image->id != NULL) {
		entry->id_size = min_size(image->id_size, LOOKUP_ID_MAX);
		memcpy(entry->id, image->id, entry->id_size);
		entry->has_build_id = image->has_build_id;
	}
	return 0;
}

/* Returns an upper bound of the bytes of s in JSON. */
static size_t escaped_bytes(const char *s)
{
	size_t n = 0;

	for (; *s != '\0'; s++)
		n += (uint8_t)*s < 0x20 ? PROFILE_ESCAPE_BYTES : *s == '"' || *s == '\\' ? 2 : 1;
	return n;
}

/* Counts the bytes of s in the payload. Returns false if they would exceed its limit. */
static bool reserve_payload(struct lookup *l, const char *s)
{
	size_t n = escaped_bytes(s);

	if (n > LOOKUP_PAYLOAD_MAX - l->payload_bytes)
		return false;
	l->payload_bytes += n;
	return true;
}

/* The same for payloads for files. The names of members are counted as well. */
static bool reserve_file_payload(struct lookup *l, const char *s)
{
	static const char members[] = "{\"function\":\"\",\"file\":\"\",\"line\":4294967295},";
	size_t n = sizeof(members) - 1 + escaped_bytes(s);

	if (n > LOOKUP_FILE_PAYLOAD_MAX - l->file_payload_bytes)
		return false;
	l->file_payload_bytes += n;
	return true;
}

/* Interns the name, demangled if asked for. */
static int intern_name(struct lookup *l, const char *name, const char **ret)
{
	char demangled[NAME_SIZE];

	if (l->demangle && unwind_demangle(name, true, demangled, sizeof(demangled)))
		name = demangled;
	return intern(l, name, ret);
}

/* The same. *ret is NULL if the payload has no room. */
static int look_up_name(struct lookup *l, const char *name, const char **ret)
{
	int r = intern_name(l, name, ret);

	if (r == 0 && !reserve_payload(l, *ret))
		*ret = NULL;
	return r;
}

/*
 * Interns the source file; NULL if it is unknown, or the payload has no room. A payload has each
 * file's name twice, once without its directory; in "lines" it has it once.
 */
static int look_up_file(struct lookup *l, const char *file, bool for_files, const char **ret)
{
	int r;

	*ret = NULL;
	if (file == NULL || file[0] == '\0')
		return 0;
	r = intern(l, file, ret);
	if (r == 0 &&
	    (for_files ? !reserve_file_payload(l, *ret)
		       : !reserve_payload(l, *ret) || !reserve_payload(l, names_base(*ret))))
		*ret = NULL;
	return r;
}

static bool has_file(const struct unwind_line *line)
{
	return line->file != NULL && line->file[0] != '\0';
}

/* Sets file and line of a frame: in the frame itself, or in *lines, for files only. */
static int set_source(struct lookup *l, const struct unwind_line *line, struct profile_frame *frame,
		      struct profile_lines *lines)
{
	if (!has_file(line))
		return 0;
	if (l->lines_for_files) {
		lines->line = line->line;
		return look_up_file(l, line->file, true, &lines->file);
	}
	frame->line = line->line;
	return look_up_file(l, line->file, false, &frame->file);
}

/*
 * Makes the frame of an inlined function. Its function is NULL if it is left out: it has no name,
 * or the payload has no room for the name.
 */
static int make_inlined(struct lookup *l, const struct unwind_line *line,
			const struct profile_frame *frame, struct profile_frame *ret)
{
	const bool for_files = l->inlined_for_files;
	int r;

	*ret = *frame;
	ret->function = NULL;
	ret->file = NULL;
	ret->line = 0;
	if (line->function == NULL || line->function[0] == '\0')
		return 0;
	r = intern_name(l, line->function, &ret->function);
	if (r == 0 && (for_files ? !reserve_file_payload(l, ret->function)
				 : !reserve_payload(l, ret->function)))
		ret->function = NULL;
	if (r < 0 || ret->function == NULL)
		return r;
	/* By function a line would make equal frames differ. */
	if (!l->by_function && has_file(line))
		ret->line = line->line;
	r = look_up_file(l, line->file, for_files, &ret->file);
	/* The payload has the package in each frame, and not in "lines". */
	if (!for_files && ret->package != NULL && !reserve_payload(l, ret->package))
		ret->package = NULL;
	return r;
}

/* Adds the n functions that were inlined at frame, innermost first. */
static int add_inlined(struct lookup *l, const struct unwind_line *lines, size_t n,
		       const struct profile_frame *frame, struct profile_lines *ret)
{
	ret->first = (uint32_t)l->n_inlined;
	for (size_t i = 0; i < n; i++) {
		struct profile_frame inlined;
		int r = make_inlined(l, &lines[i], frame, &inlined);

		if (r < 0)
			return r;
		if (inlined.function == NULL)
			continue;
		if (array_grow(l->inlined, l->n_inlined, l->cap_inlined) < 0)
			return -ENOMEM;
		l->inlined[l->n_inlined++] = inlined;
	}
	ret->n = (uint32_t)l->n_inlined - ret->first;
	return 0;
}

/*
 * Makes a name of an address, "libc.so.6+0x2724a": the image and the distance
 * from the image's start. image is NULL if the address lies in no image.
 */
static int name_by_offset(struct lookup *l, uint64_t addr, const struct unwind_image *image,
			  const char *path, const char **ret)
{
	char name[NAME_SIZE + sizeof("+0x0123456789abcdef")];

	if (image != NULL)
		(void)snprintf(name, sizeof(name), "%s+0x%" PRIx64, names_base(path),
			       addr - image->addr);
	else
		(void)snprintf(name, sizeof(name), "unknown+0x%" PRIx64, unwind_plain_addr(addr));
	return string_pool_intern(&l->text, name, ret);
}

/* symbol: NULL if no symbol covers the address. */
static bool is_in_app(const struct lookup *l, const struct unwind_image *image, const char *path,
		      const char *main_path, const char *symbol)
{
	const struct in_app_code code = {
		.path = path,
		.main_path = main_path,
		.symbol = symbol,
		.is_go = image != NULL && image->is_go,
		.has_interpreter = image != NULL && image->has_interpreter,
	};

	/* Code outside of all images belongs to the application if a perf map names it. */
	return image == NULL ? symbol != NULL : in_app(&code, &l->in_app);
}

/*
 * Looks up the function at addr: its name, its start, and whether it is in_app.
 * image is NULL if addr lies in no image.
 */
static int look_up_function(struct lookup *l, struct unwind_space *space, uint64_t addr,
			    const struct unwind_image *image, const char *main_path,
			    struct profile_frame *frame, struct lookup_detail *detail)
{
	const char *name;
	uint64_t offset;
	int r;

	if (unwind_symbol_at(space, addr, &name, &offset) == 0 && name[0] != '\0') {
		detail->start = addr - offset;
		frame->in_app = is_in_app(l, image, frame->package, main_path, name);
		return look_up_name(l, name, &frame->function);
	}
	detail->unnamed = true;
	frame->in_app = is_in_app(l, image, frame->package, main_path, NULL);
	if (image == NULL || unwind_function_at(space, addr, &detail->start) < 0 ||
	    !l->name_by_start)
		return 0;
	r = name_by_offset(l, detail->start, image, frame->package, &frame->function);
	if (r == 0 && !reserve_payload(l, frame->function))
		frame->function = NULL;
	return r;
}

/*
 * Looks up the source position, and the inlined functions. start: of the frame's function; 0:
 * unknown.
 */
static int look_up_lines(struct lookup *l, struct unwind_space *space, uint64_t addr,
			 uint64_t start, struct profile_frame *frame, struct profile_lines *ret)
{
	const uint64_t source_at = l->by_function && start != 0 ? start : addr;
	struct unwind_line lines[UNWIND_LINES_MAX];
	bool found;
	size_t n;
	int r = 0;

	found = unwind_lines_at(space, addr, lines, &n) == 0;
	if (found)
		r = add_inlined(l, lines, n - 1, frame, ret);
	if (source_at != addr)
		found = unwind_lines_at(space, source_at, lines, &n) == 0;
	return r == 0 && found ? set_source(l, &lines[n - 1], frame, ret) : r;
}

static int look_up_frame(struct lookup *l, const struct stacks_frame *f, struct unwind_space *space,
			 const char *main_path, struct profile_frame *ret,
			 struct lookup_detail *ret_detail, struct profile_lines *ret_lines)
{
	const uint64_t addr = lookup_addr(f);
	struct profile_frame frame = {.addr = f->addr};
	struct lookup_detail detail = {0};
	struct profile_lines lines = {0};
	struct unwind_image image;
	bool has_image;
	int r = 0;

	has_image = unwind_image_at(space, addr, &image) == 0;
	if (has_image) {
		r = intern(l, image.path, &frame.package);
		if (r == 0)
			r = add_image(l, &image, frame.package);
		if (r < 0)
			return r;
	}
	r = look_up_function(l, space, addr, has_image ? &image : NULL, main_path, &frame, &detail);
	if (has_image && !reserve_payload(l, frame.package))
		frame.package = NULL;
	if (l->by_function && detail.start != 0)
		frame.addr = unwind_after_call(detail.start);
	if (r == 0)
		r = look_up_lines(l, space, addr, detail.start, &frame, &lines);
	unwind_names_done(space);
	*ret = frame;
	*ret_detail = detail;
	*ret_lines = lines;
	return r;
}

int lookup_update(struct lookup *l, const struct stacks *s, struct unwind_space *space,
		  const char *main_path)
{
	while (l->n_frames < s->n_frames) {
		int r;

		if (array_grow(l->frames, l->n_frames, l->cap_frames) < 0 ||
		    array_grow(l->details, l->n_frames, l->cap_details) < 0 ||
		    array_grow(l->lines, l->n_frames, l->cap_lines) < 0)
			return -ENOMEM;
		r = look_up_frame(l, &s->frames[l->n_frames], space, main_path,
				  &l->frames[l->n_frames], &l->details[l->n_frames],
				  &l->lines[l->n_frames]);
		if (r < 0)
			return r;
		l->n_frames++;
	}
	return 0;
}

/* Names a frame without a name by its address; by_function: by its function's start. */
static int name_near_root(struct lookup *l, const struct stacks_frame *f,
			  const struct lookup_detail *detail, struct unwind_space *space,
			  struct profile_frame *frame)
{
	const uint64_t addr = l->by_function && detail->start != 0 ? detail->start : f->addr;
	struct unwind_image image;
	bool has_image = frame->package != NULL &&
			 unwind_image_at(space, lookup_addr(f), &image) == 0 &&
			 reserve_payload(l, frame->package);

	return name_by_offset(l, addr, has_image ? &image : NULL, frame->package, &frame->function);
}

static int compare_images(const void *a, const void *b)
{
	const struct lookup_image *x = a, *y = b;

	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

static int finish_images(struct lookup *l)
{
	/* One element more than needed, because calloc(0) may return NULL. */
	struct profile_image *out = calloc(l->n_images + 1, sizeof(*out));

	if (out == NULL)
		return -ENOMEM;
	free(l->profile_images);
	l->profile_images = out;
	l->n_profile_images = 0;
	if (l->n_images > 0)
		qsort(l->images, l->n_images, sizeof(l->images[0]), compare_images);
	table_clear(&l->image_at);
	for (size_t i = 0; i < l->n_images; i++) {
		const struct lookup_image *image = &l->images[i];
		uint64_t room = UINT64_MAX - image->addr;

		if (i + 1 < l->n_images)
			room = image[1].addr - image->addr;
		/* The server cannot use an image without an id. */
		if (image->id_size == 0)
			continue;
		out[l->n_profile_images++] = (struct profile_image){
			.code_file = image->path,
			.id = image->id,
			.id_size = image->id_size,
			.has_build_id = image->has_build_id,
			.addr = image->addr,
			.vmaddr = image->vmaddr,
			.size = min_u64(image->size, room),
		};
	}
	return 0;
}

int lookup_finish(struct lookup *l, const struct stacks *s, struct unwind_space *space)
{
	for (size_t i = 0; i < l->n_frames; i++) {
		struct profile_frame *frame = &l->frames[i];
		int r;

		if (!s->frames[i].near_root)
			continue;
		if (l->details[i].unnamed || frame->function == NULL)
			frame->in_app = false;
		if (frame->function != NULL)
			continue;
		r = name_near_root(l, &s->frames[i], &l->details[i], space, frame);
		if (r < 0)
			return r;
	}
	return finish_images(l);
}
