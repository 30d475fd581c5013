"""DeerFlow: its documents, its calls and its plug-in contract over one memory. No code of DeerFlow is needed."""
