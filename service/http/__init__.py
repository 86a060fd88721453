"""HTTP without the product: bodies, decoding, responses, headers, rate limits."""
