/*
 * The format "svg": a flame graph as one SVG file, with its script for zoom and search, and without
 * links, as flamegraph.pl draws it.
 *
 * Source: Brendan Gregg's FlameGraph, flamegraph.pl.
 */
#ifndef PROTO_EXPORT_HTML_SVG_H
#define PROTO_EXPORT_HTML_SVG_H

#include <stdio.h>

#include "proto/export/export.h"

/*
 * Writes the picture of the running time of the merge, or of all of its time if no bar is running.
 * Bars of less than a tenth of a pixel are left out. Returns 0, -ENOMEM, or the error of the stream
 * (-EIO if errno is not set).
 * Merge: by function, not ordered.
 */
must_check int export_svg(const struct merge *m, const struct export_options *o, FILE *out);

#endif
