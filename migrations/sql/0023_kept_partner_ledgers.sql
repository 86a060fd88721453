-- The same of the tables that live and test have. Uploads are removed one by one, when they are swept.
revoke delete, truncate on ledger.entities, ledger.connections, ledger.onboardings, ledger.connect_links,
ledger.claim_list, ledger.claim_documents, ledger.document_flags, ledger.mail_outbox
from claim_ledger_of;
revoke truncate on ledger.uploads from claim_ledger_of;
