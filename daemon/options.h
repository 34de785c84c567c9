/*
 * The command line of sentry-profd, with the environment variables that stand
 * in for absent options.
 */
#ifndef DAEMON_OPTIONS_H
#define DAEMON_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/heartbeat.h"
#include "daemon/msg.h"
#include "lib/base/util.h"
#include "lib/unwind/unwind.h"

#define OPTIONS_RATE_MAX_HZ	  1000
#define OPTIONS_CHUNK_MAX_SECONDS 60
/* A hundred processors: more is a mistake. */
#define OPTIONS_CPU_BUDGET_MAX 10000

struct options {
	int32_t pids[HEARTBEAT_SLOTS];
	size_t n_pids;
	double duration_s; /* 0: without end */
	double shutdown_timeout_s;
	const char *dsn; /* NULL: none */
	const char *output;
	const char *stats;
	const char *spool; /* NULL: not given; "": none */
	const char *ca_certs, *client_cert, *client_key; /* NULL: none */
	bool retry_5xx;
	uint32_t rate_hz;
	uint32_t chunk_seconds;
	uint32_t max_frames;
	uint32_t cpu_budget;	    /* percent of one processor; 0: no limit */
	char release[MSG_TEXT_MAX]; /* "" if not given */
	char release_env[MSG_TEXT_MAX]; /* SENTRY_RELEASE, "" if not set */
	char environment[MSG_TEXT_MAX];
	char platform[MSG_TEXT_MAX];
	enum unwind_symbols symbols;
	bool debug;
	bool quiet;
};

/*
 * Fills *ret. Prints what --help and --version ask for and exits with 0; on
 * wrong usage prints one line and exits with 2.
 */
void options_parse(int argc, char **argv, struct options *ret);

#endif
