#include "daemon/proxy.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "lib/base/util.h"

/* RFC 1035; an address in brackets is shorter. */
#define HOST_BYTES_MAX 255

/* Those of libcurl, parse_proxy() in lib/url.c. */
static const char *const schemes[] = {"http",	 "https",  "socks",  "socks4",
				      "socks4a", "socks5", "socks5h"};

static bool is_scheme(const char *text, size_t n)
{
	for (size_t i = 0; i < array_size(schemes); i++)
		if (strlen(schemes[i]) == n &&
		    strncasecmp(text, schemes[i], n) == 0)
			return true;
	return false;
}

static bool is_host(const char *text, size_t n)
{
	char address[HOST_BYTES_MAX + 1];
	struct in6_addr v6;

	if (n == 0 || n > HOST_BYTES_MAX)
		return false;
	if (text[0] == '[') {
		/* A zone may stand behind it. */
		const size_t digits = strcspn(text + 1, "%]");

		if (text[n - 1] != ']')
			return false;
		memcpy(address, text + 1, digits);
		address[digits] = '\0';
		return inet_pton(AF_INET6, address, &v6) == 1;
	}
	for (size_t i = 0; i < n; i++) {
		const unsigned char c = (unsigned char)text[i];

		/* Beyond ASCII: a name of any language. */
		if (c < 0x80 && !(c >= 'a' && c <= 'z') &&
		    !(c >= 'A' && c <= 'Z') && !(c >= '0' && c <= '9') &&
		    strchr("-._", c) == NULL)
			return false;
	}
	return true;
}

static bool is_port(const char *text, size_t n)
{
	unsigned int port = 0;

	for (size_t i = 0; i < n; i++) {
		if (text[i] < '0' || text[i] > '9')
			return false;
		port = 10 * port + (unsigned int)(text[i] - '0');
		if (port > UINT16_MAX)
			return false;
	}
	return port > 0;
}

const char *proxy_problem(const char *url)
{
	const char *host = url, *scheme = strstr(url, "://"), *at;
	size_t n, host_n;

	if (scheme != NULL) {
		if (!is_scheme(url, (size_t)(scheme - url)))
			return "no URL of a proxy: it begins with neither "
			       "http://, https:// nor socks5://";
		host = scheme + strlen("://");
	}
	n = strcspn(host, "/?#");
	at = memrchr(host, '@', n);
	if (at != NULL) {
		n -= (size_t)(at + 1 - host);
		host = at + 1;
	}
	at = memchr(host, ']', n);
	if (host[0] != '[' || at == NULL)
		at = memrchr(host, ':', n);
	else
		at = at[1] == ':' && (size_t)(at + 1 - host) < n ? at + 1
								 : NULL;
	host_n = at == NULL ? n : (size_t)(at - host);
	if (!is_host(host, host_n))
		return "no URL of a proxy: its host is neither a name nor an "
		       "address (IPv6 in brackets)";
	/* Behind a scheme libcurl takes no digits for the default. */
	if (at != NULL && !(scheme != NULL && n == host_n + 1) &&
	    !is_port(at + 1, n - host_n - 1))
		return "no URL of a proxy: its port is not a number from 1 to "
		       "65535";
	return NULL;
}
