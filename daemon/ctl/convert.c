#include "daemon/ctl/convert.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "daemon/ctl/formats.h"
#include "daemon/ctl/inputs.h"
#include "daemon/log.h"
#include "daemon/option_fault.h"
#include "lib/unwind/unwind.h"

enum {
	EXIT_USAGE = 2,
};

/* Seconds; 31 years, so that nanoseconds fit. */
#define CUT_MAX_S 1e9

const char convert_help[] =
	"\n"
	"convert IN... -o OUT  writes what sentry-profd has written to files "
	"in another\n"
	"                      format: folded, speedscope, pprof, firefox,\n"
	"                      self-profiling, json or summary; by OUT's "
	"ending or\n"
	"                      --to FORMAT\n"
	"\n"
	"  --filter GLOB         what has this function, module or thread; "
	"also\n"
	"                        function=GLOB, module=GLOB, thread=GLOB\n"
	"  --from S, --until S   from and until this second\n"
	"  --state STATE         running, waiting or all (the default)\n"
	"  --by samples|us       folded: what is counted (default: us)\n"
	"  --threads             folded: the thread first\n"
	"  --thread NAME         self-profiling: this thread alone\n"
	"  --pretty              json: on many lines\n";

struct convert {
	const struct format *format;
	const char *out; /* "-": standard output */
	struct merge_options merge;
	struct export_options export;
};

enum {
	TO = OPTION_LONG,
	FILTER,
	FROM,
	UNTIL,
	STATE,
	BY,
	THREADS,
	THREAD,
	PRETTY,
};

static const struct option options[] = {
	{"to", required_argument, NULL, TO},
	{"filter", required_argument, NULL, FILTER},
	{"from", required_argument, NULL, FROM},
	{"until", required_argument, NULL, UNTIL},
	{"state", required_argument, NULL, STATE},
	{"by", required_argument, NULL, BY},
	{"threads", no_argument, NULL, THREADS},
	{"thread", required_argument, NULL, THREAD},
	{"pretty", no_argument, NULL, PRETTY},
	{0},
};

static bool fault(const char *option, const char *value, const char *wanted)
{
	log_error("convert: --%s %s: %s", option, value, wanted);
	return false;
}

/* "folded, speedscope, ..." */
static void list_formats(char *ret, size_t size)
{
	size_t n = 0;

	ret[0] = '\0';
	for (size_t i = 0; format_at(i) != NULL && n < size; i++)
		n += (size_t)snprintf(ret + n, size - n, "%s%s",
				      i > 0 ? ", " : "",
				      format_at(i)->is->format);
}

static bool set_format(struct convert *c, const char *name)
{
	char names[256];

	c->format = format_by_name(name);
	if (c->format != NULL)
		return true;
	list_formats(names, sizeof(names));
	log_error("convert: --to %s: not a format (%s)", name, names);
	return false;
}

static bool set_state(struct convert *c, const char *value)
{
	static const char *const words[] = {
		[MERGE_ALL] = "all",
		[MERGE_RUNNING] = "running",
		[MERGE_WAITING] = "waiting",
	};

	for (size_t i = 0; i < array_size(words); i++) {
		if (strcmp(words[i], value) != 0)
			continue;
		c->merge.states = (enum merge_states)i;
		return true;
	}
	return fault("state", value, "not all, running or waiting");
}

static bool add_filter(struct convert *c, const char *value)
{
	static const char *const heads[] = {
		[MERGE_ANYTHING] = "",
		[MERGE_FUNCTION] = "function=",
		[MERGE_MODULE] = "module=",
		[MERGE_THREAD] = "thread=",
	};
	struct merge_filter *filter;

	if (c->merge.n_filters == MERGE_FILTERS_MAX)
		return fault("filter", value, "too many filters");
	filter = &c->merge.filters[c->merge.n_filters++];
	for (size_t i = 0; i < array_size(heads); i++) {
		if (strncmp(value, heads[i], strlen(heads[i])) != 0)
			continue;
		filter->kind = (enum merge_filter_kind)i;
		filter->pattern = value + strlen(heads[i]);
	}
	return true;
}

static bool set_time(struct convert *c, const char *option, const char *value,
		     uint64_t *ret_ns)
{
	char *end;
	const double s = strtod(value, &end);

	if (end == value || *end != '\0' || !(s >= 0 && s <= CUT_MAX_S))
		return fault(option, value, "not a number of seconds");
	*ret_ns = (uint64_t)(s * 1e6 + 0.5) * NS_PER_US;
	c->merge.is_cut = true;
	return true;
}

static bool set_unit(struct convert *c, const char *value)
{
	c->export.by_samples = strcmp(value, "samples") == 0;
	return c->export.by_samples || strcmp(value, "us") == 0 ||
	       fault("by", value, "not samples or us");
}

static bool set_option(struct convert *c, int option, const char *value)
{
	switch (option) {
	case 'o':
		c->out = value;
		return true;
	case TO:
		return set_format(c, value);
	case FILTER:
		return add_filter(c, value);
	case FROM:
		return set_time(c, "from", value, &c->merge.from_ns);
	case UNTIL:
		return set_time(c, "until", value, &c->merge.until_ns);
	case STATE:
		return set_state(c, value);
	case BY:
		return set_unit(c, value);
	case THREADS:
		c->export.with_threads = true;
		return true;
	case THREAD:
		c->export.thread = value;
		return true;
	default: /* PRETTY */
		c->export.is_pretty = true;
		return true;
	}
}

/* Without --to the ending of OUT decides. Without -o OUT is standard output. */
static bool choose_format(struct convert *c)
{
	char names[256];

	if (c->format == NULL && c->out != NULL)
		c->format = format_by_ending(c->out);
	if (c->out == NULL)
		c->out = "-";
	if (c->format != NULL)
		return true;
	list_formats(names, sizeof(names));
	log_error("convert: which format? --to FORMAT, or -o FILE with an "
		  "ending that names it (%s)",
		  names);
	return false;
}

static bool parse(struct convert *c, int argc, char **argv)
{
	int option;

	*c = (struct convert){
		.merge = {.until_ns = UINT64_MAX},
		.export = {.version = SENTRY_PROFD_VERSION},
	};
	opterr = 0;
	while ((option = getopt_long(argc, argv, ":o:", options, NULL)) != -1) {
		if (option == '?' || option == ':') {
			option_fault_log(option, argv[0], argv, options);
			return false;
		}
		if (!set_option(c, option, optarg))
			return false;
	}
	if (optind == argc) {
		log_error("convert: no input: name the files or the directory "
			  "that sentry-profd has written");
		return false;
	}
	return choose_format(c);
}

static bool demangle(const char *raw, char *out, size_t size)
{
	return unwind_demangle(raw, true, out, size);
}

static int add_chunk(void *ctx, const struct import_chunk *chunk)
{
	return merge_add(ctx, chunk);
}

static void tell(const struct merge *m)
{
	if (m->lacks_states)
		log_warning("no sample%s says that its thread waited: all "
			    "time%s counts as running",
			    m->has_states ? " of some chunks" : "",
			    m->has_states ? " of those" : "");
	if (m->cut_ns > 0)
		log_warning("chunks of one process overlap: %.6f s of threads' "
			    "time was left out",
			    (double)m->cut_ns / (double)NS_PER_SEC);
	if (m->n_bars == 0)
		log_warning("nothing is left to show: no sample fits the "
			    "filters and times that were given");
}

/* path: of out, for the user. */
static int write_out(const struct convert *c, const struct merge *m, FILE *out,
		     const char *path)
{
	const int r = c->format->write(m, &c->export, out);

	if (r == -ENOENT)
		log_error("no thread is called %s: --to folded --threads "
			  "names them",
			  c->export.thread);
	else if (r < 0)
		log_error("writing %s failed: %s", path, strerror(-r));
	return r;
}

/*
 * Opens c->out, unless it is standard output. A file that could not be written
 * to its end is removed.
 */
static int open_and_write(const struct convert *c, const struct merge *m)
{
	struct stat st;
	FILE *out;
	int r;

	if (strcmp(c->out, "-") == 0)
		return write_out(c, m, stdout, c->out);
	out = fopen(c->out, "we");
	if (out == NULL) {
		log_error("cannot write %s: %s", c->out, strerror(errno));
		return -errno;
	}
	r = write_out(c, m, out, c->out);
	if (fclose(out) != 0 && r == 0) {
		r = -errno;
		log_error("writing %s failed: %s", c->out, strerror(-r));
	}
	if (r < 0 && stat(c->out, &st) == 0 && S_ISREG(st.st_mode))
		(void)remove(c->out);
	return r;
}

/* Reads all inputs into the merge. After an error a line has said so. */
static int read_in(struct convert *c, char *const *paths, size_t n,
		   struct merge *ret)
{
	int r;

	c->merge.demangle = demangle;
	c->merge.by_function = c->format->by_function;
	c->merge.is_ordered = c->format->is_ordered;
	c->merge.keep_rest = c->format->keep_rest;
	if (getrandom(&c->merge.hash_seed, sizeof(c->merge.hash_seed), 0) < 0)
		c->merge.hash_seed = 0;
	merge_init(ret, &c->merge);
	r = inputs_read(paths, n, add_chunk, ret);
	if (r < 0)
		return r;
	if (ret->n_processes == 0) {
		log_error("no profile chunk is in there");
		return -ENODATA;
	}
	r = merge_finish(ret);
	if (r < 0)
		log_error("no memory");
	else
		tell(ret);
	return r;
}

int convert_run(int argc, char **argv)
{
	struct convert c;
	struct merge merge;
	int r;

	if (!parse(&c, argc, argv))
		return EXIT_USAGE;
	r = read_in(&c, argv + optind, (size_t)(argc - optind), &merge);
	if (r == 0)
		r = open_and_write(&c, &merge);
	merge_fini(&merge);
	return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

int convert_page(char *const *paths, size_t n, FILE *out, const char *path)
{
	struct convert c = {
		.format = format_by_name(endings[ENDING_HTML].format),
		.merge = {.until_ns = UINT64_MAX},
		.export = {.version = SENTRY_PROFD_VERSION},
	};
	struct merge merge;
	int r = read_in(&c, paths, n, &merge);

	if (r == 0)
		r = write_out(&c, &merge, out, path);
	merge_fini(&merge);
	return r;
}
