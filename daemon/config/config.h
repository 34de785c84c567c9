/*
 * The configuration of the daemon, as sentry-profd.conf(5) describes it. The structs hold plain
 * values, so that a section is copied by assignment. A configuration is made in these steps:
 *
 *     config_init       the defaults
 *     config_load       the files (config_read.h)
 *     config_set        the command line, over [sentry] and [profiler] (config_value.h)
 *     config_resolve    the environment, for what is not given yet, and for each target what
 *                       it takes over from [sentry] and [profiler] (config_resolve.h)
 *
 * Each step adds the faults that it finds (config_fault.h) and goes on.
 */
#ifndef DAEMON_CONFIG_CONFIG_H
#define DAEMON_CONFIG_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/msg/sizes.h"
#include "lib/base/util.h"
#include "lib/ship/compression.h"
#include "lib/unwind/unwind.h"

#define CONFIG_PATH_DEFAULT   "/etc/sentry-profd/sentry-profd.conf"
#define CONFIG_SOCKET_DEFAULT "/run/sentry-profd/profd.sock"

#define CONFIG_SPOTLIGHT_DEFAULT "http://localhost:8969/stream"
#define CONFIG_SPOTLIGHT_ON	 "yes"

/* inih keeps 49 bytes of a section's heading: target "NAME". */
#define CONFIG_NAME_MAX 41
/* inih reads lines of up to 197 bytes; only a DSN, from a file of its own, is longer. */
#define CONFIG_TEXT_MAX 256
/* Enough for some hundred kinds of processes on a host. A section takes 5 KB. */
#define CONFIG_TARGETS_MAX 256
#define CONFIG_FILES_MAX   256
/* The most keys of all sections together: each has a bit in the masks of given keys. */
#define CONFIG_KEYS_MAX 64

#define CONFIG_RATE_MAX_HZ	 1000
#define CONFIG_CHUNK_MAX_SECONDS 60
/* In percent of one processor: a hundred processors. */
#define CONFIG_CPU_BUDGET_MAX 10000

enum lifecycle { LIFECYCLE_MANUAL, LIFECYCLE_TRACE };
enum profile_mode { MODE_WALL, MODE_CPU };
enum addresses { ADDRESSES_AUTO, ADDRESSES_EXACT, ADDRESSES_FUNCTION };
enum thread_id_format { THREAD_ID_TID, THREAD_ID_PTHREAD };

/* A section without a user: processes of all users match. */
#define CONFIG_UID_ANY UINT32_MAX

/* The origin of a value, a section or a fault: an option, a variable, or a line of a file. */
struct config_origin {
	const char *by; /* "--rate", "SENTRY_DSN"; a string that stays; NULL: a file, or none */
	uint32_t file;	/* its index in config.files plus 1; 0: no file */
	uint32_t line;	/* 0: the file as a whole */
};

/* A section [target "NAME"]: one kind of process. */
struct target_config {
	char name[CONFIG_NAME_MAX];

	/* Rules (daemon/config/match.h); "": not given. */
	char exe[CONFIG_TEXT_MAX];
	char comm[CONFIG_TEXT_MAX];
	char cmdline[CONFIG_TEXT_MAX];
	char user[CONFIG_TEXT_MAX]; /* a name or a number */
	uint32_t uid;		    /* the user's, or CONFIG_UID_ANY */
	char cgroup[CONFIG_TEXT_MAX];
	char unit[CONFIG_TEXT_MAX];
	char container[CONFIG_TEXT_MAX];
	char pid_file[CONFIG_TEXT_MAX];

	char release[MSG_TEXT_MAX]; /* "": derived from the program (daemon/unwind/release.h) */
	char environment[MSG_TEXT_MAX];
	bool environment_given; /* by the section or by [sentry] */
	char platform[MSG_TEXT_MAX];
	char dsn[MSG_DSN_MAX]; /* "": nothing is sent */
	double session_sample_rate;
	enum lifecycle lifecycle;
	bool autostart;
	uint32_t rate_hz;
	uint32_t min_age_s;
	uint32_t max_instances; /* 0: no limit */
	enum thread_id_format thread_id_format;

	/* For daemon/config/ only: the keys that are given (a bit each, in the order of
	 * config_keys), the origin of each, and that of the section. */
	uint64_t given;
	struct config_origin origins[CONFIG_KEYS_MAX];
	struct config_origin origin;
};

struct config {
	/* [sentry] */
	bool has_dsn; /* dsn is given, by a file, an option or a variable; it can be "" */
	char dsn[MSG_DSN_MAX];
	char release[MSG_TEXT_MAX]; /* "" if not given */
	char environment[MSG_TEXT_MAX];
	char ca_certs[CONFIG_TEXT_MAX]; /* paths of files; "": none */
	/* ca_certs is from SSL_CERT_FILE: if it cannot be read, the daemon starts without it. */
	bool ca_certs_by_variable;
	char client_cert[CONFIG_TEXT_MAX];
	char client_key[CONFIG_TEXT_MAX];
	char http_proxy[CONFIG_TEXT_MAX]; /* "": that of the environment */
	char https_proxy[CONFIG_TEXT_MAX];
	char no_proxy[CONFIG_TEXT_MAX];
	bool client_reports;
	bool retry_5xx;
	enum compression compression;
	/*
	 * A URL that dsn_parse_url() accepts; "": off. Before config_resolve() it can be
	 * CONFIG_SPOTLIGHT_ON: on, without a URL.
	 */
	char spotlight[CONFIG_TEXT_MAX];
	bool debug;
	double shutdown_timeout_s;

	/* [profiler] */
	uint32_t rate_hz;
	enum profile_mode mode;
	uint32_t chunk_seconds;
	uint32_t cpu_budget; /* percent of one processor; 0: no limit */
	uint32_t max_frames;
	char in_app_include[CONFIG_TEXT_MAX];
	char in_app_exclude[CONFIG_TEXT_MAX];
	enum unwind_symbols symbols;
	enum addresses addresses;
	char platform[MSG_TEXT_MAX];
	char spool[CONFIG_TEXT_MAX]; /* a path, "none", or "": not given */
	uint64_t spool_max_bytes;
	uint32_t spool_max_chunks;
	uint32_t spool_max_age_s;
	char socket[CONFIG_TEXT_MAX]; /* "": not given */

	struct target_config *targets;
	size_t n_targets;
	struct target_config implicit; /* for processes that --pid names */

	char release_env[MSG_TEXT_MAX]; /* SENTRY_RELEASE, "" if not set */
	uint64_t given_sentry, given_profiler;
	struct config_origin origins[CONFIG_KEYS_MAX]; /* of both sections */
	/* Names for faults: the main file, targets.d, and the files in it. */
	char *files[CONFIG_FILES_MAX + 2];
	uint32_t n_files;
};

/* Sets the defaults. The caller calls config_fini() afterwards. */
void config_init(struct config *c);
/* Frees what c holds and overwrites its secrets. c may be NULL. */
void config_fini(struct config *c);

/* Returns the section [target "NAME"] of this name, or NULL. */
struct target_config *config_target(const struct config *c, const char *name);

/*
 * Adds the name of a file that faults refer to. Returns the value for
 * config_origin.file.
 */
uint32_t config_add_file(struct config *c, const char *name);

#endif
