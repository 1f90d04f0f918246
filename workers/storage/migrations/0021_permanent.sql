-- Permanent facts no longer cool; the next pass notes it of those that have. Passes over relations are noted, too.
update activity set due_at = least(due_at, now())
where decay_class = 'permanent' and tier > 0 and not retired and not held;
alter table decay_runs
    drop constraint if exists decay_runs_work_check,
    add constraint decay_runs_work_check check (
        work in (
            'decay', 'prune', 'hard prune', 'soft prune', 'startup prune', 'review', 'consolidation', 'janitor',
            'relations'
        )
    );
