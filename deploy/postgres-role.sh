#!/bin/sh
# Runs once, when the database is made: a role for Toolgate that is no superuser, so that row-level security holds for it.
set -eu
psql --set ON_ERROR_STOP=1 --set password="$TOOLGATE_PASSWORD" --username "$POSTGRES_USER" <<'SQL'
CREATE ROLE toolgate LOGIN PASSWORD :'password';
CREATE DATABASE toolgate OWNER toolgate;
SQL
