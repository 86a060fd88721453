-- Reading the log in its order: by its index, row by row. Sorting it whole would take its size again
-- on disk before the first row came. For this transaction; 'on' lets the planner choose again.
select
    set_config('enable_sort', $1, true),
    set_config('enable_hashjoin', $1, true),
    set_config('enable_mergejoin', $1, true)
