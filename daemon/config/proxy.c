#include "daemon/config/proxy.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/digits.h"

const char *proxy_problem(const char *url)
{
	const char *host = url, *at = strstr(url, "://"), *colon;
	char port[sizeof("065535")];
	uint64_t ignored;
	size_t n;

	if (at != NULL)
		host = at + strlen("://");
	n = strcspn(host, "/?#");
	at = memrchr(host, '@', n);
	if (at != NULL) {
		n -= (size_t)(at + 1 - host);
		host = at + 1;
	}
	colon = memrchr(host, ':', n);
	/* One in brackets belongs to an IPv6 address. */
	if (colon != NULL && memchr(colon, ']', n - (size_t)(colon - host)))
		colon = NULL;
	if (n == 0 || colon == host)
		return "no URL of a proxy: it has no host";
	if (colon == NULL || colon + 1 == host + n)
		return NULL;
	/* Longer than any port: cut off it might be one. */
	if (snprintf(port, sizeof(port), "%.*s", (int)(host + n - (colon + 1)), colon + 1) >=
		    (int)sizeof(port) ||
	    !digits_number(port, 1, UINT16_MAX, &ignored))
		return "no URL of a proxy: its port is not a number from 1 to "
		       "65535";
	return NULL;
}
