#include "daemon/common/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/common/log_limit.h"
#include "daemon/common/log_output.h"
#include "lib/base/clock.h"
#include "lib/base/escape.h"

/* Room for a path of PATH_MAX and some words. */
#define LINE_MAX_BYTES 5120

static const char *log_name = "sentry-profd";
static char log_subject[LOG_SUBJECT_SIZE]; /* followed by ": "; "": none */
static bool log_debugging;
static bool log_is_journal;
/*
 * stderr is a terminal. The progress line, which has no newline, can be on it
 * (daemon/broker/report/progress.h).
 */
static bool log_is_terminal;
static struct log_limit limit;
/* Lines for which stderr had no room since the last line that was written. */
static uint64_t n_lost;
static bool is_cut; /* the last bytes that were written are the beginning of a line */

/* The variable has "DEVICE:INODE" of the journal, in decimal (systemd.exec(5)). */
static bool stderr_is_journal(void)
{
	const char *value = getenv(LOG_JOURNAL_VARIABLE);
	struct stat st;
	char own[48];
	int n;

	if (value == NULL || fstat(STDERR_FILENO, &st) < 0)
		return false;
	n = snprintf(own, sizeof(own), "%llu:%llu", (unsigned long long)st.st_dev,
		     (unsigned long long)st.st_ino);
	return n > 0 && (size_t)n < sizeof(own) && strcmp(value, own) == 0;
}

bool log_goes_to_journal(void)
{
	return log_is_journal;
}

/* Each level: a digit, for the journal, and the word that begins the text. */
#define LEVEL_ERROR   "3"
#define LEVEL_WARNING "4warning: "
#define LEVEL_INFO    "6info: "
#define LEVEL_DEBUG   "7debug: "

/*
 * Writes a line to stderr. name: the name of the program that logs the line. Returns false if there
 * was no room for the whole line.
 */
static bool write_line(const char *level, const char *name, const char *text)
{
	char line[4 * LINE_MAX_BYTES];
	size_t at, written;
	int head;

	head = snprintf(line, sizeof(line), "%s%s%s%.*s%s%s: %s", is_cut ? "\n" : "",
			log_is_terminal ? "\033[K" : "", log_is_journal ? "<" : "",
			log_is_journal ? 1 : 0, level, log_is_journal ? ">" : "", name, level + 1);
	if (head < 0 || (size_t)head >= LINE_MAX_BYTES)
		return false;
	at = (size_t)head;
	while (*text != '\0' && at + ESCAPE_MAX + 1 < sizeof(line))
		at += escape_next(&text, line + at);
	line[at++] = '\n';
	/* A single write, so that lines of several processes do not mix. */
	written = log_output_write(line, at);
	if (written > 0)
		is_cut = written < at;
	return written == at;
}

/* Says how many lines are missing. Returns false if stderr still has no room. */
static bool say_lost(void)
{
	char text[128];

	if (n_lost == 0)
		return true;
	(void)snprintf(text, sizeof(text),
		       "%llu line%s of the log %s missing here: the reader of standard error did "
		       "not read",
		       (unsigned long long)n_lost, n_lost == 1 ? "" : "s",
		       n_lost == 1 ? "is" : "are");
	if (!write_line(LEVEL_WARNING, log_name, text))
		return false;
	n_lost = 0;
	return true;
}

static void print_line(const char *level, const char *name, const char *text)
{
	if (!say_lost() || !write_line(level, name, text))
		n_lost++;
}

static void log_suppressed(uint64_t now_ns)
{
	char text[LOG_LIMIT_TEXT + 64];
	struct log_limit_suppressed suppressed;

	while (log_limit_next_suppressed(&limit, now_ns, &suppressed)) {
		(void)snprintf(text, sizeof(text), "%llu line%s like this left out: %s",
			       (unsigned long long)suppressed.lines,
			       suppressed.lines == 1 ? "" : "s", suppressed.last);
		print_line(suppressed.level, log_name, text);
	}
}

void log_report_suppressed(void)
{
	log_suppressed(clock_mono_ns());
	(void)say_lost();
}

bool log_has_lost_lines(void)
{
	return n_lost > 0;
}

/* Logs the suppressed lines of all kinds, as if the time windows of all of them were over. */
static void log_suppressed_at_exit(void)
{
	log_suppressed(clock_mono_ns() + LOG_LIMIT_WINDOW_NS);
	(void)say_lost();
}

void log_init(const char *name, bool debug)
{
	static bool registered;

	log_name = name;
	log_debugging = debug;
	log_is_journal = stderr_is_journal();
	log_is_terminal = isatty(STDERR_FILENO) == 1;
	if (!registered)
		registered = atexit(log_suppressed_at_exit) == 0;
}

void log_set_subject(const char *subject)
{
	(void)snprintf(log_subject, sizeof(log_subject), "%s%s", subject,
		       subject[0] == '\0' ? "" : ": ");
}

static void printf_like(3, 0)
	log_line(const char *level, bool limited, const char *format, va_list args)
{
	const uint64_t now_ns = clock_mono_ns();
	char text[LOG_SUBJECT_SIZE + LINE_MAX_BYTES];
	const size_t head = strlen(log_subject);

	memcpy(text, log_subject, head);
	if (vsnprintf(text + head, sizeof(text) - head, format, args) < 0)
		return;
	log_suppressed(now_ns);
	if (!limited || log_limit_take(&limit, level, format, LOG_LIMIT_LINES, text, now_ns))
		print_line(level, log_name, text);
}

#define LOG_FUNCTION(name, level, condition, limited)   \
	void name(const char *format, ...)              \
	{                                               \
		va_list args;                           \
                                                        \
		if (!(condition))                       \
			return;                         \
		va_start(args, format);                 \
		log_line(level, limited, format, args); \
		va_end(args);                           \
	}

LOG_FUNCTION(log_error, LEVEL_ERROR, true, true)
LOG_FUNCTION(log_warning, LEVEL_WARNING, true, true)
LOG_FUNCTION(log_info, LEVEL_INFO, true, true)
LOG_FUNCTION(log_debug, LEVEL_DEBUG, log_debugging, false)

void log_list_entry(bool is_warning, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	log_line(is_warning ? LEVEL_WARNING : LEVEL_ERROR, false, format, args);
	va_end(args);
}

static const char *skip(const char *text, const char *prefix)
{
	const size_t n = strlen(prefix);

	return strncmp(text, prefix, n) == 0 ? text + n : text;
}

bool log_relay(const char *name, const char *line)
{
	static const char *const levels[] = {LEVEL_ERROR, LEVEL_WARNING, LEVEL_INFO, LEVEL_DEBUG};
	const uint64_t now_ns = clock_mono_ns();
	const char *level = LEVEL_ERROR;
	char text[LINE_MAX_BYTES];

	if (line[0] == '<' && line[1] != '\0' && line[2] == '>') {
		for (size_t i = 0; i < array_size(levels); i++)
			if (levels[i][0] == line[1])
				level = levels[i];
		line += 3;
	}
	if (strcmp(level, LEVEL_DEBUG) == 0 && !log_debugging)
		return true;
	line = skip(line, name);
	line = skip(line, ": ");
	line = skip(line, level + 1);
	log_suppressed(now_ns);
	(void)snprintf(text, sizeof(text), "%s: %s", name, line);
	if (!log_debugging && !log_limit_take(&limit, level, name, LOG_RELAY_LINES, text, now_ns))
		return false;
	print_line(level, name, line);
	return true;
}
