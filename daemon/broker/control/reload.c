#include "daemon/broker/control/reload.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "daemon/broker/children/ship.h"
#include "daemon/broker/control/attach_request.h"
#include "daemon/broker/report/service.h"
#include "daemon/broker/targets/instance.h"
#include "daemon/common/log.h"
#include "daemon/config/config.h"
#include "daemon/config/config_fault.h"
#include "daemon/config/config_print.h"

static void warn(int lines_fd, const char *format, ...) printf_like(2, 3);
static void warn(int lines_fd, const char *format, ...)
{
	char line[CONFIG_TEXT_MAX + 256];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	log_warning("%s", line);
	if (lines_fd >= 0)
		(void)dprintf(lines_fd, "warning: %s\n", line);
}

/* A config_key_fn for a key that needs a restart. ctx: the descriptor for lines. */
static void warn_changed_key(void *ctx, const char *section, const char *key)
{
	const int *lines_fd = ctx;

	warn(*lines_fd,
	     "%s in %s has changed: the new value takes effect only after a restart of "
	     "sentry-profd",
	     key, section);
}

/* Warns about rates above that of the timer, which stays as it was at the daemon's start. */
static void warn_rates(const struct modules *modules, const struct config *now, int lines_fd)
{
	for (size_t k = 0; k < now->n_sections; k++) {
		const struct section_config *section = &now->sections[k];
		const struct section_config *old =
			config_section(&modules->state.options.config, section->name);

		if (section->rate_hz > modules->state.timer_hz &&
		    (old == NULL || old->rate_hz != section->rate_hz))
			warn(lines_fd,
			     "rate_hz of [target \"%s\"] is %u, more than %u, the highest rate "
			     "when "
			     "sentry-profd started: %u is used until a restart",
			     section->name, section->rate_hz, modules->state.timer_hz,
			     modules->state.timer_hz);
	}
}

/*
 * Warns if the configuration has a DSN for the first time: without one the daemon opened no
 * spool at its start.
 */
static void warn_first_dsn(struct modules *modules, const struct config *now, int lines_fd)
{
	bool any = now->dsn[0] != '\0';

	for (size_t k = 0; k < now->n_sections; k++)
		any |= now->sections[k].dsn[0] != '\0';
	if (!any || modules->children.has_dsn)
		return;
	modules->children.has_dsn = true;
	if (strcmp(now->spool, "none") != 0)
		warn(lines_fd,
		     "the configuration now has a DSN, but had none when sentry-profd started: "
		     "chunks that cannot be sent wait in memory, and not in the spool, until a "
		     "restart");
}

static void log_faults(struct config_faults *faults, int lines_fd)
{
	for (size_t i = 0; lines_fd >= 0 && i < faults->n; i++)
		(void)dprintf(lines_fd, "%s%s\n", faults->v[i].is_warning ? "warning: " : "",
			      faults->v[i].text);
	config_faults_log(faults);
}

/* Returns how many sections both configurations have in common, from the first one on. */
static size_t count_same(const struct config *a, const struct config *b)
{
	size_t n = 0;

	while (n < a->n_sections && n < b->n_sections &&
	       strcmp(a->sections[n].name, b->sections[n].name) == 0 &&
	       config_section_equal(&a->sections[n], &b->sections[n]))
		n++;
	return n;
}

/*
 * Compares the instance's section in the old configuration with that in the new one. The
 * instance's own copy may differ from both: the copy is made when the instance is added, and after
 * a reload when its run has ended; the request attach changes it. n_same: of count_same().
 */
static void change_instance(struct modules *modules, struct instance *i, const struct config *c,
			    size_t n_same)
{
	const struct section_config *old =
		config_section(&modules->state.options.config, i->config.name);
	const struct section_config *now = config_section(c, i->config.name);

	/* The instance was removed before this reload; a new section may have the same name. */
	if (instance_is_gone(i))
		return;
	if (now == NULL) {
		/* Discovery decides about what users have attached or detached. */
		if (i->wish != INSTANCE_WISH_ATTACHED && i->wish != INSTANCE_WISH_DETACHED)
			instance_becomes(i, INSTANCE_REMOVED);
	} else if (old == NULL || !config_section_equal(old, now)) {
		instance_becomes(i, INSTANCE_CHANGED);
	} else if ((size_t)(now - c->sections) < n_same) {
		/* Nothing has changed up to this section, and the first that matches counts. */
		return;
	}
	discovery_recheck(modules->discovery, i->pid);
}

static int replace_config(struct modules *modules, int lines_fd)
{
	static struct config_faults faults;
	struct config c;
	bool implicit_changed;
	size_t n_same;
	int r = options_reload(&modules->state.options, &c, &faults);

	log_faults(&faults, lines_fd);
	if (r < 0) {
		log_error("reload failed: the old configuration stays in use");
		return r;
	}
	config_changed_keys(&modules->state.options.config, &c, warn_changed_key, &lines_fd);
	warn_rates(modules, &c, lines_fd);
	warn_first_dsn(modules, &c, lines_fd);
	n_same = count_same(&modules->state.options.config, &c);
	implicit_changed =
		!config_section_equal(&modules->state.options.config.implicit, &c.implicit);
	for (size_t k = 0; k < modules->targets.n_instances; k++) {
		struct instance *i = modules->targets.instances[k];

		if (instance_has_section(i))
			change_instance(modules, i, &c, n_same);
		else if (implicit_changed)
			instance_becomes(i, INSTANCE_CHANGED);
	}
	options_replace(&modules->state.options, &c);
	attach_request_config_changed(&modules->targets);
	discovery_config_changed(modules->discovery);
	ship_renew_files(&modules->children);
	/* The user may have replaced faulty files: they are tried again. */
	quarantine_clear(&modules->quarantine);
	log_debug("the configuration has been reloaded");
	return 0;
}

int reload(struct modules *modules, struct notify *n, int lines_fd)
{
	int r;

	if (modules->discovery == NULL || modules->state.phase >= PHASE_STOPPING)
		return -ENOTSUP;
	service_reloads(n);
	r = replace_config(modules, lines_fd);
	service_reloaded(n);
	return r;
}
