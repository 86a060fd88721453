"""The service: partners' REST API, the team's CLI and the event ledger beneath both."""
