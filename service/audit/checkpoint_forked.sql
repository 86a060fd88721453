-- Whether the log has lost or changed what was published; writes only where that is news.
update ledger.checkpoint_state set forked = $1 where forked <> $1
