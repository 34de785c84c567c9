#include "daemon/pem.h"

#include <string.h>

#include "tests/unit/suite.h"

/* A sequence of two integers. */
#define BODY "MAYCAQUCAQc=\n"
#define BLOCK(label, body) \
	"-----BEGIN " label "-----\n" body "-----END " label "-----\n"
#define CERT BLOCK("CERTIFICATE", BODY)

static const struct {
	const char *text, *kind;
	enum pem_result result;
} files[] = {
	{"", "CERTIFICATE", PEM_NONE},
	{"\0\1\2", "CERTIFICATE", PEM_NONE},
	{CERT, "CERTIFICATE", PEM_OK},
	{CERT, "PRIVATE KEY", PEM_NONE},
	{"# of a bundle\n\n" CERT "x\n" CERT, "CERTIFICATE", PEM_OK},
	{BLOCK("TRUSTED CERTIFICATE", BODY), "CERTIFICATE", PEM_OK},
	{BLOCK("CERTIFICATE REQUEST", BODY), "CERTIFICATE", PEM_NONE},
	{"-----BEGIN CERTIFICATE-----\r\nMAYC \r\nAQUCAQc=\r\n"
	 "-----END CERTIFICATE-----\r\n",
	 "CERTIFICATE", PEM_OK},
	{"-----BEGIN CERTIFICATE-----\n" BODY "-----END CERTIFICATE-----",
	 "CERTIFICATE", PEM_OK},
	/* Cut off: after a line, in one, and where nothing shows it. */
	{"-----BEGIN CERTIFICATE-----\n" BODY, "CERTIFICATE", PEM_BROKEN},
	{BLOCK("CERTIFICATE", "MAYCAQU\n"), "CERTIFICATE", PEM_BROKEN},
	{BLOCK("CERTIFICATE", "MAYCAQUC\n"), "CERTIFICATE", PEM_BROKEN},
	{BLOCK("CERTIFICATE", ""), "CERTIFICATE", PEM_BROKEN},
	{BLOCK("CERTIFICATE", "MAYC!QUCAQc=\n"), "CERTIFICATE", PEM_BROKEN},
	{BLOCK("CERTIFICATE", "AAYCAQUCAQc=\n"), "CERTIFICATE", PEM_BROKEN},
	{CERT "-----BEGIN CERTIFICATE-----\n" CERT, "CERTIFICATE", PEM_BROKEN},
	{"-----BEGIN CERTIFICATE-----\n" BODY "-----END PRIVATE KEY-----\n",
	 "CERTIFICATE", PEM_BROKEN},
	/* A length of 300 in two bytes, and not so many. */
	{BLOCK("CERTIFICATE", "MIIBLAIBBQ==\n"), "CERTIFICATE", PEM_BROKEN},
	{BLOCK("EC PRIVATE KEY", BODY), "PRIVATE KEY", PEM_OK},
	{CERT BLOCK("PRIVATE KEY", BODY), "PRIVATE KEY", PEM_OK},
	{BLOCK("ENCRYPTED PRIVATE KEY", BODY), "PRIVATE KEY", PEM_ENCRYPTED},
	{BLOCK("RSA PRIVATE KEY",
	       "Proc-Type: 4,ENCRYPTED\nDEK-Info: DES,0\n\nabcd\n"),
	 "PRIVATE KEY", PEM_ENCRYPTED},
};

TESTS(of_files, (array_size(files)))
{
	const size_t n = strlen(files[_i].text);

	ck_assert_int_eq(pem_check(files[_i].text, n, files[_i].kind),
			 files[_i].result);
}

TEST(a_nul)
{
	static const char text[] = "-----BEGIN CERTIFICATE-----\nMAYC\0AQU\n"
				   "-----END CERTIFICATE-----\n";

	ck_assert_int_eq(pem_check(text, sizeof(text) - 1, "CERTIFICATE"),
			 PEM_BROKEN);
}
