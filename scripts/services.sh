#!/usr/bin/env bash
# Installs the servers and the browser that the tests start and no Python package brings along. For Debian, as root.
set -eu

missing=()
lacks() { ! PATH="$PATH:/usr/sbin" command -v "$1" >/dev/null; }
if lacks mosquitto; then missing+=(mosquitto); fi
if lacks redis-server; then missing+=(redis-server); fi
if lacks nginx; then missing+=(nginx-light); fi
if lacks caddy; then missing+=(caddy); fi
if lacks node; then missing+=(nodejs); fi
if lacks npm; then missing+=(npm); fi
if lacks chromium; then missing+=(chromium fonts-noto-core); fi
if ! compgen -G '/usr/lib/postgresql/*/bin/postgres' >/dev/null; then missing+=(postgresql); fi

if [ "${#missing[@]}" -eq 0 ]; then
	echo "every server of the tests is installed, and the browser"
elif [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
	echo "this needs root on Debian; otherwise install: ${missing[*]}" >&2
	exit 1
else
	export DEBIAN_FRONTEND=noninteractive
	apt-get update -qq
	apt-get install -qq --yes --no-install-recommends "${missing[@]}"
fi
