#!/bin/sh
# Dump the database each BACKUP_HOURS hours (0: once) into BACKUP_FOLDER, and remove dumps older than BACKUP_DAYS days.
set -eu
folder=${BACKUP_FOLDER:-/backups} hours=${BACKUP_HOURS:-24} days=${BACKUP_DAYS:-14}
while :; do
    name=$folder/ebb-$(date -u +%Y%m%dT%H%M%SZ).dump
    if pg_dump --format=custom --file="$name.part" "$(cat "$EBB_DATABASE_URL_FILE")"; then
        mv "$name.part" "$name"
        find "$folder" -name 'ebb-*.dump' -mtime "+$days" -delete
        echo "backup: $name"
    else
        rm -f "$name.part"
        [ "$hours" != 0 ] || exit 1
    fi
    [ "$hours" != 0 ] || exit 0
    sleep "$((hours * 3600))"
done
