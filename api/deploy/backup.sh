#!/bin/sh
# Dump the database each BACKUP_HOURS hours (0: once) into BACKUP_FOLDER, and remove dumps older than BACKUP_DAYS days.
set -eu
folder=${BACKUP_FOLDER:-/backups} hours=${BACKUP_HOURS:-24} days=${BACKUP_DAYS:-14}
case $hours-$days in
-* | *- | *[!0-9-]* | *-*-*)
    echo "backup: BACKUP_HOURS=$hours and BACKUP_DAYS=$days must be whole numbers" >&2
    exit 1
    ;;
esac
while :; do
    name=$folder/ebb-$(date -u +%Y%m%dT%H%M%SZ).dump pause=$((hours * 60))
    find "$folder" -name 'ebb-*.dump.part' -mmin +60 -delete # of a dump that was killed; another may be running
    if pg_dump --format=custom --file="$name.part" "$(cat "$EBB_DATABASE_URL_FILE")"; then
        mv "$name.part" "$name"
        find "$folder" -name 'ebb-*.dump' -mtime "+$days" -delete
        echo "backup: $name"
    else
        rm -f "$name.part"
        [ "$hours" != 0 ] || exit 1
        pause=10
        echo "backup: failed, and tried again in $pause minutes" >&2
    fi
    [ "$hours" != 0 ] || exit 0
    sleep "$((pause * 60))"
done
