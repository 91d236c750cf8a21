#!/bin/sh
# Installs the packages of the Node peer beside the virtual environment. Needs node and npm, nothing else.
set -eu
cd "$(dirname "$0")/node"
peers=../../../.venv/peers
mkdir -p "$peers"
cp package.json package-lock.json "$peers/"
npm ci --prefix "$peers" --ignore-scripts --no-audit --no-fund
