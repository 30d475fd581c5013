"""From what was said to what is believed: capture, extraction, reconciliation, and the transactions that store it."""
