"""The OpenAPI document, the reference page and the guide, made from the routes and their types."""
