#include "proto/http_date.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define BLANK " \t"

static bool parse_month(const char name[static 4], int *ret)
{
	static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";

	for (int i = 0; i < 12; i++) {
		if (strncmp(months + 3 * i, name, 3) == 0) {
			*ret = i;
			return true;
		}
	}
	return false;
}

/* RFC 9110, 5.6.7: a two-digit year is at most 50 years ahead. */
static int full_year(int two_digits, int64_t unix_s)
{
	time_t now = (time_t)unix_s;
	struct tm tm;
	int year;

	if (gmtime_r(&now, &tm) == NULL)
		return 2000 + two_digits;
	year = (tm.tm_year + 1900) / 100 * 100 + two_digits;
	return year > tm.tm_year + 1900 + 50 ? year - 100 : year;
}

/*
 * RFC 9110, 5.6.7, in its three forms:
 *     Sun, 06 Nov 1994 08:49:37 GMT
 *     Sunday, 06-Nov-94 08:49:37 GMT
 *     Sun Nov  6 08:49:37 1994
 * Not strptime, which asks the locale for the names. The full year goes to
 * tm_year. Returns how far it read, 0 if it is no date.
 */
static size_t scan_date(const char *text, int64_t unix_s, struct tm *tm,
			char month[static 4])
{
	int end = 0;

	if (sscanf(text, "%*3[A-Za-z], %2d %3[A-Za-z] %4d %2d:%2d:%2d GMT%n",
		   &tm->tm_mday, month, &tm->tm_year, &tm->tm_hour, &tm->tm_min,
		   &tm->tm_sec, &end) == 6 &&
	    end > 0)
		return (size_t)end;
	if (sscanf(text, "%*9[A-Za-z], %2d-%3[A-Za-z]-%2d %2d:%2d:%2d GMT%n",
		   &tm->tm_mday, month, &tm->tm_year, &tm->tm_hour, &tm->tm_min,
		   &tm->tm_sec, &end) == 6 &&
	    end > 0) {
		tm->tm_year = full_year(tm->tm_year, unix_s);
		return (size_t)end;
	}
	if (sscanf(text, "%*3[A-Za-z] %3[A-Za-z] %2d %2d:%2d:%2d %4d%n", month,
		   &tm->tm_mday, &tm->tm_hour, &tm->tm_min, &tm->tm_sec,
		   &tm->tm_year, &end) == 6)
		return (size_t)end;
	return 0;
}

static bool within(int n, int min, int max)
{
	return n >= min && n <= max;
}

bool http_date_parse(const char *text, int64_t unix_s, int64_t *ret)
{
	struct tm tm = {.tm_isdst = 0};
	char month[4] = "";
	size_t end = scan_date(text, unix_s, &tm, month);

	if (end == 0 || text[end + strspn(text + end, BLANK)] != '\0' ||
	    !parse_month(month, &tm.tm_mon))
		return false;
	/* 60: a leap second. */
	if (!within(tm.tm_mday, 1, 31) || !within(tm.tm_year, 1970, 9999) ||
	    !within(tm.tm_hour, 0, 23) || !within(tm.tm_min, 0, 59) ||
	    !within(tm.tm_sec, 0, 60))
		return false;
	tm.tm_year -= 1900;
	*ret = (int64_t)timegm(&tm);
	return true;
}
