"""The OpenAPI document, the reference page and the guide, made from the endpoints."""
