#include "daemon/reload.h"

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

/* A config_key_fn. */
static void tell_changed(void *ctx, const char *section, const char *key)
{
	(void)ctx;
	if (!is_taken(key))
		log_warning("%s in [%s] is another one now: that takes another "
			    "start of sentry-profd",
			    key, section);
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

static int read_again(struct broker *b)
{
	static struct config_faults faults;
	struct config c;
	int r = options_reload(&b->options, &c, &faults);

	config_faults_tell(&faults);
	if (r < 0) {
		log_error("the configuration stays as it was");
		return r;
	}
	config_changed_keys(&b->options.config, &c, tell_changed, NULL);
	options_replace(&b->options, &c);
	discovery_by_config(b->discovery);
	for (size_t k = 0; k < b->n_instances; k++)
		if (instance_has_section(b->instances[k]))
			change(b, b->instances[k]);
	log_debug("the configuration is read again");
	return 0;
}

int reload(struct broker *b)
{
	int r;

	if (b->discovery == NULL || b->stopping)
		return -ENOTSUP;
	service_reloads(b);
	r = read_again(b);
	service_reloaded(b);
	return r;
}
