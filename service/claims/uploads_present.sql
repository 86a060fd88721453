-- Which of these paths are still there: a sweep may have taken one since it was checked.
select storage_path from ledger.uploads where storage_path = any($1::text[]) and swept_at is null
