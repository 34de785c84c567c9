#include "daemon/config/config_keys.h"

#include <string.h>
#include <sys/un.h>

/* The words are in the order of the enums. */
static const char *const modes[] = {"wall", "cpu", NULL};
static const char *const samplers[] = {"ptrace", "perf", NULL};
static const char *const symbols[] = {"none", "names", "lines", NULL};
static const char *const addresses[] = {"auto", "exact", "function", NULL};
static const char *const retries_5xx[] = {"spool", "yes", "no", NULL};
static const char *const compressions[] = {"gzip", "zstd", NULL};
static const char *const lifecycles[] = {"manual", "trace", NULL};
static const char *const thread_ids[] = {"tid", "pthread", NULL};
static const char *const on_crash[] = {"leave", "stay", NULL};
static const char *const leak_checks[] = {"leave", "attach", NULL};
static const char *const user_attach[] = {"record", "send", "no", NULL};
/* The allowed values of a key of type text. Any other value is refused. */
static const char *const platforms[] = {"rust", "native", NULL};

_Static_assert(UNWIND_SYMBOLS_NONE == 0 && UNWIND_SYMBOLS_NAMES == 1 && UNWIND_SYMBOLS_LINES == 2 &&
		       COMPRESSION_GZIP == 0 && COMPRESSION_ZSTD == 1,
	       "the order of the words");

/* taken: RELOAD or START, is_reloadable of struct config_key. All keys of a target are RELOAD. */
#define SENTRY(t, key, field, taken, ...)                                                  \
	{                                                                                  \
		SECTION_SENTRY, t, key, offsetof(struct config, field), taken, __VA_ARGS__ \
	}
#define PROFILER(t, key, field, taken, ...)                                                  \
	{                                                                                    \
		SECTION_PROFILER, t, key, offsetof(struct config, field), taken, __VA_ARGS__ \
	}
#define TARGET(t, key, field, ...)                                                      \
	{                                                                               \
		SECTION_TARGET, t, key, offsetof(struct section_config, field), RELOAD, \
			__VA_ARGS__                                                     \
	}
#define RELOAD	 true
#define START	 false
#define NO_RANGE 0, 0, NULL

#define DAY_S (24 * 3600)

/* The longest path of a Unix socket (unix(7)). */
#define SOCKET_BYTES_MAX (sizeof(((struct sockaddr_un *)NULL)->sun_path) - 1)

const struct config_key config_keys[] = {
	SENTRY(KEY_DSN, "dsn", dsn, RELOAD, NO_RANGE),
	SENTRY(KEY_DSN_FILE, "dsn_file", dsn, RELOAD, NO_RANGE),
	SENTRY(KEY_TEXT, "release", release, RELOAD, NO_RANGE),
	SENTRY(KEY_TEXT, "environment", environment, RELOAD, NO_RANGE),
	SENTRY(KEY_PATH, "ca_certs", ca_certs, RELOAD, NO_RANGE),
	SENTRY(KEY_PATH, "client_cert", client_cert, RELOAD, NO_RANGE),
	SENTRY(KEY_PATH, "client_key", client_key, RELOAD, NO_RANGE),
	SENTRY(KEY_PROXY, "http_proxy", http_proxy, START, NO_RANGE),
	SENTRY(KEY_PROXY, "https_proxy", https_proxy, START, NO_RANGE),
	SENTRY(KEY_TEXT, "no_proxy", no_proxy, START, 0, CONFIG_NO_PROXY_MAX - 1, NULL),
	SENTRY(KEY_BOOL, "client_reports", client_reports, START, NO_RANGE),
	SENTRY(KEY_WORD, "retry_5xx", retry_5xx, START, 0, 0, retries_5xx),
	SENTRY(KEY_WORD, "compression", compression, START, 0, 0, compressions),
	SENTRY(KEY_SECONDS, "shutdown_timeout", shutdown_timeout_s, RELOAD, 0, 365 * DAY_S, NULL),
	SENTRY(KEY_SPOTLIGHT, "spotlight", spotlight, START, NO_RANGE),
	SENTRY(KEY_WORD, "user_attach", user_attach, RELOAD, 0, 0, user_attach),
	SENTRY(KEY_BOOL, "debug", debug, START, NO_RANGE),

	PROFILER(KEY_NUMBER, "rate_hz", rate_hz, RELOAD, 1, CONFIG_RATE_MAX_HZ, NULL),
	PROFILER(KEY_WORD, "mode", mode, RELOAD, 0, 0, modes),
	PROFILER(KEY_WORD, "sampler", sampler, START, 0, 0, samplers),
	PROFILER(KEY_NUMBER, "chunk_seconds", chunk_seconds, RELOAD, 1, CONFIG_CHUNK_MAX_SECONDS,
		 NULL),
	PROFILER(KEY_NUMBER, "cpu_budget_percent", cpu_budget, RELOAD, 0, CONFIG_CPU_BUDGET_MAX,
		 NULL),
	PROFILER(KEY_NUMBER, "max_frames", max_frames, RELOAD, 1, UNWIND_FRAMES_MAX, NULL),
	PROFILER(KEY_TEXT, "in_app_include", in_app_include, RELOAD, 0, MSG_PATTERNS_MAX - 1, NULL),
	PROFILER(KEY_TEXT, "in_app_exclude", in_app_exclude, RELOAD, 0, MSG_PATTERNS_MAX - 1, NULL),
	PROFILER(KEY_WORD, "symbols", symbols, RELOAD, 0, 0, symbols),
	PROFILER(KEY_WORD, "addresses", addresses, RELOAD, 0, 0, addresses),
	PROFILER(KEY_TEXT, "platform", platform, RELOAD, 0, 0, platforms),
	PROFILER(KEY_WORD, "on_crash", on_crash, RELOAD, 0, 0, on_crash),
	PROFILER(KEY_WORD, "leak_check", leak_check, RELOAD, 0, 0, leak_checks),
	PROFILER(KEY_SPOOL, "spool", spool, START, NO_RANGE),
	/*
	 * At least one envelope must fit, which has at most 10 MB. The maximum is larger than any
	 * disk.
	 */
	PROFILER(KEY_BYTES, "spool_max_bytes", spool_max_bytes, START, 1024 * 1024, 0, NULL),
	PROFILER(KEY_NUMBER, "spool_max_chunks", spool_max_chunks, START, 1, 100000, NULL),
	PROFILER(KEY_NUMBER, "spool_max_age_seconds", spool_max_age_s, START, 1, 365 * DAY_S, NULL),
	PROFILER(KEY_PATH, "socket", socket, START, 0, SOCKET_BYTES_MAX, NULL),

	TARGET(KEY_PATTERN, "exe", exe, NO_RANGE),
	TARGET(KEY_PATTERN, "comm", comm, NO_RANGE),
	TARGET(KEY_PATTERN, "cmdline", cmdline, 0, CONFIG_PATTERN_MAX - 1, NULL),
	TARGET(KEY_USER, "user", user, NO_RANGE),
	TARGET(KEY_PATTERN, "cgroup", cgroup, 0, CONFIG_PATTERN_MAX - 1, NULL),
	TARGET(KEY_PATTERN, "unit", unit, NO_RANGE),
	TARGET(KEY_PATTERN, "container", container, NO_RANGE),
	TARGET(KEY_PATH, "pid_file", pid_file, NO_RANGE),
	TARGET(KEY_ENV, CONFIG_KEY_ENV, env, 0, CONFIG_PATTERN_MAX - 1, NULL),
	TARGET(KEY_DSN, "dsn", dsn, NO_RANGE),
	TARGET(KEY_DSN_FILE, "dsn_file", dsn, NO_RANGE),
	TARGET(KEY_TEXT, "release", release, NO_RANGE),
	TARGET(KEY_TEXT, "environment", environment, NO_RANGE),
	TARGET(KEY_BOOL, "trust_environment", trust_environment, NO_RANGE),
	TARGET(KEY_TEXT, "platform", platform, 0, 0, platforms),
	TARGET(KEY_FRACTION, "profile_session_sample_rate", session_sample_rate, NO_RANGE),
	TARGET(KEY_IGNORED, "profiles_sample_rate", session_sample_rate, NO_RANGE),
	TARGET(KEY_WORD, "profile_lifecycle", lifecycle, 0, 0, lifecycles),
	TARGET(KEY_BOOL, "autostart", autostart, NO_RANGE),
	TARGET(KEY_NUMBER, "rate_hz", rate_hz, 1, CONFIG_RATE_MAX_HZ, NULL),
	TARGET(KEY_NUMBER, "min_age_seconds", min_age_s, 0, DAY_S, NULL),
	TARGET(KEY_NUMBER, "max_instances", max_instances, 1, 100000, NULL),
	TARGET(KEY_WORD, "thread_id_format", thread_id_format, 0, 0, thread_ids),
	TARGET(KEY_WORD, "on_crash", on_crash, 0, 0, on_crash),
	TARGET(KEY_WORD, "leak_check", leak_check, 0, 0, leak_checks),
};
const size_t config_n_keys = array_size(config_keys);
_Static_assert(array_size(config_keys) <= CONFIG_KEYS_MAX, "a bit each");

const struct config_key *config_key_find(enum config_section section, const char *name)
{
	for (size_t i = 0; i < config_n_keys; i++)
		if (config_keys[i].section == section && strcmp(config_keys[i].name, name) == 0)
			return &config_keys[i];
	return NULL;
}

enum config_section config_key_section(const char *name)
{
	for (size_t i = 0; i < config_n_keys; i++)
		if (strcmp(config_keys[i].name, name) == 0)
			return config_keys[i].section;
	return SECTION_NONE;
}

uint64_t config_key_bit(const struct config_key *key)
{
	return UINT64_C(1) << (key - config_keys);
}

bool config_section_gives(const struct section_config *section, const char *name)
{
	return (section->given & config_key_bit(config_key_find(SECTION_TARGET, name))) != 0;
}

const struct config_origin *config_section_origin(const struct section_config *section,
						  const char *name)
{
	return &section->origins[config_key_find(SECTION_TARGET, name) - config_keys];
}

const struct config_origin *config_origin(const struct config *c, enum config_section section,
					  const char *name)
{
	return &c->origins[config_key_find(section, name) - config_keys];
}

const char *config_section_name(enum config_section section)
{
	static const char *const names[] = {
		[SECTION_NONE] = "",
		[SECTION_SENTRY] = "[sentry]",
		[SECTION_PROFILER] = "[profiler]",
		[SECTION_TARGET] = "[target \"NAME\"]",
	};

	return names[section];
}
