"""How a store came to its present schema, step by step."""
