#include "daemon/common/pem.h"

#include <stdbool.h>
#include <string.h>

#define BEGIN  "-----BEGIN "
#define END    "-----END "
#define DASHES "-----"

static bool starts_with(const char *text, const char *start)
{
	return strncmp(text, start, strlen(start)) == 0;
}

static bool ends_with(const char *text, size_t n, const char *end)
{
	const size_t end_n = strlen(end);

	return n >= end_n && memcmp(text + n - end_n, end, end_n) == 0;
}

/*
 * Checks a block. label points to its label, which has n bytes, and the text after it:
 * "CERTIFICATE-----...".
 */
static enum pem_result check_block(const char *label, size_t n)
{
	const char *body = label + n + strlen(DASHES);
	const char *end = strstr(body, DASHES), *header;

	if (end == NULL || !starts_with(end, END) ||
	    strncmp(end + strlen(END), label, n + strlen(DASHES)) != 0)
		return PEM_CUT_OFF;
	/* The header of an encrypted key in RFC 1421 form, which OpenSSL wrote before version 1. */
	header = strstr(body, "4,ENCRYPTED");
	return ends_with(label, n, "ENCRYPTED PRIVATE KEY") || (header != NULL && header < end)
		       ? PEM_ENCRYPTED
		       : PEM_OK;
}

enum pem_result pem_check(const char *text, const char *kind)
{
	enum pem_result result = PEM_NONE;

	while ((text = strstr(text, BEGIN)) != NULL) {
		size_t n;

		text += strlen(BEGIN);
		n = strcspn(text, "-\r\n");
		if (!starts_with(text + n, DASHES) || !ends_with(text, n, kind))
			continue;
		result = check_block(text, n);
		if (result != PEM_OK)
			return result;
	}
	return result;
}
