"""The peer: FastAPI, SQLAlchemy and uvicorn.

It writes the request's body as one plain row: no authentication, no events, nothing sealed. It
lists claims from the service's own table, for whichever partner the key names.
"""

import json
import os
import uuid
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Annotated, Any

from fastapi import FastAPI, Header, HTTPException, Query
from pydantic import BaseModel, Field
from sqlalchemy import BigInteger, DateTime, Text, select
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


class ListedClaimRow(Base):
    """A row of the service's read model."""

    __tablename__ = "claim_list"
    __table_args__ = {"schema": "live"}  # noqa: RUF012 - SQLAlchemy's form
    claim_id: Mapped[str] = mapped_column(Text, primary_key=True)
    append_id: Mapped[int] = mapped_column(BigInteger)
    partner_id: Mapped[str] = mapped_column(Text)
    entity_id: Mapped[str] = mapped_column(Text)
    partner_claim_id: Mapped[str] = mapped_column(Text)
    partner_user_id: Mapped[str | None] = mapped_column(Text)
    partner_invoice_ids: Mapped[str] = mapped_column(Text)
    stage: Mapped[str] = mapped_column(Text)
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


class ListedClaim(BaseModel):
    """A claim of a page."""

    claim_id: str
    entity_id: str
    partner_claim_id: str
    partner_user_id: str | None
    partner_invoice_ids: list[str]
    name: str
    stage: str
    created_at: datetime
    entity_disconnected: bool
    entity_disconnected_at: datetime | None


class ClaimPage(BaseModel):
    """The answer."""

    claims: list[ListedClaim]
    next_page_token: str | None
    entity_disconnected: bool
    entity_disconnected_at: datetime | None


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


@app.get("/v1/claims")
async def list_claims(
    entity_id: str,
    authorization: Annotated[str, Header()],
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
    page_token: str | None = None,
) -> ClaimPage:
    """Read one page, newest first."""
    partner_id = authorization.removeprefix("Bearer pk_live_").partition(".")[0]
    row = ListedClaimRow
    query = select(row).where(row.partner_id == partner_id, row.entity_id == entity_id)
    async with new_session() as session:
        if page_token is not None:
            last = await session.get(row, page_token)
            if last is None:
                raise HTTPException(400)
            query = query.where(row.append_id < last.append_id)
        found = (await session.scalars(query.order_by(row.append_id.desc()).limit(limit + 1))).all()
    claims = [
        ListedClaim(
            claim_id=one.claim_id,
            entity_id=one.entity_id,
            partner_claim_id=one.partner_claim_id,
            partner_user_id=one.partner_user_id,
            partner_invoice_ids=json.loads(one.partner_invoice_ids),
            name=one.entity_id,  # it is in another table, which this peer does not read
            stage=one.stage,
            created_at=one.created_at,
            entity_disconnected=False,
            entity_disconnected_at=None,
        )
        for one in found[:limit]
    ]
    return ClaimPage(
        claims=claims,
        next_page_token=claims[-1].claim_id if len(found) > limit else None,
        entity_disconnected=False,
        entity_disconnected_at=None,
    )
