"""HTTP without the product: bodies, decoding, answers, headers, rate limits."""
