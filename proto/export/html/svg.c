#include "proto/export/html/svg.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/short_names.h"
#include "lib/base/string_pool.h"
#include "lib/base/utf8.h"
#include "lib/base/util.h"
#include "proto/export/html/html_page.h"

/* Pixels, as in flamegraph.pl. svg.js has the last three, too. */
#define BAR_HEIGHT 16
#define HEAD	   56 /* the title, and the words to click */
#define FOOT	   8
#define WIDTH	   1200
#define CHAR_WIDTH 7
#define PADDING	   3

/* Narrower bars are left out. */
#define BAR_WIDTH_MIN 0.1

/* A bar of the graph is a node of the merge; node i is drawn if its bar is wide enough. */
struct graph {
	const struct merge *m;
	bool only_running;
	uint64_t sum_ns;     /* of all stacks */
	uint64_t *total_ns;  /* by node: with the functions that it called */
	uint64_t *start_ns;  /* by node: the time of the bars to its left */
	uint32_t *depth;     /* by node: 1 for a root */
	uint32_t *order;     /* nodes by parent, those of one parent by name */
	const char **labels; /* by frame: the name in the bar, which may be short */
};

static bool has_running(const struct merge *m)
{
	for (size_t i = 0; i < m->n_bars; i++)
		if (m->bars[i].state == PROFILE_RUNNING)
			return true;
	return false;
}

static void add_times(struct graph *g)
{
	const struct merge *m = g->m;

	for (size_t i = 0; i < m->n_bars; i++) {
		if (g->only_running && m->bars[i].state != PROFILE_RUNNING)
			continue;
		g->total_ns[m->bars[i].node] += m->bars[i].duration_ns;
		g->sum_ns += m->bars[i].duration_ns;
	}
	/* Parents stand before their children. */
	for (size_t i = m->n_nodes; i-- > 0;)
		if (m->nodes[i].parent != PROFILE_NONE)
			g->total_ns[m->nodes[i].parent] += g->total_ns[i];
}

static const char *name_of(const struct merge *m, uint32_t node)
{
	return m->frames[m->nodes[node].frame].name;
}

static int compare_nodes(const void *a, const void *b, void *graph)
{
	const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	const struct merge *m = ((const struct graph *)graph)->m;
	/* Roots first: PROFILE_NONE + 1 is 0. */
	const uint32_t p = m->nodes[x].parent + 1, q = m->nodes[y].parent + 1;
	int r;

	if (p != q)
		return p < q ? -1 : 1;
	r = strcmp(name_of(m, x), name_of(m, y));
	return r != 0 ? r : x < y ? -1 : x > y;
}

/* Sets start_ns and depth. A parent precedes its children in the order, too. */
static void place(struct graph *g)
{
	const struct merge *m = g->m;
	uint64_t left_ns = 0;

	for (uint32_t i = 0; i < m->n_nodes; i++)
		g->order[i] = i;
	qsort_r(g->order, m->n_nodes, sizeof(*g->order), compare_nodes, g);
	for (size_t i = 0; i < m->n_nodes; i++) {
		const uint32_t node = g->order[i], parent = m->nodes[node].parent;
		const bool is_root = parent == PROFILE_NONE;

		if (i > 0 && parent != m->nodes[g->order[i - 1]].parent)
			left_ns = g->start_ns[parent];
		g->start_ns[node] = left_ns;
		g->depth[node] = is_root ? 1 : g->depth[parent] + 1;
		left_ns += g->total_ns[node];
	}
}

static double pixels(const struct graph *g, uint64_t ns)
{
	return g->sum_ns == 0 ? 0 : (double)ns / (double)g->sum_ns * WIDTH;
}

static bool is_drawn(const struct graph *g, uint32_t node)
{
	return pixels(g, g->total_ns[node]) >= BAR_WIDTH_MIN;
}

/* Writes at most max characters of a text as XML. XML has no control characters, nor U+FFFE,
 * U+FFFF. */
static void write_text(const char *s, size_t max, FILE *out)
{
	for (size_t n; max > 0 && *s != '\0'; s += n, max--) {
		const unsigned char c = (unsigned char)*s;

		n = utf8_length(s) > 0 ? utf8_length(s) : 1;
		if (c == '&')
			(void)fputs("&amp;", out);
		else if (c == '<')
			(void)fputs("&lt;", out);
		else if (c == '>')
			(void)fputs("&gt;", out);
		else if (c == '"')
			(void)fputs("&quot;", out);
		else if (c < 0x20 || c == 0x7f || (n == 1 && c >= 0x80) ||
			 (n == 2 && c == 0xc2 && (unsigned char)s[1] < 0xa0) ||
			 (n == 3 && memcmp(s, "\xef\xbf", 2) == 0 && (unsigned char)s[2] >= 0xbe))
			(void)putc('_', out);
		else
			(void)fwrite(s, 1, n, out);
	}
}

/* A warm colour, the same for each function of a name. */
static void write_colour(const char *name, FILE *out)
{
	uint32_t hash = 2166136261u;

	for (; *name != '\0'; name++)
		hash = (hash ^ (unsigned char)*name) * 16777619u;
	(void)fprintf(out, "rgb(%u,%u,%u)", 205 + hash % 50, (hash >> 8) % 200 + 30,
		      (hash >> 20) % 55);
}

/* label: as the bar shows the name; svg.js needs it whole if it is not the name. */
static void write_bar(const struct graph *g, const char *name, const char *label, uint64_t start_ns,
		      uint64_t total_ns, uint32_t depth, uint32_t height, FILE *out)
{
	const double x = pixels(g, start_ns), width = pixels(g, total_ns);
	const uint32_t y = height - FOOT - (depth + 1) * BAR_HEIGHT;
	const double room = (width - 2 * PADDING) / CHAR_WIDTH;

	(void)fputs("<g class=\"f\"><title>", out);
	write_text(name, SIZE_MAX, out);
	(void)fprintf(out, " (%.3f s, %.2f%%)</title><rect data-x=\"%.3f\" data-w=\"%.3f\" ",
		      (double)total_ns / 1e9, width / WIDTH * 100, x, width);
	(void)fprintf(out, "x=\"%.3f\" y=\"%" PRIu32 "\" width=\"%.3f\" height=\"%d\" fill=\"", x,
		      y, width, BAR_HEIGHT - 1);
	write_colour(name, out);
	(void)fprintf(out, "\"/><text x=\"%.3f\" y=\"%" PRIu32 "\"", x + PADDING,
		      y + BAR_HEIGHT - 5);
	if (strcmp(label, name) != 0) {
		(void)fputs(" data-label=\"", out);
		write_text(label, SIZE_MAX, out);
		(void)fputs("\"", out);
	}
	(void)fputs(">", out);
	if (room >= 3)
		write_text(label, (size_t)room, out);
	(void)fputs("</text></g>\n", out);
}

static const char *kind_of_time(const struct merge *m, bool only_running)
{
	if (only_running)
		return "Running time";
	switch (m->options.states) {
	case MERGE_READY:
		return "Ready time";
	case MERGE_WAITING:
		return "Waiting time";
	case MERGE_RUNNING:
	case MERGE_ALL:
		break;
	}
	return "Time";
}

static void write_head(const struct graph *g, uint32_t height, FILE *out)
{
	(void)fprintf(out,
		      "<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"no\"?>\n"
		      "<svg version=\"1.1\" xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" "
		      "height=\"%" PRIu32 "\" viewBox=\"0 0 %d %" PRIu32 "\">\n"
		      "<style>text { font: 12px monospace; pointer-events: none } "
		      "#unzoom, #search { pointer-events: auto; cursor: pointer } "
		      "g.f { cursor: pointer } .found { fill: rgb(230,0,230) }</style>\n"
		      "<rect width=\"100%%\" height=\"100%%\" fill=\"rgb(250,250,245)\"/>\n",
		      WIDTH, height, WIDTH, height);
	(void)fprintf(
		out,
		"<text x=\"%d\" y=\"20\" text-anchor=\"middle\">%s: %.2f s</text>\n"
		"<text id=\"unzoom\" x=\"10\" y=\"40\" style=\"display: none\">Reset zoom"
		"</text>\n<text id=\"search\" x=\"%d\" y=\"40\" text-anchor=\"end\">Search"
		"</text>\n<text id=\"matched\" x=\"%d\" y=\"40\" text-anchor=\"end\"></text>\n",
		WIDTH / 2, kind_of_time(g->m, g->only_running), (double)g->sum_ns / 1e9, WIDTH - 10,
		WIDTH - 80);
}

static int write_graph(const struct graph *g, FILE *out)
{
	const struct merge *m = g->m;
	uint32_t depth = 0, height;

	for (uint32_t i = 0; i < m->n_nodes; i++)
		if (is_drawn(g, i) && g->depth[i] > depth)
			depth = g->depth[i];
	height = HEAD + (depth + 1) * BAR_HEIGHT + FOOT;
	write_head(g, height, out);
	write_bar(g, "all", "all", 0, g->sum_ns, 0, height, out);
	for (uint32_t i = 0; i < m->n_nodes; i++)
		if (is_drawn(g, i))
			write_bar(g, name_of(m, i), g->labels[m->nodes[i].frame], g->start_ns[i],
				  g->total_ns[i], g->depth[i], height, out);
	(void)fputs("<script><![CDATA[\n", out);
	(void)fwrite(svg_script, 1, svg_script_size, out);
	(void)fputs("]]></script>\n</svg>\n", out);
	return flush_stream(out);
}

static int make_labels(struct graph *g, bool full_names, struct string_pool *text)
{
	const char **names = calloc(g->m->n_frames + 1, sizeof(*names));
	int r = -ENOMEM;

	for (size_t i = 0; i < g->m->n_frames && names != NULL; i++)
		names[i] = g->m->frames[i].name;
	if (names != NULL)
		r = short_names_or_full(names, g->m->n_frames, full_names, text, g->labels);
	free(names);
	return r;
}

int export_svg(const struct merge *m, const struct export_options *o, FILE *out)
{
	const size_t n = m->n_nodes + 1;
	struct graph g = {
		.m = m,
		.only_running = has_running(m),
		.total_ns = calloc(n, sizeof(*g.total_ns)),
		.start_ns = calloc(n, sizeof(*g.start_ns)),
		.depth = calloc(n, sizeof(*g.depth)),
		.order = calloc(n, sizeof(*g.order)),
		.labels = calloc(m->n_frames + 1, sizeof(*g.labels)),
	};
	struct string_pool text;
	int r = -ENOMEM;

	string_pool_init(&text, m->options.hash_seed);
	if (g.total_ns != NULL && g.start_ns != NULL && g.depth != NULL && g.order != NULL &&
	    g.labels != NULL)
		r = make_labels(&g, o->full_names, &text);
	if (r == 0) {
		add_times(&g);
		place(&g);
		r = write_graph(&g, out);
	}
	free(g.total_ns);
	free(g.start_ns);
	free(g.depth);
	free(g.order);
	free(g.labels);
	string_pool_fini(&text);
	return r;
}
