"""Reports for auditors: everything that happened to somebody or something in a period."""
