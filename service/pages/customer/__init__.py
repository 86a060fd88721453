"""Pages of customers: approving a partner, finishing an onboarding, their account."""
