/*
 * The date of an HTTP header: Retry-After, Date. Source: RFC 9110, 5.6.7.
 */
#ifndef PROTO_HTTP_DATE_H
#define PROTO_HTTP_DATE_H

#include <stdbool.h>
#include <stdint.h>

/*
 * The seconds since 1970 of a date in one of the three forms, blanks behind it
 * ignored. unix_s: now, which gives a two-digit year its century. False if it
 * is no date; *ret is written on success only.
 */
bool http_date_parse(const char *text, int64_t unix_s, int64_t *ret);

#endif
