/*
 * Which code is the application's, as Sentry shows it (in_app of a frame): by
 * the file that it lies in, and in the application's own files by the symbol,
 * since languages and static linking put their libraries there.
 */
#ifndef LIB_AGGREGATE_IN_APP_H
#define LIB_AGGREGATE_IN_APP_H

#include <stdbool.h>

/* Patterns of files (glob_match_any), "" where there are none. */
struct in_app_rules {
	const char *include, *exclude;
};

struct in_app_code {
	const char *path;      /* of its image; NULL: it lies in none */
	const char *main_path; /* of the main executable */
	const char *symbol;    /* raw; NULL: no symbol covers it */
	bool is_go;	       /* the image is made by Go's compiler */
	/* The image names a dynamic linker: its libraries are other files. */
	bool has_interpreter;
};

/*
 * What the rules include is in_app, what they exclude is not, the first
 * counting more. Of the rest the following is not in_app, and all else is:
 * - code in no file, the vDSO ("[...]"), and a file in the system's library
 *   directories that is not the main executable;
 * - Go's runtime and standard library, by the package's path in the symbol;
 * - Rust's std, core and alloc, by the crate in the symbol;
 * - in a main executable without a dynamic linker, a name of the C or C++
 *   library (lib/aggregate/library_names.h).
 */
bool in_app(const struct in_app_code *code, const struct in_app_rules *rules);

/*
 * Whether a Go symbol, such as "net/http.(*Server).Serve", is one of the
 * runtime or the standard library. A package is known by the first part of its
 * path
 * ("net"), which other modules may not have.
 */
bool in_app_is_go_library(const char *symbol);

/*
 * Whether a demangled Rust name is one of std, core or alloc: by its crate, of
 * an implementation ("<alloc::vec::Vec<T> as core::ops::Drop>::drop") by the
 * crates of both the type and the trait.
 */
bool in_app_is_rust_library(const char *name);

#endif
