#!/bin/sh
# Installs every rival from its registry package into an environment of its own below a folder: install.sh FOLDER
# Needs Python with venv, node and npm. nginx is Debian's, Envoy comes with the development requirements.
set -eu
mkdir -p "$1"
cd "$1"

environment() {
	name=$1
	shift
	[ -e "$name/.ready" ] && return
	"${PYTHON:-python3}" -m venv "$name"
	"$name/bin/pip" install --quiet --disable-pip-version-check "$@"
	touch "$name/.ready"
}

environment routers sglang-router==0.3.2 vllm-router==0.1.17 setproctitle
environment litellm 'litellm[proxy]==1.80.0'
environment grpc grpclib==0.4.9 connectrpc==0.13.0 h2corn==2.0.0 protobuf uvloop
[ -d portkey/node_modules ] || npm install --silent --no-audit --no-fund --prefix portkey @portkey-ai/gateway@1.15.2
