#include "daemon/reload.h"

#include <stdio.h>
#include <string.h>

#include "daemon/log.h"
#include "daemon/service.h"

/* Of [sentry] and [profiler]: what is used when a target is started, or later.
 */
static bool is_taken(const char *key)
{
	static const char *const keys[] = {
		"chunk_seconds",
		"max_frames",
		"symbols",
		"in_app_include",
		"in_app_exclude",
		"mode",
		"cpu_budget_percent",
		"shutdown_timeout",
		"environment",
		"release",
		"rate_hz",
	};

	for (size_t k = 0; k < array_size(keys); k++)
		if (strcmp(keys[k], key) == 0)
			return true;
	return false;
}

/* A config_key_fn; ctx is the descriptor for lines. */
static void tell_changed(void *ctx, const char *section, const char *key)
{
	static const char what[] = "is another one now: that takes another "
				   "start of sentry-profd";
	const int *lines_fd = ctx;

	if (is_taken(key))
		return;
	log_warning("%s in %s %s", key, section, what);
	if (*lines_fd >= 0)
		(void)dprintf(*lines_fd, "warning: %s in %s %s\n", key, section,
			      what);
}

static void tell_faults(struct config_faults *faults, int lines_fd)
{
	for (size_t i = 0; lines_fd >= 0 && i < faults->n; i++)
		(void)dprintf(lines_fd, "%s%s\n",
			      faults->v[i].is_warning ? "warning: " : "",
			      faults->v[i].text);
	config_faults_tell(faults);
}

/* A place in the new configuration by the section's name. */
static void change(struct broker *b, struct instance *i)
{
	const struct config *c = &b->options.config;
	const struct target_config *now = config_target(c, i->config.name);

	if (now == NULL) {
		instance_remove(i);
		return;
	}
	i->section = (size_t)(now - c->targets);
	if (target_config_equal(&i->config, now))
		return;
	instance_change(i);
	discovery_doubt(b->discovery, i->pid);
}

static int read_again(struct broker *b, int lines_fd)
{
	static struct config_faults faults;
	struct config c;
	int r = options_reload(&b->options, &c, &faults);

	tell_faults(&faults, lines_fd);
	if (r < 0) {
		log_error("the configuration stays as it was");
		return r;
	}
	config_changed_keys(&b->options.config, &c, tell_changed, &lines_fd);
	options_replace(&b->options, &c);
	discovery_by_config(b->discovery);
	/* Who has mended what was wrong with them tries again. */
	if (b->deadly != NULL)
		deadly_clear(b->deadly);
	for (size_t k = 0; k < b->n_instances; k++)
		if (instance_has_section(b->instances[k]))
			change(b, b->instances[k]);
	log_debug("the configuration is read again");
	return 0;
}

int reload(struct broker *b, int lines_fd)
{
	int r;

	if (b->discovery == NULL || b->stopping)
		return -ENOTSUP;
	service_reloads(b);
	r = read_again(b, lines_fd);
	service_reloaded(b);
	return r;
}
