#include <stdlib.h>
#include <string.h>

#include "proto/export/export.h"
#include "proto/export/numbering.h"
#include "proto/export/points.h"

#define VERSION_PROCESSED "70"
#define VERSION_GECKO	  "36"

enum category { CATEGORY_APPLICATION = 1, CATEGORY_LIBRARY = 2, CATEGORY_READY = 3 };

/*
 * Rows that follow the rows 0 to n - 1 of a table, each a copy of one of these, for ready bars: the
 * category of a sample is that of its leaf, so the leaf and the stack of a ready bar need rows of
 * their own.
 */
struct copies {
	uint32_t *of_row;  /* the number of a row's copy; PROFILE_NONE: it has none */
	uint32_t *sources; /* by number of the copy: the row */
	size_t n_rows, n;
};

static int copies_init(struct copies *c, size_t n_rows)
{
	c->of_row = calloc(n_rows + 1, sizeof(*c->of_row));
	c->sources = calloc(n_rows + 1, sizeof(*c->sources));
	c->n_rows = n_rows;
	if (c->of_row == NULL || c->sources == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < n_rows; i++)
		c->of_row[i] = PROFILE_NONE;
	return 0;
}

static void copies_fini(struct copies *c)
{
	free(c->of_row);
	free(c->sources);
}

static void copies_add(struct copies *c, uint32_t row)
{
	if (c->of_row[row] != PROFILE_NONE)
		return;
	c->of_row[row] = (uint32_t)c->n;
	c->sources[c->n++] = row;
}

static bool copies_has(const struct copies *c, size_t row)
{
	return row >= c->n_rows;
}

/* Returns the row that this row is a copy of, or the row itself. */
static size_t copies_source(const struct copies *c, size_t row)
{
	return copies_has(c, row) ? c->sources[row - c->n_rows] : row;
}

static size_t copies_length(const struct copies *c)
{
	return c->n_rows + c->n;
}

/* Returns the row of the copy, which must exist. */
static size_t copies_row(const struct copies *c, uint32_t row)
{
	return c->n_rows + c->of_row[row];
}

struct writer {
	const struct merge *m;
	struct json_out *o;
	struct export_strings strings;
	struct export_strings modules, files; /* paths of the tables of resources and sources */
	struct export_functions functions;
	bool *is_caller;    /* by frame: it is not a leaf */
	size_t *first_libs; /* by process: index of its first library */
	struct copies frames, stacks;
	struct export_point *points; /* of a thread; room for those of any */
};

/* Numbers all strings, so that the tables can be written column by column. */
static int number_strings(struct writer *w)
{
	for (size_t i = 0; i < w->m->n_frames; i++) {
		const struct merge_frame *f = &w->m->frames[i];

		(void)export_strings_number(&w->strings, f->name);
		if (f->package != NULL) {
			(void)export_strings_number(&w->modules, f->package);
			(void)export_strings_number(&w->strings, f->package);
		}
		if (f->file != NULL) {
			(void)export_strings_number(&w->files, f->file);
			(void)export_strings_number(&w->strings, f->file);
		}
	}
	if (w->strings.error < 0 || w->modules.error < 0)
		return -ENOMEM;
	return w->files.error;
}

static int writer_init(struct writer *w)
{
	const struct merge *m = w->m;
	const uint64_t seed = m->options.hash_seed;
	size_t n = 0, most_bars = 0;
	int r = export_functions_init(&w->functions, m);

	export_strings_init(&w->strings, seed);
	export_strings_init(&w->modules, seed);
	export_strings_init(&w->files, seed);
	w->is_caller = calloc(m->n_frames + 1, sizeof(*w->is_caller));
	w->first_libs = calloc(m->n_processes + 1, sizeof(*w->first_libs));
	for (size_t i = 0; i < m->n_threads; i++)
		most_bars = max_u64(most_bars, m->threads[i].n_bars);
	w->points = calloc(2 * most_bars + 1, sizeof(*w->points));
	if (r == 0)
		r = copies_init(&w->frames, m->n_frames);
	if (r == 0)
		r = copies_init(&w->stacks, m->n_nodes);
	if (r < 0 || w->is_caller == NULL || w->first_libs == NULL || w->points == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < m->n_bars; i++) {
		if (m->bars[i].state != PROFILE_READY)
			continue;
		copies_add(&w->stacks, m->bars[i].node);
		copies_add(&w->frames, m->nodes[m->bars[i].node].frame);
	}
	for (size_t i = 0; i < m->n_nodes; i++)
		if (m->nodes[i].parent != PROFILE_NONE)
			w->is_caller[m->nodes[m->nodes[i].parent].frame] = true;
	for (size_t i = 0; i < m->n_processes; i++) {
		w->first_libs[i] = n;
		n += m->processes[i].n_images;
	}
	return number_strings(w);
}

static void writer_fini(struct writer *w)
{
	export_strings_fini(&w->strings);
	export_strings_fini(&w->modules);
	export_strings_fini(&w->files);
	export_functions_fini(&w->functions);
	free(w->is_caller);
	free(w->first_libs);
	free(w->points);
	copies_fini(&w->frames);
	copies_fini(&w->stacks);
}

/* Writes the element of a column in this row. */
typedef void element(struct writer *w, size_t row);

/* Writes a column of a table, after a comma: an element for each of n rows. */
static void write_column(struct writer *w, const char *name, size_t n, element *write)
{
	json_out_raw(w->o, ",\"");
	json_out_raw(w->o, name);
	json_out_raw(w->o, "\":[");
	for (size_t i = 0; i < n; i++) {
		json_out_raw(w->o, i > 0 ? "," : "");
		write(w, i);
	}
	json_out_raw(w->o, "]");
}

/* Writes the first member of a table: the number of its rows. */
static void write_length(struct writer *w, const char *head, size_t n)
{
	json_out_raw(w->o, head);
	json_out_raw(w->o, "{\"length\":");
	json_out_u64(w->o, n);
}

static void write_null(struct writer *w, size_t row)
{
	(void)row;
	json_out_raw(w->o, "null");
}

static void write_zero(struct writer *w, size_t row)
{
	(void)row;
	json_out_raw(w->o, "0");
}

static void write_one(struct writer *w, size_t row)
{
	(void)row;
	json_out_raw(w->o, "1");
}

static void write_false(struct writer *w, size_t row)
{
	(void)row;
	json_out_raw(w->o, "false");
}

static void stack_frame(struct writer *w, size_t row)
{
	const uint32_t frame = w->m->nodes[copies_source(&w->stacks, row)].frame;

	json_out_u64(w->o, copies_has(&w->stacks, row) ? copies_row(&w->frames, frame) : frame);
}

static void stack_prefix(struct writer *w, size_t row)
{
	const uint32_t parent = w->m->nodes[copies_source(&w->stacks, row)].parent;

	json_out_u64(w->o, parent == PROFILE_NONE ? 0 : row - parent);
}

static const struct merge_frame *frame_at(const struct writer *w, size_t row)
{
	return &w->m->frames[copies_source(&w->frames, row)];
}

/*
 * Writes the offset in the image. For a caller it is the return address minus one, as the
 * format requires.
 */
static void frame_address(struct writer *w, size_t row)
{
	const struct merge_frame *f = frame_at(w, row);
	const uint32_t image = merge_find_image(w->m, f);
	uint64_t offset;

	if (image == PROFILE_NONE) {
		json_out_raw(w->o, "-1");
		return;
	}
	offset = f->addr - w->m->processes[f->process].images[image].addr;
	json_out_u64(w->o, w->is_caller[copies_source(&w->frames, row)] && offset > 0 ? offset - 1
										      : offset);
}

/* Writes the index of the library. Libraries are the images of all processes in order. */
static void frame_lib(struct writer *w, size_t row)
{
	const struct merge_frame *f = frame_at(w, row);
	const uint32_t image = merge_find_image(w->m, f);

	if (image == PROFILE_NONE)
		json_out_raw(w->o, "-1");
	else
		json_out_u64(w->o, w->first_libs[f->process] + image);
}

static void frame_category(struct writer *w, size_t row)
{
	if (copies_has(&w->frames, row))
		json_out_u64(w->o, CATEGORY_READY);
	else
		json_out_u64(w->o,
			     frame_at(w, row)->in_app ? CATEGORY_APPLICATION : CATEGORY_LIBRARY);
}

static void frame_func(struct writer *w, size_t row)
{
	json_out_u64(w->o, w->functions.of_frame[copies_source(&w->frames, row)]);
}

static void frame_line(struct writer *w, size_t row)
{
	if (frame_at(w, row)->line == 0)
		write_null(w, row);
	else
		json_out_u64(w->o, frame_at(w, row)->line);
}

static const struct merge_frame *frame_of(const struct writer *w, size_t func)
{
	return &w->m->frames[w->functions.first_frame[func]];
}

static void func_name(struct writer *w, size_t row)
{
	json_out_u64(w->o, export_strings_number(&w->strings, frame_of(w, row)->name));
}

static void func_resource(struct writer *w, size_t row)
{
	const char *module = frame_of(w, row)->package;

	if (module == NULL)
		json_out_raw(w->o, "-1");
	else
		json_out_u64(w->o, export_strings_number(&w->modules, module));
}

static void func_source(struct writer *w, size_t row)
{
	const char *file = frame_of(w, row)->file;

	if (file == NULL)
		write_null(w, row);
	else
		json_out_u64(w->o, export_strings_number(&w->files, file));
}

static void resource_name(struct writer *w, size_t row)
{
	json_out_u64(w->o, export_strings_number(&w->strings, w->modules.strings[row]));
}

static void source_name(struct writer *w, size_t row)
{
	json_out_u64(w->o, export_strings_number(&w->strings, w->files.strings[row]));
}

static void string_text(struct writer *w, size_t row)
{
	json_out_string(w->o, w->strings.strings[row]);
}

static void write_frames(struct writer *w)
{
	const size_t n = copies_length(&w->frames);

	write_length(w, ",\"frameTable\":", n);
	write_column(w, "address", n, frame_address);
	write_column(w, "lib", n, frame_lib);
	write_column(w, "inlineDepth", n, write_zero);
	write_column(w, "category", n, frame_category);
	write_column(w, "subcategory", n, write_zero);
	write_column(w, "func", n, frame_func);
	write_column(w, "nativeSymbol", n, write_null);
	write_column(w, "innerWindowID", n, write_null);
	write_column(w, "line", n, frame_line);
	write_column(w, "column", n, write_null);
	write_column(w, "originalLocation", n, write_null);
	json_out_raw(w->o, "}");
}

static void write_funcs(struct writer *w)
{
	const size_t n = w->functions.n;

	write_length(w, ",\"funcTable\":", n);
	write_column(w, "name", n, func_name);
	write_column(w, "isJS", n, write_false);
	write_column(w, "relevantForJS", n, write_false);
	write_column(w, "resource", n, func_resource);
	write_column(w, "source", n, func_source);
	write_column(w, "lineNumber", n, write_null);
	write_column(w, "columnNumber", n, write_null);
	write_column(w, "originalLocation", n, write_null);
	json_out_raw(w->o, "}");
}

static void write_shared(struct writer *w)
{
	const size_t n_stacks = copies_length(&w->stacks);

	write_length(w, ",\"shared\":{\"stackTable\":", n_stacks);
	write_column(w, "frame", n_stacks, stack_frame);
	write_column(w, "prefixOffset", n_stacks, stack_prefix);
	json_out_raw(w->o, "}");
	write_frames(w);
	write_funcs(w);
	write_length(w, ",\"resourceTable\":", w->modules.n);
	write_column(w, "name", w->modules.n, resource_name);
	write_column(w, "host", w->modules.n, write_null);
	write_column(w, "type", w->modules.n, write_one); /* Library */
	json_out_raw(w->o, "},\"nativeSymbols\":{\"length\":0,\"libIndex\":[],"
			   "\"address\":[],\"name\":[],\"functionSize\":[]}");
	write_length(w, ",\"sources\":", w->files.n);
	write_column(w, "id", w->files.n, write_null);
	write_column(w, "filename", w->files.n, source_name);
	write_column(w, "startLine", w->files.n, write_one);
	write_column(w, "startColumn", w->files.n, write_one);
	write_column(w, "sourceMapURL", w->files.n, write_null);
	write_column(w, "content", w->files.n, write_null);
	json_out_raw(w->o, "},\"sourceLocationTable\":{\"length\":0,"
			   "\"source\":[],\"line\":[],\"column\":[]}");
	write_column(w, "stringArray", w->strings.n, string_text);
	json_out_raw(w->o, "}");
}

/* Writes Breakpad's id: the debug_id without dashes, in upper case, and an age of 0. */
static void write_breakpad_id(const char *debug_id, struct json_out *o)
{
	char id[64] = "";
	size_t n = 0;

	for (const char *p = debug_id != NULL ? debug_id : ""; *p != '\0' && n + 2 < sizeof(id);
	     p++)
		if ((*p >= '0' && *p <= '9') || (*p >= 'A' && *p <= 'F'))
			id[n++] = *p;
		else if (*p >= 'a' && *p <= 'f')
			id[n++] = (char)(*p - 'a' + 'A');
	id[n] = n > 0 ? '0' : '\0';
	json_out_string(o, id);
}

static void write_libs(struct writer *w)
{
	struct json_out *o = w->o;
	bool first = true;

	json_out_raw(o, ",\"libs\":[");
	for (size_t i = 0; i < w->m->n_processes; i++) {
		const struct merge_process *p = &w->m->processes[i];

		for (size_t j = 0; j < p->n_images; j++) {
			const struct import_image *image = &p->images[j];
			const char *path = image->code_file != NULL ? image->code_file : "";

			export_comma(o, &first);
			json_out_member(o, "{\"arch\":\"\",\"name\":", merge_base(path));
			json_out_member(o, ",\"path\":", path);
			json_out_member(o, ",\"debugName\":", merge_base(path));
			json_out_member(o, ",\"debugPath\":", path);
			json_out_raw(o, ",\"breakpadId\":");
			write_breakpad_id(image->debug_id, o);
			json_out_raw(o, ",\"codeId\":");
			if (image->code_id != NULL)
				json_out_string(o, image->code_id);
			else
				json_out_raw(o, "null");
			json_out_raw(o, "}");
		}
	}
	json_out_raw(o, "]");
}

/* Returns the mean duration of running bars: the width of a sample in the viewer. */
static uint64_t interval_ns(const struct merge *m)
{
	uint64_t ns = 0, n = 0;

	for (size_t i = 0; i < m->n_bars; i++) {
		if (m->bars[i].state != PROFILE_RUNNING)
			continue;
		ns += m->bars[i].duration_ns;
		n++;
	}
	return n > 0 && ns >= n * NS_PER_US ? ns / n : 10 * NS_PER_MS;
}

static void write_meta(struct writer *w, const char *version)
{
	struct json_out *o = w->o;

	json_out_raw(o, "{\"meta\":{\"interval\":");
	export_ms(o, interval_ns(w->m));
	json_out_raw(o, ",\"startTime\":");
	export_ms(o, w->m->start_ns);
	json_out_raw(o, ",\"processType\":0,\"product\":\"sentry-profd ");
	json_out_raw(o, version);
	json_out_raw(o, "\",\"stackwalk\":1,\"version\":" VERSION_GECKO
			",\"preprocessedProfileVersion\":" VERSION_PROCESSED
			",\"symbolicated\":true,\"symbolicationNotSupported\":true,"
			"\"importedFrom\":\"sentry-profd\","
			"\"usesOnlyOneStackType\":true,"
			"\"sourceCodeIsNotOnSearchfox\":true,\"markerSchema\":[],"
			"\"categories\":[{\"name\":\"Other\",\"color\":\"grey\","
			"\"subcategories\":[\"Other\"]},{\"name\":\"Application\","
			"\"color\":\"yellow\",\"subcategories\":[\"Other\"]},"
			"{\"name\":\"Library\",\"color\":\"blue\","
			"\"subcategories\":[\"Other\"]},{\"name\":\"Ready\","
			"\"color\":\"red\",\"subcategories\":[\"Other\"]}],"
			"\"sampleUnits\":{\"time\":\"ms\",\"eventDelay\":\"ms\","
			"\"threadCPUDelta\":\"\302\265s\"}}");
}

/* A point with a stack lasts until the next one, which there always is (points.h). */
static uint64_t duration_ns(const struct export_point *p)
{
	return p->node == PROFILE_NONE ? 0 : p[1].time_ns - p->time_ns;
}

static void write_stack(struct writer *w, const struct export_point *p)
{
	if (p->node == PROFILE_NONE)
		json_out_raw(w->o, "null");
	else
		json_out_u64(w->o,
			     p->state == PROFILE_READY ? copies_row(&w->stacks, p->node) : p->node);
}

/*
 * The viewer shows the stack of a sample until the next sample, so there is one without a stack at
 * the end of a bar that no other one follows at once. The sums of the call tree are the weights.
 */
static void write_samples(struct writer *w, size_t thread)
{
	const struct export_point *p = w->points;
	const size_t n = export_points(w->m, (uint32_t)thread, w->points);
	struct json_out *o = w->o;

	write_length(w, ",\"samples\":", n);
	json_out_raw(o, ",\"weightType\":\"tracing-ms\",\"stack\":[");
	for (size_t i = 0; i < n; i++) {
		json_out_raw(o, i > 0 ? "," : "");
		write_stack(w, &p[i]);
	}
	json_out_raw(o, "],\"time\":[");
	for (size_t i = 0; i < n; i++) {
		json_out_raw(o, i > 0 ? "," : "");
		export_ms(o, p[i].time_ns - w->m->start_ns);
	}
	json_out_raw(o, "],\"weight\":[");
	for (size_t i = 0; i < n; i++) {
		json_out_raw(o, i > 0 ? "," : "");
		export_ms(o, duration_ns(&p[i]));
	}
	/* CPU time since the previous sample. */
	json_out_raw(o, "],\"threadCPUDelta\":[");
	for (size_t i = 0; i < n; i++) {
		const bool ran = i > 0 && p[i - 1].state == PROFILE_RUNNING;

		json_out_raw(o, i > 0 ? "," : "");
		json_out_u64(o, ran ? duration_ns(&p[i - 1]) / NS_PER_US : 0);
	}
	json_out_raw(o, "]}");
}

static void write_thread(struct writer *w, size_t thread)
{
	const struct merge_thread *t = &w->m->threads[thread];
	const struct merge_process *p = &w->m->processes[t->process];
	struct json_out *o = w->o;

	json_out_raw(o, "{\"processType\":\"default\",\"processStartupTime\":");
	export_ms(o, p->start_ns - w->m->start_ns);
	json_out_raw(o, ",\"processShutdownTime\":null,\"registerTime\":0,"
			"\"unregisterTime\":null,\"pausedRanges\":[]");
	json_out_member(o, ",\"name\":", t->label);
	json_out_raw(o, p->main_thread == t->id ? ",\"isMainThread\":true"
						: ",\"isMainThread\":false");
	json_out_member(o, ",\"pid\":", p->pid != NULL ? p->pid : p->profiler_id);
	json_out_member(o, ",\"tid\":", t->id);
	write_samples(w, thread);
	json_out_raw(o, ",\"markers\":{\"length\":0,\"data\":[],\"name\":[],"
			"\"startTime\":[],\"endTime\":[],\"phase\":[],"
			"\"category\":[]}}");
}

static void write_threads(struct writer *w)
{
	bool first = true;

	json_out_raw(w->o, ",\"threads\":[");
	for (size_t i = 0; i < w->m->n_threads; i++) {
		if (w->m->threads[i].n_bars == 0)
			continue;
		export_comma(w->o, &first);
		write_thread(w, i);
	}
	json_out_raw(w->o, "]}\n");
}

int export_firefox(const struct merge *m, const struct export_options *o, FILE *out)
{
	struct json_out json;
	struct writer w = {.m = m, .o = &json};
	int r = writer_init(&w);

	if (r == 0) {
		json_out_init(&json, out);
		write_meta(&w, o->version);
		write_libs(&w);
		write_shared(&w);
		write_threads(&w);
		r = json_out_finish(&json);
	}
	writer_fini(&w);
	return r;
}
