-- What is signed and published may not be lost by a failover: whatever the session's setting.
set local synchronous_commit = on
