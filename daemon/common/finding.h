/*
 * The findings of sentry-profctl doctor: lines with a grade, a subject and a text. The daemon makes
 * findings about itself by this module and sends them to doctor as text (PROTOCOL_CHECK); doctor
 * writes them again, and adds its own.
 */
#ifndef DAEMON_COMMON_FINDING_H
#define DAEMON_COMMON_FINDING_H

#include <stdio.h>

#include "lib/base/util.h"

enum finding_grade {
	FINDING_OK,	 /* "ok" */
	FINDING_WARNING, /* "warning": profiling works, with limits */
	FINDING_FAULT,	 /* "fault": profiling does not work */
};

/* The size of a caller's buffer for a subject, in bytes with the NUL. */
#define FINDING_SUBJECT_SIZE 64
/* The size of the longest text, with the NUL: two paths of PATH_MAX, and some words. */
#define FINDING_TEXT_SIZE 10240

/*
 * Writes a finding to out as a line, "GRADE SUBJECT: TEXT", with control characters escaped. GRADE
 * is the word of the grade, filled up with blanks to 8 characters. subject: a word or two. format
 * and its arguments give the text; a text of FINDING_TEXT_SIZE bytes or more is cut off. *worst is
 * the gravest grade so far, at first FINDING_OK; it becomes grade if that is graver. An error of
 * out is ignored; the caller can check ferror(out).
 */
void finding_write(FILE *out, enum finding_grade *worst, enum finding_grade grade,
		   const char *subject, const char *format, ...) printf_like(5, 6);

/*
 * Writes to out a line that finding_write() has made in another process; line has no newline.
 * Control characters are escaped. Sets *worst to the grade with which the line begins, if that is
 * graver. A line that begins without a grade is written, too.
 */
void finding_repeat(FILE *out, enum finding_grade *worst, const char *line);

/*
 * Returns the exit status of a program whose gravest finding is worst: 0 for FINDING_OK, 3 for
 * FINDING_WARNING, 1 for FINDING_FAULT.
 */
int finding_status(enum finding_grade worst);

#endif
