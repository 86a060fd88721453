-- Which fields of a call were refused and why, or what a replay met: JSON, null where the status says
-- everything. Names and messages of ours, never a value.
alter table ledger.requests add column outcome text;
