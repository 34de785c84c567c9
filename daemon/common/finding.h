/*
 * A finding of sentry-profctl doctor, also where the daemon makes it: one line,
 * with a grade, what it is about, and a text.
 */
#ifndef DAEMON_COMMON_FINDING_H
#define DAEMON_COMMON_FINDING_H

#include <stdio.h>

#include "lib/base/util.h"

enum finding {
	FINDING_OK,
	FINDING_WARNING, /* it works, with less */
	FINDING_FAULT,	 /* it does not */
};

/* The longest subject and text. */
#define FINDING_SUBJECT_SIZE 64
#define FINDING_TEXT_SIZE    10240 /* a path of PATH_MAX, twice, and words */

/*
 * Writes the line; control characters are escaped. subject: a word or two.
 * *worst, the gravest finding so far, is raised.
 */
void finding_write(FILE *out, enum finding *worst, enum finding finding, const char *subject,
		   const char *format, ...) printf_like(5, 6);

/* Writes a line of finding_write, without its end, again. */
void finding_repeat(FILE *out, enum finding *worst, const char *line);

/* The exit status of who has found nothing worse. */
int finding_status(enum finding worst);

#endif
