/*
 * What each [target] section of the configuration has matched: how many
 * processes now, since when none, and the figures of those that have ended. A
 * section that has matched nothing for a minute is told of in one line, with
 * the reason where exe names a file that no process can have (exe_link.h).
 *
 * Owned by daemon/broker/discovery/discovery.c. Without --pid only.
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
	struct sections *all;
	char name[CONFIG_NAME_MAX];
	char exe[CONFIG_TEXT_MAX];    /* the rule; "": none */
	uint32_t instances;	      /* processes that it matches */
	uint32_t profiled;	      /* of these, those with a run */
	uint64_t empty_since_ns;      /* by clock_mono_ns; 0: it matches some */
	uint64_t tell_ns;	      /* when the line is due; 0: it is not */
	struct instance_figures gone; /* of processes that have ended */
};

struct sections {
	struct files *files;
	struct section *v; /* in the order of the configuration */
	size_t n;
};

/* The line comes so long after the youngest process could have been matched. */
#define SECTIONS_TELL_NS (60 * NS_PER_SEC)

void sections_init(struct sections *s, struct files *files);
void sections_fini(struct sections *s);

/*
 * The configuration of now. A section that was there before keeps its figures,
 * and is told of anew. Returns 0 or -ENOMEM: then there are no sections.
 */
must_check int sections_by(struct sections *s, const struct config *config, uint64_t now_ns);

/* Counts the broker's instances, and prints the lines that are due. */
void sections_check(struct sections *s, const struct targets *ts, uint64_t now_ns);

/* An instance is about to be freed: its section keeps the figures. */
void sections_gone(struct sections *s, const struct instance *i);

/* The figures of all processes of a section, until now. */
void sections_figures(const struct section *section, const struct targets *ts,
		      struct instance_figures *ret);

#endif
