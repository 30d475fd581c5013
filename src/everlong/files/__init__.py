"""Memory files and skills: versioned, merged, searched, read as procedures, and kept in step with a real folder."""
