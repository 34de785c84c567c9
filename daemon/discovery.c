#include "daemon/discovery.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/broker.h"
#include "daemon/connector.h"
#include "daemon/identify.h"
#include "daemon/log.h"
#include "lib/base/clock.h"
#include "lib/base/table.h"

/* Between two readings of /proc: where we are not told, and where we are. */
#define SCAN_NS	     NS_PER_SEC
#define SCAN_TOLD_NS (60 * NS_PER_SEC)

/* Of what is due at a time, so that the others have their turn: some 10 ms. */
#define GLANCES_MAX 1024
#define LOOKS_MAX   256

/*
 * Processes too young to be looked at: the forks of a second on a machine that
 * does nothing else. Those beyond that are found by a scan.
 */
#define SIGHTINGS_MAX 65536

#define ALL_PROCESSES "/proc"

struct discovery {
	struct broker *broker;
	struct files *files; /* for what is read of strangers */
	struct identify *identify;
	int connector_fd; /* -1: none */
	bool is_told;	  /* it has answered */

	struct sighting *list; /* in no order */
	size_t n, size;
	bool is_busy; /* more is due */
	uint64_t min_age_ns;

	DIR *dir;	       /* of a scan that goes on; NULL: none */
	uint64_t scan_ns;      /* when the next one is due, */
	uint64_t pid_files_ns; /* and a look into the pid files, */
	uint64_t anew_ns;      /* and a look at those that were seen */
	/* Where we are not told: marks of those seen by the last scan, and by
	 * this one (struct process_glance). */
	struct table seen, seeing;
};

static void on_identified(void *ctx, const struct sighting *s,
			  const struct process *process, size_t section);

int discovery_new(struct broker *b, struct discovery **ret)
{
	struct discovery *d = calloc(1, sizeof(*d));
	int r;

	if (d == NULL)
		return -ENOMEM;
	d->broker = b;
	d->connector_fd = -1;
	table_init(&d->seen, 0);
	table_init(&d->seeing, 0);
	r = connector_open(&d->connector_fd);
	if (r < 0)
		log_debug("the kernel does not tell of new processes (%s): "
			  "/proc is read once a second",
			  strerror(-r));
	*ret = d;
	return 0;
}

int discovery_start(struct discovery *d)
{
	int r = files_new(d->broker->loop, &d->files);

	if (r == 0)
		r = identify_new(d->files, on_identified, d, &d->identify);
	if (r == 0)
		discovery_by_config(d);
	return r;
}

void discovery_free(struct discovery *d)
{
	if (d == NULL)
		return;
	if (d->dir != NULL)
		(void)closedir(d->dir);
	connector_close(&d->connector_fd);
	files_free(d->files);
	identify_free(d->identify);
	table_fini(&d->seen);
	table_fini(&d->seeing);
	free(d->list);
	free(d);
}

void discovery_by_config(struct discovery *d)
{
	const struct config *c = &d->broker->options.config;

	d->min_age_ns = UINT64_MAX;
	for (size_t k = 0; k < c->n_targets; k++)
		d->min_age_ns = min_u64(d->min_age_ns,
					c->targets[k].min_age_s * NS_PER_SEC);
	identify_by(d->identify, c);
	d->scan_ns = 0;
	d->anew_ns = 0;
}

bool discovery_is_busy(const struct discovery *d)
{
	return d->is_busy || d->dir != NULL;
}

bool discovery_is_told(const struct discovery *d)
{
	return d->is_told;
}

void discovery_reaped(struct discovery *d, int32_t pid,
		      const struct rusage *usage)
{
	if (d->files != NULL)
		files_reaped(d->files, pid, usage);
}

/* Without room or memory for it: the next scan finds it. */
static void note(struct discovery *d, const struct sighting *s)
{
	if (d->n == d->size) {
		const size_t size = max_u64(64, 2 * d->size);
		struct sighting *list =
			size > SIGHTINGS_MAX
				? NULL
				: reallocarray(d->list, size, sizeof(*list));

		if (list == NULL) {
			d->scan_ns =
				min_u64(d->scan_ns, clock_mono_ns() + SCAN_NS);
			return;
		}
		d->list = list;
		d->size = size;
	}
	d->list[d->n++] = *s;
}

/* It is looked at when it is old enough for some section. */
static void sight(struct discovery *d, int32_t pid, bool is_exec,
		  uint64_t born_ns)
{
	const struct sighting s = {
		.pid = pid,
		.is_exec = is_exec,
		.born_ns = born_ns,
		/* What is profiled already may be something else now. */
		.due_ns = is_exec && instance_of_pid(d->broker, pid) != NULL
				  ? born_ns
				  : born_ns + d->min_age_ns,
	};

	if (d->min_age_ns != UINT64_MAX)
		note(d, &s);
}

void discovery_doubt(struct discovery *d, int32_t pid)
{
	sight(d, pid, true, clock_mono_ns());
}

static void on_event(void *ctx, const struct connector_event *e)
{
	struct discovery *d = ctx;

	switch (e->what) {
	case CONNECTOR_ANSWER:
		if (!d->is_told)
			log_debug("the kernel tells of new processes");
		d->is_told = true;
		return;
	case CONNECTOR_FORK:
	case CONNECTOR_CHANGE:
		sight(d, e->pid, false, e->time_ns);
		return;
	case CONNECTOR_EXEC:
		sight(d, e->pid, true, e->time_ns);
		return;
	}
}

static void hear(struct discovery *d)
{
	if (d->connector_fd < 0)
		return;
	if (connector_read(d->connector_fd, on_event, d) < 0)
		d->scan_ns = 0;
}

/* On CLOCK_MONOTONIC; what is older than that clock was born with it. */
static uint64_t born_ns(uint64_t start_ticks)
{
	const uint64_t tick_ns = NS_PER_SEC / (uint64_t)sysconf(_SC_CLK_TCK);
	const uint64_t boot_ns = clock_boot_ns(), mono_ns = clock_mono_ns();
	const uint64_t age_ns =
		boot_ns - min_u64(boot_ns, start_ticks * tick_ns);

	return mono_ns - min_u64(mono_ns, age_ns);
}

/* A process that a scan comes across. */
static void glance(struct discovery *d, int32_t pid)
{
	struct process_glance now;
	uint32_t mark;
	bool was_seen;

	if (!process_glance(pid, &now))
		return;
	if (d->is_told) {
		sight(d, pid, false, born_ns(now.start_ticks));
		return;
	}
	was_seen = table_get(&d->seen, (uint64_t)pid, &mark);
	/* Without memory it is looked at each time. */
	(void)!table_put(&d->seeing, (uint64_t)pid, (uint32_t)now.mark);
	if (was_seen && mark == (uint32_t)now.mark)
		return;
	/* Another program, or another process: the look will tell. */
	sight(d, pid, was_seen,
	      was_seen ? clock_mono_ns() : born_ns(now.start_ticks));
}

static void end_scan(struct discovery *d)
{
	struct table seen = d->seen;

	(void)closedir(d->dir);
	d->dir = NULL;
	d->seen = d->seeing;
	d->seeing = seen;
	table_clear(&d->seeing);
	if (!d->is_told)
		return;
	table_fini(&d->seen);
	table_fini(&d->seeing);
}

static void scan(struct discovery *d, uint64_t now_ns)
{
	struct dirent *entry;

	if (d->dir == NULL && now_ns < d->scan_ns)
		return;
	if (d->dir == NULL) {
		d->scan_ns = now_ns + (d->is_told ? SCAN_TOLD_NS : SCAN_NS);
		/* Who has another user or cgroup now has the same mark. */
		if (now_ns >= d->anew_ns) {
			d->anew_ns = now_ns + SCAN_TOLD_NS;
			table_clear(&d->seen);
		}
		d->dir = opendir(ALL_PROCESSES);
	}
	for (int i = 0; i < GLANCES_MAX && d->dir != NULL; i++) {
		entry = readdir(d->dir);
		if (entry == NULL) {
			end_scan(d);
			return;
		}
		if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9')
			glance(d, (int32_t)strtol(entry->d_name, NULL, 10));
	}
}

/* No event tells of those: they may be written long after the start. */
static void read_pid_files(struct discovery *d, uint64_t now_ns)
{
	const struct config *c = &d->broker->options.config;

	if (now_ns < d->pid_files_ns)
		return;
	d->pid_files_ns = now_ns + SCAN_NS;
	for (size_t k = 0; k < c->n_targets; k++) {
		struct process_glance now;
		int32_t pid;

		if (c->targets[k].pid_file[0] == '\0')
			continue;
		pid = identify_pid_file(c->targets[k].pid_file);
		if (pid > 0 && instance_of_pid(d->broker, pid) == NULL &&
		    process_glance(pid, &now))
			sight(d, pid, false, born_ns(now.start_ticks));
	}
}

/* Its pidfd is ours; what came meanwhile may have made it obsolete. */
static void on_identified(void *ctx, const struct sighting *s,
			  const struct process *process, size_t section)
{
	struct discovery *d = ctx;
	struct broker *b = d->broker;
	struct process p = *process;
	struct instance *known = instance_of_pid(b, p.pid);
	struct sighting later = *s;

	if (known != NULL && known->start_ticks != p.start_ticks) {
		known->has_ended = true;
		known = NULL;
	}
	/* Who was named is profiled whatever it runs. */
	if (known != NULL && instance_has_section(known) &&
	    known->section != section) {
		instance_remove(known);
		known = NULL;
	}
	if (known != NULL || section == IDENTIFY_NONE ||
	    !process_is_alive(p.pidfd)) {
		close_fd(&p.pidfd);
		return;
	}
	later.due_ns =
		s->born_ns +
		b->options.config.targets[section].min_age_s * NS_PER_SEC;
	if (later.due_ns > clock_mono_ns()) {
		close_fd(&p.pidfd);
		note(d, &later);
		return;
	}
	if (instance_add(b, &p, section) < 0)
		close_fd(&p.pidfd);
}

/* Ours are children of ours; who profiles itself has no end. */
static bool is_own(const struct process *p)
{
	return p->pid == getpid() || p->parent == getpid();
}

static void look(struct discovery *d, const struct sighting *s)
{
	const struct instance *known = instance_of_pid(d->broker, s->pid);
	struct sighting again = *s;
	struct process process;
	enum process_fault fault = process_look(s->pid, &process);

	if (fault != PROCESS_OK && fault != PROCESS_TRACED)
		return;
	if (is_own(&process) ||
	    (known != NULL && known->start_ticks == process.start_ticks &&
	     !s->is_exec)) {
		close_fd(&process.pidfd);
		return;
	}
	if (identify(d->identify, s, &process) == -EAGAIN) {
		again.due_ns = clock_mono_ns() + DISCOVERY_MS * NS_PER_MS;
		note(d, &again);
	}
}

/* What is noted meanwhile comes behind, and has its turn the next time. */
static void look_at_due(struct discovery *d, uint64_t now_ns)
{
	const size_t n = d->n;
	size_t kept = 0, looked = 0, at;

	for (at = 0; at < n && looked < LOOKS_MAX; at++) {
		const struct sighting s = d->list[at];

		if (s.due_ns > now_ns) {
			d->list[kept++] = s;
			continue;
		}
		looked++;
		look(d, &s);
	}
	d->is_busy = looked == LOOKS_MAX;
	memmove(d->list + kept, d->list + at, (d->n - at) * sizeof(*d->list));
	d->n -= at - kept;
}

void discovery_check(struct discovery *d)
{
	const uint64_t now_ns = clock_mono_ns();

	files_check(d->files);
	hear(d);
	scan(d, now_ns);
	read_pid_files(d, now_ns);
	look_at_due(d, now_ns);
}
