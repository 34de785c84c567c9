#include "daemon/broker/state/options_help.h"

#include <stdio.h>
#include <string.h>

#include "daemon/broker/state/options_keys.h"

/* The column at which the text of an option begins, and the length of lines. */
#define TEXT_COLUMN  23
#define TEXT_COLUMNS (80 - TEXT_COLUMN)

/* clang-format off */
static const char usage[] =
"usage: sentry-profd [option]... --pid PID\n"
"       sentry-profd [option]... -- COMMAND [ARG]...\n"
"       sentry-profd [--config FILE] [option]...\n"
"\n"
"Profiles processes from outside: a process that runs, a command that it starts,\n"
"or those that its configuration describes. Profiles go to Sentry or to files.\n"
"\n";

static const char examples[] =
"\n"
"examples:\n"
"  sentry-profd --output profile.html -- python3 script.py\n"
"  sentry-profd --pid 4711 --duration 10 --output profile.html\n"
"  sentry-profd --name redis-server --dsn https://KEY@HOST/PROJECT\n";

static const char usage_all[] =
"usage: sentry-profd [--config FILE] [option]...\n"
"       sentry-profd --pid PID [--pid PID]... [option]...\n"
"       sentry-profd [option]... -- COMMAND [ARG]...\n"
"\n"
"Profiles processes from outside: those that are given, a command that it\n"
"starts, or those that its configuration describes, whenever they start. With\n"
"--pid or a command, and without a DSN and --output, the envelopes go into a\n"
"new directory in the current one.\n"
"\n";

static const char signals[] =
"\n"
"SIGINT and SIGTERM finish the last chunk and leave targets running;\n"
"SIGHUP reads the configuration again.\n";
/* clang-format on */

static void print_option(const struct option_known *o)
{
	const char *argument = o->argument != NULL ? o->argument : "";
	const char *between = argument[0] == '\0' || argument[0] == '[' ? "" : " ";
	const char *text = o->help;
	int column = printf("  %s%s%s", o->name, between, argument);

	if (o->letter != 0)
		column += printf(", -%c%s%s", o->letter, between, argument);
	if (column >= TEXT_COLUMN) {
		printf("\n");
		column = 0;
	}
	while (*text != '\0') {
		size_t n = strlen(text);

		if (n > TEXT_COLUMNS)
			for (n = TEXT_COLUMNS; text[n] != ' ';)
				n--;
		printf("%*s%.*s\n", TEXT_COLUMN - column, "", (int)n, text);
		text += n + (text[n] == ' ');
		column = 0;
	}
}

void options_help(bool all)
{
	(void)fputs(all ? usage_all : usage, stdout);
	for (size_t i = 0; i < options_n_known; i++)
		if (all || options_known[i].is_common)
			print_option(&options_known[i]);
	(void)fputs(all ? signals : examples, stdout);
}
