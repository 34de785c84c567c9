#include <pprof.pb-c.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/buf.h"
#include "lib/ship/gzip.h"
#include "proto/export/export.h"
#include "proto/export/numbering.h"

/* Room for 64 hex digits, a build-id of SHA-256. */
#define BUILD_ID_SIZE 65

/* Values of a sample: samples, wall time, ready time, running time, in this order. */
enum { VALUES = 4 };
enum { LABELS_MAX = 4 };

/* Compressed bytes that are collected before they are written; the limit of the buffer. */
#define UNWRITTEN_BYTES	    (1u << 20)
#define UNWRITTEN_BYTES_MAX (1u << 30)

/*
 * The profile is written in parts, each a protobuf message of its own. A parser takes
 * concatenated messages as one message, and concatenates their lists (protobuf.dev, "Last One
 * Wins").
 */
struct writer {
	const struct merge *m;
	FILE *out;
	struct gzip gzip;
	struct buf unwritten; /* compressed bytes that are not written yet */
	struct export_strings strings;
	struct export_functions functions;
	struct string_pool texts; /* build-ids that build_id() has made */
	size_t *first_mappings;	  /* by process: the id of its first mapping; ids begin with 1 */
	uint64_t *locations;	  /* of one stack */
	uint8_t *packed;	  /* a part */
	size_t packed_size;
	int error; /* 0 or -errno */
};

static void fail(struct writer *w, int error)
{
	if (w->error == 0)
		w->error = error;
}

static void write_unwritten(struct writer *w)
{
	errno = 0;
	if (w->error == 0 &&
	    fwrite(buf_string(&w->unwritten), 1, w->unwritten.len, w->out) != w->unwritten.len)
		fail(w, errno != 0 ? -errno : -EIO);
	buf_clear(&w->unwritten);
}

static void write_part(struct writer *w, const Pprof__Profile *part)
{
	const size_t n = pprof__profile__get_packed_size(part);
	int r;

	if (n > w->packed_size) {
		uint8_t *packed = realloc(w->packed, n);

		if (packed == NULL) {
			fail(w, -ENOMEM);
			return;
		}
		w->packed = packed;
		w->packed_size = n;
	}
	r = gzip_add(&w->gzip, w->packed, pprof__profile__pack(part, w->packed));
	if (r < 0)
		fail(w, r);
	if (w->unwritten.len >= UNWRITTEN_BYTES)
		write_unwritten(w);
}

static int64_t string(struct writer *w, const char *s)
{
	return export_strings_number(&w->strings, s);
}

static void write_sample_types(struct writer *w)
{
	static const char *const words[VALUES][2] = {
		{"samples", "count"},
		{"wall", "nanoseconds"},
		{"ready", "nanoseconds"},
		{"running", "nanoseconds"},
	};
	Pprof__ValueType types[VALUES], *list[VALUES];
	Pprof__Profile part = PPROF__PROFILE__INIT;
	uint64_t from_ns;

	for (size_t i = 0; i < VALUES; i++) {
		pprof__value_type__init(&types[i]);
		types[i].type = string(w, words[i][0]);
		types[i].unit = string(w, words[i][1]);
		list[i] = &types[i];
	}
	part.n_sample_type = VALUES;
	part.sample_type = list;
	part.default_sample_type = types[VALUES - 1].type;
	part.duration_nanos =
		(int64_t)merge_selected(w->m, w->m->end_ns - w->m->start_ns, &from_ns);
	part.time_nanos = (int64_t)(w->m->start_ns + from_ns);
	write_part(w, &part);
}

static bool is_hex(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/*
 * Returns the build-id, or, if the image has none, its first 16 bytes, restored from the
 * debug_id, which has the bytes of its first three fields reversed (proto/debug_meta.h).
 */
static const char *build_id(struct writer *w, const struct import_image *image)
{
	static const uint8_t order[] = {6, 7, 4, 5, 2, 3, 0, 1, 10, 11, 8, 9, 14, 15, 12, 13};
	char digits[BUILD_ID_SIZE], id[BUILD_ID_SIZE];
	const char *ret = "";
	size_t n = 0;

	if (image->code_id != NULL)
		return image->code_id;
	if (image->debug_id == NULL)
		return "";
	for (const char *p = image->debug_id; *p != '\0' && n < 32; p++)
		if (is_hex(*p))
			digits[n++] = *p;
	if (n < 32)
		return "";
	for (size_t i = 0; i < n; i++)
		id[i] = digits[i < sizeof(order) ? order[i] : i];
	id[n] = '\0';
	if (string_pool_intern(&w->texts, id, &ret) < 0)
		fail(w, -ENOMEM);
	return ret;
}

static void write_mappings(struct writer *w)
{
	size_t id = 1;

	for (size_t i = 0; i < w->m->n_processes; i++) {
		const struct merge_process *p = &w->m->processes[i];

		w->first_mappings[i] = id;
		for (size_t j = 0; j < p->n_images; j++) {
			const struct import_image *image = &p->images[j];
			Pprof__Mapping mapping = PPROF__MAPPING__INIT;
			Pprof__Mapping *list = &mapping;
			Pprof__Profile part = PPROF__PROFILE__INIT;

			mapping.id = id++;
			mapping.memory_start = image->addr;
			mapping.memory_limit = image->addr + image->size;
			mapping.filename =
				string(w, image->code_file != NULL ? image->code_file : "");
			mapping.build_id = string(w, build_id(w, image));
			mapping.has_functions = true;
			part.n_mapping = 1;
			part.mapping = &list;
			write_part(w, &part);
		}
	}
}

static void write_functions(struct writer *w)
{
	for (size_t i = 0; i < w->functions.n; i++) {
		const struct merge_frame *f = &w->m->frames[w->functions.first_frame[i]];
		Pprof__Function function = PPROF__FUNCTION__INIT;
		Pprof__Function *list = &function;
		Pprof__Profile part = PPROF__PROFILE__INIT;

		function.id = i + 1;
		function.name = string(w, f->name);
		/*
		 * system_name is not set: if it equals the name, go tool pprof takes the name
		 * as mangled, and strips types and arguments from it.
		 */
		if (f->file != NULL)
			function.filename = string(w, f->file);
		part.n_function = 1;
		part.function = &list;
		write_part(w, &part);
	}
}

/* Writes a location for each frame: its id is the frame's index plus one. */
static void write_locations(struct writer *w)
{
	for (size_t i = 0; i < w->m->n_frames; i++) {
		const struct merge_frame *f = &w->m->frames[i];
		const uint32_t image = merge_find_image(w->m, f);
		Pprof__Line line = PPROF__LINE__INIT, *lines = &line;
		Pprof__Location location = PPROF__LOCATION__INIT;
		Pprof__Location *list = &location;
		Pprof__Profile part = PPROF__PROFILE__INIT;

		line.function_id = w->functions.of_frame[i] + UINT64_C(1);
		line.line = f->line;
		location.id = i + 1;
		location.address = f->addr;
		if (image != PROFILE_NONE)
			location.mapping_id = w->first_mappings[f->process] + image;
		location.n_line = 1;
		location.line = &lines;
		part.n_location = 1;
		part.location = &list;
		write_part(w, &part);
	}
}

static void add_label(struct writer *w, Pprof__Sample *sample, Pprof__Label *labels,
		      const char *key, const char *value)
{
	Pprof__Label *label = &labels[sample->n_label];

	pprof__label__init(label);
	label->key = string(w, key);
	label->str = string(w, value);
	sample->label[sample->n_label++] = label;
}

static void write_sample(struct writer *w, const struct merge_bar *bar)
{
	const struct merge_thread *t = &w->m->threads[bar->thread];
	const struct merge_process *p = &w->m->processes[t->process];
	const int64_t ns = (int64_t)bar->duration_ns;
	int64_t values[VALUES] = {bar->samples, ns, bar->state == PROFILE_READY ? ns : 0,
				  bar->state == PROFILE_RUNNING ? ns : 0};
	Pprof__Label labels[LABELS_MAX], *label_list[LABELS_MAX];
	Pprof__Sample sample = PPROF__SAMPLE__INIT, *list = &sample;
	Pprof__Profile part = PPROF__PROFILE__INIT;
	uint32_t node = bar->node;

	sample.location_id = w->locations;
	for (; node != PROFILE_NONE; node = w->m->nodes[node].parent)
		w->locations[sample.n_location_id++] = w->m->nodes[node].frame + UINT64_C(1);
	sample.n_value = VALUES;
	sample.value = values;
	sample.label = label_list;
	add_label(w, &sample, labels, "thread", t->label);
	add_label(w, &sample, labels, "tid", t->id);
	if (p->pid != NULL)
		add_label(w, &sample, labels, "pid", p->pid);
	add_label(w, &sample, labels, "profiler_id", p->profiler_id);
	part.n_sample = 1;
	part.sample = &list;
	write_part(w, &part);
}

/* Writes the table of strings. Called last, since all other parts add strings. */
static void write_strings(struct writer *w)
{
	Pprof__Profile part = PPROF__PROFILE__INIT;
	/* protobuf-c does not change the strings, but its pointers are not const. */
	char **list = calloc(w->strings.n + 1, sizeof(*list));

	if (list == NULL || w->strings.error < 0) {
		fail(w, -ENOMEM);
		free(list);
		return;
	}
	memcpy(list, w->strings.strings, w->strings.n * sizeof(*list));
	part.n_string_table = w->strings.n;
	part.string_table = list;
	write_part(w, &part);
	free(list);
}

static int write_profile(struct writer *w)
{
	int r;

	(void)string(w, ""); /* number 0 */
	write_sample_types(w);
	write_mappings(w);
	write_functions(w);
	write_locations(w);
	for (size_t i = 0; i < w->m->n_bars && w->error == 0; i++)
		write_sample(w, &w->m->bars[i]);
	write_strings(w);
	r = gzip_finish(&w->gzip);
	if (r < 0)
		fail(w, r);
	write_unwritten(w);
	errno = 0;
	if (w->error == 0 && fflush(w->out) != 0)
		fail(w, errno != 0 ? -errno : -EIO);
	return w->error;
}

int export_pprof(const struct merge *m, const struct export_options *o, FILE *out)
{
	struct writer *w = calloc(1, sizeof(*w));
	int r = -ENOMEM;

	(void)o;
	if (w == NULL)
		return r;
	w->m = m;
	w->out = out;
	buf_init(&w->unwritten, UNWRITTEN_BYTES_MAX);
	export_strings_init(&w->strings, m->options.hash_seed);
	string_pool_init(&w->texts, m->options.hash_seed);
	w->first_mappings = calloc(m->n_processes + 1, sizeof(*w->first_mappings));
	w->locations = calloc(IMPORT_STACK_FRAMES_MAX, sizeof(*w->locations));
	if (export_functions_init(&w->functions, m) == 0 && w->first_mappings != NULL &&
	    w->locations != NULL && gzip_init(&w->gzip, &w->unwritten) == 0) {
		r = write_profile(w);
		gzip_fini(&w->gzip);
	}
	buf_fini(&w->unwritten);
	export_functions_fini(&w->functions);
	export_strings_fini(&w->strings);
	string_pool_fini(&w->texts);
	free(w->first_mappings);
	free(w->locations);
	free(w->packed);
	free(w);
	return r;
}
