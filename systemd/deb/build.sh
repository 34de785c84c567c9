#!/bin/sh
# Makes a Debian package from a staged make install.
# Usage: systemd/deb/build.sh DIR VERSION OUTPUT
#
# DIR is the DESTDIR of make install. Needs only dpkg-deb and dpkg-shlibdeps;
# debhelper would need a debian/ directory at the top and a hundred packages.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
dir=$(cd "$1" && pwd)
version=$2
output=$3
doc=$dir/usr/share/doc/sentry-profd

# Packages, with versions, that the executables and libraries depend on.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/debian"
printf 'Source: sentry-profd\n\nPackage: sentry-profd\nArchitecture: any\n' \
	>"$work/debian/control"
executables=$(find "$dir" -type f -perm -100 ! -name '*.py' ! -name '*.so*')
libraries=$(find "$dir" -type f -name '*.so*')
[ -n "$executables" ] && [ -n "$libraries" ] || {
	echo "$0: nothing is installed in $dir" >&2
	exit 1
}
# shellcheck disable=SC2086
(cd "$work" && dpkg-shlibdeps -O $executables $libraries >depends)
depends=$(sed -n 's/^shlibs:Depends=//p' "$work/depends")
[ -n "$depends" ]

# shellcheck disable=SC2086
strip --strip-unneeded --remove-section=.comment --remove-section=.note \
	$executables $libraries
find "$dir/usr/share/man" -type f ! -name '*.gz' -exec gzip -9n {} +
# dpkg requires this form of a changelog; the changes themselves are in NEWS.
maintainer=$(sed -n 's/^Maintainer: //p' "$here/control")
day=$(date -R -u -r "$doc/CHANGES")
[ -z "${SOURCE_DATE_EPOCH-}" ] || day=$(date -R -u -d "@$SOURCE_DATE_EPOCH")
printf '%s (%s) unstable; urgency=medium\n\n  * See NEWS.gz.\n\n -- %s  %s\n' \
	sentry-profd "$version" "$maintainer" "$day" >"$doc/changelog"
mv "$doc/CHANGES" "$doc/NEWS"
gzip -9nf "$doc/changelog" "$doc/NEWS"
install -m 644 "$here/copyright" "$doc"

install -d "$dir/DEBIAN"
for script in postinst prerm postrm; do
	install -m 755 "$here/$script" "$dir/DEBIAN"
done
echo 'activate-noawait ldconfig' >"$dir/DEBIAN/triggers"
(cd "$dir" && find etc -type f -printf '/%p\n' 2>/dev/null || true) \
	>"$dir/DEBIAN/conffiles"
(cd "$dir" && find . -type f ! -path './DEBIAN/*' ! -path './etc/*' \
	-printf '%P\0' | LC_ALL=C sort -z | xargs -0 md5sum) \
	>"$dir/DEBIAN/md5sums"
size=$(du -sk --exclude=DEBIAN "$dir" | cut -f 1)
sed -e "s|@VERSION@|$version|; s|@DEPENDS@|$depends|; s|@SIZE@|$size|" \
	-e "s|@ARCHITECTURE@|$(dpkg --print-architecture)|" \
	"$here/control" >"$dir/DEBIAN/control"

chmod -R go-w,a+rX "$dir"
find "$dir/etc" -type f -exec chmod 600 {} + 2>/dev/null || true
dpkg-deb --root-owner-group --build "$dir" "$output"
