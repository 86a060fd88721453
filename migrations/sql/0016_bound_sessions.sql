-- Sessions and sign-in links are bound to their rows from now on. Those of before are not, and can be
-- opened by nobody: people sign in again.
delete from ledger.sessions;
delete from ledger.sign_in_links;
