"""The log as C2SP tlog-tiles: files that standard clients read."""
