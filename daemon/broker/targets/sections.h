/*
 * Statistics of the [target] sections of the configuration, for the status and the metrics. For
 * each section the list has the number of processes that the section matches, the time since when
 * it matches none, and the totals of its instances (instance.h) that were freed.
 *
 * If a section has matched no process until some time after the configuration was read
 * (SECTIONS_WARN_NS), sections_check() logs one line. The line gives the reason if the section's
 * exe names a file that no process can have as its executable (daemon/process/exe_link.h).
 *
 * daemon/broker/discovery/discovery.c owns the list. If the command line names the processes, there
 * is no list.
 */
#ifndef DAEMON_BROKER_TARGETS_SECTIONS_H
#define DAEMON_BROKER_TARGETS_SECTIONS_H

#include <stddef.h>
#include <stdint.h>

#include "daemon/broker/files/files.h"
#include "daemon/broker/targets/targets.h"
#include "daemon/config/config.h"
#include "lib/base/util.h"

struct instance;

struct section {
	struct sections *all; /* the list that contains the section */
	char name[CONFIG_NAME_MAX];
	char exe[CONFIG_TEXT_MAX];	/* the rule exe; "": none */
	char defect[CONFIG_DEFECT_MAX]; /* as in struct section_config; "": none */
	bool is_off;			/* as in struct section_config */
	uint32_t instances;		/* processes that the section matches */
	uint32_t profiled;		/* those with a run, also with one for recordings only */
	uint64_t empty_since_ns;	/* by clock_mono_ns(); 0: a process matches now */
	uint64_t warn_ns; /* when the log line is due; 0: it was logged, or a process has matched */
	struct run_totals gone; /* totals of instances that were freed */
};

struct sections {
	struct files *files;
	struct section *v; /* in the order of the configuration */
	size_t n;
};

/*
 * The line is due this time, plus the section's min_age_seconds, after the configuration was read.
 * A section that has matched a process before then has no line.
 */
#define SECTIONS_WARN_NS (60 * NS_PER_SEC)

/* Makes an empty list. files, which resolves symbolic links of exe, must outlive s. */
void sections_init(struct sections *s, struct files *files);
/* Frees the sections. Safe on a zero-initialised struct. */
void sections_fini(struct sections *s);

/*
 * Replaces the sections by those of the configuration. A section of the same name keeps its totals,
 * and its log line may come again. now_ns, here and below: CLOCK_MONOTONIC. Returns 0, or -ENOMEM:
 * then the list is empty.
 */
must_check int sections_configure(struct sections *s, const struct config *config, uint64_t now_ns);

/*
 * Call it once a second: sets instances, profiled and empty_since_ns of each section, and logs the
 * lines that are due.
 */
void sections_check(struct sections *s, const struct targets *ts, uint64_t now_ns);

/*
 * Call it before an instance is freed, because its process has ended or its section does not match
 * it any more: adds its totals to its section, if it has one.
 */
void sections_instance_gone(struct sections *s, const struct instance *i);

/* Sums the totals of all instances of a section, those included that were freed. */
void sections_totals(const struct section *section, const struct targets *ts,
		     struct run_totals *ret);

#endif
