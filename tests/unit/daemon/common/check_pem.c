#include "daemon/common/pem.h"

#include "tests/unit/suite.h"

#define BODY		   "MAYCAQUCAQc=\n"
#define BLOCK(label, body) "-----BEGIN " label "-----\n" body "-----END " label "-----\n"
#define CERT		   BLOCK("CERTIFICATE", BODY)

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
	{"-----BEGIN CERTIFICATE-----\n" BODY "-----END CERTIFICATE-----", "CERTIFICATE", PEM_OK},
	{"-----BEGIN CERTIFICATE-----\n" BODY, "CERTIFICATE", PEM_CUT_OFF},
	{"-----BEGIN CERTIFICATE-----\n" BODY "-----END CERT", "CERTIFICATE", PEM_CUT_OFF},
	{"-----BEGIN CERTIFICATE", "CERTIFICATE", PEM_NONE},
	{CERT "-----BEGIN CERTIFICATE-----\n" CERT, "CERTIFICATE", PEM_CUT_OFF},
	{"-----BEGIN CERTIFICATE-----\n" BODY "-----END PRIVATE KEY-----\n", "CERTIFICATE",
	 PEM_CUT_OFF},
	{BLOCK("EC PRIVATE KEY", BODY), "PRIVATE KEY", PEM_OK},
	{CERT BLOCK("PRIVATE KEY", BODY), "PRIVATE KEY", PEM_OK},
	{BLOCK("ENCRYPTED PRIVATE KEY", BODY), "PRIVATE KEY", PEM_ENCRYPTED},
	{BLOCK("RSA PRIVATE KEY", "Proc-Type: 4,ENCRYPTED\nDEK-Info: DES,0\n\nabcd\n"),
	 "PRIVATE KEY", PEM_ENCRYPTED},
};

TESTS(the_first_fault_is_found, (array_size(files)))
{
	ck_assert_int_eq(pem_check(files[_i].text, files[_i].kind), files[_i].result);
}
