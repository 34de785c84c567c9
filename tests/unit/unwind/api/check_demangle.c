/* Demangling of real names, and of names made to be expensive. */
#include "lib/unwind/unwind.h"

#include <stdio.h>
#include <string.h>

#include "tests/unit/random.h"
#include "tests/unit/suite.h"

static char out[4096];

static void expect(const char *raw, bool with_parameters, const char *name)
{
	ck_assert_msg(unwind_demangle(raw, with_parameters, out, sizeof(out)), "%s", raw);
	ck_assert_str_eq(out, name);
}

static void expect_none(const char *raw, size_t size)
{
	ck_assert_msg(!unwind_demangle(raw, true, out, size), "%s", raw);
}

TEST(names_of_cplusplus_are_demangled_with_or_without_parameters)
{
	expect("_ZN4demo4Pool4workEv", false, "demo::Pool::work");
	expect("_ZN4demo4Pool4workEv", true, "demo::Pool::work()");
	expect("_ZNK4demo4Tree4walkEi", true, "demo::Tree::walk(int) const");
	expect("_Z3addIiET_S0_S0_", true, "add<int>(int, int)");
	expect("_ZN1aD1Ev", false, "a::~a");
	expect("_ZNSt6vectorIiSaIiEE9push_backEOi", true,
	       "std::vector<int, std::allocator<int> >::push_back(int&&)");
	expect("_Z4workv.cold", true, "work() [clone .cold]");
}

TEST(names_of_both_rust_manglings_are_demangled)
{
	expect("_ZN4core3ptr13drop_in_place17h0123456789abcdefE", true, "core::ptr::drop_in_place");
	expect("_ZN71_$LT$Test$u20$$u2b$$u20$$u27$static$u20$as$u20$foo.."
	       "Bar$LT$Test$GT$$GT$3bar17h930b740aa94f1d3aE",
	       true, "<Test + 'static as foo::Bar<Test>>::bar");
	expect("_RNvC6_123foo3bar", true, "123foo::bar");
	expect("_RNvNtCs1234_7mycrate3foo3bar", true, "mycrate::foo::bar");
}

TEST(names_of_d_are_demangled_with_or_without_parameters)
{
	expect("_Dmain", true, "D main");
	expect("_D4main3addFiiZi", true, "main.add(int, int)");
	expect("_D4main3addFiiZi", false, "main.add");
	expect("_D4main4Tree4walkMxFZv", true, "main.Tree.walk() const");
	expect("_D4main4Tree4walkMxFZv", false, "main.Tree.walk");
	expect("_D4main__T5twiceTiZQjFiZi", true, "main.twice!(int).twice(int)");
	expect("_D4main__T5twiceTiZQjFiZi", false, "main.twice!(int).twice");
	expect("_D4main__T3BoxTiZ5valuei", false, "main.Box!(int).value");
	expect("_D4main__T3BoxTiZi", false, "main.Box!(int)");
	expect_none("_D", sizeof(out));
	expect_none("_Data", sizeof(out));
	expect_none("_D4mai", sizeof(out));
	expect_none("_D4main3addFiiZi", 18);
}

/* libiberty alone takes at least twice as long with each further part. */
TEST(names_of_d_that_expand_exponentially_are_refused)
{
	static const struct {
		const char *head, *part;
	} kinds[] = {
		{"_D1a", "FC1a"},   /* functions as parameters of functions that do not end */
		{"_D", "__T1aS99"}, /* lengths that have several meanings */
		{"_D1fFDFiiiiZv", "DFQkQmZv"} /* references to references */
	};

	for (size_t i = 0; i < array_size(kinds); i++) {
		char name[UNWIND_DEMANGLE_MAX + 1];
		size_t used = (size_t)snprintf(name, sizeof(name), "%s", kinds[i].head);

		while (used + strlen(kinds[i].part) < sizeof(name))
			used += (size_t)snprintf(name + used, sizeof(name) - used, "%s",
						 kinds[i].part);
		expect_none(name, sizeof(out));
	}
}

/* elf/plt.h */
TEST(names_of_plt_stubs_are_demangled)
{
	char small[24] = "";

	expect("_Z3addii@plt", true, "add(int, int)@plt");
	expect("_Z3addii@plt", false, "add@plt");
	expect("_RNvC6_123foo3bar@plt", true, "123foo::bar@plt");
	expect("_D4main3addFiiZi@plt", true, "main.add(int, int)@plt");
	expect_none("malloc@plt", sizeof(out));
	expect_none("@plt", sizeof(out));
	ck_assert(unwind_demangle("_Z3addii@plt", true, small, sizeof("add(int, int)@plt")));
	expect_none("_Z3addii@plt", sizeof("add(int, int)@plt") - 1);
	expect_none("_Z3addii@plt", 1);
}

TEST(other_names_and_results_that_do_not_fit_are_refused)
{
	static const char *const names[] = {"",	   "main",   "_",      "_Z",	"_R",
					    "_ZN", "_start", "Z3foov", "_Z3fo", "_RNv"};

	for (size_t i = 0; i < array_size(names); i++)
		expect_none(names[i], sizeof(out));
	/* If the result does not fit, nothing is returned. */
	expect_none("_ZN4demo4Pool4workEv", 16);
	expect_none("_RNvC6_123foo3bar", 11);
	expect_none("_Z3foov", 1);
}

/*
 * Makes a name of pairs of pairs, n deep: it expands to 2^n types. In a pack that is to be
 * expanded, libiberty searches all of them before it prints the first byte.
 */
static void make_pairs(char *name, size_t size, unsigned int n)
{
	static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
	size_t used = (size_t)snprintf(name, size, "_Z1fIJiEEvDp1PI");

	for (unsigned int i = 1; i < n; i++)
		used += (size_t)snprintf(name + used, size - used, "S0_I");
	used += (size_t)snprintf(name + used, size - used, "iiE");
	for (unsigned int i = 1; i < n; i++)
		used += (size_t)snprintf(name + used, size - used, "S%c_E", digits[i]);
}

TEST(names_that_expand_exponentially_are_refused)
{
	char name[1024];

	make_pairs(name, sizeof(name), 2);
	expect(name, true, "f<int>((P<P<int, int>, P<int, int> >)...)");
	/* Demangled in time, but too long for the buffer. */
	make_pairs(name, sizeof(name), 14);
	expect_none(name, sizeof(out));
	/* Too expensive: refused before libiberty is called. */
	make_pairs(name, sizeof(name), 34);
	expect_none(name, sizeof(out));
}

/* libiberty alone takes two minutes for the first name. */
TEST(a_rust_name_with_very_many_lifetimes_is_refused)
{
	expect_none("_RNvXINtC7mycraye3N12DGLOBAL__N_11fENS_1gEFItC3std3Vec4u8E"
		    "E3bar",
		    sizeof(out));
	expect("_RINvC1a1fFGa_EuE", true,
	       "a::f::<for<'a, 'b, 'c, 'd, 'e, 'f, "
	       "'g, 'h, 'i, 'j, 'k, 'l> fn()>");
}

TEST(names_longer_than_the_limit_are_refused)
{
	char name[UNWIND_DEMANGLE_MAX + 64];
	size_t used = 2;

	memcpy(name, "_Z", 2);
	used += (size_t)snprintf(name + used, sizeof(name) - used, "800");
	memset(name + used, 'x', 800);
	memcpy(name + used + 800, "v", 2);
	ck_assert(unwind_demangle(name, false, out, sizeof(out)));
	ck_assert_uint_eq(strlen(out), 800);
	/* Nested deeply. */
	memset(name, 'P', sizeof(name));
	memcpy(name, "_Z1f", 4);
	name[UNWIND_DEMANGLE_MAX] = '\0';
	(void)unwind_demangle(name, true, out, sizeof(out));
	name[UNWIND_DEMANGLE_MAX] = 'i';
	name[UNWIND_DEMANGLE_MAX + 1] = '\0';
	expect_none(name, sizeof(out));
}

/* Random bytes behind a valid prefix. */
TEST(random_names_stay_within_the_buffer)
{
	static const char alphabet[] = "NSTIEKLPRODFABCvisxjmdkyp_0123456789.$QZMGHV";
	uint64_t random = 7;

	for (size_t i = 0; i < 20000; i++) {
		size_t n = 3 + random_next(&random) % 120;
		size_t size = 1 + random_next(&random) % 300;
		char name[128];

		name[0] = '_';
		name[1] = "ZRD"[i % 3];
		name[2] = '1';
		for (size_t k = i % 3 == 2 ? 3 : 2; k < n; k++)
			name[k] = alphabet[random_next(&random) % (sizeof(alphabet) - 1)];
		name[n] = '\0';
		out[size] = '#';
		if (unwind_demangle(name, i % 2 != 0, out, size))
			ck_assert_uint_lt(strlen(out), size);
		ck_assert_int_eq(out[size], '#');
	}
}
