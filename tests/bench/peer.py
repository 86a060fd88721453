"""The peer: FastAPI, SQLAlchemy and uvicorn.

It writes the request's body as one plain row: no authentication, no events, nothing sealed.
"""

import os
import uuid
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from fastapi import FastAPI
from pydantic import BaseModel, Field
from sqlalchemy import DateTime, Text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.ext.asyncio import async_sessionmaker, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column


class Base(DeclarativeBase):
    """SQLAlchemy's registry."""


class ClaimRow(Base):
    """A claim as a plain row."""

    __tablename__ = "claims"
    claim_id: Mapped[uuid.UUID] = mapped_column(primary_key=True)
    entity_id: Mapped[str] = mapped_column(Text)
    partner_claim_id: Mapped[str] = mapped_column(Text)
    body: Mapped[dict[str, Any]] = mapped_column(JSONB)
    created_at: Mapped[datetime] = mapped_column(DateTime(timezone=True))


class Address(BaseModel):
    """The defendant's address."""

    first_line: str | None = None
    second_line: str | None = None
    town_city: str | None = None
    county: str | None = None
    postcode: str | None = None
    country: str | None = None


class Defendant(BaseModel):
    """Who owes the debt."""

    name: str = Field(min_length=1)
    email: str | None = None
    address: Address | None = None
    is_consumer: bool | None = None
    is_individual: bool | None = None
    company_registration_number: str | None = None


class Invoice(BaseModel):
    """An unpaid invoice."""

    number: str | None = None
    total_amount_for_invoice: Decimal | None = None
    created_date: date | None = None
    due_date: date | None = None
    summary: str | None = None


class ClaimBody(BaseModel):
    """A claim to create."""

    entity_id: str = Field(min_length=1)
    partner_claim_id: str = Field(min_length=1)
    defendant: Defendant
    invoices: list[Invoice] = Field(min_length=1)
    partner_user_id: str | None = None
    partner_invoice_ids: list[str] = []
    message: str | None = None
    contract_date: datetime | None = None
    is_written: bool | None = None


class Created(BaseModel):
    """The answer."""

    claim_id: str
    message_id: str | None
    document_ids: list[str]
    already_existed: bool


# SQLAlchemy's own pool of 5 opens and closes connections under this load.
POOL = {"pool_size": 16, "max_overflow": 0} if os.environ["PEER"] == "tuned" else {}
engine = create_async_engine(os.environ["PEER_DATABASE_URL"], **POOL)
new_session = async_sessionmaker(engine, expire_on_commit=False)
app = FastAPI()


@app.get("/health")
async def health() -> dict[str, str]:
    """Return a health check's answer."""
    return {"status": "ok"}


@app.post("/v1/claims", status_code=201)
async def create_claim(claim: ClaimBody) -> Created:
    """Write one row."""
    row = ClaimRow(
        claim_id=uuid.uuid4(),
        entity_id=claim.entity_id,
        partner_claim_id=claim.partner_claim_id,
        body=claim.model_dump(mode="json"),
        created_at=datetime.now(UTC),
    )
    async with new_session() as session:
        session.add(row)
        await session.commit()
    return Created(
        claim_id=str(row.claim_id),
        message_id=str(uuid.uuid4()),
        document_ids=[],
        already_existed=False,
    )
