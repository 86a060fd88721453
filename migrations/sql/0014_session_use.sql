-- Whose a session is, by which it is listed and ended, and when it was last used. Sessions of before
-- have neither, are in no list and end within twelve hours, as all do.
alter table ledger.sessions add column person_id text collate "C", add column seen_at timestamptz;
create index sessions_of_person on ledger.sessions (person_id);
