#include "daemon/ctl/convert/convert.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/common/log.h"
#include "daemon/common/option_fault.h"
#include "daemon/common/output_format.h"
#include "daemon/ctl/convert/formats.h"
#include "daemon/ctl/convert/selection.h"

const char convert_help[] =
	"\n"
	"convert IN... -o OUT  convert profiles in files to the format of the suffix\n"
	"                      of OUT, or of --to FORMAT: folded, speedscope, pprof,\n"
	"                      firefox, self-profiling, json, summary, html or svg\n"
	"\n"
	"  --filter GLOB         only stacks with a function, module or thread that\n"
	"                        matches; function=GLOB, module=GLOB or\n"
	"                        thread=GLOB looks at one of these\n"
	"  --from S              leave out the time before second S\n"
	"  --until S             leave out the time after second S\n"
	"  --state STATE         running, ready, waiting or all (default: all)\n"
	"  --by samples|us       folded: count samples or microseconds (default: us)\n"
	"  --threads             folded: the thread is the root of each stack\n"
	"  --thread NAME         self-profiling: only this thread\n"
	"  --pretty              json: write an element a line\n"
	"  --names short|full    summary, svg: C++ and Rust names without or with\n"
	"                        template arguments and parameters (default: short)\n"
	"  --symbolize           add names, source lines and inlined functions from\n"
	"                        program files and debug files of this machine, and\n"
	"                        from the servers in $DEBUGINFOD_URLS\n";

struct convert {
	const char *command;
	const struct format *format;
	const char *out; /* "-": standard output */
	bool symbolizes;
	struct merge_options merge;
	struct export_options export;
};

enum {
	TO = SELECTION_END,
	BY,
	THREADS,
	THREAD,
	PRETTY,
	NAMES,
	SYMBOLIZE,
};

static const struct option options[] = {
	{"to", required_argument, NULL, TO},
	SELECTION_OPTIONS,
	{"by", required_argument, NULL, BY},
	{"threads", no_argument, NULL, THREADS},
	{"thread", required_argument, NULL, THREAD},
	{"pretty", no_argument, NULL, PRETTY},
	{"names", required_argument, NULL, NAMES},
	{"symbolize", no_argument, NULL, SYMBOLIZE},
	{0},
};

/* Writes the names of all formats: "folded, speedscope, ...". */
static void list_formats(char *ret, size_t size)
{
	size_t n = 0;

	ret[0] = '\0';
	for (size_t i = 0; i < OUTPUT_FORMATS_N && n < size; i++)
		n += (size_t)snprintf(ret + n, size - n, "%s%s", i > 0 ? ", " : "",
				      output_formats[i].name);
}

static bool set_format(struct convert *c, const char *name)
{
	char names[256];

	c->format = format_by_name(name);
	if (c->format != NULL)
		return true;
	list_formats(names, sizeof(names));
	log_error("%s: --to %s: not a format (choose one of: %s)", c->command, name, names);
	return false;
}

static bool set_unit(struct convert *c, const char *value)
{
	c->export.by_samples = strcmp(value, "samples") == 0;
	return c->export.by_samples || strcmp(value, "us") == 0 ||
	       selection_fault("convert", "by", value, "not samples or us");
}

static bool set_option(struct convert *c, int option, const char *value)
{
	switch (option) {
	case 'o':
		c->out = value;
		return true;
	case TO:
		return set_format(c, value);
	case BY:
		return set_unit(c, value);
	case THREADS:
		c->export.with_threads = true;
		return true;
	case THREAD:
		c->export.thread = value;
		return true;
	case NAMES:
		return option_full_names(c->command, value, &c->export.full_names);
	case SYMBOLIZE:
		c->symbolizes = true;
		return true;
	case PRETTY:
		c->export.is_pretty = true;
		return true;
	default:
		return selection_set(&c->merge, "convert", option, value);
	}
}

/* Without --to, the suffix of OUT names the format. Without -o, OUT is stdout. */
static bool choose_format(struct convert *c)
{
	char names[256];

	if (c->format == NULL && c->out != NULL)
		c->format = format_by_suffix(c->out);
	if (c->out == NULL)
		c->out = "-";
	if (c->format != NULL)
		return true;
	list_formats(names, sizeof(names));
	log_error("%s: which format? Add --to FORMAT, or -o FILE with the "
		  "suffix of a format (%s)",
		  c->command, names);
	return false;
}

static bool parse(struct convert *c, int argc, char **argv)
{
	int option;

	*c = (struct convert){
		.command = argv[0],
		.merge = {.until_ns = UINT64_MAX},
		.export = {.version = SENTRY_PROFD_VERSION},
	};
	while ((option = option_next(argv[0], argc, argv, ":o:", options, NULL)) != -1)
		if (option == '?' || !set_option(c, option, optarg))
			return false;
	if (optind == argc) {
		log_error("convert: no input: name files or a directory "
			  "that sentry-profd has written");
		return false;
	}
	return choose_format(c);
}

struct writing {
	const struct convert *convert;
	const struct merge *merge;
};

static int write_format(void *ctx, FILE *out)
{
	const struct writing *w = ctx;

	return w->convert->format->write(w->merge, &w->convert->export, out);
}

/* Before the output is opened, which truncates it. */
static bool has_thread(const struct convert *c, const struct merge *m)
{
	if (c->export.thread == NULL || export_has_thread(m, c->export.thread))
		return true;
	log_error("no thread is called %s (--to folded --threads shows all names)",
		  c->export.thread);
	return false;
}

/* Initialises an empty merge with the options that the format needs. */
static void begin(struct convert *c, struct merge *ret)
{
	c->merge.by_function = c->format->by_function;
	c->merge.is_ordered = c->format->is_ordered;
	c->merge.keep_extra = c->format->keep_extra;
	selection_init(ret, &c->merge);
}

/* Reads and merges all files. Returns 0, or -errno after a line on stderr. */
static int read_in(struct convert *c, char *const *paths, size_t n, struct merge *ret)
{
	struct symbolizer *s = NULL;
	int r = 0;

	begin(c, ret);
	if (c->symbolizes) {
		s = symbolizer_new();
		r = s == NULL ? -ECHILD : 0;
	}
	if (r == 0)
		r = selection_read(ret, s, paths, n);
	symbolizer_free(s);
	if (r == 0)
		r = selection_finish(ret);
	if (r == 0 && ret->joins_samples &&
	    (c->export.by_samples || c->format == format_by_name("pprof")))
		log_warning("numbers of samples are too small: in a page, samples with the same "
			    "stack in a row are one; times are exact");
	return r;
}

int convert_run(int argc, char **argv)
{
	struct convert c;
	struct merge merge;
	struct writing writing = {&c, &merge};
	int r;

	if (!parse(&c, argc, argv))
		return EXIT_USAGE;
	r = read_in(&c, argv + optind, (size_t)(argc - optind), &merge);
	if (r == 0)
		r = has_thread(&c, &merge) ? selection_write(c.out, write_format, &writing)
					   : -ENOENT;
	merge_fini(&merge);
	return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

int convert_page(char *const *paths, size_t n, FILE *out, const char *path)
{
	struct convert c = {
		.format = format_by_name(output_formats[OUTPUT_FORMAT_HTML].name),
		.merge = {.until_ns = UINT64_MAX},
		.export = {.version = SENTRY_PROFD_VERSION},
	};
	struct merge merge;
	int r = read_in(&c, paths, n, &merge);

	if (r == 0) {
		r = c.format->write(&merge, &c.export, out);
		if (r < 0)
			log_error("writing %s failed: %s", path, strerror(-r));
	}
	merge_fini(&merge);
	return r;
}

struct conversion {
	struct convert convert;
	struct merge merge;
};

struct conversion *conversion_new(const char *command, const char *out, const char *to)
{
	struct conversion *c = calloc(1, sizeof(*c));

	if (c == NULL) {
		log_error("%s: no memory to begin: nothing is written", command);
		return NULL;
	}
	c->convert = (struct convert){
		.command = command,
		.out = out,
		.merge = {.until_ns = UINT64_MAX},
		.export = {.version = SENTRY_PROFD_VERSION},
	};
	if ((to != NULL && !set_format(&c->convert, to)) || !choose_format(&c->convert)) {
		free(c);
		return NULL;
	}
	begin(&c->convert, &c->merge);
	return c;
}

int conversion_add(struct conversion *c, const char *payload, size_t size)
{
	return selection_read_payload(&c->merge, "a chunk of sentry-profd", payload, size);
}

int conversion_write(struct conversion *c)
{
	struct writing writing = {&c->convert, &c->merge};
	int r = selection_finish(&c->merge);

	return r < 0 ? r : selection_write(c->convert.out, write_format, &writing);
}

bool conversion_lacks_lines(const struct conversion *c)
{
	return c->merge.lacks_lines;
}

void conversion_free(struct conversion *c)
{
	if (c == NULL)
		return;
	merge_fini(&c->merge);
	free(c);
}
