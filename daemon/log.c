#include "daemon/log.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

/* A path of PATH_MAX and some words. */
#define LINE_MAX_BYTES 5120

static const char *log_name = "sentry-profd";
static bool log_debugging;

void log_init(const char *name, bool debug)
{
	log_name = name;
	log_debugging = debug;
}

static void printf_like(2, 0)
	print_line(const char *level, const char *format, va_list args)
{
	char text[LINE_MAX_BYTES];
	char line[4 * LINE_MAX_BYTES];
	int head;
	size_t at;

	if (vsnprintf(text, sizeof(text), format, args) < 0)
		return;
	head = snprintf(line, sizeof(line), "%s: %s", log_name, level);
	if (head < 0 || (size_t)head >= LINE_MAX_BYTES)
		return;
	at = (size_t)head;
	for (const char *p = text; *p != '\0'; p++) {
		unsigned char c = (unsigned char)*p;
		/* U+0080 to U+009F: a terminal obeys these, too. */
		bool c1 = c == 0xc2 && (unsigned char)p[1] < 0xa0;

		if (at + 6 >= sizeof(line))
			break;
		if (c1)
			c = (unsigned char)*++p;
		if (c < 0x20 || c == 0x7f || c1)
			at += (size_t)snprintf(line + at, 5, "\\x%02x", c);
		else
			line[at++] = (char)c;
	}
	line[at++] = '\n';
	/* One write, so that lines of several processes do not mix. */
	if (write(STDERR_FILENO, line, at) < 0)
		return;
}

#define LOG_FUNCTION(name, level, condition)     \
	void name(const char *format, ...)       \
	{                                        \
		va_list args;                    \
                                                 \
		if (!(condition))                \
			return;                  \
		va_start(args, format);          \
		print_line(level, format, args); \
		va_end(args);                    \
	}

LOG_FUNCTION(log_error, "", true)
LOG_FUNCTION(log_warning, "warning: ", true)
LOG_FUNCTION(log_debug, "debug: ", log_debugging)
