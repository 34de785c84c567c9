#include "daemon/broker/targets/sections.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/broker/targets/instance.h"
#include "daemon/broker/targets/totals.h"
#include "daemon/common/log.h"
#include "daemon/msg/msg_unwind.h"
#include "daemon/process/exe_link.h"

static void free_sections(struct sections *s)
{
	for (size_t k = 0; k < s->n; k++)
		files_forget(s->files, &s->v[k]);
	free(s->v);
	s->v = NULL;
	s->n = 0;
}

void sections_init(struct sections *s, struct files *files)
{
	*s = (struct sections){.files = files};
}

void sections_fini(struct sections *s)
{
	if (s->files != NULL)
		free_sections(s);
}

static struct section *find_section(const struct sections *s, const char *name)
{
	for (size_t k = 0; k < s->n; k++)
		if (strcmp(s->v[k].name, name) == 0)
			return &s->v[k];
	return NULL;
}

int sections_configure(struct sections *s, const struct config *config, uint64_t now_ns)
{
	struct section *v = calloc(config->n_sections + 1, sizeof(*v));

	for (size_t k = 0; v != NULL && k < config->n_sections; k++) {
		const struct section_config *section = &config->sections[k];
		const struct section *old = find_section(s, section->name);

		v[k].empty_since_ns = now_ns;
		if (old != NULL) {
			v[k].gone = old->gone;
			v[k].instances = old->instances;
			v[k].profiled = old->profiled;
			v[k].empty_since_ns = old->empty_since_ns;
		}
		v[k].all = s;
		memcpy(v[k].name, section->name, sizeof(v[k].name));
		memcpy(v[k].exe, section->exe, sizeof(v[k].exe));
		memcpy(v[k].defect, section->defect, sizeof(v[k].defect));
		v[k].is_off = section->is_off;
		v[k].warn_ns = now_ns + section->min_age_s * NS_PER_SEC + SECTIONS_WARN_NS;
	}
	free_sections(s);
	if (v == NULL)
		return -ENOMEM;
	s->v = v;
	s->n = config->n_sections;
	return 0;
}

static void warn_no_match(const struct section *section, const char *why)
{
	if (why[0] != '\0')
		log_warning("[target \"%s\"] has matched no process since the "
			    "configuration was read: exe = %s: %s",
			    section->name, section->exe, why);
	else
		log_warning("[target \"%s\"] has matched no process since the "
			    "configuration was read (sentry-profctl doctor PID shows which rule "
			    "a process does not match)",
			    section->name);
}

/* A files_fn: fd is a memfd with the path that exe leads to. */
static void on_resolved(void *ctx, const struct msg_file_request *request, int error, int fd,
			const struct file_label *file)
{
	const struct section *section = ctx;
	char resolved[PATH_MAX] = "", why[EXE_LINK_TEXT_MAX];
	ssize_t n = error == 0 ? read(fd, resolved, sizeof(resolved) - 1) : 0;

	(void)request, (void)file;
	close_fd(&fd);
	if (error == 0 && n <= 0)
		error = -EIO;
	exe_link_text(section->exe, error, resolved, why);
	warn_no_match(section, why);
}

static void resolve_and_warn(struct section *section)
{
	if (!exe_link_is_path(section->exe) ||
	    files_request_path(section->all->files, FILE_KIND_EXE_LINK, section->exe, on_resolved,
			       section) < 0)
		warn_no_match(section, "");
}

static bool belongs_to(const struct instance *i, const struct section *section)
{
	return instance_has_section(i) && strcmp(i->config.name, section->name) == 0;
}

static void count_instances(struct section *section, const struct targets *ts, uint64_t now_ns)
{
	section->instances = 0;
	section->profiled = 0;
	for (size_t k = 0; k < ts->n_instances; k++) {
		const struct instance *i = ts->instances[k];

		if (instance_is_gone(i) || !belongs_to(i, section))
			continue;
		section->instances++;
		section->profiled += i->run != NULL;
	}
	if (section->instances > 0) {
		section->empty_since_ns = 0;
		section->warn_ns = 0;
	} else if (section->empty_since_ns == 0) {
		section->empty_since_ns = now_ns;
	}
}

void sections_check(struct sections *s, const struct targets *ts, uint64_t now_ns)
{
	for (size_t k = 0; k < s->n; k++) {
		struct section *section = &s->v[k];

		count_instances(section, ts, now_ns);
		if (section->warn_ns == 0 || now_ns < section->warn_ns)
			continue;
		section->warn_ns = 0;
		resolve_and_warn(section);
	}
}

void sections_instance_gone(struct sections *s, const struct instance *i)
{
	struct section *section = find_section(s, i->config.name);

	struct run_totals f;

	if (section == NULL || !instance_has_section(i))
		return;
	totals_of_instance(i->targets, i, &f);
	totals_add(&section->gone, &f);
}

void sections_totals(const struct section *section, const struct targets *ts,
		     struct run_totals *ret)
{
	struct run_totals one;

	*ret = section->gone;
	for (size_t k = 0; k < ts->n_instances; k++) {
		if (!belongs_to(ts->instances[k], section))
			continue;
		totals_of_instance(ts, ts->instances[k], &one);
		totals_add(ret, &one);
	}
}
