/*
 * The configuration of the daemon, as sentry-profd.conf(5) describes it. struct section_config owns
 * no memory, so an assignment copies it. A configuration is made in these steps:
 *
 *     config_load           calls config_init(), which sets the defaults, and reads the files
 *                           (config_read.h); without files the caller calls config_init() itself
 *     config_set            sets an option of the command line: replaces the value of [sentry] or
 *                           [profiler], or sets a value of the member implicit (config_value.h)
 *     config_keep_sections  only at a reload: gives faulty sections their former settings
 *     config_resolve        sets the values that neither a file nor an option gives: from
 *                           environment variables, or to defaults that depend on other values;
 *                           copies to each section the values of [sentry] and [profiler] that the
 *                           section does not set itself (config_resolve.h)
 *
 * config_load() and config_resolve() add the faults that they find (config_fault.h) and go on.
 *
 * Most members of struct config and struct section_config have the value of a key of about the same
 * name: rate_hz that of rate_hz, lifecycle that of profile_lifecycle, and shutdown_timeout_s that
 * of shutdown_timeout. config_keys.h has the table of all keys and their members.
 */
#ifndef DAEMON_CONFIG_CONFIG_H
#define DAEMON_CONFIG_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/msg/msg.h"
#include "lib/base/util.h"
#include "lib/ship/compression.h"
#include "lib/unwind/unwind.h"

#define CONFIG_PATH_DEFAULT   "/etc/sentry-profd/sentry-profd.conf"
#define CONFIG_SOCKET_DEFAULT "/run/sentry-profd/profd.sock"

#define CONFIG_SPOTLIGHT_DEFAULT "http://localhost:8969/stream"
#define CONFIG_SPOTLIGHT_ON	 "yes"

/* The size of NAME in [target "NAME"], with the NUL: a word for tables and commands. */
#define CONFIG_NAME_MAX 41
/* The size of a text or a path, with the NUL, unless another maximum is given below. */
#define CONFIG_TEXT_MAX 256
/* The size of a pattern that may be long, as those of command lines and of nested containers. */
#define CONFIG_PATTERN_MAX 1024
/* The size of no_proxy: a cluster lists its networks, services and nodes. The largest of all. */
#define CONFIG_NO_PROXY_MAX 4096
/* The size of "unknown key KEY: did you mean KEY?", whose first key can be cut off. */
#define CONFIG_DEFECT_MAX 192
/* Enough for some hundred kinds of processes on a host. A section takes 7 KB. */
#define CONFIG_SECTIONS_MAX 256
/*
 * The most ship processes: one for the DSN of [sentry], even if that is not given, one for each
 * further DSN, and one for Spotlight, if it is on.
 */
#define CONFIG_SHIPS_MAX 32
/* The most files in targets.d. */
#define CONFIG_FILES_MAX 256
/* The most keys of all sections together: each has a bit in the masks of given keys. */
#define CONFIG_KEYS_MAX 64

#define CONFIG_RATE_MAX_HZ	 1000
#define CONFIG_CHUNK_MAX_SECONDS 60
/* The largest CPU budget, in percent of one processor: a hundred processors. */
#define CONFIG_CPU_BUDGET_MAX 10000

/* When a process is profiled: from a start to a stop, or while root spans are open. */
enum lifecycle { LIFECYCLE_MANUAL, LIFECYCLE_TRACE };
/* The ticks at which a thread has a sample: all, or those at which the thread runs. */
enum profile_mode { MODE_WALL, MODE_CPU };
/*
 * The address of a frame in a chunk: the return address or pc of the sample, or the start of the
 * function that contains it. docs/FORMATS.md says what AUTO chooses, and why.
 */
enum addresses { ADDRESSES_AUTO, ADDRESSES_EXACT, ADDRESSES_FUNCTION };
/* Whether a chunk is sent again after the status 502, 503 or 504; SPOOL: if there is a spool. */
enum retry_5xx { RETRY_5XX_SPOOL, RETRY_5XX_YES, RETRY_5XX_NO };
/* A thread's id in a chunk: gettid(2) or pthread_self(3). */
enum thread_id_format { THREAD_ID_TID, THREAD_ID_PTHREAD };

/* How running threads are sampled: by a stop, or by a clock of each processor. */
enum sampler { SAMPLER_PTRACE, SAMPLER_PERF };

/* What capture does before a process runs a handler of a crash signal (lib/capture/crash.h). */
enum on_crash { ON_CRASH_LEAVE, ON_CRASH_STAY };
/* Whether a process with LeakSanitizer is left or profiled
 * (daemon/broker/targets/leak_sanitizer.h). */
enum leak_check_policy { LEAK_CHECK_LEAVE, LEAK_CHECK_ATTACH };

/*
 * What users who are no operators may do with their own processes that no section matches. RECORD:
 * record them. SEND: record and attach, which sends profiles. NO: nothing. Rules:
 * daemon/broker/control/attach_request.h.
 */
enum user_attach { USER_ATTACH_RECORD, USER_ATTACH_SEND, USER_ATTACH_NO };

/* The uid of a section without the rule user: processes of all users match. */
#define CONFIG_UID_ANY UINT32_MAX

/* The origin of a value, a section or a fault: an option, a variable, or a line of a file. */
struct config_origin {
	const char *given_by; /* "--rate", "SENTRY_DSN"; not copied; NULL: a file, or no origin */
	uint32_t file;	      /* the index of its name in struct config.files plus 1; 0: no file */
	uint32_t line;	      /* 0: the file as a whole */
};

/* A section [target "NAME"]: the processes that match its rules, and their settings. */
struct section_config {
	char name[CONFIG_NAME_MAX];

	/* Rules (daemon/config/match.h); "": not given. */
	char exe[CONFIG_TEXT_MAX];
	char comm[CONFIG_TEXT_MAX];
	char cmdline[CONFIG_PATTERN_MAX];
	char user[CONFIG_TEXT_MAX]; /* a name or a number */
	uint32_t uid;		    /* the uid of user, or CONFIG_UID_ANY */
	char cgroup[CONFIG_PATTERN_MAX];
	char unit[CONFIG_TEXT_MAX];
	char container[CONFIG_TEXT_MAX];
	char pid_file[CONFIG_TEXT_MAX];
	/* NAME=PATTERN for each key env NAME, separated by line feeds. */
	char env[CONFIG_PATTERN_MAX];

	char release[MSG_TEXT_MAX]; /* "": derived from the program (daemon/unwind/release.h) */
	char environment[MSG_TEXT_MAX];
	/*
	 * true: the environment variables of every process may set its release and environment.
	 * false: only those of processes whose uids are all 0 or uid (if uid is CONFIG_UID_ANY, the
	 * daemon's).
	 */
	bool trust_environment;
	bool environment_given; /* by the section or by [sentry] */
	char platform[MSG_TEXT_MAX];
	char dsn[MSG_DSN_MAX];	    /* "": nothing is sent */
	double session_sample_rate; /* the share of the processes that are profiled: 0.0 to 1.0 */
	enum lifecycle lifecycle;
	bool autostart; /* with LIFECYCLE_MANUAL: profiled at once, without a start */
	uint32_t rate_hz;
	uint32_t min_age_s;	/* a process is profiled from this age on */
	uint32_t max_instances; /* profiled at a time; 0: no limit */
	enum thread_id_format thread_id_format;
	enum on_crash on_crash;
	enum leak_check_policy leak_check;

	/*
	 * For daemon/config/ only: the keys that are given (a bit each, in the order of
	 * config_keys), the origin of each, and that of the section.
	 */
	uint64_t given;
	struct config_origin origins[CONFIG_KEYS_MAX];
	struct config_origin origin;
	/* A line could not be read. It may have been a rule, so a lack of rules is no fault. */
	bool has_unread_line;

	/*
	 * The fault that turns the section off; "": no fault. Either the section has an unknown
	 * key, which may be a misspelt rule, so that too many processes would match; or its DSN is
	 * one too many (CONFIG_SHIPS_MAX). After a reload a section with an unknown key can be on
	 * nevertheless, with its former settings (config_keep_sections()).
	 */
	char defect[CONFIG_DEFECT_MAX];
	bool is_off; /* processes match the section and are not profiled */
};

struct config {
	/* [sentry] */
	bool has_dsn; /* dsn is given, by a file, an option or a variable; it can be "" */
	char dsn[MSG_DSN_MAX];
	char release[MSG_TEXT_MAX]; /* "" if not given */
	char environment[MSG_TEXT_MAX];
	char ca_certs[CONFIG_TEXT_MAX]; /* paths of files; "": none */
	/* SSL_CERT_FILE gave ca_certs. The daemon starts even if that file cannot be read. */
	bool ca_certs_by_variable;
	char client_cert[CONFIG_TEXT_MAX];
	char client_key[CONFIG_TEXT_MAX];
	char http_proxy[CONFIG_TEXT_MAX]; /* "": that of the environment */
	char https_proxy[CONFIG_TEXT_MAX];
	char no_proxy[CONFIG_NO_PROXY_MAX];
	bool client_reports;
	enum retry_5xx retry_5xx;
	enum compression compression;
	/*
	 * A URL that dsn_parse_url() accepts; "": off. Before config_resolve() it can also be
	 * CONFIG_SPOTLIGHT_ON: on, with the URL still to be set.
	 */
	char spotlight[CONFIG_TEXT_MAX];
	enum user_attach user_attach;
	bool debug;
	double shutdown_timeout_s;

	/* [profiler] */
	uint32_t rate_hz;
	enum profile_mode mode;
	enum sampler sampler;
	uint32_t chunk_seconds;
	uint32_t cpu_budget; /* percent of one processor; 0: no limit */
	uint32_t max_frames;
	char in_app_include[MSG_PATTERNS_MAX]; /* patterns of paths, separated by blanks */
	char in_app_exclude[MSG_PATTERNS_MAX];
	enum unwind_symbols symbols;
	enum addresses addresses;
	char platform[MSG_TEXT_MAX];
	enum on_crash on_crash;
	enum leak_check_policy leak_check;
	char spool[CONFIG_TEXT_MAX]; /* a path; "none"; "": SPOOL_DIR_DEFAULT, if it is usable */
	uint64_t spool_max_bytes;
	uint32_t spool_max_chunks;
	uint32_t spool_max_age_s;
	char socket[CONFIG_TEXT_MAX]; /* "": not given */

	struct section_config *sections;
	size_t n_sections;
	struct section_config implicit; /* for processes without a section (--pid, attach) */

	/*
	 * SENTRY_RELEASE of this process, "" if not set. unwind uses it if neither the
	 * configuration (release) nor the environment of the profiled process gives a release.
	 */
	char release_env[MSG_TEXT_MAX];
	/* The keys that are given, and the origin of each, as in struct section_config. */
	uint64_t given_sentry, given_profiler;
	struct config_origin origins[CONFIG_KEYS_MAX];
	/*
	 * The names that faults show: the main file, targets.d, and the files in it. A name is NULL
	 * if memory was short; its faults show no file.
	 */
	char *files[CONFIG_FILES_MAX + 2];
	uint32_t n_files;
};

/*
 * Sets the defaults of [sentry], [profiler] and c->implicit. The caller calls config_fini() when c
 * is no longer needed.
 */
void config_init(struct config *c);
/* Frees what c holds and overwrites its secrets. c may be NULL. */
void config_fini(struct config *c);

/*
 * For a reload, in which c replaces old: if a section of c is off, and the section of the same name
 * in old is on, the section of c gets the settings of the one in old. It is on then, and its defect
 * stays. Call this before config_resolve(c), so that the section takes over the new values of
 * [sentry] and [profiler].
 */
void config_keep_sections(struct config *c, const struct config *old);

/* Returns the section [target "NAME"] of this name, or NULL. */
struct section_config *config_section(const struct config *c, const char *name);

/*
 * Copies the name of a file that faults refer to, and returns the number for config_origin.file.
 * Cannot fail: if memory is short, faults of this file show no name. There is room for all files
 * that config_load() reads; a further name is dropped, and the number of the last one is returned.
 */
uint32_t config_add_file(struct config *c, const char *name);

#endif
