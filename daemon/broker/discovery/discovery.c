#include "daemon/broker/discovery/discovery.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/broker/discovery/connector.h"
#include "daemon/broker/discovery/identify.h"
#include "daemon/broker/discovery/pid_files.h"
#include "daemon/broker/discovery/rechecks.h"
#include "daemon/broker/discovery/scan_cache.h"
#include "daemon/broker/state/forks.h"
#include "daemon/broker/targets/crash.h"
#include "daemon/broker/targets/instances.h"
#include "daemon/broker/targets/owners.h"
#include "daemon/broker/targets/sections.h"
#include "daemon/common/log.h"
#include "daemon/config/config.h"
#include "daemon/process/process.h"
#include "lib/base/clock.h"

/*
 * Intervals of scans of /proc: without the connector's events, and with them. Each process is
 * checked in full once in SCAN_WITH_EVENTS_NS: without events, the scan cache is cleared so often.
 */
#define SCAN_NS		    NS_PER_SEC
#define SCAN_WITH_EVENTS_NS (60 * NS_PER_SEC)

/* Limits of one discovery_check(), so that other parts get their turn: some 10 ms. */
#define SCANNED_MAX 1024
#define CHECKS_MAX  256

#define ALL_PROCESSES "/proc"

struct discovery {
	struct targets *targets;
	struct files *files; /* for reads that may hang */
	struct pid_files *pid_files;
	struct identify *identify;
	struct sections sections;
	uint64_t sections_ns; /* when their processes are counted again */
	int connector_fd;     /* -1: none */
	bool has_events;      /* the connector has answered: events come */

	struct rechecks rechecks;
	uint64_t check_ns;	/* when the next check is due */
	bool is_busy;		/* more was due at the last discovery_check() than it handled */
	bool was_identify_full; /* it stopped because identify_has_room() returned false */
	uint64_t min_age_ns;

	DIR *dir;		      /* of a scan under way; NULL: none */
	uint64_t scan_ns;	      /* when the next scan is due */
	uint64_t pid_files_ns;	      /* when the pid files are read next */
	uint64_t cache_clear_ns;      /* when the scan cache is cleared next */
	struct scan_cache scan_cache; /* used without the connector */
	bool wants_users;	      /* a section has a rule on the user */
};

static void on_identified(void *ctx, const struct recheck *s, struct process *process,
			  size_t section);
static void on_pid_file(void *ctx, int32_t pid, int32_t before);

int discovery_new(struct targets *ts, struct discovery **ret)
{
	struct discovery *d = calloc(1, sizeof(*d));
	int r;

	if (d == NULL)
		return -ENOMEM;
	d->targets = ts;
	d->connector_fd = -1;
	rechecks_init(&d->rechecks);
	scan_cache_init(&d->scan_cache);
	r = connector_open(&d->connector_fd);
	if (r < 0)
		log_debug("the kernel does not report new processes (%s): "
			  "/proc is read once a second",
			  strerror(-r));
	*ret = d;
	return 0;
}

bool discovery_has_connector(const struct discovery *d)
{
	return d->connector_fd >= 0;
}

int discovery_start(struct discovery *d)
{
	int r = files_new(d->targets->state->loop, &d->files);

	if (r == 0)
		r = pid_files_new(d->files, on_pid_file, d, &d->pid_files);
	if (r == 0)
		r = identify_new(d->files, d->pid_files, on_identified, d, &d->identify);
	if (r == 0) {
		sections_init(&d->sections, d->files);
		discovery_config_changed(d);
	}
	return r;
}

const struct sections *discovery_sections(const struct discovery *d)
{
	return &d->sections;
}

void discovery_instance_gone(struct discovery *d, const struct instance *i)
{
	if (d != NULL)
		sections_instance_gone(&d->sections, i);
}

void discovery_free(struct discovery *d)
{
	if (d == NULL)
		return;
	if (d->dir != NULL)
		(void)closedir(d->dir);
	connector_close(&d->connector_fd);
	pid_files_free(d->pid_files);
	sections_fini(&d->sections);
	files_free(d->files);
	identify_free(d->identify);
	scan_cache_fini(&d->scan_cache);
	rechecks_fini(&d->rechecks);
	free(d);
}

void discovery_config_changed(struct discovery *d)
{
	const struct config *c = &d->targets->state->options.config;

	d->min_age_ns = UINT64_MAX;
	d->wants_users = false;
	for (size_t k = 0; k < c->n_sections; k++) {
		d->min_age_ns = min_u64(d->min_age_ns, c->sections[k].min_age_s * NS_PER_SEC);
		d->wants_users |= c->sections[k].uid != CONFIG_UID_ANY;
	}
	identify_configure(d->identify, c);
	if (pid_files_configure(d->pid_files, c) < 0)
		log_error("no memory for the list of pid files: sections with pid_file match no "
			  "process until a reload");
	if (sections_configure(&d->sections, c, clock_mono_ns()) < 0)
		log_error(
			"no memory for the statistics of the [target] sections: status and metrics "
			"do not have them until a reload");
	d->pid_files_ns = 0;
	d->scan_ns = 0;
	d->cache_clear_ns = 0;
	d->check_ns = 0;
}

static bool is_busy(const struct discovery *d)
{
	return d->is_busy || d->dir != NULL ||
	       (d->was_identify_full && identify_has_room(d->identify));
}

uint64_t discovery_wait_ms(const struct discovery *d)
{
	const uint64_t now_ns = clock_mono_ns();

	if (is_busy(d) || now_ns >= d->check_ns)
		return 0;
	return (d->check_ns - now_ns + NS_PER_MS - 1) / NS_PER_MS;
}

uint64_t discovery_used_ns(const struct discovery *d)
{
	return files_used_ns(d->files);
}

struct files *discovery_files(const struct discovery *d)
{
	return d->files;
}

int32_t discovery_pid_file(const struct discovery *d, const char *path)
{
	return pid_files_pid(d->pid_files, path);
}

void discovery_reaped(struct discovery *d, int32_t pid, const struct rusage *usage)
{
	if (d->files != NULL)
		files_reaped(d->files, pid, usage);
}

/* If the queue is full or memory is short, a scan within a second finds the process again. */
static void enqueue(struct discovery *d, const struct recheck *s)
{
	if (rechecks_add(&d->rechecks, s) < 0)
		d->scan_ns = min_u64(d->scan_ns, clock_mono_ns() + SCAN_NS);
}

/*
 * Queues a check of the process for the time at which it is as old as the smallest
 * min_age_seconds. born_ns: CLOCK_MONOTONIC.
 */
static void queue_check(struct discovery *d, int32_t pid, enum recheck_cause cause,
			uint64_t born_ns)
{
	struct recheck s = {
		.pid = pid, .cause = cause, .born_ns = born_ns, .due_ns = born_ns + d->min_age_ns};
	/*
	 * A process that is an instance already may run another program, or have other rights, now:
	 * check it at once.
	 */
	const bool is_known = cause != RECHECK_FORK && instance_of_pid(d->targets, pid) != NULL;

	if (is_known)
		s.due_ns = born_ns;
	/*
	 * If the configuration has no section (min_age_ns is UINT64_MAX), only instances are
	 * checked: a user may have attached to them.
	 */
	if (is_known || d->min_age_ns != UINT64_MAX)
		enqueue(d, &s);
}

void discovery_recheck(struct discovery *d, int32_t pid)
{
	queue_check(d, pid, RECHECK_EXEC, clock_mono_ns());
}

static void on_event(void *ctx, const struct connector_event *e)
{
	struct discovery *d = ctx;

	switch (e->what) {
	case CONNECTOR_ANSWER:
		if (!d->has_events)
			log_debug("the kernel reports new processes to sentry-profd from now on");
		d->has_events = true;
		return;
	case CONNECTOR_FORK:
		queue_check(d, e->pid, RECHECK_FORK, e->time_ns);
		return;
	case CONNECTOR_CHANGE:
		queue_check(d, e->pid, RECHECK_OTHER, e->time_ns);
		return;
	case CONNECTOR_EXEC:
		queue_check(d, e->pid, RECHECK_EXEC, e->time_ns);
		return;
	}
}

static void read_events(struct discovery *d)
{
	if (d->connector_fd < 0)
		return;
	if (connector_read(d->connector_fd, on_event, d) < 0)
		d->scan_ns = 0;
}

/* Queues a check of process pid, which a scan has found, if the process is new or changed. */
static void scan_process(struct discovery *d, int32_t pid)
{
	uint32_t uid = SCAN_CACHE_NO_USER;
	struct process_identity now;

	if (!process_identity(pid, &now))
		return;
	if (d->has_events) {
		queue_check(d, pid, RECHECK_OTHER, process_born_ns(now.start_ticks));
		return;
	}
	if (d->wants_users)
		uid = process_user(pid);
	switch (scan_cache_compare(&d->scan_cache, pid, (uint32_t)now.program_hash, uid)) {
	case SCAN_CACHE_SAME:
		return;
	case SCAN_CACHE_NEW:
		queue_check(d, pid, RECHECK_FORK, process_born_ns(now.start_ticks));
		return;
	case SCAN_CACHE_PROGRAM:
		/* The program or the process is another one; the check finds out which. */
		queue_check(d, pid, RECHECK_EXEC, clock_mono_ns());
		return;
	case SCAN_CACHE_USER:
		queue_check(d, pid, RECHECK_OTHER, process_born_ns(now.start_ticks));
		return;
	}
}

static void end_scan(struct discovery *d)
{
	(void)closedir(d->dir);
	d->dir = NULL;
	scan_cache_end_scan(&d->scan_cache);
	if (d->has_events)
		scan_cache_fini(&d->scan_cache);
}

static void scan(struct discovery *d, uint64_t now_ns)
{
	struct dirent *entry;

	if (d->dir == NULL && now_ns < d->scan_ns)
		return;
	if (d->dir == NULL) {
		d->scan_ns = now_ns + (d->has_events ? SCAN_WITH_EVENTS_NS : SCAN_NS);
		/* program_hash does not show a change of the control group. */
		if (now_ns >= d->cache_clear_ns) {
			d->cache_clear_ns = now_ns + SCAN_WITH_EVENTS_NS;
			scan_cache_forget(&d->scan_cache);
		}
		d->dir = opendir(ALL_PROCESSES);
	}
	for (int i = 0; i < SCANNED_MAX && d->dir != NULL; i++) {
		entry = readdir(d->dir);
		if (entry == NULL) {
			end_scan(d);
			return;
		}
		if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9')
			scan_process(d, (int32_t)strtol(entry->d_name, NULL, 10));
	}
}

/*
 * A pid_files_fn. No event reports that a pid file was written, perhaps long after the start of
 * the process that it names.
 */
static void on_pid_file(void *ctx, int32_t pid, int32_t before)
{
	struct discovery *d = ctx;
	struct process_identity now;

	if (pid == 0)
		return;
	/* The process that the file named before may not match any more. */
	if (before != 0 && before != pid)
		discovery_recheck(d, before);
	/* An instance may be of a section that comes later. */
	if (instance_of_pid(d->targets, pid) != NULL)
		discovery_recheck(d, pid);
	else if (process_identity(pid, &now))
		queue_check(d, pid, RECHECK_OTHER, process_born_ns(now.start_ticks));
}

static void read_pid_files(struct discovery *d, uint64_t now_ns)
{
	if (now_ns < d->pid_files_ns)
		return;
	d->pid_files_ns = now_ns + SCAN_NS;
	pid_files_read(d->pid_files, now_ns);
}

static void check_sections(struct discovery *d, uint64_t now_ns)
{
	if (now_ns < d->sections_ns)
		return;
	d->sections_ns = now_ns + NS_PER_SEC;
	sections_check(&d->sections, d->targets, now_ns);
}

/*
 * Queues another check for the time at which the process is twice as old as now. Processes older
 * than a minute are left to the scans.
 */
static void queue_second_check(struct discovery *d, const struct recheck *s)
{
	const uint64_t now_ns = clock_mono_ns();
	const uint64_t age_ns = now_ns - min_u64(now_ns, s->born_ns);
	struct recheck again = *s;

	if (age_ns >= SCAN_WITH_EVENTS_NS)
		return;
	again.cause = RECHECK_OTHER;
	again.due_ns = now_ns + max_u64(age_ns, DISCOVERY_MS * NS_PER_MS);
	enqueue(d, &again);
}

static bool is_of(const struct config *c, const struct instance *i, size_t section)
{
	return section < c->n_sections && strcmp(c->sections[section].name, i->config.name) == 0;
}

/*
 * Another section matches the process now; name is NULL if none does. A request to attach or detach
 * the process stays in effect; without one the instance is removed. Without a section, the attach
 * of a user who is no operator ends, too, since user_attach may forbid it: the user has to ask
 * again.
 */
static void change_section(struct instance *i, const char *name)
{
	const bool is_detached = i->wish == INSTANCE_WISH_DETACHED;

	if (name != NULL && (is_detached || i->wish == INSTANCE_WISH_ATTACHED)) {
		i->origin = INSTANCE_OF_SECTION;
		memcpy(i->config.name, name, sizeof(i->config.name));
		instance_becomes(i, INSTANCE_CHANGED);
	} else if (is_detached) {
		i->origin = INSTANCE_LEFT_SECTION;
		instance_becomes(i, INSTANCE_CHANGED);
	} else if (i->wish == INSTANCE_WISH_ATTACHED && i->asker.is_operator) {
		i->origin = INSTANCE_ATTACHED;
		instance_becomes(i, INSTANCE_CHANGED);
	} else {
		instance_becomes(i, INSTANCE_REMOVED);
	}
}

/*
 * Memory or descriptors are short, and nothing is known of the process yet: queues another
 * check.
 */
static void postpone(struct discovery *d, const struct recheck *s)
{
	struct recheck again = *s;

	again.due_ns = clock_mono_ns() + DISCOVERY_MS * NS_PER_MS;
	enqueue(d, &again);
}

/*
 * An identify_fn. The process may have ended, or may be an instance already, when the answer
 * comes.
 */
static void on_identified(void *ctx, const struct recheck *s, struct process *p, size_t section)
{
	struct discovery *d = ctx;
	const struct config *c = &d->targets->state->options.config;
	struct instance *known = instance_of_pid(d->targets, p->pid);
	struct recheck later = *s;
	int r;

	if (section == IDENTIFY_LATER) {
		postpone(d, s);
		return;
	}
	if (known != NULL && known->start_ticks != p->start_ticks) {
		instance_becomes(known, INSTANCE_ENDED);
		known = NULL;
	}
	/* A process that --pid or a user named is profiled whatever program it runs. */
	if (known != NULL && (known->origin == INSTANCE_LEFT_SECTION ||
			      (instance_has_section(known) && !is_of(c, known, section)))) {
		change_section(known, section < c->n_sections ? c->sections[section].name : NULL);
		if (instance_is_gone(known))
			known = NULL;
	}
	if (known != NULL && s->cause == RECHECK_EXEC)
		instance_has_executed(known);
	if (known == NULL && section == IDENTIFY_NOT_YET)
		queue_second_check(d, s);
	if (known != NULL || section >= IDENTIFY_NOT_YET || !process_is_alive(p->pidfd))
		return;
	if (crash_is_reported(d->targets, p->parent)) {
		postpone(d, s);
		return;
	}
	later.cause = RECHECK_OTHER;
	later.due_ns = s->born_ns + c->sections[section].min_age_s * NS_PER_SEC;
	if (later.due_ns > clock_mono_ns()) {
		enqueue(d, &later);
		return;
	}
	r = instance_add(d->targets, p, section);
	if (r < 0 && r != -ENOSPC)
		postpone(d, s);
}

/*
 * Returns true for sentry-profd's own processes. A profiler that profiles itself would cause
 * work with each of its samples.
 */
static bool is_own(const struct process *p)
{
	return p->pid == getpid() || (p->parent == getpid() && forks_have(p->pid));
}

/*
 * Returns true once after each exec or change of the name of a known process, whether an event has
 * reported it or not.
 */
static bool has_other_program(struct instance *known)
{
	struct process_identity now;

	/* start_stack is 0 if the process ends, or its leader has exited. */
	if (!process_identity(known->pid, &now) || now.start_stack == 0 ||
	    now.start_ticks != known->start_ticks || now.program_hash == known->program_hash)
		return false;
	known->program_hash = now.program_hash;
	return true;
}

static void check_process(struct discovery *d, const struct recheck *s)
{
	struct instance *known = instance_of_pid(d->targets, s->pid);
	struct recheck now = *s;
	struct process process;
	enum process_fault fault;
	bool is_there, is_known;

	if (known == NULL && identify_excludes(d->identify, s->pid))
		return;
	fault = process_look(s->pid, &process);
	is_there = fault == PROCESS_OK || fault == PROCESS_TRACED;
	if (known != NULL && is_there && has_other_program(known))
		now.cause = RECHECK_EXEC;
	/* A process without its leader has executed nothing: an exec makes a new leader. */
	is_known = known != NULL && known->start_ticks == process.start_ticks &&
		   (now.cause != RECHECK_EXEC || process.leader_has_exited);
	if (fault == PROCESS_SHORTAGE || (is_there && !is_own(&process) && !is_known &&
					  identify(d->identify, &now, &process) < 0))
		postpone(d, &now);
	/* Sections match no process without its leader, but a reload may have removed its own. */
	if (is_known && process.leader_has_exited && instance_has_section(known) &&
	    config_section(&d->targets->state->options.config, known->config.name) == NULL)
		change_section(known, NULL);
	close_fd(&process.pidfd);
	if (is_known && known->run != NULL && run_is_open(known->run))
		(void)!owners_check(d->targets, known->run);
}

static void check_due(struct discovery *d, uint64_t now_ns)
{
	struct recheck s;
	size_t checked = 0;

	rechecks_begin_pass(&d->rechecks);
	while (checked < CHECKS_MAX && identify_has_room(d->identify) &&
	       rechecks_take(&d->rechecks, now_ns, &s)) {
		checked++;
		check_process(d, &s);
	}
	d->is_busy = checked == CHECKS_MAX;
	d->was_identify_full = !identify_has_room(d->identify);
}

void discovery_check(struct discovery *d)
{
	const uint64_t now_ns = clock_mono_ns();

	if (is_busy(d) || now_ns >= d->check_ns) {
		d->check_ns = now_ns + DISCOVERY_MS * NS_PER_MS;
		read_events(d);
		scan(d, now_ns);
		read_pid_files(d, now_ns);
		check_due(d, now_ns);
		check_sections(d, now_ns);
	}
	files_check(d->files);
}
