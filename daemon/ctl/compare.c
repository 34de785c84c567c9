#include "daemon/ctl/compare.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/common/log.h"
#include "daemon/common/option_fault.h"
#include "daemon/ctl/compare_table.h"
#include "daemon/ctl/selection.h"
#include "proto/export/html.h"

enum {
	EXIT_USAGE = 2,
};

enum {
	TO = SELECTION_END,
};

/* As many fit on a screen, with the head. */
#define ROWS 30

const char compare_help[] = "\n"
			    "compare A B  shows which functions have a larger and which a smaller "
			    "part\n"
			    "             of the running time in B than in A. A and B are files "
			    "or\n"
			    "             directories as convert reads them.\n"
			    "\n"
			    "  -o OUT, --to FORMAT   table (the default), html, or folded, with "
			    "the\n"
			    "                        counts of both for flamegraph.pl\n"
			    "  --from S, --until S   from and until this second of A and of B\n"
			    "  --filter GLOB, --state STATE   as of convert (default: running)\n";

struct comparison {
	const struct comparison_format *format;
	const char *out; /* "-": standard output */
	char *const *paths;
	struct merge_options options;
	bool has_states; /* --state was given */
	struct compare result;
	struct merge merge;
};

struct comparison_format {
	const char *name, *ending;
	/* Lets its user choose between running and waiting, and shows rest. */
	bool is_page;
	int (*write)(const struct comparison *c, FILE *out);
};

static bool wants_colours(const struct comparison *c)
{
	const char *no_color = getenv("NO_COLOR");

	return strcmp(c->out, "-") == 0 && isatty(STDOUT_FILENO) == 1 &&
	       (no_color == NULL || no_color[0] == '\0');
}

static int write_table(const struct comparison *c, FILE *out)
{
	const struct compare_table table = {
		.states = c->options.states,
		.rows = ROWS,
		.has_colours = wants_colours(c),
	};

	return compare_table_write(&table, &c->result, out);
}

static int write_folded(const struct comparison *c, FILE *out)
{
	/* The format has no place for it. */
	(void)fputs("counts are nanoseconds of each second that the threads of "
		    "a side spent\n",
		    stderr);
	return compare_write_folded(&c->result, out);
}

static int write_page(const struct comparison *c, FILE *out)
{
	const struct export_options options = {
		.version = SENTRY_PROFD_VERSION,
		.comparison = &c->result,
	};

	return export_html(&c->merge, &options, out);
}

static const struct comparison_format formats[] = {
	{"table", ".txt", false, write_table},
	{"folded", ".folded", false, write_folded},
	{"html", ".html", true, write_page},
};

static bool set_format(struct comparison *c, const char *name)
{
	for (size_t i = 0; i < array_size(formats); i++)
		if (strcmp(formats[i].name, name) == 0)
			c->format = &formats[i];
	return c->format != NULL ||
	       selection_fault("compare", "to", name, "not a format (table, folded, html)");
}

/* Without --to the ending of OUT decides; without both it is the table. */
static bool choose_format(struct comparison *c)
{
	const size_t n = c->out == NULL ? 0 : strlen(c->out);

	for (size_t i = 0; i < array_size(formats) && c->format == NULL; i++) {
		const size_t length = strlen(formats[i].ending);

		if (n > length && strcmp(c->out + n - length, formats[i].ending) == 0)
			c->format = &formats[i];
	}
	if (c->out == NULL)
		c->out = "-";
	if (c->format == NULL && strcmp(c->out, "-") == 0)
		c->format = &formats[0];
	if (c->format == NULL)
		log_error("compare: which format? --to FORMAT, or -o FILE with "
			  "an ending that names it (.txt, .folded, .html)");
	return c->format != NULL;
}

static bool set_option(struct comparison *c, int option, const char *value)
{
	switch (option) {
	case 'o':
		c->out = value;
		return true;
	case TO:
		return set_format(c, value);
	default:
		c->has_states |= option == SELECTION_STATE;
		return selection_set(&c->options, "compare", option, value);
	}
}

static bool parse(struct comparison *c, int argc, char **argv)
{
	static const struct option options[] = {
		{"to", required_argument, NULL, TO},
		SELECTION_OPTIONS,
		{0},
	};
	int option;

	*c = (struct comparison){.options = {.until_ns = UINT64_MAX, .states = MERGE_RUNNING}};
	opterr = 0;
	while ((option = getopt_long(argc, argv, ":o:", options, NULL)) != -1) {
		if (option == '?' || option == ':') {
			option_fault_log(option, argv[0], argv, options);
			return false;
		}
		if (!set_option(c, option, optarg))
			return false;
	}
	if (argc - optind != COMPARE_SIDES) {
		log_error("compare: %s: name two files or directories that "
			  "sentry-profd has written",
			  argc - optind < COMPARE_SIDES ? "too few profiles" : "too many profiles");
		return false;
	}
	c->paths = argv + optind;
	if (!choose_format(c))
		return false;
	c->options.keep_rest = c->format->is_page;
	if (c->format->is_page && !c->has_states)
		c->options.states = MERGE_ALL;
	return true;
}

static int write_out(void *ctx, FILE *out)
{
	const struct comparison *c = ctx;

	return c->format->write(c, out);
}

static int compare_merge(struct comparison *c)
{
	const char *const names[] = {c->paths[0], c->paths[1]};
	int r = compare_init(&c->result, &c->merge, names);

	if (r < 0)
		log_error("no memory");
	for (unsigned int side = 0; side < COMPARE_SIDES && r == 0; side++) {
		if (c->result.total_ns[side] > 0)
			continue;
		log_error("nothing to compare with: %s has no time of the "
			  "threads, functions and state that were asked for",
			  c->paths[side]);
		r = -ENODATA;
	}
	return r < 0 ? r : selection_write(c->out, write_out, c);
}

int compare_run(int argc, char **argv)
{
	struct comparison c;
	struct merge *m = &c.merge;
	int r = 0;

	if (!parse(&c, argc, argv))
		return EXIT_USAGE;
	selection_init(m, &c.options);
	for (; m->side < COMPARE_SIDES && r == 0; m->side++)
		r = selection_read(m, NULL, &c.paths[m->side], 1);
	if (r == 0)
		r = selection_finish(m);
	if (r == 0)
		r = compare_merge(&c);
	compare_fini(&c.result);
	merge_fini(m);
	return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
