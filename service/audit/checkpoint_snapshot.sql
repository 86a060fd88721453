-- Head and log as of one moment; nothing is written.
set transaction isolation level repeatable read, read only
