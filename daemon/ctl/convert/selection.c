#include "daemon/ctl/convert/selection.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "daemon/common/log.h"
#include "daemon/ctl/common/inputs.h"
#include "lib/unwind/unwind.h"

/* 31 years: in nanoseconds it fits 64 bits. */
#define TIME_MAX_S 1e9

bool selection_fault(const char *command, const char *option, const char *value,
		     const char *problem)
{
	log_error("%s: --%s %s: %s", command, option, value, problem);
	return false;
}

static bool set_state(struct merge_options *o, const char *command, const char *value)
{
	static const char *const names[] = {
		[MERGE_ALL] = "all",
		[MERGE_RUNNING] = "running",
		[MERGE_READY] = "ready",
		[MERGE_WAITING] = "waiting",
	};

	for (size_t i = 0; i < array_size(names); i++) {
		if (strcmp(names[i], value) != 0)
			continue;
		o->states = (enum merge_states)i;
		return true;
	}
	return selection_fault(command, "state", value, "not all, running, ready or waiting");
}

static bool add_filter(struct merge_options *o, const char *command, const char *value)
{
	static const char *const prefixes[] = {
		[MERGE_ANYTHING] = "",
		[MERGE_FUNCTION] = "function=",
		[MERGE_MODULE] = "module=",
		[MERGE_THREAD] = "thread=",
	};
	struct merge_filter *filter;

	if (o->n_filters == MERGE_FILTERS_MAX)
		return selection_fault(command, "filter", value, "too many filters");
	filter = &o->filters[o->n_filters++];
	for (size_t i = 0; i < array_size(prefixes); i++) {
		if (strncmp(value, prefixes[i], strlen(prefixes[i])) != 0)
			continue;
		filter->kind = (enum merge_filter_kind)i;
		filter->pattern = value + strlen(prefixes[i]);
	}
	return true;
}

static bool set_time(struct merge_options *o, const char *command, const char *option,
		     const char *value, uint64_t *ret_ns)
{
	char *end;
	const double s = strtod(value, &end);

	if (end == value || *end != '\0' || !(s >= 0 && s <= TIME_MAX_S))
		return selection_fault(command, option, value, "not a number of seconds");
	*ret_ns = (uint64_t)(s * 1e6 + 0.5) * NS_PER_US;
	o->has_range = true;
	return true;
}

bool selection_set(struct merge_options *o, const char *command, int option, const char *value)
{
	switch (option) {
	case SELECTION_FILTER:
		return add_filter(o, command, value);
	case SELECTION_FROM:
		return set_time(o, command, "from", value, &o->from_ns);
	case SELECTION_UNTIL:
		return set_time(o, command, "until", value, &o->until_ns);
	default: /* SELECTION_STATE */
		return set_state(o, command, value);
	}
}

static bool demangle(const char *raw, char *out, size_t size)
{
	return unwind_demangle(raw, true, out, size);
}

void selection_init(struct merge *m, struct merge_options *o)
{
	o->demangle = demangle;
	if (getrandom(&o->hash_seed, sizeof(o->hash_seed), 0) < 0)
		o->hash_seed = 0;
	merge_init(m, o);
}

struct addition {
	struct merge *merge;
	struct symbolizer *symbolizer;
};

static int add_chunk(void *ctx, const struct import_chunk *chunk)
{
	const struct addition *a = ctx;
	struct import_chunk more;
	int r;

	if (a->symbolizer == NULL)
		return merge_add(a->merge, chunk);
	r = symbolizer_chunk(a->symbolizer, chunk, &more);
	if (r < 0)
		return r;
	r = merge_add(a->merge, &more);
	symbolizer_release(&more);
	return r;
}

int selection_read(struct merge *m, struct symbolizer *s, char *const *paths, size_t n)
{
	const size_t before = m->n_processes;
	struct addition addition = {m, s};
	int r = inputs_read(paths, n, add_chunk, &addition);

	if (r == 0 && m->n_processes == before) {
		log_error("no profile chunk in %s", n == 1 ? paths[0] : "these files");
		r = -ENODATA;
	}
	return r;
}

int selection_read_payload(struct merge *m, const char *name, const char *bytes, size_t size)
{
	struct addition addition = {m, NULL};

	return inputs_read_bytes(name, bytes, size, add_chunk, &addition);
}

int selection_finish(struct merge *m)
{
	int r = merge_finish(m);

	if (r < 0) {
		log_error("no memory to merge the chunks: nothing is written");
		return r;
	}
	if (m->lacks_states)
		log_warning("no sample%s says whether its thread ran or waited: all "
			    "time%s counts as running",
			    m->has_states ? " of some chunks" : "",
			    m->has_states ? " of those" : "");
	if (m->hides_ready && m->options.states != MERGE_RUNNING)
		log_warning("waiting means waiting or ready (without a processor): an older "
			    "sentry-profd, which did not tell them apart, made some chunks");
	if (m->overlap_ns > 0)
		log_warning("some time is in several chunks, which those of one run never have in "
			    "common: %.6f s, summed over all threads, count once, as in the chunk "
			    "that is read first",
			    (double)m->overlap_ns / (double)NS_PER_SEC);
	if (m->n_bars == 0)
		log_warning("the output is empty: no sample matches --filter, --state, "
			    "--from and --until");
	return 0;
}

int selection_write(const char *path, selection_writer *write, void *ctx)
{
	const bool is_stdout = strcmp(path, "-") == 0;
	FILE *out = is_stdout ? stdout : fopen(path, "we");
	struct stat st;
	int r;

	if (out == NULL) {
		r = -errno;
		log_error("cannot write %s: %s", path, strerror(-r));
		return r;
	}
	r = write(ctx, out);
	if (!is_stdout && fclose(out) != 0 && r == 0)
		r = -errno;
	if (r < 0)
		log_error("writing %s failed: %s", path, strerror(-r));
	if (r < 0 && !is_stdout && stat(path, &st) == 0 && S_ISREG(st.st_mode))
		(void)remove(path);
	return r;
}
