#include "proto/export/compare.h"

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/array.h"
#include "lib/base/util.h"
#include "proto/export/export.h"

/* Room for a file name and an offset. */
#define OFFSET_NAME_SIZE (NAME_MAX + sizeof("+0x0123456789abcdef"))

struct module {
	const char *path;		   /* the first path that was seen */
	const char *base;		   /* its last component */
	const char *builds[COMPARE_SIDES]; /* debug_id on each side; NULL: unknown */
};

/* The keys of the tables are the addresses of interned strings. */
struct modules {
	struct module *v;
	size_t n, cap;
	struct table by_path, by_build, by_key;
	const char *mains[COMPARE_SIDES]; /* paths of the main programs; NULL: not one */
	const struct compare_pair *pairs;
	size_t n_pairs;
};

/* Returns the length of a file name up to ".so" if a version follows. */
static size_t length_without_version(const char *base)
{
	const char *suffix = strstr(base, ".so.");

	return suffix != NULL ? (size_t)(suffix - base) + strlen(".so") : strlen(base);
}

/* Finds what modules have in common that are the same: a file name, mostly. */
static int intern_key(const struct modules *l, struct merge *m, const char *path, const char **ret)
{
	const char *base = merge_base(path);
	char key[NAME_MAX + 1];

	if (l->mains[0] != NULL && l->mains[1] != NULL && path == l->mains[1])
		base = merge_base(l->mains[0]);
	for (size_t i = 0; i < l->n_pairs; i++)
		if (strcmp(base, l->pairs[i].from) == 0)
			base = l->pairs[i].to;
	(void)snprintf(key, sizeof(key), "%.*s", (int)length_without_version(base), base);
	return string_pool_intern(&m->text, key, ret);
}

static int put_if_absent(struct table *t, const char *key, uint32_t module)
{
	uint32_t known;

	if (key == NULL || table_get(t, (uintptr_t)key, &known))
		return 0;
	return table_put(t, (uintptr_t)key, module);
}

/* Finds or adds the module with this path, build (NULL: unknown) or file name. */
static int find_module(struct modules *l, struct merge *m, const char *path, const char *build,
		       uint32_t *ret)
{
	const char *key;
	int r = 0;

	if (table_get(&l->by_path, (uintptr_t)path, ret))
		return put_if_absent(&l->by_build, build, *ret);
	r = intern_key(l, m, path, &key);
	if (r < 0)
		return r;
	if (!table_get(&l->by_key, (uintptr_t)key, ret) &&
	    (build == NULL || !table_get(&l->by_build, (uintptr_t)build, ret))) {
		if (array_grow(l->v, l->n, l->cap) < 0)
			return -ENOMEM;
		*ret = (uint32_t)l->n;
		l->v[l->n++] = (struct module){.path = path, .base = merge_base(path)};
	}
	r = put_if_absent(&l->by_path, path, *ret);
	if (r == 0)
		r = put_if_absent(&l->by_build, build, *ret);
	return r < 0 ? r : put_if_absent(&l->by_key, key, *ret);
}

/* Sets l->mains. Paths are interned, so those of one file are equal. */
static void find_mains(struct modules *l, const struct merge *m)
{
	bool has_several[COMPARE_SIDES] = {false};

	for (size_t i = 0; i < m->n_processes; i++) {
		const struct merge_process *p = &m->processes[i];
		const char *path = merge_main_program(p), **known = &l->mains[p->side];

		has_several[p->side] |= path != NULL && *known != NULL && path != *known;
		if (path != NULL)
			*known = path;
	}
	for (unsigned int side = 0; side < COMPARE_SIDES; side++)
		if (has_several[side])
			l->mains[side] = NULL;
}

static int add_images(struct modules *l, struct merge *m, const struct merge_process *p)
{
	int r = 0;

	for (size_t i = 0; i < p->n_images && r == 0; i++) {
		const struct import_image *image = &p->images[i];
		uint32_t module;

		if (image->code_file == NULL)
			continue;
		r = find_module(l, m, image->code_file, image->debug_id, &module);
		if (r == 0 && l->v[module].builds[p->side] == NULL)
			l->v[module].builds[p->side] = image->debug_id;
	}
	return r;
}

static void modules_fini(struct modules *l)
{
	table_fini(&l->by_path);
	table_fini(&l->by_build);
	table_fini(&l->by_key);
	free(l->v);
}

static int modules_init(struct modules *l, struct merge *m, const struct compare_pair *pairs,
			size_t n_pairs)
{
	int r = 0;

	*l = (struct modules){.pairs = pairs, .n_pairs = n_pairs};
	table_init(&l->by_path, m->options.hash_seed);
	table_init(&l->by_build, m->options.hash_seed);
	table_init(&l->by_key, m->options.hash_seed);
	find_mains(l, m);
	for (size_t i = 0; i < m->n_processes && r == 0; i++)
		r = add_images(l, m, &m->processes[i]);
	return r;
}

/* Returns true for "app+0x1230", the daemon's name for an unknown function (docs/FORMATS.md). */
static bool is_offset_name(const char *name, const char *package)
{
	const char *base = merge_base(package);
	const size_t n = strlen(base);

	return strncmp(name, base, n) == 0 && strncmp(name + n, "+0x", 3) == 0;
}

/* Names a function without a name: by its offset if both sides have one build. */
static int name_unnamed(struct merge *m, const struct module *module, struct merge_frame *f)
{
	const bool is_same = module->builds[0] != NULL && module->builds[0] == module->builds[1];
	const uint32_t image = merge_find_image(m, f);
	char text[OFFSET_NAME_SIZE];

	if (is_same && f->function != NULL && f->function[0] != '\0')
		(void)snprintf(text, sizeof(text), "%.*s%s", NAME_MAX, module->base,
			       f->function + strlen(merge_base(f->package)));
	else if (is_same && image != PROFILE_NONE)
		(void)snprintf(text, sizeof(text), "%.*s+0x%" PRIx64, NAME_MAX, module->base,
			       f->addr - m->processes[f->process].images[image].addr);
	else
		(void)snprintf(text, sizeof(text), "[%.*s]", NAME_MAX, module->base);
	return string_pool_intern(&m->text, text, &f->name);
}

/* Returns the length without digits at the end that follow a dot, ".123"; n if there are none. */
static size_t length_without_number(const char *name, size_t n)
{
	size_t at = n;

	while (at > 0 && name[at - 1] >= '0' && name[at - 1] <= '9')
		at--;
	return at < n && at > 1 && name[at - 1] == '.' ? at - 1 : n;
}

/* Returns the length without one suffix of a part or a copy of a function, or n. */
static size_t length_without_suffix(const char *name, size_t n)
{
	static const char *const suffixes[] = {".part", ".constprop", ".isra",
					       ".cold", ".lto_priv",  ".llvm"};
	const size_t end = length_without_number(name, n);

	for (size_t i = 0; i < array_size(suffixes); i++) {
		const size_t length = strlen(suffixes[i]);

		if (end > length && memcmp(name + end - length, suffixes[i], length) == 0)
			return end - length;
	}
	return n;
}

/* Returns the length of the function's name in the source. */
static size_t plain_length(const char *name)
{
	/* The demangler's form of the same suffixes. */
	const char *clone = strstr(name, " [clone ");
	size_t n = clone != NULL && clone > name ? (size_t)(clone - name) : strlen(name), before;

	do {
		before = n;
		n = length_without_suffix(name, n);
	} while (n < before);
	return n;
}

static int drop_suffixes(struct merge *m, struct merge_frame *f)
{
	const size_t n = plain_length(f->name);
	char *plain;
	int r;

	if (f->name[n] == '\0')
		return 0;
	plain = strndup(f->name, n);
	if (plain == NULL)
		return -ENOMEM;
	r = string_pool_intern(&m->text, plain, &f->name);
	free(plain);
	return r;
}

/* Gives the frame the name and the package that are the same on both sides. */
static int match_frame(struct modules *l, struct merge *m, struct merge_frame *f)
{
	const bool has_name = f->function != NULL && f->function[0] != '\0';
	uint32_t module;
	int r;

	if (f->package == NULL)
		return has_name ? drop_suffixes(m, f) : 0;
	r = find_module(l, m, f->package, NULL, &module);
	if (r < 0)
		return r;
	if (!has_name || is_offset_name(f->function, f->package))
		r = name_unnamed(m, &l->v[module], f);
	else
		r = drop_suffixes(m, f);
	f->package = l->v[module].path;
	return r;
}

static int match_frames(struct merge *m, const struct compare_pair *pairs, size_t n_pairs)
{
	struct modules modules;
	int r = modules_init(&modules, m, pairs, n_pairs);

	for (size_t i = 0; i < m->n_frames && r == 0; i++)
		r = match_frame(&modules, m, &m->frames[i]);
	modules_fini(&modules);
	return r;
}

static int find_function(struct compare *c, struct table *known, const struct merge_frame *f,
			 uint32_t *ret)
{
	uint64_t key = (uint64_t)(uintptr_t)f->name * 31 + (uintptr_t)f->package;

	for (; table_get(known, key, ret); key++)
		if (c->functions[*ret].name == f->name && c->functions[*ret].package == f->package)
			return 0;
	*ret = (uint32_t)c->n_functions;
	c->functions[c->n_functions++] =
		(struct compare_function){.name = f->name, .package = f->package};
	return table_put(known, key, *ret);
}

static int find_node(struct compare *c, struct table *known, uint32_t parent, uint32_t function,
		     uint32_t *ret)
{
	const uint64_t key = (uint64_t)parent << 32 | function;

	if (table_get(known, key, ret))
		return 0;
	*ret = (uint32_t)c->n_nodes;
	c->nodes[c->n_nodes++] = (struct compare_node){.parent = parent, .function = function};
	return table_put(known, key, *ret);
}

/* Sets node_of[i] to c's node of the merge's node i. */
static int make_nodes(struct compare *c, const struct merge *m, uint32_t *node_of)
{
	struct table functions, nodes;
	int r = 0;

	table_init(&functions, m->options.hash_seed);
	table_init(&nodes, m->options.hash_seed);
	for (size_t i = 0; i < m->n_nodes && r == 0; i++) {
		const struct profile_node *node = &m->nodes[i];
		uint32_t function;

		r = find_function(c, &functions, &m->frames[node->frame], &function);
		if (r == 0)
			r = find_node(c, &nodes,
				      node->parent == PROFILE_NONE ? PROFILE_NONE
								   : node_of[node->parent],
				      function, &node_of[i]);
	}
	table_fini(&functions);
	table_fini(&nodes);
	return r;
}

/* Adds the bars to functions and nodes, and sets the start times of the bars. */
static void add_up(struct compare *c, struct merge *m, const uint32_t *node_of)
{
	for (size_t i = 0; i < m->n_bars; i++) {
		struct merge_bar *bar = &m->bars[i];
		const struct merge_thread *t = &m->threads[bar->thread];
		const uint32_t side = m->processes[t->process].side;
		struct compare_node *node = &c->nodes[node_of[bar->node]];

		node->self_ns[side] += bar->duration_ns;
		c->functions[node->function].self_ns[side] += bar->duration_ns;
		c->total_ns[side] += bar->duration_ns;
		bar->start_ns = i > t->first_bar ? export_end(bar - 1) : 0;
	}
}

/* Sets the duration of each side, within the range of time that is selected. */
static void measure(struct compare *c, const struct merge *m)
{
	for (uint32_t side = 0; side < COMPARE_SIDES; side++) {
		uint64_t start_ns, end_ns, from_ns;

		merge_side_time(m, side, &start_ns, &end_ns);
		c->duration_ns[side] = merge_selected(m, end_ns - start_ns, &from_ns);
	}
}

int compare_init(struct compare *c, struct merge *m, const char *const names[COMPARE_SIDES],
		 const struct compare_pair *pairs, size_t n_pairs)
{
	uint32_t *node_of = calloc(m->n_nodes + 1, sizeof(*node_of));
	int r = -ENOMEM;

	*c = (struct compare){
		.functions = calloc(m->n_frames + 1, sizeof(*c->functions)),
		.nodes = calloc(m->n_nodes + 1, sizeof(*c->nodes)),
		.names = {names[0], names[1]},
	};
	if (node_of != NULL && c->functions != NULL && c->nodes != NULL)
		r = match_frames(m, pairs, n_pairs);
	if (r == 0)
		r = make_nodes(c, m, node_of);
	if (r == 0) {
		add_up(c, m, node_of);
		measure(c, m);
	}
	free(node_of);
	return r;
}

void compare_fini(struct compare *c)
{
	free(c->functions);
	free(c->nodes);
	*c = (struct compare){0};
}

double compare_share(const struct compare *c, unsigned int side, uint64_t ns)
{
	const uint64_t total_ns = c->total_ns[side];

	if (total_ns == 0)
		return 0;
	/* The sum of made-up times of centuries may have overflowed 64 bits. */
	return ns >= total_ns ? 1 : (double)ns / (double)total_ns;
}

/* Returns the share of ns times 1e9, rounded. */
static uint64_t count(const struct compare *c, unsigned int side, uint64_t ns)
{
	return (uint64_t)(compare_share(c, side, ns) * 1e9 + 0.5);
}

static void write_stack(const struct compare *c, uint32_t node, uint32_t *path, FILE *out)
{
	size_t n = 0;

	for (; node != PROFILE_NONE; node = c->nodes[node].parent)
		path[n++] = c->nodes[node].function;
	while (n-- > 0) {
		export_folded_name(c->functions[path[n]].name, out);
		if (n > 0)
			(void)putc(';', out);
	}
}

int compare_write_folded(const struct compare *c, FILE *out)
{
	uint32_t *path = calloc(IMPORT_STACK_FRAMES_MAX, sizeof(*path));

	if (path == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < c->n_nodes; i++) {
		const uint64_t a = count(c, 0, c->nodes[i].self_ns[0]);
		const uint64_t b = count(c, 1, c->nodes[i].self_ns[1]);

		if (a == 0 && b == 0)
			continue;
		write_stack(c, i, path, out);
		(void)fprintf(out, " %" PRIu64 " %" PRIu64 "\n", a, b);
	}
	free(path);
	return flush_stream(out);
}
