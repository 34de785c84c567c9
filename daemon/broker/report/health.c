#include "daemon/broker/report/health.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/common/log.h"
#include "daemon/msg/msg_ship.h"

void health_start(struct modules *modules)
{
	enum degraded_kind found[DEGRADED_N];
	struct degraded_kind_facts facts;
	size_t n;

	degraded_kind_facts_read(&facts);
	if (geteuid() != 0) {
		/* Profiling the user's own processes needs no capabilities. */
		facts.have = ~UINT64_C(0);
		facts.in_user_namespace = false;
	}
	n = degraded_kind_find(&facts, found);
	for (size_t i = 0; i < n; i++)
		degraded_begin(&modules->state.degraded, found[i], "%s", "");
}

/* An ordinary user has neither the proc connector nor SCHED_FIFO, and is promised neither. */
static void check_kernel(struct modules *modules)
{
	struct degraded *d = &modules->state.degraded;
	const struct children *c = &modules->children;

	if (geteuid() != 0)
		return;
	if (modules->discovery != NULL && !discovery_has_connector(modules->discovery))
		degraded_begin(d, DEGRADED_CONNECTOR, "%s", "");
	/* Without CAP_SYS_NICE there is no SCHED_FIFO: one row tells both. */
	if (d->v[DEGRADED_SYS_NICE].since_ns != 0 || c->heartbeat == NULL)
		return;
	if (c->heartbeat->scheduler == SCHEDULER_FIFO)
		degraded_end(d, DEGRADED_FIFO);
	else if (c->heartbeat->scheduler != SCHEDULER_UNSET)
		degraded_begin(d, DEGRADED_FIFO, "the kernel refuses it");
}

/*
 * A spool that cannot be opened is noticed at the start. ship_fds has the directory itself, which a
 * new one of the same name does not replace.
 */
static void check_spool(struct modules *modules)
{
	struct degraded *d = &modules->state.degraded;
	const struct children *c = &modules->children;
	const int fd = c->ship_fds[INIT_SPOOL];
	struct stat st;
	int error = 0;

	if (fd < 0)
		return;
	for (size_t i = 0; i < c->n_ships && error == 0; i++)
		error = c->ships[i]->spool_error;
	if (fstat(fd, &st) == 0 && st.st_nlink == 0)
		degraded_begin(d, DEGRADED_SPOOL, "its directory was removed");
	else if (error == ENOTEMPTY)
		degraded_begin(d, DEGRADED_SPOOL,
			       "its files that end with .bad fill it (remove them, or raise "
			       "spool_max_bytes)");
	else if (error != 0)
		degraded_begin(d, DEGRADED_SPOOL, "writing to it fails: %s", strerror(error));
	else
		degraded_end(d, DEGRADED_SPOOL);
}

static void check_clocks(struct modules *modules)
{
	const struct ship *wrong = NULL;

	for (size_t i = 0; i < modules->children.n_ships && wrong == NULL; i++) {
		const struct ship *s = modules->children.ships[i];

		if (s->clock_ahead_s > MSG_CLOCK_MAX_S || s->clock_ahead_s < -MSG_CLOCK_MAX_S)
			wrong = s;
	}
	if (wrong == NULL)
		degraded_end(&modules->state.degraded, DEGRADED_CLOCK);
	else
		degraded_begin(&modules->state.degraded, DEGRADED_CLOCK,
			       "that of %s is %s of this host's", wrong->label,
			       wrong->clock_ahead_s > 0 ? "ahead" : "behind");
}

/* One row for all servers that refuse: the reason names the first of them. */
static void check_servers(struct modules *modules)
{
	const struct ship *refused = NULL;

	for (size_t i = 0; i < modules->children.n_ships && refused == NULL; i++)
		if (modules->children.ships[i]->denial.status != 0)
			refused = modules->children.ships[i];
	if (refused == NULL)
		degraded_end(&modules->state.degraded, DEGRADED_SERVER);
	else
		degraded_begin(&modules->state.degraded, DEGRADED_SERVER,
			       "%s answers with status %u", refused->label, refused->denial.status);
}

static void check_sections(struct modules *modules)
{
	const struct config *c = &modules->state.options.config;
	const struct section_config *bad = NULL;

	for (size_t i = 0; i < c->n_sections && bad == NULL; i++)
		if (c->sections[i].defect[0] != '\0')
			bad = &c->sections[i];
	if (bad == NULL)
		degraded_end(&modules->state.degraded, DEGRADED_SECTION);
	else
		degraded_begin(&modules->state.degraded, DEGRADED_SECTION, "[target \"%s\"]: %s",
			       bad->name, bad->defect);
}

void health_check(struct modules *modules)
{
	struct degraded *d = &modules->state.degraded;

	check_kernel(modules);
	check_spool(modules);
	check_clocks(modules);
	check_servers(modules);
	check_sections(modules);
	if (quarantine_count_files(&modules->quarantine) == 0)
		degraded_end(d, DEGRADED_FILES);
	if (log_has_lost_lines())
		degraded_begin(d, DEGRADED_LOG, "the reader of standard error does not read");
	else
		degraded_end(d, DEGRADED_LOG);
}
