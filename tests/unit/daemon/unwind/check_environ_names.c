#include "daemon/unwind/environ_names.h"

#include <string.h>

#include "tests/unit/suite.h"

#define TEXT_255                                                           \
	"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef" \
	"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef" \
	"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef" \
	"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcde"
#define ATTRIBUTES "OTEL_RESOURCE_ATTRIBUTES="
#define E(text)	   text, sizeof(text) - 1

static const struct {
	const char *text;
	size_t len;
	const char *release, *environment;
} environs[] = {
	{E(""), "", ""},
	{E("A=1\0SENTRY_RELEASE=app@1\0B=2"), "app@1", ""},
	{E("SENTRY_ENVIRONMENT=lab"), "", "lab"}, /* without its NUL */
	{E("SENTRY_RELEASE="), "", ""},
	{E("XSENTRY_RELEASE=no\0SENTRY_RELEASES=no\0SENTRY_RELEASE"), "", ""},
	{E("A=\0\0\0SENTRY_RELEASE=x"), "x", ""},
	{E("SENTRY_RELEASE=" TEXT_255), TEXT_255, ""},
	/* Does not fit. */
	{E("SENTRY_RELEASE=" TEXT_255 "x\0SENTRY_RELEASE=second"), "second", ""},
	/* OpenTelemetry's. */
	{E("OTEL_SERVICE_NAME=shop\0" ATTRIBUTES "service.version=1.2"), "shop@1.2", ""},
	{E(ATTRIBUTES "service.name=cart,service.version=1.2,"
		      "deployment.environment.name=staging"),
	 "cart@1.2", "staging"},
	{E(ATTRIBUTES "service.name=cart,service.version=1.2\0"
		      "OTEL_SERVICE_NAME=shop"),
	 "shop@1.2", ""},
	/* No version, or no name. */
	{E("OTEL_SERVICE_NAME=shop"), "", ""},
	{E(ATTRIBUTES "service.name=shop,service.version="), "", ""},
	{E(ATTRIBUTES "service.version=1,deployment.environment.name=x"), "", "x"},
	{E(ATTRIBUTES "deployment.environment=old"), "", ""},
	/* Sentry's count first, each by itself. */
	{E("SENTRY_RELEASE=own@2\0OTEL_SERVICE_NAME=shop\0" ATTRIBUTES
	   "service.version=1,deployment.environment.name=staging"),
	 "own@2", "staging"},
	{E(ATTRIBUTES "service.name=a,service.version=1,"
		      "deployment.environment.name=staging\0"
		      "SENTRY_ENVIRONMENT=own"),
	 "a@1", "own"},
	/* Blanks, escapes, empty pairs, an equals sign in a value. */
	{E(ATTRIBUTES " service.name = a%20b%2cc ,, service.version=1=2,"), "a b,c@1=2", ""},
	{E(ATTRIBUTES "service%2ename=a,service.version=%c3%A4"), "a@\xc3\xa4", ""},
	/* Malformed: nothing of it counts. */
	{E(ATTRIBUTES "service.name=a,service.version=1,x"), "", ""},
	{E(ATTRIBUTES "service.name=a,service.version=1,x=%"), "", ""},
	{E(ATTRIBUTES "service.name=a,service.version=1,x=%2"), "", ""},
	{E(ATTRIBUTES "service.name=a,service.version=1,x=%2g"), "", ""},
	{E(ATTRIBUTES "service.name=a,service.version=1%00"), "", ""},
	/* Together they do not fit. */
	{E("OTEL_SERVICE_NAME=" TEXT_255 "\0" ATTRIBUTES "service.version=1"), "", ""},
	{E(ATTRIBUTES "deployment.environment.name=" TEXT_255 "x"), "", ""},
};

TESTS(of_environ, (array_size(environs)))
{
	struct environ_names names;

	memset(&names, 'x', sizeof(names));
	environ_names_read(environs[_i].text, environs[_i].len, &names);
	ck_assert_str_eq(names.release, environs[_i].release);
	ck_assert_str_eq(names.environment, environs[_i].environment);
}
