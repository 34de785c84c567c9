#include "daemon/common/finding.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/escape.h"

static const char *const words[] = {
	[FINDING_OK] = "ok",
	[FINDING_WARNING] = "warning",
	[FINDING_FAULT] = "fault",
};

static void raise_worst(enum finding_grade *worst, enum finding_grade grade)
{
	if (grade > *worst)
		*worst = grade;
}

void finding_write(FILE *out, enum finding_grade *worst, enum finding_grade grade,
		   const char *subject, const char *format, ...)
{
	char text[FINDING_TEXT_SIZE];
	va_list args;

	va_start(args, format);
	if (vsnprintf(text, sizeof(text), format, args) < 0)
		text[0] = '\0';
	va_end(args);
	raise_worst(worst, grade);
	fprintf(out, "%-8s ", words[grade]);
	escape_write(subject, out);
	(void)fputs(": ", out);
	escape_write(text, out);
	(void)fputc('\n', out);
}

void finding_repeat(FILE *out, enum finding_grade *worst, const char *line)
{
	for (size_t i = 0; i < array_size(words); i++)
		if (strncmp(line, words[i], strlen(words[i])) == 0)
			raise_worst(worst, (enum finding_grade)i);
	escape_write(line, out);
	(void)fputc('\n', out);
}

int finding_status(enum finding_grade worst)
{
	enum { EXIT_WARNINGS = 3 };

	switch (worst) {
	case FINDING_OK:
		return EXIT_SUCCESS;
	case FINDING_WARNING:
		return EXIT_WARNINGS;
	case FINDING_FAULT:
		break;
	}
	return EXIT_FAILURE;
}
