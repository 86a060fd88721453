"""Who may act for whom: connect links, connections, access."""
