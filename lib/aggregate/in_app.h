/*
 * in_app of a frame: whether code belongs to the application or to a library.
 * Sentry shows and groups frames by it.
 *
 * The file decides first. In the application's own files the symbol decides,
 * because Go, Rust and static linking put their libraries there.
 */
#ifndef LIB_AGGREGATE_IN_APP_H
#define LIB_AGGREGATE_IN_APP_H

#include <stdbool.h>

/* Patterns of files (glob_match_any()); "": none. */
struct in_app_rules {
	const char *include, *exclude;
};

struct in_app_code {
	const char *path;      /* path of the image; NULL: the code lies in no image */
	const char *main_path; /* path of the main executable */
	const char *symbol;    /* not demangled; NULL: no symbol covers the code */
	bool is_go;	       /* the image was built by Go's compiler */
	/* The image names a dynamic linker, so its libraries are other files. */
	bool has_interpreter;
};

/*
 * Returns true if the code is in_app. A file that rules->include matches is
 * in_app; otherwise, a file that rules->exclude matches is not. All other code
 * is in_app, except:
 * - code in no file, in the vDSO ("[...]"), and in a file in the system's library
 *   directories that is not the main executable;
 * - Go's runtime and standard library, by the package's path in the symbol;
 * - Rust's std, core and alloc, by the crate in the symbol;
 * - in a main executable without a dynamic linker: functions of the C and C++
 *   libraries, by their names (lib/aggregate/library_names.h).
 */
bool in_app(const struct in_app_code *code, const struct in_app_rules *rules);

/*
 * Returns true if a Go symbol, such as "net/http.(*Server).Serve", belongs to
 * the runtime or the standard library. The first part of the package's path
 * ("net") decides; modules outside of the standard library cannot have these.
 */
bool in_app_is_go_library(const char *symbol);

/*
 * Returns true if a demangled Rust name belongs to std, core or alloc. Its crate
 * decides; for an implementation ("<alloc::vec::Vec<T> as
 * core::ops::Drop>::drop") the crates of both the type and the trait.
 */
bool in_app_is_rust_library(const char *name);

#endif
