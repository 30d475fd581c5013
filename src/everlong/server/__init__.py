"""The REST server: every operation of memory under ``/v1``, for whoever has a credential."""
